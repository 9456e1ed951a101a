//! `fold_shapes`: types, shapes and the contents of shape arithmetic, for the graph and its bodies.

use crate::state::{State, Step};
use relayout_ir::graph::Graph;
use relayout_ir::op::infer::infer_graph;
use relayout_target_api::{Declared, Fact, PassError, Slot};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::engine(
    Declared::new("fold_shapes", Slot::Simplify, "everything after it asks for ranks, and views ask for extents")
        .needs(&[])
        .gives(&[Fact::Types])
        .keeps_nodes(),
    fold_shapes,
);

/// Infers types and contents. What the model declares wrongly is reported, not repaired.
#[expect(clippy::unnecessary_wraps, reason = "the pipeline calls it as it calls every pass")]
pub(crate) fn fold_shapes(graph: &mut Graph, state: &mut State<'_>) -> Result<(), PassError> {
    let problems = infer_graph(graph, &mut state.unknowns);
    state.report.notes.extend(problems.into_iter().map(|p| p.message));
    Ok(())
}
