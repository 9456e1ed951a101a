//! What a node is told as bytes, from which all of it can be read again: two nodes with equal bytes are told the same.

use super::model::Attr;

/// The version of an op and all of its attributes, each with its bits.
pub(crate) fn exact(opset: i64, attrs: &[(String, Attr)]) -> Result<Vec<u8>, String> {
    let mut told = Bytes::default();
    told.number(opset);
    told.attrs(attrs)?;
    Ok(told.all)
}

/// Bytes from which all that was written can be read again.
#[derive(Default)]
pub(crate) struct Bytes {
    pub(crate) all: Vec<u8>,
}

impl Bytes {
    pub(crate) fn number(&mut self, number: i64) {
        self.all.extend(number.to_le_bytes());
    }

    pub(crate) fn list(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as i64);
        self.all.extend(bytes);
    }

    /// All attributes but bodies, each with its bits.
    pub(crate) fn attrs(&mut self, attrs: &[(String, Attr)]) -> Result<(), String> {
        let mut sorted: Vec<&(String, Attr)> = attrs.iter().filter(|(_, a)| !matches!(a, Attr::Graph(_))).collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        self.number(sorted.len() as i64);
        for (name, attr) in sorted {
            self.list(name.as_bytes());
            self.list(&[attr.kind() as u8]);
            self.attr(attr).ok_or_else(|| format!("the checker does not read attribute `{name}`"))?;
        }
        Ok(())
    }

    fn attr(&mut self, attr: &Attr) -> Option<()> {
        match attr {
            Attr::Float(value) => self.number(i64::from(value.to_bits())),
            Attr::Int(value) => self.number(*value),
            Attr::Text(text) => self.list(text),
            Attr::Floats(list) => self.list(&list.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>()),
            Attr::Ints(list) => self.list(&list.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>()),
            Attr::Texts(list) => {
                self.number(list.len() as i64);
                for text in list {
                    self.list(text);
                }
            }
            Attr::Tensor(tensor) => {
                self.list(&tensor.dims.iter().flat_map(|dim| dim.to_le_bytes()).collect::<Vec<_>>());
                self.list(&[tensor.dtype]);
                self.list(&tensor.data);
            }
            // Types. What else is not read may name values and files.
            Attr::Unread('p' | 'P', bytes) => self.list(bytes),
            Attr::Unread(..) | Attr::Graph(_) | Attr::Ref(_) => return None,
        }
        Some(())
    }
}
