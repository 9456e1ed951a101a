//! `cleanup`: removes what nobody reads any more. What nobody read in the input stays: it is the user's.

use crate::pipeline::{State, Step, each_scope};
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::patch::remove_dead;
use relayout_target::{Declared, Fact, PassError, Slot};
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
