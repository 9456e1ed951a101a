//! Questions that the conditions of the table ask of a node.

use super::read::known_ints;
use crate::graph::{Graph, Node, Op};
use crate::types::Type;

/// The op's name, whatever its domain.
pub(super) fn op_name(node: &Node) -> &str {
    match &node.op {
        Op::Onnx(name) => &name.name,
        _ => "",
    }
}

/// Type of an operand.
pub(super) fn ty<'g>(graph: &'g Graph, node: &Node, slot: usize) -> Option<&'g Type> {
    node.operand(slot).map(|v| &graph.value(v).ty)
}

/// Rank of an operand.
pub(super) fn rank(graph: &Graph, node: &Node, slot: usize) -> Option<usize> {
    ty(graph, node, slot)?.rank()
}

/// Contents of an operand, if it is a small integer tensor of known numbers.
pub(super) fn ints(graph: &Graph, node: &Node, slot: usize) -> Option<Vec<i64>> {
    known_ints(graph, node.operand(slot)?)
}

/// Whether the operand is left out, or one number whatever its rank.
pub(super) fn is_scalar(graph: &Graph, node: &Node, slot: usize) -> bool {
    match node.operand(slot) {
        None => true,
        Some(v) => graph.value(v).ty.shape().is_some_and(|s| s.is_empty() || (s.len() == 1 && s[0].is_one())),
    }
}

/// Refuses unless the operand is left out or its contents are known.
pub(super) fn known_or_absent(graph: &Graph, node: &Node, slot: usize, what: &str) -> Result<(), String> {
    let known = node.operand(slot).is_none() || ints(graph, node, slot).is_some();
    known.then_some(()).ok_or_else(|| format!("the {what} are computed at run time"))
}

/// Whether a result slot is in use.
pub(super) fn has_result(node: &Node, slot: usize) -> bool {
    node.result(slot).is_some()
}

/// Axes of operand 0 whose extent is not provably that of result 0.
pub(super) fn resized(graph: &Graph, node: &Node, rank: usize) -> Vec<usize> {
    let from = ty(graph, node, 0).and_then(Type::shape).unwrap_or_default();
    let to = node.result(0).and_then(|v| graph.value(v).ty.shape()).unwrap_or_default();
    (0..rank).filter(|&i| from.get(i).is_none() || from.get(i) != to.get(i)).collect()
}

/// The axes that a list names, or all if the list is not known.
pub(super) fn listed(axes: Option<Vec<i64>>, rank: usize) -> Vec<usize> {
    match axes {
        Some(axes) => axes.into_iter().filter_map(|a| super::normalize_axis(a, rank)).collect(),
        None => (0..rank).collect(),
    }
}
