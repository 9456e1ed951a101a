//! Numbers that an op is told by an attribute in older versions and by an operand in newer ones.

use super::super::query::op_name;
use crate::dim::Dim;
use crate::graph::{Graph, Node, ValueId};
use std::borrow::Cow;

/// A number, or a list of them, that newer versions of an op read as an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The op, of ONNX's own domain.
    pub op: &'static str,
    /// The operand's name, and the attribute's that was there before.
    pub name: &'static str,
    /// The operand's slot.
    pub slot: usize,
    /// The first version that reads it.
    pub since: i64,
    /// Whether an attribute said it before.
    pub was_attribute: bool,
}

const fn told(op: &'static str, name: &'static str, slot: usize, since: i64) -> Told {
    Told { op, name, slot, since, was_attribute: true }
}

const fn new(op: &'static str, name: &'static str, slot: usize, since: i64) -> Told {
    Told { op, name, slot, since, was_attribute: false }
}

/// Every one of them.
pub static OPERANDS: &[Told] = &[
    told("Reshape", "shape", 1, 5),
    told("Upsample", "scales", 1, 9),
    told("Slice", "starts", 1, 10),
    told("Slice", "ends", 2, 10),
    told("Slice", "axes", 3, 10),
    new("Slice", "steps", 4, 10),
    told("TopK", "k", 1, 10),
    told("Clip", "min", 1, 11),
    told("Clip", "max", 2, 11),
    told("Pad", "pads", 1, 11),
    told("Pad", "value", 2, 11),
    new("Pad", "axes", 3, 18),
    told("Dropout", "ratio", 1, 12),
    told("Split", "split", 1, 13),
    told("Squeeze", "axes", 1, 13),
    told("Unsqueeze", "axes", 1, 13),
    told("ReduceSum", "axes", 1, 13),
    told("ReduceL1", "axes", 1, 18),
    told("ReduceL2", "axes", 1, 18),
    told("ReduceLogSum", "axes", 1, 18),
    told("ReduceLogSumExp", "axes", 1, 18),
    told("ReduceMax", "axes", 1, 18),
    told("ReduceMean", "axes", 1, 18),
    told("ReduceMin", "axes", 1, 18),
    told("ReduceProd", "axes", 1, 18),
    told("ReduceSumSquare", "axes", 1, 18),
    told("DFT", "axis", 2, 20),
];

/// Where a version of an op is told a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the attribute of that name.
    Attribute,
    /// In the operand of this slot.
    Operand(usize),
    /// Nowhere: the version does not know it.
    Nowhere,
}

/// Where the op of this version of ONNX's domain is told what it calls `name`. What [`OPERANDS`] does not list is an attribute.
pub fn place_of(op: &str, name: &str, opset: i64) -> Place {
    match OPERANDS.iter().find(|told| told.op == op && told.name == name) {
        Some(told) if opset >= told.since => Place::Operand(told.slot),
        Some(told) if !told.was_attribute => Place::Nowhere,
        _ => Place::Attribute,
    }
}

/// A list of integers that a node is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum List<'a> {
    /// Neither the attribute nor the operand is there.
    Absent,
    /// Its entries are known: numbers, or expressions of symbols.
    Known(Cow<'a, [Dim]>),
    /// This operand says it when the model runs.
    Computed(ValueId),
}

impl List<'_> {
    /// Whether the node is told none.
    pub fn is_absent(&self) -> bool {
        *self == List::Absent
    }

    /// The entries, if they are known.
    pub fn dims(&self) -> Option<&[Dim]> {
        match self {
            List::Known(dims) => Some(dims),
            _ => None,
        }
    }

    /// The entries, if all are known numbers.
    pub fn ints(&self) -> Option<Vec<i64>> {
        self.dims()?.iter().map(Dim::as_const).collect()
    }

    /// How many entries there are, which may be known though they are not.
    pub fn len_in(&self, graph: &Graph) -> Option<usize> {
        match self {
            List::Absent => None,
            List::Known(dims) => Some(dims.len()),
            List::Computed(v) => match graph.value(*v).ty.shape()? {
                [n] => usize::try_from(n.as_const()?).ok(),
                _ => None,
            },
        }
    }
}

/// The operand that tells a node what older versions have in this attribute.
pub(super) fn operand_told(node: &Node, name: &str) -> Option<ValueId> {
    let told = OPERANDS.iter().find(|told| told.op == op_name(node) && told.name == name)?;
    node.operand(told.slot)
}

/// The list in this attribute, or else in the operand that the op has in its place.
pub fn list<'a>(graph: &'a Graph, node: &Node, name: &str) -> List<'a> {
    if let Some(list) = node.ints(name) {
        return List::Known(list.iter().copied().map(Dim::from).collect());
    }
    match operand_told(node, name) {
        None => List::Absent,
        Some(v) => match &graph.value(v).contents {
            Some(contents) => List::Known(Cow::Borrowed(contents)),
            None => List::Computed(v),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{TABLE, entries};

    #[test]
    fn every_entry_is_an_op_of_the_table_that_its_versions_part() {
        for told in OPERANDS {
            assert!(entries().any(|def| def.domain.is_empty() && def.name == told.op), "{told:?}");
            let before = if told.was_attribute { Place::Attribute } else { Place::Nowhere };
            assert_eq!(place_of(told.op, told.name, told.since - 1), before);
            assert_eq!(place_of(told.op, told.name, told.since), Place::Operand(told.slot));
        }
        assert_eq!(place_of("Conv", "pads", 26), Place::Attribute);
    }

    #[test]
    fn reductions_of_the_table_read_their_axes_since_the_version_said_here() {
        for def in TABLE.iter().flat_map(|family| family.ops).filter(|def| def.domain.is_empty()) {
            let crate::op::Axes::Sig([case, ..]) = &def.axes else { continue };
            let Some(reduce) = case.reduce.filter(|reduce| reduce.attr != Some("axis")) else { continue };
            let place = reduce.input.map_or(Place::Attribute, Place::Operand);
            assert_eq!([def.opsets.0, def.opsets.1].map(|opset| place_of(def.name, "axes", opset)), [place; 2]);
        }
    }
}
