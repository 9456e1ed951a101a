//! What a node does with the channels of an image that it reads, and what of its operands lies in their order.

use super::super::route_channels::{CHANNELS, count};
use relayout_ir::constant::Constant;
use relayout_ir::form::{Form, Slot};
use relayout_ir::graph::{Graph, Node, NodeId, Op, Use, ValueId};
use relayout_ir::op::read::group;
use relayout_ir::op::{Alike, alike, bind, normalize_axis};
use rustc_hash::FxHashSet;

/// What a node does with the channels that it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// It adds up over all of them, times weights.
    Sums,
    /// Each goes on by itself, in this result.
    Carries(ValueId),
    /// They are put beside others, in this result.
    Joins(ValueId),
}

/// An operand of a node, and the axis along which it has an entry for each channel.
pub(super) type Entry = (usize, usize);

/// Where a Concat has its parts: every so many operands from this one on.
pub(super) fn parts(node: &Node) -> Option<(usize, usize)> {
    let Op::Onnx(op) = &node.op else { return None };
    let places = match (op.domain.as_str(), op.name.as_str()) {
        ("", "Concat") => (0, 1),
        // Each part has a scale and a zero point behind it; those of the result come first.
        ("com.microsoft", "QLinearConcat") => (2, 3),
        _ => return None,
    };
    (normalize_axis(node.int("axis")?, 4)? == CHANNELS).then_some(places)
}

/// What the reader does with the channels; `None` if they have to lie as they do.
pub(super) fn reading(graph: &Graph, u: Use) -> Option<Reading> {
    let node = graph.node(u.node);
    let y = node.only_result()?;
    if let Some((first, each)) = parts(node) {
        let part = u.slot.checked_sub(first)?.is_multiple_of(each) && u.slot < node.inputs.len();
        return part.then_some(Reading::Joins(y));
    }
    if let Some((_, entries)) = meets(graph, u.node, Slot::In(u.slot)).filter(|(to, _)| *to == Some(Slot::Out(0))) {
        return has_entries(graph, node, y, &entries).then_some(Reading::Carries(y));
    }
    sums(graph, u).then_some(Reading::Sums)
}

/// Whether a convolution of all channels makes this value, by weights and a bias that are constant.
pub(super) fn is_made(graph: &Graph, y: ValueId) -> bool {
    let n = graph.value(y).producer().0;
    let node = graph.node(n);
    let made = || made(graph, n).is_some_and(|entries| has_entries(graph, node, y, &entries));
    convolves(node).is_some() && node.only_result() == Some(y) && made()
}

/// What of a convolution lies in the order of the channels that it makes.
pub(super) fn made(graph: &Graph, n: NodeId) -> Option<Vec<Entry>> {
    meets(graph, n, Slot::Out(0)).filter(|(to, _)| to.is_none()).map(|(_, entries)| entries)
}

/// What of a node lies in the order of the channels of an operand.
pub(super) fn read(graph: &Graph, u: Use) -> Vec<Entry> {
    meets(graph, u.node, Slot::In(u.slot)).map(|(_, entries)| entries).unwrap_or_default()
}

/// The one image on the other side of a node that has the same channels, and the operands with an entry for each.
fn meets(graph: &Graph, n: NodeId, slot: Slot) -> Option<(Option<Slot>, Vec<Entry>)> {
    let node = graph.node(n);
    let bound = bind(graph, n);
    let Form::Axes(bound) = &bound else { return None };
    let Alike { places, .. } = alike(graph, node, bound, slot, CHANNELS)?;
    let (mut to, mut entries) = (None, Vec::new());
    for (place, axis) in places {
        match place {
            Slot::In(at) if is_laid(graph, node.operand(at)?, axis) => entries.push((at, axis)),
            _ if axis == CHANNELS && to.is_none() => to = Some(place),
            _ => return None,
        }
    }
    Some((to, entries))
}

