//! Which values of a file of standard operators ONNX Runtime stores in blocks when it loads the file, and what its ops cost there.

use super::machine::Machine;
use super::on_load;
use super::taken_in::{activation_of, is_sum, is_taken_in};
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::read::is_constant;
use relayout_ir::op::text_or_default;
use relayout_ir::storage::ImageAxes;
use relayout_target_api::{Cost, Loaded, OpQuery};
use std::collections::BTreeSet;

/// Ops of one operand that the runtime leaves in blocks, beside those that convolutions take in. It makes `HardSwish` of the first opsets
/// that have it from two others of this list.
const OF_ONE: &[&str] = &["Relu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Gelu", "Identity", "Dropout"];

/// Ops of several operands that it leaves in blocks where all of them lie so.
const OF_MORE: &[&str] = &["Add", "Sum", "Mul"];

/// Rank of images, and the axis of channels where these come first.
const IMAGE: usize = 4;
const CHANNELS: usize = 1;

/// What the runtime stores in blocks of a graph.
pub(super) fn loaded(graph: &Graph, is_constant: &dyn Fn(ValueId) -> bool, machine: &Machine) -> Loaded {
    let mut stored = BTreeSet::new();
    for n in graph.order().unwrap_or_default() {
        let node = graph.node(n);
        let lies = |v: ValueId| stored.contains(&v);
        if runs_in_blocks(graph, n, is_constant, machine) || stays(graph, n, &lies, machine) {
            stored.extend(node.outputs.iter().flatten());
        }
    }
    Loaded { stored }
}

/// Whether the runtime runs a node in blocks whatever is around it.
pub(super) fn runs_in_blocks(
    graph: &Graph,
    n: NodeId,
    is_constant: &dyn Fn(ValueId) -> bool,
    machine: &Machine,
) -> bool {
    let node = graph.node(n);
    let block = machine.block.channels();
    match node.onnx() {
        Some("Conv") => {
            let known = |slot| node.operand(slot).is_none_or(is_constant);
            node.operand(0).is_some_and(|x| is_image(graph, x))
                && known(1)
                && known(2)
                && on_load::takes(graph, node, block)
        }
        Some("MaxPool" | "AveragePool" | "GlobalAveragePool" | "GlobalMaxPool") => {
            let pooled = node.operand(0).filter(|&x| is_image(graph, x));
            pooled.is_some_and(|x| is_whole(graph, x, CHANNELS, block))
                && node.outputs.iter().skip(1).all(Option::is_none)
        }
        _ => false,
    }
}

/// Whether the runtime leaves a node in blocks some of whose operands `lies` says to lie so.
fn stays(graph: &Graph, n: NodeId, lies: &dyn Fn(ValueId) -> bool, machine: &Machine) -> bool {
    let node = graph.node(n);
    let operands = || node.inputs.iter().flatten().copied();
    let first = node.operand(0).is_some_and(lies);
    let taken = first && is_activation(graph, n, machine) && is_taken_in(graph, n, machine.release);
    taken
        || match node.onnx() {
            Some(op) if OF_ONE.contains(&op) => first,
            Some(op) if OF_MORE.contains(&op) => {
                operands().all(lies) && (is_of_one_shape(graph, node) || is_gated_sum(graph, node))
            }
            Some("BatchNormalization") => {
                first && node.inputs.iter().skip(1).flatten().all(|&v| graph.constant(v).is_some())
            }
            Some("Concat") => {
                let whole = |v| is_whole(graph, v, CHANNELS, machine.block.channels());
                node.int("axis") == Some(1) && operands().all(lies) && operands().all(whole)
            }
            Some("Resize" | "Upsample") => first && resizes(node),
            _ => false,
        }
}

/// Whether a node is an activation that a convolution of the release takes in.
fn is_activation(graph: &Graph, n: NodeId, machine: &Machine) -> bool {
    activation_of(graph, n, machine.release).is_some()
}

/// Whether operands and results have one shape.
fn is_of_one_shape(graph: &Graph, node: &Node) -> bool {
    let shape = |v: ValueId| graph.value(v).ty.shape();
    let Some(first) = node.operand(0).and_then(shape) else { return false };
    node.inputs.iter().flatten().all(|&v| shape(v) == Some(first))
}

/// Whether a node adds an image and a number for each of its channels: the runtime adds these by way of other shapes of the blocks.
fn is_gated_sum(graph: &Graph, node: &Node) -> bool {
    let shape = |slot| node.operand(slot).and_then(|v| graph.value(v).ty.shape());
    let [Some(a), Some(b)] = [shape(0), shape(1)] else { return false };
    let gates = |image: &[Dim], gate: &[Dim]| {
        image.len() == IMAGE && gate.len() == IMAGE && image[..2] == gate[..2] && gate[2..].iter().all(Dim::is_one)
    };
    is_sum(node) && (gates(a, b) || gates(b, a))
}

