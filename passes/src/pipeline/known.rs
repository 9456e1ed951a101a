//! What becomes known when constants are folded, and what folds because of it.

use super::{PassError, State, Step, each_graph};
use relayout_ir::graph::{Graph, Op};
use relayout_target_api::Slot;

/// Runs the steps of slot Simplify until nothing more is known: a constant that was computed may tell extents (what a Pad adds), and
/// those may be what other nodes compute with. Every turn but the last takes nodes away.
pub(super) fn simplify_on(graph: &mut Graph, state: &mut State<'_>, steps: &[Step<'_>]) -> Result<(), PassError> {
    let notes = state.report.notes.len();
    loop {
        let before = op_count(graph)?;
        for step in steps.iter().filter(|step| step.is.slot == Slot::Simplify) {
            state.run(step, graph)?;
        }
        // The first time noted what is wrong with the model.
        state.report.notes.truncate(notes);
        if op_count(graph)? == before {
            return Ok(());
        }
    }
}

/// Nodes that are no constants, bodies included.
pub(super) fn op_count(graph: &mut Graph) -> Result<usize, PassError> {
    let mut count = 0;
    each_graph(graph, "", &mut |graph, _| {
        count += graph.nodes().filter(|&n| matches!(graph.node(n).op, Op::Onnx(_))).count();
        Ok(())
    })?;
    Ok(count)
}
