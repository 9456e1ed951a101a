//! The host guard of graphs whose blocked ops are no convolutions: reorders, pools, and images that come or leave in blocks.
//!
//! There is no bias that could take the zero of the guard, so it is subtracted from a value that blocked ops lead to: the one of
//! the fewest elements. `x - 0` is `x` to the bit, where `x + 0` is another zero if `x` is `-0`.
//!
//! A loop's body has a guard of its own, though there is one around it: nothing says which of both is evaluated first.

use super::guard_host::{Around, is_guard, on_graphs, zero};
use crate::ort_cpu::Block;
use crate::ort_cpu::read::dialect;
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{DuplicateName, Graph, Handover, NodeId, ValueId};
use relayout_ir::storage::axes_in_runs;
use relayout_target_api::{Declared, Fact, Pass, PassError, Slot};
use std::collections::BTreeSet;

/// The pass, for hosts of a block.
pub(super) fn pass(block: Block, guarded: bool) -> Pass {
    let is = Declared::new("guard_rest", Slot::Clean, "it is known which moves are left; some of them are reorders")
        .needs(&[Fact::Packed])
        .after(&["cleanup"]);
    Pass::on_model(is, move |graph, _| {
        let guard =
            |graph: &mut Graph, around: Around| if around.guard { Ok(()) } else { guard(graph, block.channels()) };
        if guarded { on_graphs(graph, Around::default(), &guard) } else { Ok(()) }
    })
}

fn guard(graph: &mut Graph, block: u64) -> Result<(), PassError> {
    let alive = alive(graph);
    let blocked: Vec<NodeId> = alive.iter().copied().filter(|&n| is_blocked(graph, n)).collect();
    if alive.iter().any(|&n| is_guard(graph, n)) {
        return Ok(());
    }
    smallest_behind(graph, &blocked, &alive).map_or(Ok(()), |v| Ok(subtract_zero(graph, v, block)?))
}

/// What outputs depend on. A runtime may leave out the rest.
pub(super) fn alive(graph: &Graph) -> BTreeSet<NodeId> {
    let mut alive = BTreeSet::new();
    let mut left = graph.outputs().to_vec();
    while let Some(v) = left.pop() {
        let (n, _) = graph.value(v).producer();
        if alive.insert(n) {
            let node = graph.node(n);
            left.extend(node.inputs.iter().flatten().chain(&node.captures));
        }
    }
    alive
}

/// Whether a node is written as an op of the blocked dialect: it is one, or a move into blocks or out of them.
fn is_blocked(graph: &Graph, n: NodeId) -> bool {
    let node = graph.node(n);
    let in_blocks = |v: Option<ValueId>| v.is_some_and(|v| axes_in_runs(&graph.value(v).layout).is_some());
    let reorders = || node.view().is_some() && in_blocks(node.operand(0)) != in_blocks(node.result(0));
    dialect(node).is_some() || reorders()
}

/// The floats of the fewest elements that depend on these nodes, no integers of quantization next to them: the runtime makes one
/// op of what stands between a `DequantizeLinear` and a `QuantizeLinear`.
fn smallest_behind(graph: &Graph, nodes: &[NodeId], alive: &BTreeSet<NodeId>) -> Option<ValueId> {
    let mut behind: BTreeSet<ValueId> = BTreeSet::new();
    let mut found: Vec<ValueId> = Vec::new();
    for n in graph.order().ok()?.into_iter().filter(|n| alive.contains(n)) {
        let node = graph.node(n);
        let reads = node.inputs.iter().flatten().chain(&node.captures).any(|v| behind.contains(v));
        if reads || nodes.contains(&n) {
            behind.extend(node.outputs.iter().flatten());
            found.extend(node.outputs.iter().flatten().copied().filter(|&v| takes_zero(graph, v, alive)));
        }
    }
    found.into_iter().min_by_key(|&v| (is_beside_integers(graph, v), size(graph, v)))
}

/// Whether these are floats, of an axis at least, that outputs depend on.
fn takes_zero(graph: &Graph, v: ValueId, alive: &BTreeSet<NodeId>) -> bool {
    let value = graph.value(v);
    let is_read = || graph.is_output(v) || graph.uses(v).iter().any(|u| alive.contains(&u.node));
    value.ty.dtype() == Some(DType::F32) && value.ty.rank().is_some_and(|rank| rank > 0) && is_read()
}

fn is_beside_integers(graph: &Graph, v: ValueId) -> bool {
    let is = |n: NodeId, name: &str| graph.node(n).op.is_named(name);
    is(graph.value(v).producer().0, "DequantizeLinear") || graph.uses(v).iter().any(|u| is(u.node, "QuantizeLinear"))
}

/// How many extents are not known, and the product of those that are.
fn size(graph: &Graph, v: ValueId) -> (usize, u64) {
    let known: Vec<Option<i64>> = graph.value(v).ty.shape().unwrap_or_default().iter().map(Dim::as_const).collect();
    let product = known.iter().flatten().fold(1_u64, |all, &d| all.saturating_mul(u64::try_from(d).unwrap_or(0)));
    (known.iter().filter(|d| d.is_none()).count(), product)
}

/// Lets those who read a value read it less the zero of a guard.
fn subtract_zero(graph: &mut Graph, v: ValueId, block: u64) -> Result<(), DuplicateName> {
    let (n, _) = graph.value(v).producer();
    let value = graph.value(v);
    let (name, ty, layout) = (format!("{}.unguarded", value.name), value.ty.clone(), value.layout.declared());
    let readers = Handover::everything(graph, v);
    let mut make = Builder::at(graph, n);
    let zero = zero(&mut make, Some(block))?;
    make.op("Sub", [v, zero]).kernel_in(vec![layout.clone()], vec![layout]).result_for(&name, ty, readers).map(drop)
}
