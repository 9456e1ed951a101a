//! What a file of ONNX Runtime's blocked dialect says on logical shapes: its ops as the standard ones that they stand for.
//!
//! Such a file holds ops of `com.microsoft.nchwc` between `ReorderInput` and `ReorderOutput`. Here its convolutions and pools become
//! those of ONNX over the channels that anyone reads, sums and activations that they took in become nodes again, and the reorders
//! become what is left of them where layouts are no part of the graph: nothing, as a rule. Then the file can be decided about like
//! any other, and what it decided itself is one of the assignments.
//!
//! For looking at only: weights stay packed, so the graph must not be run or written. Bodies stay as they are.

mod channels;
mod fused;

use channels::{Channels, is_depthwise};
use fused::write_out_convolution;
pub use fused::write_out_fused;
use relayout_eval::Picked;
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::graph::{DuplicateName, Graph, Node, NodeId, Op, OpName, Use, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::NCHWC;
use relayout_ir::op::read::group;
use relayout_ir::patch::{Insert, NewOperand, Patch, remove_dead};
use relayout_ir::types::Type;
use relayout_target_api::Lifted;
use std::collections::BTreeSet;

/// The operand of a blocked convolution that is added to its result.
const SUM: usize = 3;
/// Opset of the standard ops: one in which Pad and Slice have their numbers in attributes or which all of the others share.
const OPSET: i64 = 7;
/// Rank of what the dialect is about, whose shapes need not be known.
const IMAGE: usize = 4;

/// Whether the graph holds ops of the blocked dialect.
pub fn is_blocked(graph: &Graph) -> bool {
    graph.nodes().any(|n| dialect(graph.node(n)).is_some())
}

/// Whether a body of the graph, or one of that, holds ops of the blocked dialect.
pub fn has_blocked_bodies(graph: &Graph) -> bool {
    let inside = |body: &Graph| is_blocked(body) || has_blocked_bodies(body);
    graph.nodes().any(|n| graph.node(n).bodies().any(inside))
}

/// The op of the dialect that a node is.
pub(super) fn dialect(node: &Node) -> Option<&str> {
    match &node.op {
        Op::Onnx(op) if op.domain == NCHWC => Some(&op.name),
        _ => None,
    }
}

/// Lifts every op of the dialect.
///
/// # Errors
/// [`DuplicateName`], which fresh names rule out.
pub fn lift(graph: &mut Graph) -> Result<Lifted, DuplicateName> {
    drop_guards(graph)?;
    let order = graph.order().unwrap_or_default();
    let blocked = blocked_values(graph, &order);
    let channels = Channels::collect(graph, &order, &blocked);
    let mut lifted = Lifted { blocked, ..Lifted::default() };
    // Backwards: what a node reads is then still what the channels were found of.
    for n in order.into_iter().rev() {
        let Some(name) = dialect(graph.node(n)).map(str::to_owned) else { continue };
        let made = match name.as_str() {
            "ReorderInput" => reorder_input(graph, n, &channels)?,
            "ReorderOutput" => reorder_output(graph, n, &channels)?,
            "Conv" => {
                cut_filters(graph, n, &channels)?;
                become_op(graph, n, "Conv");
                write_out_convolution(graph, n)?
            }
            "MaxPool" | "AveragePool" | "GlobalAveragePool" | "GlobalMaxPool" => {
                become_op(graph, n, &name);
                Vec::new()
            }
            "Upsample" => {
                let scales = graph.node(n).ints("scales").map(|s| s.iter().map(|&x| x as f32).collect());
                become_op(graph, n, "Upsample");
                if let Some(scales) = scales {
                    graph.attrs_mut(n).insert("scales".to_owned(), Attr::Floats(scales));
                }
                Vec::new()
            }
            _ => {
                lifted.left.insert(name);
                continue;
            }
        };
        if name.starts_with("Reorder") {
            lifted.reorders.insert(n);
        }
        // What was taken out of an op lies in blocks, and what a reorder turns is moved into them or out of them by it.
        lifted.blocked.extend(made.iter().flat_map(|&n| graph.node(n).outputs.iter().flatten()));
    }
    // Inference finds them again, without the channels that were added.
    for &v in &lifted.blocked {
        if let Type::Tensor(t) = &mut graph.value_mut(v).ty {
            t.shape = None;
        }
    }
    Ok(lifted)
}

/// What lies in blocks: what the dialect leaves so, and what standard ops make of it, which run on the bytes as they lie.
fn blocked_values(graph: &Graph, order: &[NodeId]) -> BTreeSet<ValueId> {
    let mut blocked = BTreeSet::new();
    for &n in order {
        let node = graph.node(n);
        let carries = match (dialect(node), &node.op) {
            (Some(name), _) => name != "ReorderOutput",
            (None, Op::Onnx(_)) => node.inputs.iter().flatten().any(|v| blocked.contains(v)),
            _ => false,
        };
        if carries {
            blocked.extend(node.outputs.iter().flatten());
        }
    }
    blocked
}

/// Takes away what makes a host of another block fail: reorders of constants, and the zeros that are made of them. They are added to a
/// bias, which then is a constant again, or subtracted from what blocked ops led to.
fn drop_guards(graph: &mut Graph) -> Result<(), DuplicateName> {
    let mut guards: BTreeSet<ValueId> = BTreeSet::new();
    let mut patch = Patch::new();
    let mut ends = Vec::new();
    for n in graph.order().unwrap_or_default() {
        let node = graph.node(n);
        let Some(y) = node.result(0) else { continue };
        let is_guard = |v: &ValueId| guards.contains(v);
        let constant = |v: &ValueId| graph.constant(*v).is_some();
        let operands: Vec<ValueId> = node.inputs.iter().copied().flatten().collect();
        match (dialect(node), node.onnx(), &operands[..]) {
            (Some("ReorderInput"), ..) if operands.iter().all(constant) => drop(guards.insert(y)),
            (None, Some("Reshape" | "Gather"), [x, ..]) if is_guard(x) => drop(guards.insert(y)),
            (None, Some("Add"), [a, b]) if is_guard(a) != is_guard(b) && !graph.is_output(y) => {
                patch.replace(y, if is_guard(a) { *b } else { *a });
                ends.push(n);
            }
            (None, Some("Sub"), [x, zero]) if is_guard(zero) && !is_guard(x) && is_made(graph, *x) => {
                patch.replace(y, *x);
                ends.push(n);
            }
            _ => {}
        }
    }
    patch.apply(graph)?;
    remove_dead(graph, ends);
    Ok(())
}

/// Whether a node makes a value, so that it may take over the name of an output.
fn is_made(graph: &Graph, v: ValueId) -> bool {
    matches!(graph.node(graph.value(v).producer().0).op, Op::Onnx(_)) && !graph.is_output(v)
}

fn become_op(graph: &mut Graph, n: NodeId, name: &str) {
    graph.set_op(n, OpName::onnx(name), OPSET);
}

fn is_last(node: &Node) -> bool {
    node.flag("channels_last")
}

/// A node of the standard domain.
fn node_of(op: &str, inputs: Vec<Option<ValueId>>, attrs: impl IntoIterator<Item = (&'static str, Attr)>) -> Node {
    let mut node = Node::new(Op::Onnx(OpName::onnx(op)), inputs);
    node.opset = OPSET;
    node.attrs.extend(attrs.into_iter().map(|(name, attr)| (name.to_owned(), attr)));
    node
}

/// A reorder becomes a copy, or cuts channels off or adds them where their number is not kept. With channels last it turns
/// first and cuts then, which is one move, as it is one in the file.
fn reorder_input(graph: &mut Graph, n: NodeId, channels: &Channels) -> Result<Vec<NodeId>, DuplicateName> {
    let node = graph.node(n);
    let last = is_last(node);
    let (Some(x), Some(y)) = (node.operand(0), node.only_result()) else { return Ok(Vec::new()) };
    let there = channels.fed(node, x);
    let more = channels.kept(y).zip(there).map_or(0, |(kept, there)| kept.saturating_sub(there));
    graph.attrs_mut(n).clear();
    if more == 0 {
        become_op(graph, n, "Identity");
    } else {
        become_op(graph, n, "Pad");
        let pads = vec![0, 0, 0, 0, 0, more as i64, 0, 0];
        graph.attrs_mut(n).insert("pads".to_owned(), Attr::Ints(pads));
    }
    turned(graph, n, x, &[0, 3, 1, 2], last)
}

fn reorder_output(graph: &mut Graph, n: NodeId, channels: &Channels) -> Result<Vec<NodeId>, DuplicateName> {
    let node = graph.node(n);
    let last = is_last(node);
    let wanted = node.int("channels").unwrap_or(i64::MAX);
    let Some(x) = node.operand(0) else { return Ok(Vec::new()) };
    graph.attrs_mut(n).clear();
    if channels.kept(x).and_then(|c| i64::try_from(c).ok()).is_some_and(|c| c == wanted) {
        become_op(graph, n, "Identity");
    } else {
        become_op(graph, n, "Slice");
        let attrs = graph.attrs_mut(n);
        for (name, number) in [("axes", if last { 3 } else { 1 }), ("starts", 0), ("ends", wanted)] {
            attrs.insert(name.to_owned(), Attr::Ints(vec![number]));
        }
    }
    turned(graph, n, x, &[0, 2, 3, 1], last)
}

/// Turns what a node reads, if it should be.
fn turned(
    graph: &mut Graph,
    n: NodeId,
    x: ValueId,
    perm: &[usize],
    should: bool,
) -> Result<Vec<NodeId>, DuplicateName> {
    if !should {
        return Ok(Vec::new());
    }
    let node = node_of("Transpose", vec![Some(x)], [("perm", Attr::axes(perm))]);
    put(graph, n, node, x, vec![Use { node: n, slot: 0 }])
}

/// Leaves a convolution the filters and the channels that anyone reads: the others were added to fill a block.
fn cut_filters(graph: &mut Graph, n: NodeId, channels: &Channels) -> Result<(), DuplicateName> {
    let node = graph.node(n);
    let (Some(x), Some(y)) = (node.operand(0), node.only_result()) else { return Ok(()) };
    let (read, left) = (channels.kept(x), channels.kept(y));
    let one_by_one = is_depthwise(graph, node);
    let whole = group(node) == Ok(1);
    let mut patch = Patch::new();
    for slot in [1, 2] {
        let Some((v, c)) = node.operand(slot).and_then(|v| Some((v, graph.constant(v)?))) else { continue };
        let mut constant = c.clone();
        for (axis, limit) in [left, read.filter(|_| whole && slot == 1)].into_iter().enumerate() {
            constant = first_of(constant, axis, limit);
        }
        if constant.dims == c.dims {
            continue;
        }
        let name = format!("{}.lifted", graph.value(v).name);
        patch.set_operand(NewOperand { node: n, slot, constant, name, takes_name_of: None });
    }
    patch.apply(graph)?;
    if let Some(group) = read.filter(|_| one_by_one) {
        graph.attrs_mut(n).insert("group".to_owned(), Attr::Int(group as i64));
    }
    Ok(())
}

/// As many indices of an axis as are wanted. The constant is packed, so what is in it is not what the filters have.
fn first_of(c: Constant, axis: usize, wanted: Option<u64>) -> Constant {
    let extent = c.dims.get(axis).and_then(|&d| usize::try_from(d).ok());
    let wanted = wanted.and_then(|wanted| usize::try_from(wanted).ok());
    match wanted.zip(extent).filter(|(wanted, extent)| wanted < extent) {
        Some((wanted, _)) => Picked::constant(c.clone(), axis, (0..wanted).map(Some).collect()).unwrap_or(c),
        None => c,
    }
}

/// Adds a node whose result is like that of another: whoever reads this reads it from now on, by the name that this had.
fn put_instead(graph: &mut Graph, near: NodeId, node: Node, instead_of: ValueId) -> Result<Vec<NodeId>, DuplicateName> {
    let (uses, outputs) = (graph.uses(instead_of).to_vec(), graph.output_places(instead_of).to_vec());
    let insert = Insert { takes_name_of: Some(instead_of), outputs, ..inserted(graph, near, node, instead_of, uses) };
    let mut patch = Patch::new();
    patch.insert(insert);
    patch.apply(graph)
}

/// Adds a node whose result is like `v`, for these readers.
fn put(graph: &mut Graph, near: NodeId, node: Node, v: ValueId, uses: Vec<Use>) -> Result<Vec<NodeId>, DuplicateName> {
    let mut patch = Patch::new();
    patch.insert(inserted(graph, near, node, v, uses));
    patch.apply(graph)
}

/// Types of what is new have the rank, and extents that inference finds.
fn inserted(graph: &Graph, near: NodeId, mut node: Node, v: ValueId, uses: Vec<Use>) -> Insert {
    node.rank = graph.node(near).rank;
    let mut ty = graph.value(v).ty.clone();
    let mut rank = IMAGE;
    if let Type::Tensor(t) = &mut ty {
        rank = t.shape.take().map_or(rank, |shape| shape.len());
    }
    let name = format!("{}.lifted", graph.value(v).name);
    let layout = Layout::row_major(rank);
    Insert { node, name, ty, layout, uses, outputs: Vec::new(), takes_name_of: None }
}
