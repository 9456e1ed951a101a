//! The host guard of ONNX Runtime's blocked ops, and the shield of convolutions that stay plain.
//!
//! A blocked file computes wrong numbers on a host of another block, without an error. A reorder of a few zero channels gives as
//! many numbers as the host rounds them up to, so a Reshape to the number that the file was made for fails on any other host. The
//! zero that comes out is added to a bias. ONNX Runtime can't know that it is zero: its constant folding leaves reorders alone.
//!
//! Graphs that have other blocked ops and no convolution are guarded once their moves are known, by `guard_rest`.
//!
//! For the same reason a plain convolution whose bias takes that zero stays plain: on load ONNX Runtime blocks only those whose
//! bias it knows.

use super::guard_rest::alive;
use crate::ort_cpu::Block;
use crate::ort_cpu::machine::op;
use crate::ort_cpu::nodes::{bias_fits, is_convolution};
use crate::ort_cpu::on_load;
use crate::ort_cpu::read::dialect;
use crate::shared::forms::product::BROADCASTS_SINCE;
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{DuplicateName, Graph, Handover, Node, NodeId, Op, ValueId};
use relayout_ir::patch::Patch;
use relayout_ir::types::Type;
use relayout_target_api::{Declared, Fact, Pass, PassError, Slot};

/// Channels of the zeros that are reordered: no multiple of any block, so each rounds them up otherwise; whole groups of four,
/// as the reorder needs them.
const CHANNELS: i64 = 20;
/// The operand of a convolution that is its bias.
const BIAS: usize = 2;

/// The pass, for hosts of a block.
pub(super) fn pass(block: Block, guarded: bool) -> Pass {
    let is =
        Declared::new("guard_host", Slot::Write, "it is known which convolutions are blocked and which stay plain")
            .needs(&[Fact::Written])
            .after(&["split_parts"]);
    Pass::on_model(is, move |graph, _| {
        on_graphs(graph, Around::default(), &|graph, around| guard_host(graph, block.channels(), guarded, around))
    })
}

/// What is around a graph.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Around {
    /// A guard that does for it. Branches of an `If` need none where a graph around them has one: on another host the run fails in any
    /// order of evaluation. A loop has one, since on wrong numbers it might not end.
    pub(super) guard: bool,
    /// An `If` that ONNX Runtime knows the condition of, in whose place it puts the branch when it loads the file.
    known: bool,
    /// Whether it is a body.
    body: bool,
}

/// Visits a graph and then its bodies, each with what is around it.
pub(super) fn on_graphs(
    graph: &mut Graph,
    around: Around,
    visit: &dyn Fn(&mut Graph, Around) -> Result<(), PassError>,
) -> Result<(), PassError> {
    visit(graph, around)?;
    let holders: Vec<NodeId> = graph.nodes().filter(|&n| graph.node(n).bodies().next().is_some()).collect();
    if holders.is_empty() {
        return Ok(());
    }
    let guard = around.guard || alive(graph).into_iter().any(|n| is_guard(graph, n));
    for n in holders {
        let node = graph.node(n);
        let branches = node.onnx() == Some("If");
        let known = branches && node.operand(0).is_some_and(|condition| on_load::knows(graph, condition));
        let inside = Around { guard: guard && branches, known: around.known || known, body: true };
        let rank = node.rank;
        for body in graph.attrs_mut(n).values_mut().flat_map(Attr::bodies_mut) {
            on_graphs(body, inside, visit).map_err(|e| e.in_body_of(rank))?;
        }
    }
    Ok(())
}

fn guard_host(graph: &mut Graph, block: u64, guarded: bool, around: Around) -> Result<(), PassError> {
    let order = graph.order().unwrap_or_default().into_iter();
    let stays = |n: NodeId| around.body && !around.known && reads_from_outside(graph, n);
    let plain: Vec<NodeId> = order.filter(|&n| needs_shield(graph, n, block) && !stays(n)).collect();
    guard(graph, (guarded && !around.guard).then_some(block), &plain)?;
    plain.into_iter().try_for_each(|n| part_output(graph, n))
}

/// Whether weights or bias of a convolution are constants of a graph around its own. ONNX Runtime (1.31.1) looks for them in the graph
/// of the node alone, so that it does not block it.
fn reads_from_outside(graph: &Graph, n: NodeId) -> bool {
    let is_outer = |v: ValueId| matches!(graph.node(graph.value(v).producer().0).op, Op::Outer);
    [1, BIAS].into_iter().any(|slot| graph.node(n).operand(slot).is_some_and(is_outer))
}

/// Adds what a graph needs. `shielded` are the convolutions that must stay plain.
fn guard(graph: &mut Graph, block: Option<u64>, shielded: &[NodeId]) -> Result<(), PassError> {
    let guarded = block.and_then(|_| cheapest(graph));
    let biased: Vec<NodeId> = guarded.into_iter().chain(shielded.iter().copied()).collect();
    let Some(&first) = biased.first() else { return Ok(()) };
    let rank = biased.iter().map(|&n| graph.node(n).rank).min().unwrap_or(graph.node(first).rank);
    let mut make = Builder::new(graph, rank);
    let zero = zero(&mut make, block)?;
    for n in biased {
        add_to_bias(&mut make, n, zero)?;
    }
    Ok(())
}

