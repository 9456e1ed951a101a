//! What Pad and Slice say of each axis of operand 0, wherever the version of the op has it.

use super::normalize_axis;
use super::query::{ints, op_name, rank, ty};
use crate::dim::Dim;
use crate::graph::{Graph, Node};
use crate::types::Type;

/// What a Slice takes of one axis. Bounds are as ONNX has them: negative ones count from the end, far ones are cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The axis.
    pub axis: usize,
    /// The first element.
    pub start: i64,
    /// The end, which is not taken.
    pub end: i64,
    /// From one element to the next.
    pub step: i64,
}

/// How many elements a Pad adds at one end of an axis, negative where it takes some away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// So many.
    Known(i64),
    /// What this entry of operand 1 says at run time.
    Listed(usize),
}

/// What a Pad adds before and after each axis of its operand. `None` for other ops, and where the axes are not known.
pub fn paddings(graph: &Graph, node: &Node) -> Option<Vec<(Padding, Padding)>> {
    let rank = rank(graph, node, 0).filter(|_| op_name(node) == "Pad")?;
    let list: Vec<Padding> = if let Some(list) = node.ints("pads").or_else(|| node.ints("paddings")) {
        list.iter().copied().map(Padding::Known).collect()
    } else {
        let contents = graph.value(node.operand(1)?).contents.as_ref()?;
        let said = |(at, d): (usize, &Dim)| d.as_const().map_or(Padding::Listed(at), Padding::Known);
        contents.iter().enumerate().map(said).collect()
    };
    let axes = named_axes(graph, node, rank, rank)?;
    if list.len() != 2 * axes.len() {
        return None;
    }
    let mut pads = vec![(Padding::Known(0), Padding::Known(0)); rank];
    for (i, &axis) in axes.iter().enumerate() {
        *pads.get_mut(axis)? = (list[i], list[axes.len() + i]);
    }
    Some(pads)
}

/// The same where all of it is known.
pub fn pads(graph: &Graph, node: &Node) -> Option<Vec<(i64, i64)>> {
    let known = |p: Padding| if let Padding::Known(elements) = p { Some(elements) } else { None };
    paddings(graph, node)?.into_iter().map(|(before, after)| Some((known(before)?, known(after)?))).collect()
}

/// An entry of a Pad's operand 1 that is known to be zero.
pub fn zero_padding(graph: &Graph, node: &Node) -> Option<usize> {
    graph.value(node.operand(1)?).contents.as_ref()?.iter().position(|d| *d == Dim::ZERO)
}

/// What a Slice takes of the axes that it speaks of. `None` for other ops and where anything is computed at run time.
pub fn cuts(graph: &Graph, node: &Node) -> Option<Vec<Cut>> {
    let rank = rank(graph, node, 0).filter(|_| op_name(node) == "Slice")?;
    let list = |slot: usize, attr: &str| node.ints(attr).map(<[i64]>::to_vec).or_else(|| ints(graph, node, slot));
    let (starts, ends) = (list(1, "starts")?, list(2, "ends")?);
    let axes = match node.ints("axes") {
        Some(axes) => axes.iter().map(|&a| normalize_axis(a, rank)).collect::<Option<Vec<_>>>()?,
        None => named_axes(graph, node, rank, starts.len())?,
    };
    let steps = if node.operand(4).is_some() { ints(graph, node, 4)? } else { vec![1; axes.len()] };
    if [starts.len(), ends.len(), steps.len()] != [axes.len(); 3] {
        return None;
    }
    let cut = |(i, axis)| Cut { axis, start: starts[i], end: ends[i], step: steps[i] };
    Some(axes.into_iter().enumerate().map(cut).collect())
}

/// The axes that operand 3 lists; without it so many from the first on.
fn named_axes(graph: &Graph, node: &Node, rank: usize, absent: usize) -> Option<Vec<usize>> {
    match node.operand(3) {
        Some(_) => ints(graph, node, 3)?.into_iter().map(|axis| normalize_axis(axis, rank)).collect(),
        None => (absent <= rank).then(|| (0..absent).collect()),
    }
}

/// Whether a Pad adds nothing, or a Slice takes every element in its order: whatever the sizes at run time.
pub(super) fn takes_all(graph: &Graph, node: &Node) -> bool {
    let result = node.outputs.first().copied().flatten().and_then(|y| graph.value(y).ty.shape());
    let same = ty(graph, node, 0).and_then(Type::shape).is_some_and(|shape| result == Some(shape));
    same && match op_name(node) {
        "Pad" => pads(graph, node).is_some_and(|pads| pads.iter().all(|p| *p == (0, 0))),
        // As many elements as there are, one after the other, are all of them.
        "Slice" => cuts(graph, node).is_some_and(|cuts| cuts.iter().all(|cut| cut.step == 1)),
        _ => false,
    }
}
