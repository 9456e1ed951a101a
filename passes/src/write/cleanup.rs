//! `cleanup`: removes what nobody reads any more. What nobody read in the input stays: it is the user's.

use crate::pipeline::{State, Step, each_scope};
use relayout_ir::graph::{Graph, NodeId, Op};
use relayout_ir::patch::remove_dead;
use relayout_target::{Declared, Fact, PassError, Slot};

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
        let dead = dead_nodes(graph).into_iter().filter(|n| kept.is_none_or(|kept| !kept.contains(n)));
        remove_dead(graph, dead.collect::<Vec<_>>());
        Ok(())
    })
}