/// The blocked convolution of the fewest filters, one with a bias if there is one, among those that outputs depend on: a runtime may
/// leave out others.
fn cheapest(graph: &Graph) -> Option<NodeId> {
    let alive = alive(graph);
    let blocked = graph.order().ok()?.into_iter().filter(|&n| is_convolution(graph.node(n)) && alive.contains(&n));
    let filters = |n: NodeId| {
        let w = graph.node(n).operand(1)?;
        graph.value(w).ty.shape()?.first()?.as_const()
    };
    let bias = |n: NodeId| graph.node(n).operand(2).is_some_and(|b| graph.constant(b).is_some());
    blocked
        .filter_map(|n| Some((!bias(n), filters(n)?, n)))
        .min_by_key(|&(none, filters, _)| (none, filters))
        .map(|(_, _, n)| n)
}

/// `[0]`, known at run time only, and there only on a host of this block.
pub(super) fn zero(make: &mut Builder<'_>, block: Option<u64>) -> Result<ValueId, DuplicateName> {
    let zeros = make.filled("host.zeros", DType::F32, &[1, CHANNELS, 1, 1], 0.0)?;
    let slots = block.map_or(-1, |b| (CHANNELS as u64).next_multiple_of(b) as i64);
    let declared = Dim::from(slots.max(CHANNELS));
    let packed = Type::tensor(DType::F32, vec![Dim::ONE, declared.clone(), Dim::ONE, Dim::ONE]);
    let packed = make.op_of(op("ReorderInput"), 1, [zeros]).kernel().result("host.packed", packed)?;
    let length = make.ints("host.slots", &[slots])?;
    let vector = make.op("Reshape", [packed, length]).kernel().shaped("host.block", &[declared])?;
    let first = make.ints("host.first", &[0])?;
    make.op("Gather", [vector, first]).kernel().shaped("host.zero", &[Dim::ONE])
}

/// Whether a node is the Reshape of a guard, which fails on a host of another block.
pub(super) fn is_guard(graph: &Graph, n: NodeId) -> bool {
    let node = graph.node(n);
    let packed = node.operand(0).map(|x| graph.node(graph.value(x).producer().0));
    let zeros = |packed: &Node| packed.operand(0).is_some_and(|zeros| graph.constant(zeros).is_some());
    node.onnx() == Some("Reshape")
        && packed.is_some_and(|packed| dialect(packed) == Some("ReorderInput") && zeros(packed))
}

/// Adds the zero to the bias of a convolution, which gets one if it has none.
fn add_to_bias(make: &mut Builder<'_>, n: NodeId, zero: ValueId) -> Result<(), DuplicateName> {
    let graph = &*make.graph;
    let stored = |w: ValueId| graph.storage_shape(w, &graph.value(w).layout)?.first()?.as_const();
    let (weights, own) = (graph.node(n).operand(1), graph.node(n).operand(BIAS));
    let Some(filters) = weights.and_then(stored) else { return Ok(()) };
    let bias = match own {
        Some(bias) => bias,
        None => make.filled("host.bias", DType::F32, &[filters], 0.0)?,
    };
    let value = make.graph.value(bias);
    let (name, ty, layout) = (format!("{}.guarded", value.name), value.ty.clone(), value.layout.declared());
    let sum = make.op("Add", [bias, zero]).kernel_in(vec![layout.clone()], vec![layout]).result(&name, ty)?;
    let mut patch = Patch::new();
    patch.connect(n, BIAS, sum);
    patch.apply(make.graph).map(drop)
}

/// Whether a convolution for which the plain kernel was chosen would be blocked by ONNX Runtime on load. Where sums do not broadcast
/// yet, it stays unshielded. So does one whose weights are still to be computed: no kernel was chosen for it, and the runtime does
/// what it does without us, and so does one whose bias has other than its channels, which fails whatever is done.
fn needs_shield(graph: &Graph, n: NodeId, block: u64) -> bool {
    let node = graph.node(n);
    let takes_a_sum = node.onnx() == Some("Conv") && node.opset >= BROADCASTS_SINCE;
    let stands = || node.operand(1).is_some_and(|w| on_load::stand(graph, w));
    let known = || node.operand(BIAS).is_none_or(|b| on_load::knows(graph, b)) && bias_fits(graph, node) != Some(false);
    takes_a_sum && on_load::takes(graph, node, block) && stands() && known()
}

/// Parts the result of a plain convolution that is an output of the graph and is added to that of another convolution from the
/// output, by a copy. ONNX Runtime 1.31 takes the sum into the convolution and then misses the output, so it can't load the file.
fn part_output(graph: &mut Graph, n: NodeId) -> Result<(), PassError> {
    let Some(y) = graph.node(n).result(0).filter(|&y| is_summed_output(graph, y)) else {
        return Ok(());
    };
    let (value, opset) = (graph.value(y), graph.node(n).opset);
    let (name, ty, layout) = (value.name.clone(), value.ty.clone(), value.layout.clone());
    let readers = Handover { uses: vec![], outputs: graph.output_places(y).to_vec(), takes_name_of: Some(y) };
    let mut make = Builder::at(graph, n).opset(opset);
    // Not a view, which export would leave out.
    make.op("Identity", [y]).kernel().layout(layout).result_for(&name, ty, readers)?;
    Ok(())
}

fn is_summed_output(graph: &Graph, y: ValueId) -> bool {
    let convolved = |v: ValueId| graph.node(graph.value(v).producer().0).onnx() == Some("Conv");
    let sums = |n: NodeId| {
        let node = graph.node(n);
        node.onnx() == Some("Add") && node.inputs.iter().flatten().all(|&v| convolved(v))
    };
    graph.is_output(y) && graph.uses(y).into_iter().any(|u| sums(u.node))
}
