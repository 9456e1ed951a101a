//! What a file of ONNX Runtime's blocked dialect says on logical shapes: its ops as the standard ones that they stand for.
//!
//! Such a file holds ops of `com.microsoft.nchwc` between `ReorderInput` and `ReorderOutput`. Here its convolutions and pools become
//! those of ONNX over the channels that they are declared with, sums that they took in become Adds again, and the reorders become
//! what is left of them where layouts are no part of the graph: nothing, or channels added and cut off. Then the file can be
//! decided about like any other, and what it decided itself is one of the assignments.
//!
//! For looking at only: weights stay packed, activations that were fused are dropped, so the graph must not be run or written.
//! Absent: graphs of bodies, where ONNX Runtime does not block.

use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::graph::{DuplicateName, Graph, Node, NodeId, Op, OpName, Use, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::{NCHWC, infer::infer_graph};
use relayout_ir::patch::{Insert, Patch, constant_node, remove_dead};
use relayout_ir::types::Type;
use std::collections::{BTreeMap, BTreeSet};

/// The operand of a blocked convolution that is added to its result.
const SUM: usize = 3;
/// Opset of the standard ops: one in which Pad and Slice have their numbers in attributes or which all of the others share.
const OPSET: i64 = 7;

/// What a file of the blocked dialect decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lifted {
    /// Nodes that were reorders.
    pub reorders: BTreeSet<NodeId>,
    /// Values that lie in blocks. The result of a `ReorderInput` is one of them: its readers want it so.
    pub blocked: BTreeSet<ValueId>,
    /// Ops of the dialect that could not be lifted, each once.
    pub left: BTreeSet<String>,
}

/// Whether the graph holds ops of the blocked dialect.
pub fn is_blocked(graph: &Graph) -> bool {
    graph.nodes().any(|n| dialect(graph.node(n)).is_some())
}

/// The op of the dialect that a node is.
fn dialect(node: &Node) -> Option<&str> {
    match &node.op {
        Op::Onnx(op) if op.domain == NCHWC => Some(&op.name),
        _ => None,
    }
}

