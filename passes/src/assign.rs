//! `assign`: one decision for all graphs of a model.

use crate::decide::{Decision, Ends, Grounds, MovedEnd, Plan, Scopes};
use crate::state::{State, Step, each_scope};
use relayout_ir::graph::Graph;
use relayout_ir::layout::Layout;
use relayout_target_api::{Declared, Fact, PassError, Settings, Slot};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::engine(
    Declared::new(
        "assign",
        Slot::Decide,
        "reads signatures only; decides everything that the rest carries out, for all graphs at once",
    )
    .gives(&[Fact::Decided])
    .keeps_nodes(),
    assign,
);

/// Decides, with what the engine keeps of the model.
pub(crate) fn assign(graph: &mut Graph, state: &mut State<'_>) -> Result<(), PassError> {
    each_scope(graph, &mut |graph, scope| {
        state.graphs[scope].opaque = crate::report::opaque_nodes(graph);
        Ok(())
    })?;
    let Settings { target, numerics, .. } = &state.settings;
    let scopes = Scopes::with_ends(graph, &state.ends);
    let scopes = if state.keeps_nodes { scopes } else { scopes.with_pieces(*target, *numerics)? };
    let decision = Decision::of(&scopes, Grounds::of(&state.settings), &state.limits)?;
    state.priced = decision.priced_moves(state.price_moves);
    (state.plan, state.solve) = decision.into_plan();
    state.moved_ends = moved_ends(graph, &scopes, &state.plan, &state.ends);
    Ok(())
}

/// Inputs and outputs that the decision, or the contract, stores otherwise than ONNX has them.
fn moved_ends(graph: &Graph, scopes: &Scopes<'_>, plan: &Plan, ends: &Ends) -> Vec<MovedEnd> {
    let mut moved = Vec::new();
    for end in ends.of(graph) {
        let place = if end.output { graph.output_places(end.value).first().copied() } else { None };
        let Some(layout) = plan.end(scopes, end.value, place).filter(|layout: &Layout| !layout.is_row_major()) else {
            continue;
        };
        let name = graph.value(end.value).name.clone();
        moved.push(MovedEnd { name, output: end.output, layout, chosen: end.layout.is_none() });
    }
    moved
}
