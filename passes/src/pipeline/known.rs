//! What becomes known when constants are folded, and what folds because of it.

use super::{Context, PASSES, Pass, PassError, each_graph};
use relayout_ir::graph::{Graph, Op};

/// Folds until nothing more is known: a constant that was computed may say extents (what a Pad adds), and those may be what
/// other nodes compute with. Every turn but the last takes nodes away.
pub(super) fn fold_on(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let notes = cx.notes.len();
    let again = |pass: &&Pass| matches!(pass.name, "fold_shapes" | "canonicalize" | "fold_constants");
    loop {
        let before = op_count(graph)?;
        for pass in PASSES.iter().filter(again) {
            pass.run(graph, cx)?;
        }
        // What is wrong with the model was said the first time.
        cx.notes.truncate(notes);
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
