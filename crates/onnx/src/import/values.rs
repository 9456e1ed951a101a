//! Attributes and shapes that can't be, in a graph whose types are inferred: axes that a tensor does not have, permutations
//! that are none, windows of no extent, operands that do not fit each other.
//!
//! What is refused here ONNX Runtime refuses to load; what it only refuses to run (a group count that does not divide, say)
//! is inference's to report and goes through unchanged. Of operands nothing is said where a rank is not known.

use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, NodeId, Op};

/// Every contradiction, as a sentence that names the node; bodies included. `graph` has been through inference.
pub fn impossible(graph: &Graph) -> Vec<String> {
    let mut found = Vec::new();
    for id in graph.nodes() {
        let node = graph.node(id);
        found.extend(of_node(graph, id, node).map(|why| format!("{}: {why}", node.describe(graph))));
        found.extend(node.bodies().flat_map(impossible));
    }
    found
}

fn of_node(graph: &Graph, id: NodeId, node: &Node) -> Option<String> {
    let Op::Onnx(op) = &node.op else { return None };
    if !op.domain.is_empty() {
        return None;
    }
    let shape = |slot: usize| graph.value(node.inputs.get(slot).copied().flatten()?).ty.shape();
    let ints = |name: &str| node.attrs.get(name).and_then(Attr::as_ints);
    let int = |name: &str| node.attrs.get(name).and_then(Attr::as_int);
    match op.name.as_str() {
        "Transpose" => {
            // Readers hold it against itself before they know the rank.
            let perm = ints("perm")?;
            permutation(perm, shape(0).map_or(perm.len(), <[Dim]>::len))
        }
        "Conv" | "ConvTranspose" if node.opset >= 11 => {
            let rank = shape(0)?.len();
            // With a `kernel_shape` readers look at the weights only when they run.
            let weights = shape(1).filter(|_| ints("kernel_shape").is_none()).map_or(rank, <[Dim]>::len);
            let differ = (weights != rank).then(|| format!("data of rank {rank} and weights of rank {weights}"));
            windows(node, rank).or(differ)
        }
        "ConvInteger" | "QLinearConv" | "MaxPool" | "AveragePool" | "LpPool" if node.opset >= 11 => {
            windows(node, shape(0)?.len())
        }
        "Softmax" | "LogSoftmax" | "Hardmax" | "ArgMax" | "ArgMin" | "Concat" | "Gather" | "Split"
            if node.opset >= 13 =>
        {
            axis(int("axis")?, shape(0)?.len()).or_else(|| merged(graph, node, op.name == "Concat", int("axis")?))
        }
        "Flatten" if node.opset >= 11 => axis_among(int("axis")?, shape(0)?.len(), 1),
        "Squeeze" => axes(graph, id, shape(0)?.len()),
        name if name.starts_with("Reduce") => axes(graph, id, shape(0)?.len()),
        "DepthToSpace" | "SpaceToDepth" if node.opset >= 11 => {
            int("blocksize").filter(|&n| n <= 0 && shape(0).is_some()).map(|n| format!("`blocksize` is {n}"))
        }
        "Cast" => {
            let to = int("to")?;
            let known = i32::try_from(to).ok().and_then(DType::from_onnx).is_some();
            (!known).then(|| format!("`to` is {to}, which is not an element type"))
        }
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "And" | "Or" | "Xor" | "Equal" | "Greater" | "Less"
            if node.opset >= 7 =>
        {
            broadcast(shape(0)?, shape(1)?)
        }
        "MatMul" => {
            let (a, b) = (shape(0)?, shape(1)?);
            let (k, l) = (a.last()?.as_const()?, b.get(b.len().saturating_sub(2))?.as_const()?);
            (k != l).then(|| format!("an operand with {k} columns and one with {l} rows"))
        }
        _ => None,
    }
}

fn permutation(perm: &[i64], rank: usize) -> Option<String> {
    let mut seen = vec![false; rank];
    let sound = perm.len() == rank
        && perm.iter().all(|&axis| {
            usize::try_from(axis)
                .ok()
                .and_then(|axis| seen.get_mut(axis))
                .is_some_and(|seen| !std::mem::replace(seen, true))
        });
    (!sound).then(|| format!("`perm` {} is not a permutation of {rank} axes", listed(perm)))
}

