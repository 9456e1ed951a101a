//! `fold_copies`: a Slice that takes everything and a Pad that adds nothing go; who reads the copy reads what was copied.
//!
//! Absent: graph outputs, which stay results of nodes of their name, and Identity, which no runtime copies for.

use crate::fold_constants::pass_cost;
use crate::pipeline::{Context, PassError};
use crate::rewrites::{RewriteForm, TABLE};
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::patch::{Patch, remove_dead};
use relayout_target::Cost;

/// Folds every such copy.
pub fn fold_copies(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let mut gone = Vec::new();
    for n in graph.order().unwrap_or_default() {
        let Some((x, y)) = copied(graph, n).filter(|_| pass_cost(graph, cx, n) > Cost::ZERO) else { continue };
        let mut patch = Patch::new();
        patch.redirect(y, x);
        patch.apply(graph).map_err(PassError::Name)?;
        gone.push(n);
    }
    if gone.is_empty() {
        return Ok(());
    }
    let rewrite = TABLE.iter().find(|r| matches!(r.form, RewriteForm::Copies));
    cx.graphs[cx.at].count(rewrite, gone.len());
    remove_dead(graph, gone);
    Ok(())
}

/// The operand and the result of a copy that only nodes of this graph read.
fn copied(graph: &Graph, n: NodeId) -> Option<(ValueId, ValueId)> {
    let node = graph.node(n);
    let is_copy = matches!(node.form, Form::View(View::Same)) && matches!(node.onnx(), Some("Slice" | "Pad"));
    let (x, y) = (node.inputs.first().copied().flatten()?, node.outputs.first().copied().flatten()?);
    let uses = graph.uses(y);
    let by_name = graph.is_output(y) || uses.iter().any(|u| graph.node(u.node).captures.contains(&y));
    (is_copy && !by_name && !uses.is_empty()).then_some((x, y))
}
