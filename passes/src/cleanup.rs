//! `cleanup`: removes what nobody reads any more. What nobody read in the input stays: it is the user's.

use crate::pipeline::{Context, PassError};
use relayout_ir::graph::{Graph, NodeId, Op};
use relayout_ir::patch::remove_dead;

/// Nodes without readers, graph outputs and inputs aside.
pub fn dead_nodes(graph: &Graph) -> Vec<NodeId> {
    let unread = |n: &NodeId| {
        let node = graph.node(*n);
        !matches!(node.op, Op::Input { .. })
            && node.outputs.iter().flatten().all(|&v| graph.use_count(v) == 0 && !graph.is_output(v))
    };
    graph.nodes().filter(unread).collect()
}

/// Removes dead nodes that were alive in the input.
pub fn cleanup(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let dead: Vec<NodeId> = dead_nodes(graph).into_iter().filter(|n| !cx.dead_before[cx.at].contains(n)).collect();
    remove_dead(graph, dead);
    Ok(())
}