/// Whether the runtime has a kernel of blocks for the way in which a Resize scales.
pub(super) fn resizes(node: &Node) -> bool {
    let modern = node.onnx() == Some("Resize") && node.opset >= 11;
    let coordinates = text_or_default(node, "coordinate_transformation_mode").filter(|_| modern);
    let rounding = text_or_default(node, "nearest_mode").filter(|_| modern);
    matches!(
        (text_or_default(node, "mode"), coordinates.unwrap_or("asymmetric"), rounding.unwrap_or("floor")),
        (Some("nearest"), "asymmetric", "floor") | (Some("linear"), "asymmetric" | "half_pixel" | "align_corners", _)
    )
}

/// Whether a value is an image of floats.
fn is_image(graph: &Graph, v: ValueId) -> bool {
    let ty = &graph.value(v).ty;
    ty.dtype() == Some(DType::F32) && ty.rank() == Some(IMAGE)
}

/// Whether the channels of an image, along this axis, are whole blocks.
fn is_whole(graph: &Graph, v: ValueId, axis: usize, block: u64) -> bool {
    let channels = graph.value(v).ty.shape().and_then(|shape| shape.get(axis)?.as_const());
    channels.and_then(|c| u64::try_from(c).ok()).is_some_and(|c| c.is_multiple_of(block))
}

/// What an op costs in blocks; `None` if the runtime has it in none.
pub(super) fn in_blocks(query: &OpQuery<'_>, machine: &Machine) -> Option<Cost> {
    let (graph, n) = (query.graph, query.node);
    let node = graph.node(n);
    let is_blocked = |l: &Layout| machine.is_blocked_image(l);
    let read = node.inputs.iter().zip(query.ins).filter_map(|(v, l)| Some(((*v)?, l)));
    let blocked: BTreeSet<ValueId> = read.clone().filter(|(_, l)| is_blocked(l)).map(|(v, _)| v).collect();
    let constant = |v: ValueId| is_constant(graph, v);
    if !query.outs.iter().all(is_blocked) || blocked.iter().any(|&v| constant(v)) {
        return None;
    }
    let lies = |v: ValueId| blocked.contains(&v);
    if !stays_in_any_order(query, n, &lies, machine) {
        return None;
    }
    if is_taken_in(graph, n, machine.release) {
        return Some(Cost::ZERO);
    }
    // Channels that fill a block are computed for nothing.
    let [pixels, c, slots] = machine.blocked_result(graph, n, query.outs)?;
    let (own, padded) = (pixels.saturating_mul(c), pixels.saturating_mul(slots));
    Some(Cost::new(machine.pass(node, padded).saturating_sub(machine.pass(node, own))))
}

/// Whether a node stays in blocks, whatever the order of its axes in the file: the runtime sees it as it will be written, channels first.
fn stays_in_any_order(query: &OpQuery<'_>, n: NodeId, lies: &dyn Fn(ValueId) -> bool, machine: &Machine) -> bool {
    let graph = query.graph;
    let node = graph.node(n);
    if node.onnx() != Some("Concat") {
        return stays(graph, n, lies, machine);
    }
    let Some(axes) = query.outs.first().and_then(|l| machine.blocked_axes(l)) else { return false };
    let block = machine.block.channels();
    let whole = |v: ValueId| is_whole(graph, v, axes.c, block);
    let own = node.int("axis").map(|axis| if axis < 0 { axis + IMAGE as i64 } else { axis });
    own == Some(axes.c as i64) && node.inputs.iter().flatten().all(|&v| lies(v) && whole(v))
}

/// What an activation costs in an order of whole axes that a convolution would take in: nothing where it stands right behind the
/// convolution, which leaves channels first, and else a pass.
pub(super) fn behind_moves(query: &OpQuery<'_>, machine: &Machine) -> Cost {
    let (graph, n) = (query.graph, query.node);
    if !is_taken_in(graph, n, machine.release) {
        return Cost::ZERO;
    }
    let node = graph.node(n);
    let first = |l: &Layout| {
        let order = l.as_permutation();
        ImageAxes::ORIGINS.into_iter().any(|axes| order.as_deref() == Some(&axes.first()[..]))
    };
    let behind_transpose = |v: ValueId| {
        let maker = graph.node(graph.value(v).producer().0);
        maker.onnx() == Some("Transpose")
    };
    let turned = node.operand(0).is_some_and(behind_transpose) && query.ins.first().is_some_and(Layout::is_row_major);
    if !turned && query.ins.first().is_some_and(first) {
        return Cost::new(1);
    }
    Cost::new(machine.pass(node, query.bytes / 4))
}
