//! `cleanup`: removes views that passes made and that later ones undo, and what nobody reads any more. What nobody read in the input
//! stays: it is the user's.

use crate::state::{State, Step, each_scope};
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, Handover, NodeId, Op, ValueId};
use relayout_ir::patch::{remove_dead, replace_value};
use relayout_target_api::moves::moved;
use relayout_target_api::{Declared, Fact, PassError, Slot};
use std::collections::BTreeSet;

/// Nodes without readers, graph outputs and inputs aside.
pub fn dead_nodes(graph: &Graph) -> Vec<NodeId> {
    let unread = |n: &NodeId| {
        let node = graph.node(*n);
        !matches!(node.op, Op::Input { .. })
            && node.outputs.iter().flatten().all(|&v| graph.use_count(v) == 0 && !graph.is_output(v))
    };
    graph.nodes().filter(unread).collect()
}

/// The pass.
pub(crate) const PASS: Step<'static> = Step::engine(
    Declared::new("cleanup", Slot::Clean, "removes what the others left unread").needs(&[Fact::Packed]),
    cleanup,
);

/// Removes dead nodes that were alive in the input.
pub(crate) fn cleanup(graph: &mut Graph, state: &mut State<'_>) -> Result<(), PassError> {
    each_scope(graph, &mut |graph, scope| {
        for n in graph.order().unwrap_or_default() {
            if graph.contains(n) {
                undo_views(graph, n)?;
            }
        }
        let kept = state.dead_before.get(scope);
        let is_kept = |n: NodeId| {
            let node = graph.node(n);
            let was_dead = |kept: &BTreeSet<ValueId>| node.outputs.iter().flatten().any(|v| kept.contains(v));
            kept.is_some_and(was_dead) || node.outputs.is_empty() && node.origin.is_some()
        };
        let dead: Vec<NodeId> = dead_nodes(graph).into_iter().filter(|&n| !is_kept(n)).collect();
        remove_dead(graph, dead);
        Ok(())
    })
}

/// Most views in a row that are looked at.
const ROW: usize = 8;

/// Whether a node says the same bytes in other dims.
fn is_view(graph: &Graph, n: NodeId) -> bool {
    let node = graph.node(n);
    let reshapes = node.onnx() == Some("Reshape") && matches!(node.form, Form::Kernel(_));
    (reshapes || matches!(node.form, Form::View(_))) && moved(graph, n).is_none()
}

/// Has the readers of a view's result read what a row of views began with, if that is stored alike and passes made one of them.
fn undo_views(graph: &mut Graph, n: NodeId) -> Result<(), PassError> {
    let Some(y) = graph.node(n).result(0).filter(|_| is_view(graph, n)) else { return Ok(()) };
    let alike = |x: ValueId| {
        let (x, y) = (graph.value(x), graph.value(y));
        x.ty == y.ty && x.ty.shape().is_some() && x.layout == y.layout
    };
    let (mut at, mut made, mut found) = (n, false, None);
    for _ in 0..ROW {
        made |= graph.node(at).origin.is_none();
        let Some(x) = graph.node(at).operand(0).filter(|_| is_view(graph, at)) else { break };
        if made && alike(x) {
            found = Some(x);
        }
        at = graph.value(x).producer().0;
    }
    let Some(x) = found else { return Ok(()) };
    if !graph.is_output(y) {
        // Bodies read values by their names.
        let by_name = graph.uses(y).iter().any(|u| u.slot >= graph.node(u.node).inputs.len());
        if !by_name {
            let readers = Handover { takes_name_of: None, ..Handover::everything(graph, y) };
            graph.hand_over(readers, x);
            remove_dead(graph, [n]);
        }
        return Ok(());
    }
    let is_own = !matches!(graph.node(graph.value(x).producer().0).op, Op::Input { .. } | Op::Constant(_) | Op::Outer);
    let is_captured = graph.uses(x).iter().any(|u| u.slot >= graph.node(u.node).inputs.len());
    if is_own && !is_captured && !graph.is_output(x) {
        replace_value(graph, y, x, [n])?;
    }
    Ok(())
}