/// The place of the weights of a convolution.
fn convolves(node: &Node) -> Option<usize> {
    match node.onnx()? {
        "Conv" => Some(1),
        "QLinearConv" => Some(3),
        _ => None,
    }
}

/// Whether weights and bias are told channel by channel. One element along an axis is not told from one for all.
fn has_entries(graph: &Graph, node: &Node, y: ValueId, entries: &[Entry]) -> bool {
    let Some(weights) = convolves(node) else { return true };
    let bias = if weights == 1 { 2 } else { 8 };
    let has = |slot: usize| node.operand(slot).is_none() || entries.contains(&(slot, 0));
    count(graph, y) == Some(1) || has(weights) && has(bias)
}

/// Whether a convolution adds up over the channels in integers.
fn sums(graph: &Graph, u: Use) -> bool {
    let node = graph.node(u.node);
    let Some(weights) = convolves(node).filter(|_| u.slot == 0 && group(node) == Ok(1)) else { return false };
    let Some(y) = node.only_result() else { return false };
    let entries = read(graph, u);
    let told = entries == [(weights, CHANNELS)] || node.operand(0).and_then(|x| count(graph, x)) == Some(1);
    told && (node.onnx() == Some("QLinearConv") || is_quantized(graph, y))
}

/// Whether floats are only read to be quantized, as they are or cut off.
fn is_quantized(graph: &Graph, y: ValueId) -> bool {
    let mut left = vec![y];
    while let Some(y) = left.pop() {
        let uses = graph.uses(y);
        if graph.is_output(y) || uses.is_empty() || uses.iter().any(|u| u.slot != 0) {
            return false;
        }
        for reader in uses.iter().map(|u| graph.node(u.node)) {
            match (reader.onnx(), reader.only_result()) {
                (Some("QuantizeLinear"), _) => {}
                (Some("Relu" | "Clip"), Some(y)) => left.push(y),
                _ => return false,
            }
        }
    }
    true
}

/// Whether a value is a constant that can be stored in another order along an axis, or is dequantized from such ones.
fn is_laid(graph: &Graph, v: ValueId, axis: usize) -> bool {
    is_stored(graph, v) || entries_of(graph, v, axis).is_some() && graph.only_use(v).is_some()
}

/// Whether a value is a constant whose elements can be stored in another order.
fn is_stored(graph: &Graph, v: ValueId) -> bool {
    let whole = |c: &Constant| c.dtype.bits().is_some_and(|bits| bits >= 8);
    graph.constant(v).is_some_and(|c| whole(c) && c.pending.is_none() && c.source.is_available())
}

/// What of a `DequantizeLinear` of constants lies in the order of an axis of its result.
pub(super) fn entries_of(graph: &Graph, v: ValueId, axis: usize) -> Option<Vec<Entry>> {
    let (n, _) = graph.value(v).producer();
    let node = graph.node(n);
    let Form::Axes(bound) = &node.form else { return None };
    let Alike { places, .. } = alike(graph, node, bound, Slot::Out(0), axis)?;
    let entry = |&(place, axis): &(Slot, usize)| match place {
        Slot::In(slot) => is_stored(graph, node.operand(slot)?).then_some((slot, axis)),
        Slot::Out(_) => None,
    };
    let entries: Vec<Entry> = places.iter().map(entry).collect::<Option<_>>()?;
    (node.onnx() == Some("DequantizeLinear") && entries.iter().any(|&(slot, _)| slot == 0)).then_some(entries)
}

/// The values of a graph that are computed of constants alone, and these.
pub(super) fn constants(graph: &Graph, order: &[NodeId]) -> FxHashSet<ValueId> {
    let mut known = FxHashSet::default();
    for &n in order {
        let node = graph.node(n);
        let folds = match &node.op {
            Op::Constant(_) => true,
            Op::Onnx(_) => !node.inputs.is_empty() && node.inputs.iter().flatten().all(|v| known.contains(v)),
            _ => false,
        };
        if folds && node.captures.is_empty() {
            known.extend(node.outputs.iter().flatten());
        }
    }
    known
}
