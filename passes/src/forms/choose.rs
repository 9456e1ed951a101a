//! `choose_forms`: a piece of several nodes that has another form is written in the one that is cheaper.
//!
//! What is cheaper depends on the moves around: each form reads and leaves its values in layouts of its own. So a trial decision
//! chooses: in a copy of the graph every piece that the target recognises is one raised op, whose offers are the forms. What is
//! cheaper in another form is written so, between views that say how its values lie, and the decision proper has the layouts; all
//! else stays as it was read, so that nodes of every form are decided about as before.

use super::{of_pieces, recognized};
use crate::pipeline::{Step, each_scope};
use relayout_ir::graph::{Graph, ValueId};
use relayout_target::{Context, Declared, PassError, Slot, Spanning};
use rustc_hash::FxHashMap;

/// The pass.
pub(crate) const PASS: Step<'static> = Step::model(
    Declared::new(
        "choose_forms",
        Slot::Forms,
        "what scales could take in is gone; a trial decision prices the forms of pieces",
    ),
    choose_forms,
);

/// Writes in its other form what is cheaper so.
pub fn choose_forms(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let mut found: Vec<Vec<Box<dyn Spanning>>> = Vec::new();
    each_scope(graph, &mut |graph, scope| {
        cx.scope = scope;
        found.push(pieces(graph, cx)?);
        Ok(())
    })?;
    if found.iter().all(Vec::is_empty) {
        return Ok(());
    }
    choose(graph, cx, &mut found)?;
    each_scope(graph, &mut |graph, scope| {
        // What one leaves another may read: results by what took their place.
        let mut now: FxHashMap<ValueId, ValueId> = FxHashMap::default();
        for piece in &mut found[scope] {
            piece.reads(&|v| now.get(&v).copied().unwrap_or(v));
            now.extend(piece.write(graph)?);
            let (rule, count) = piece.rule();
            cx.count_in(scope, rule, count);
        }
        Ok(())
    })
}

/// The pieces of a graph.
fn pieces(graph: &Graph, cx: &Context<'_>) -> Result<Vec<Box<dyn Spanning>>, PassError> {
    let (all, nodes) = (cx.target().pieces(), cx.reassociable(graph));
    let recognized = recognized(graph, cx, &of_pieces(cx.target()))?;
    Ok(all.iter().flat_map(|pieces| pieces.find(graph, &nodes, &recognized)).collect())
}

/// Keeps those for which another form is chosen.
fn choose(graph: &Graph, cx: &Context<'_>, found: &mut [Vec<Box<dyn Spanning>>]) -> Result<(), PassError> {
    let mut copy = graph.clone();
    each_scope(&mut copy, &mut |graph, scope| {
        found[scope].iter().for_each(|piece| piece.raise(graph));
        Ok(())
    })?;
    let trial = cx.trials.decide(cx.settings, &copy)?;
    for (scope, pieces) in found.iter_mut().enumerate() {
        pieces.retain_mut(|piece| trial.offer(scope, piece.last()).is_some_and(|offer| piece.choose(offer)));
    }
    Ok(())
}
