//! `fold_shapes`: types, shapes and the contents of shape arithmetic, for the graph and its bodies.

use crate::pipeline::{Context, PassError};
use relayout_ir::graph::Graph;
use relayout_ir::op::infer::infer_graph;

/// Infers types and contents. What the model declares wrongly is reported, not repaired.
pub fn fold_shapes(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let problems = infer_graph(graph, &mut cx.unknowns);
    cx.notes.extend(problems.into_iter().map(|p| p.message));
    Ok(())
}