/// Lifts every op of the dialect; `block` channels are one block.
///
/// # Errors
/// [`DuplicateName`], which fresh names rule out.
pub fn lift(graph: &mut Graph, block: u64) -> Result<Lifted, DuplicateName> {
    drop_guards(graph)?;
    let order = graph.order().unwrap_or_default();
    let channels = channels(graph, &order);
    let mut lifted = Lifted { blocked: blocked_values(graph, &order), ..Lifted::default() };
    for n in order {
        // One at a time: a sum may read what another one became.
        let mut patch = Patch::new();
        let Some(name) = dialect(graph.node(n)).map(str::to_owned) else { continue };
        match name.as_str() {
            "ReorderInput" => reorder_input(graph, n, block, channels.get(&n).copied(), &mut patch),
            "ReorderOutput" => reorder_output(graph, n, channels.get(&n).copied(), &mut patch),
            "Conv" => convolution(graph, n, &mut patch),
            "MaxPool" | "AveragePool" | "GlobalAveragePool" | "GlobalMaxPool" => become_op(graph, n, &name, OPSET),
            "Upsample" => {
                let scales = graph.node(n).ints("scales").map(|s| s.iter().map(|&x| x as f32).collect());
                become_op(graph, n, "Upsample", OPSET);
                if let Some(scales) = scales {
                    graph.attrs_mut(n).insert("scales".to_owned(), Attr::Floats(scales));
                }
            }
            _ => {
                lifted.left.insert(name);
                continue;
            }
        }
        let made = patch.apply(graph)?;
        if name.starts_with("Reorder") {
            lifted.reorders.insert(n);
        }
        // What was taken out of an op lies in blocks; of `ReorderInput` it is what comes before the blocks.
        if name != "ReorderInput" {
            lifted.blocked.extend(made.iter().flat_map(|&n| graph.node(n).outputs.iter().flatten()));
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

/// Takes away what makes a host of another block fail: reorders of constants, and the zeros that are made of them and added to
/// a bias, which then is a constant again.
fn drop_guards(graph: &mut Graph) -> Result<(), DuplicateName> {
    let mut guards: BTreeSet<ValueId> = BTreeSet::new();
    let mut patch = Patch::new();
    let mut ends = Vec::new();
    for n in graph.order().unwrap_or_default() {
        let node = graph.node(n);
        let Some(y) = node.outputs.first().copied().flatten() else { continue };
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
            _ => {}
        }
    }
    patch.apply(graph)?;
    remove_dead(graph, ends);
    Ok(())
}

fn become_op(graph: &mut Graph, n: NodeId, name: &str, opset: i64) {
    graph.set_op(n, standard(name), opset);
}

fn standard(name: &str) -> OpName {
    OpName { domain: String::new(), name: name.to_owned(), overload: String::new() }
}

/// What each reorder reads: how many channels are declared, where that is known.
fn channels(graph: &Graph, order: &[NodeId]) -> BTreeMap<NodeId, u64> {
    let mut inferred = graph.clone();
    // Problems of the model are told when the lifted graph is inferred; here unknown shapes will do.
    let _ = infer_graph(&mut inferred, &mut 0);
    let of = |&n: &NodeId| {
        let node = graph.node(n);
        let last = dialect(node)? == "ReorderInput" && is_last(node);
        let shape = inferred.value(node.inputs.first().copied().flatten()?).ty.shape()?;
        let channels = shape.get(if last { 3 } else { 1 })?.as_const()?;
        Some((n, u64::try_from(channels).ok()?))
    };
    order.iter().filter_map(of).collect()
}

fn is_last(node: &Node) -> bool {
    node.int("channels_last").unwrap_or(0) != 0
}

fn reorder_input(graph: &mut Graph, n: NodeId, block: u64, channels: Option<u64>, patch: &mut Patch) {
    let last = is_last(graph.node(n));
    let Some(x) = graph.node(n).inputs.first().copied().flatten() else { return };
    let channels = channels.unwrap_or(0);
    let more = channels.next_multiple_of(block.max(1)) - channels;
    graph.attrs_mut(n).clear();
    if more == 0 {
        become_op(graph, n, "Identity", OPSET);
    } else {
        become_op(graph, n, "Pad", OPSET);
        let pads = vec![0, 0, 0, 0, 0, more as i64, 0, 0];
        graph.attrs_mut(n).insert("pads".to_owned(), Attr::Ints(pads));
    }
    if last {
        let uses = vec![Use { node: n, slot: 0 }];
        patch.insert(transpose(graph, n, x, &[0, 3, 1, 2], uses, Vec::new()));
    }
}

fn reorder_output(graph: &mut Graph, n: NodeId, there: Option<u64>, patch: &mut Patch) {
    let node = graph.node(n);
    let last = is_last(node);
    let kept = node.int("channels").unwrap_or(i64::MAX);
    let Some(x) = node.inputs.first().copied().flatten() else { return };
    graph.attrs_mut(n).clear();
    let all_kept = there.and_then(|c| i64::try_from(c).ok()).is_some_and(|c| c == kept);
    if all_kept || cut_filters(graph, x, kept, patch) {
        become_op(graph, n, "Identity", OPSET);
    } else {
        become_op(graph, n, "Slice", OPSET);
        let attrs = graph.attrs_mut(n);
        for (name, number) in [("axes", if last { 3 } else { 1 }), ("starts", 0), ("ends", kept)] {
            attrs.insert(name.to_owned(), Attr::Ints(vec![number]));
        }
    }
    // Turned first and cut off then, which is one move, as it is one in the file.
    if last {
        let uses = vec![Use { node: n, slot: 0 }];
        patch.insert(transpose(graph, n, x, &[0, 2, 3, 1], uses, Vec::new()));
    }
}

/// Leaves a convolution only the filters whose channels anyone reads: the others were added to fill a block. Says whether it did.
fn cut_filters(graph: &mut Graph, x: ValueId, kept: i64, patch: &mut Patch) -> bool {
    let conv = graph.value(x).producer().0;
    let node = graph.node(conv);
    let fits = graph.only_use(x).is_some() && node.onnx() == Some("Conv") && node.int("group").unwrap_or(1) == 1;
    let filters: Option<Vec<(usize, ValueId, Constant)>> = node
        .inputs
        .iter()
        .enumerate()
        .skip(1)
        .filter_map(|(slot, v)| Some((slot, (*v)?)))
        .map(|(slot, v)| Some((slot, v, first_of(graph.constant(v)?, kept)?)))
        .collect();
    let Some(filters) = filters.filter(|_| fits) else { return false };
    for (slot, v, c) in filters {
        let ty = Type::tensor(c.dtype, c.dims.iter().map(|&d| Dim::from(d)).collect());
        let node = constant_node(c, graph.node(conv).rank);
        patch.insert(Insert { ty, ..inserted(graph, conv, node, v, vec![Use { node: conv, slot }], Vec::new()) });
    }
    if let Type::Tensor(t) = &mut graph.value_mut(x).ty {
        t.shape = None;
    }
    true
}

/// The first `kept` of a constant's outermost axis. Nobody reads what is in it.
fn first_of(c: &Constant, kept: i64) -> Option<Constant> {
    let (outermost, rest) = c.dims.split_first()?;
    let dims = std::iter::once(kept).chain(rest.iter().copied()).collect();
    (kept <= *outermost).then(|| Constant::missing(c.dtype, dims, "a lifted graph is not run".to_owned()))
}

fn outputs_of(graph: &Graph, v: ValueId) -> Vec<usize> {
    graph.output_places(v).to_vec()
}

fn transpose(graph: &Graph, near: NodeId, x: ValueId, perm: &[i64], uses: Vec<Use>, outputs: Vec<usize>) -> Insert {
    let mut node = Node::new(Op::Onnx(standard("Transpose")), vec![Some(x)]);
    node.opset = OPSET;
    node.attrs.insert("perm".to_owned(), Attr::Ints(perm.to_vec()));
    inserted(graph, near, node, x, uses, outputs)
}

fn inserted(graph: &Graph, near: NodeId, mut node: Node, v: ValueId, uses: Vec<Use>, outputs: Vec<usize>) -> Insert {
    node.rank = graph.node(near).rank;
    let mut ty = graph.value(v).ty.clone();
    if let Type::Tensor(t) = &mut ty {
        t.shape = None;
    }
    let layout = Layout::row_major(4);
    Insert { node, name: format!("{}.lifted", graph.value(v).name), ty, layout, uses, outputs, takes_name_of: None }
}

/// A convolution, and the Add that it took in.
fn convolution(graph: &mut Graph, n: NodeId, patch: &mut Patch) {
    become_op(graph, n, "Conv", OPSET);
    let attrs = graph.attrs_mut(n);
    attrs.shift_remove("activation");
    attrs.shift_remove("activation_params");
    let node = graph.node(n);
    let (sum, y) = (node.inputs.get(SUM).copied().flatten(), node.outputs.first().copied().flatten());
    let inputs: Vec<Option<ValueId>> = node.inputs.iter().copied().take(SUM).collect();
    graph.set_inputs(n, inputs);
    if let (Some(sum), Some(y)) = (sum, y) {
        let mut add = Node::new(Op::Onnx(standard("Add")), vec![Some(y), Some(sum)]);
        add.opset = OPSET;
        patch.insert(inserted(graph, n, add, y, graph.uses(y).to_vec(), outputs_of(graph, y)));
    }
}