/// Attributes of windows over all axes but the first two.
fn windows(node: &Node, rank: usize) -> Option<String> {
    let spatial = rank.checked_sub(2)?;
    for (name, length, least) in [
        ("kernel_shape", spatial, 1),
        ("strides", spatial, 1),
        ("dilations", spatial, 1),
        ("pads", spatial.saturating_mul(2), 0),
    ] {
        let Some(values) = node.attrs.get(name).and_then(Attr::as_ints) else { continue };
        if values.len() != length {
            return Some(format!("`{name}` {} has {} entries, and needs {length}", listed(values), values.len()));
        }
        if let Some(value) = values.iter().find(|&&value| value < least) {
            return Some(format!("`{name}` holds {value}, and may hold {least} or more"));
        }
    }
    None
}

/// Of numbers beyond 32 bits readers take what their own type holds.
fn axis(axis: i64, rank: usize) -> Option<String> {
    i32::try_from(axis).ok().and_then(|_| axis_among(axis, rank, 0))
}

/// An axis from `-rank` up to `rank - 1 + extra`.
fn axis_among(axis: i64, rank: usize, extra: i64) -> Option<String> {
    let limit = i64::try_from(rank).ok()?;
    let outside = axis < -limit || axis >= limit + extra;
    outside.then(|| format!("axis {axis} is out of range for rank {rank}"))
}

/// The list `axes`, which is an attribute or, in newer opsets, a constant operand.
fn axes(graph: &Graph, id: NodeId, rank: usize) -> Option<String> {
    let node = graph.node(id);
    let operand = node.inputs.get(1).copied().flatten();
    let constant = operand.and_then(|v| match &graph.node(graph.value(v).producer().0).op {
        Op::Constant(c) => c.to_ints(rank + 1),
        _ => None,
    });
    let list = node.attrs.get("axes").and_then(Attr::as_ints).map(<[i64]>::to_vec).or(constant)?;
    list.into_iter().find_map(|axis| axis_among(axis, rank, 0))
}

/// Operands of a Concat: one rank, and one extent along every axis but that of the Concat.
fn merged(graph: &Graph, node: &Node, is_concat: bool, axis: i64) -> Option<String> {
    let mut shapes = node.inputs.iter().flatten().filter_map(|&v| graph.value(v).ty.shape());
    let first = shapes.next().filter(|_| is_concat)?;
    let along = usize::try_from(axis.rem_euclid(i64::try_from(first.len()).ok()?.max(1))).ok()?;
    shapes.find_map(|shape| {
        if shape.len() != first.len() {
            return Some(format!("operands of ranks {} and {}", first.len(), shape.len()));
        }
        let pairs = first.iter().zip(shape).enumerate().filter(|&(at, _)| at != along);
        let mut known = pairs.filter_map(|(at, (a, b))| Some((at, a.as_const()?, b.as_const()?)));
        known.find(|&(_, a, b)| a != b).map(|(at, a, b)| format!("operands of extents {a} and {b} along axis {at}"))
    })
}

fn broadcast(a: &[Dim], b: &[Dim]) -> Option<String> {
    let pairs = a.iter().rev().zip(b.iter().rev());
    let mut known = pairs.filter_map(|(a, b)| Some((a.as_const()?, b.as_const()?)));
    let (a, b) = known.find(|&(a, b)| a != b && a != 1 && b != 1)?;
    Some(format!("operands of extents {a} and {b} along one axis"))
}

/// A list for a message, which a file may have made absurdly long.
fn listed(values: &[i64]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = values.iter().take(SHOWN).map(i64::to_string).collect();
    format!("[{}{}]", shown.join(", "), if values.len() > SHOWN { ", ..." } else { "" })
}

#[cfg(test)]
mod tests {
    use super::permutation;

    #[test]
    fn a_perm_names_every_axis_once() {
        for (perm, rank) in [(&[][..], 0), (&[0], 1), (&[2, 0, 1], 3)] {
            assert_eq!(permutation(perm, rank), None, "{perm:?}");
        }
        // ONNX Runtime loads a shorter one and fails when it runs.
        for (perm, rank) in [(&[][..], 3), (&[1, 0], 3), (&[0, 1, 2, 3], 3), (&[0, 0, 1], 3), (&[0, 1, -1], 3)] {
            assert!(permutation(perm, rank).is_some_and(|why| why.contains("not a permutation of 3 axes")), "{perm:?}");
        }
    }
}
