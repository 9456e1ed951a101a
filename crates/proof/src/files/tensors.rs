//! The decoder of constants: their data stands in one of several fields, or in a file beside the model.

use crate::error::Error;
use crate::files::decode::{Read, Reader, dtype};
use crate::files::model::{Tensor, packed, width};
use crate::files::wire::{Field, fixeds, varints};
use bytes::Bytes;
use relayout_fsio::{Mapped, is_inside};

impl Reader {
    pub(crate) fn tensor(&mut self, bytes: &Bytes) -> Read<(String, Tensor)> {
        let (mut name, mut tensor, mut external) = (String::new(), Tensor::default(), Vec::new());
        let (mut raw, mut typed, mut elsewhere) = (None, Vec::new(), false);
        for (number, field) in self.with_single(bytes, "a tensor", &[2, 8, 9, 14])? {
            match number {
                1 => tensor
                    .dims
                    .extend(varints(field).ok_or_else(|| self.damaged("a tensor"))?.iter().map(|&n| n as i64)),
                2 => tensor.dtype = dtype(field.number()),
                4 | 5 | 7 | 10 | 11 => typed.push((number, field)),
                6 => return Err(Error::Unsupported { what: "a constant of strings".to_owned() }),
                8 => name = field.text(),
                9 => raw = Some(field.bytes()),
                13 => external.push(self.entry(&field.bytes())?),
                14 => elsewhere = field.number() == 1,
                _ => {}
            }
        }
        // Readers differ about which of them counts.
        if raw.is_some() && (elsewhere || !typed.is_empty()) || elsewhere && !typed.is_empty() {
            return Err(Error::Unsupported { what: format!("the constant `{name}`, whose data stands in two places") });
        }
        tensor.data = match (elsewhere, raw) {
            (true, _) => self.external(&name, &external)?,
            (false, Some(raw)) => raw,
            (false, None) => self.typed(tensor.dtype, typed)?,
        };
        if let Some((each, count)) = packed(tensor.dtype).zip(count(&tensor.dims)) {
            tensor.data = unpacked(&tensor.data, each, count).ok_or_else(|| self.other_count(&name, &tensor))?;
        }
        self.check(&name, &tensor)?;
        Ok((name, tensor))
    }

    fn check(&self, name: &str, tensor: &Tensor) -> Read<()> {
        let count = count(&tensor.dims);
        let wanted = width(tensor.dtype).and_then(|w| count?.checked_mul(w as i64));
        if wanted == Some(tensor.data.len() as i64) { Ok(()) } else { Err(self.other_count(name, tensor)) }
    }

    fn other_count(&self, name: &str, tensor: &Tensor) -> Error {
        let why = format!("constant `{name}` has {} bytes, and its type asks for another number", tensor.data.len());
        Error::Read { file: self.file.clone(), why }
    }

    /// Numbers in the fields that have them by type.
    fn typed(&self, dtype: u8, parts: Vec<(u32, Field)>) -> Read<Bytes> {
        let mut data = Vec::new();
        for (number, field) in parts {
            match number {
                4 => data.extend(fixeds::<4>(field)),
                10 => data.extend(fixeds::<8>(field)),
                _ => {
                    let width = width(dtype).unwrap_or(8);
                    let numbers = varints(field).ok_or_else(|| self.damaged("a tensor"))?;
                    data.extend(numbers.iter().flat_map(|n| n.to_le_bytes().into_iter().take(width)));
                }
            }
        }
        Ok(data.into())
    }

    fn external(&mut self, name: &str, entries: &[(String, String)]) -> Read<Bytes> {
        let find = |key: &str| entries.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        let wrong = |why: &str| Error::Read { file: self.file.clone(), why: format!("constant `{name}`: {why}") };
        let location =
            find("location").filter(|l| is_inside(l)).ok_or_else(|| wrong("its data has no place in the folder"))?;
        let number = |key| find(key).map_or(Some(None), |v| v.parse::<usize>().ok().map(Some));
        let (offset, length) = number("offset").zip(number("length")).ok_or_else(|| wrong("its place is no number"))?;
        if !self.external.contains_key(location) {
            let folder = self.folder.as_ref().ok_or_else(|| wrong("its data is not there"))?;
            let path = folder.join(location);
            let mapped = Mapped::open(&path).map_err(|e| wrong(&e.to_string()))?;
            self.external.insert(location.to_owned(), mapped.bytes().clone());
        }
        let whole = &self.external[location];
        let start = offset.unwrap_or(0);
        let end = length.map_or(Some(whole.len()), |length| start.checked_add(length));
        let end =
            end.filter(|end| start <= *end && *end <= whole.len()).ok_or_else(|| wrong("its data ends too early"))?;
        Ok(whole.slice(start..end))
    }
}

/// How many elements dims have. Of no elements, too, strides of the other dims have to be numbers.
fn count(dims: &[i64]) -> Option<i64> {
    let room = dims.iter().try_fold(1i64, |n, &d| n.checked_mul(d.max(1)).filter(|_| d >= 0))?;
    Some(if dims.contains(&0) { 0 } else { room })
}

/// Elements of which so many are in a byte, the first in its lowest bits, as a byte each; `None` if they are not so many.
fn unpacked(data: &Bytes, each: usize, count: i64) -> Option<Bytes> {
    let count = usize::try_from(count).ok().filter(|count| count.div_ceil(each) == data.len())?;
    let bits = 8 / each;
    let apart = data.iter().flat_map(|byte| (0..each).map(move |at| byte >> (at * bits) & (0xff >> (8 - bits))));
    Some(apart.take(count).collect())
}
