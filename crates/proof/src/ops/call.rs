//! One use of an op, and how its attributes and operands are read.

use crate::files::model::{Attr, ReadingOf};
use crate::terms::arg::Op;
use crate::terms::name::Name;
use crate::terms::pointwise::{Made, pointwise};
use crate::terms::state::Terms;
use crate::terms::value::Value;

/// One use of an op, with the values of its operands.
pub(crate) struct Call<'c> {
    pub(crate) op: &'c str,
    pub(crate) domain: &'c str,
    pub(crate) opset: i64,
    pub(crate) attrs: &'c [(String, Attr)],
    pub(crate) inputs: &'c [Option<Value>],
    /// Which results have a name.
    pub(crate) results: Vec<bool>,
    /// Channels of a block on the hosts that the file is for.
    pub(crate) block: Option<i64>,
    pub(crate) reading: ReadingOf,
    pub(crate) terms: &'c mut Terms,
}

/// The first operator set in which the axes of operands are aligned at their ends.
pub(super) const BROADCASTS_SINCE: i64 = 7;

pub(crate) type Results = Result<Vec<Option<Value>>, String>;

impl Call<'_> {
    /// Name of the op with its domain.
    pub(crate) fn name(&self) -> String {
        if self.domain.is_empty() { self.op.to_owned() } else { format!("{}.{}", self.domain, self.op) }
    }

    /// Whether an attribute says how the axes of its operands stand to each other.
    pub(super) fn is_aligned_by_attribute(&self) -> bool {
        self.opset < BROADCASTS_SINCE && self.int("broadcast", 0) != 0
    }

    pub(crate) fn attr(&self, name: &str) -> Option<&Attr> {
        self.attrs.iter().find(|(n, _)| n == name).map(|(_, attr)| attr)
    }

    pub(crate) fn int(&self, name: &str, default: i64) -> i64 {
        match self.attr(name) {
            Some(Attr::Int(value)) => *value,
            _ => default,
        }
    }

    /// A type of elements that an attribute names; 0 if it is absent, or no type.
    pub(crate) fn dtype(&self, name: &str) -> u8 {
        u8::try_from(self.int(name, 0)).unwrap_or_default()
    }

    pub(crate) fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.attr(name) {
            Some(Attr::Ints(values)) => Some(values.clone()),
            _ => None,
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match self.attr(name) {
            Some(Attr::Text(text)) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        }
    }

    pub(crate) fn input(&self, at: usize) -> Option<&Value> {
        self.inputs.get(at).and_then(Option::as_ref)
    }

    pub(crate) fn need(&self, at: usize) -> Result<Value, String> {
        self.input(at).cloned().ok_or_else(|| format!("operand {at} is absent"))
    }

    /// An operand as known integers.
    pub(crate) fn known(&self, at: usize) -> Result<Option<Vec<i64>>, String> {
        let unknown = || format!("operand {at} is not known before the model runs");
        self.input(at).map(|value| value.as_ints().ok_or_else(unknown)).transpose()
    }

    /// Integers of an attribute in older opsets, of an operand in newer ones.
    pub(crate) fn list(&self, name: &str, at: usize) -> Result<Option<Vec<i64>>, String> {
        match self.ints(name) {
            Some(list) => Ok(Some(list)),
            // Runtimes take a number for a list of one there.
            None if self.op == "Unsqueeze" => self.known(at),
            None => self.known_list(at),
        }
    }

    /// An operand as a known list of integers: runtimes fail at a number in its place.
    pub(crate) fn known_list(&self, at: usize) -> Result<Option<Vec<i64>>, String> {
        match self.input(at) {
            Some(value) if value.rank() != 1 => {
                Err(format!("the checker does not know operand {at}, which is no list"))
            }
            _ => self.known(at),
        }
    }

    /// The same where open extents are known too.
    pub(crate) fn extents(&self, name: &str, at: usize) -> Result<Option<Vec<i64>>, String> {
        let listed = self.input(at).filter(|value| value.rank() == 1 && self.terms.is_list(value));
        match listed.and_then(|value| self.terms.numbers_of(value)) {
            Some(list) => Ok(Some(list)),
            None => match self.list(name, at)? {
                Some(list) if list.iter().any(|number| self.terms.is_open(*number)) => {
                    Err(format!("operand {at} has a number that stands for another one"))
                }
                list => Ok(list),
            },
        }
    }

    /// The only result that may have a name.
    pub(crate) fn single(&self) -> Result<(), String> {
        let more = self.results.iter().skip(1).any(|named| *named);
        if more { Err("the checker knows only its first result".to_owned()) } else { Ok(()) }
    }

    /// All attributes but these, in an order of their own, as bytes.
    pub(crate) fn encoded(&self, without: &[&str]) -> Result<Vec<u8>, String> {
        let mut kept: Vec<&(String, Attr)> =
            self.attrs.iter().filter(|(name, _)| !without.contains(&name.as_str())).collect();
        kept.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some((name, _)) = kept.iter().find(|(_, attr)| matches!(attr, Attr::Unread(..) | Attr::Graph(_))) {
            return Err(format!("the checker does not read attribute `{name}`"));
        }
        Ok(kept.iter().flat_map(|(name, attr)| format!("{name}={attr:?};").into_bytes()).collect())
    }

    /// The attributes as bytes, with those that ONNX would put in the place of absent ones.
    pub(crate) fn with_defaults(&self) -> Result<Vec<u8>, String> {
        let defaults: &[(&str, f32)] = match self.op {
            "HardSigmoid" => &[("alpha", 0.2), ("beta", 0.5)],
            "LeakyRelu" => &[("alpha", 0.01)],
            "Elu" | "Celu" | "Swish" | "SwiGLU" => &[("alpha", 1.0)],
            "Selu" if self.opset < 6 => &[("alpha", 1.6732), ("gamma", 1.0507)],
            "Selu" => &[("alpha", 1.673_263_2), ("gamma", 1.050_701)],
            _ => return self.encoded(&[]),
        };
        let mut attrs = Vec::new();
        for &(name, default) in defaults {
            let value = match self.attr(name) {
                Some(Attr::Float(value)) => *value,
                _ => default,
            };
            attrs.extend(format!("{name}={};", value.to_bits()).into_bytes());
        }
        Ok(attrs)
    }

    /// An op that treats all indices of its broadcast operands alike.
    pub(crate) fn pointwise(&mut self, attrs: &[u8], operands: &[&Value], dtype: u8) -> Made {
        let name = self.name();
        let op = Op { name: Name::Model(&name), attrs, dtype };
        pointwise(self.terms, &op, operands)
    }
}

/// An axis, counted from the end if it is negative.
pub(crate) fn axis_of(axis: i64, rank: usize) -> Result<usize, String> {
    let axis = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(axis).ok().filter(|a| *a < rank).ok_or_else(|| format!("axis {axis} of rank {rank}"))
}

/// Axes, each once.
pub(crate) fn axes_of(axes: &[i64], rank: usize) -> Result<Vec<usize>, String> {
    let mut found = Vec::new();
    for axis in axes {
        let axis = axis_of(*axis, rank)?;
        if found.contains(&axis) {
            return Err(format!("axis {axis} is named twice"));
        }
        found.push(axis);
    }
    Ok(found)
}

#[expect(clippy::unnecessary_wraps, reason = "it ends chains of results")]
pub(super) fn one(value: Value) -> Results {
    Ok(vec![Some(value)])
}
