//! `choose_forms`: what has another form in the target's ops is written in the one that is cheaper.
//!
//! | | as the file has it | the other form |
//! |---|---|---|
//! | attention | two products and a Softmax | `MultiHeadAttention` of `com.microsoft` |
//! | projection into heads | one product, `[rows, heads * width]` | a product per head, `[heads, rows, width]` |
//! | product with constant weights | `[rows, inputs]` to `[rows, columns]` | one that reads or leaves columns before rows |
//! | `LayerNormalization` | of the last axis | of channels that come before pixels |
//!
//! What is cheaper depends on the moves around: each form reads and leaves its values in layouts of its own. So it is decided by a
//! decision: in a copy of the graph everything that has two forms is one raised op, whose kernels are the forms. What is cheaper in
//! the other form is written so, between views that say how its values lie, and the decision proper has the layouts; all else stays
//! as it was read, so that nodes of every form are decided about as before.

mod attention;
mod find_attention;
mod make;
mod norm;
mod projection;
mod write_projection;

use crate::assign::{Decision, Scopes};
use crate::pipeline::{Context, PassError, each_graph};
use crate::rewrites::{RewriteForm, TABLE, reassociable};
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::raised::{self, ProjectionForm};
use rustc_hash::FxHashMap;

/// What has two forms in one graph.
#[derive(Default)]
struct Found {
    attentions: Vec<find_attention::Found>,
    projections: Vec<projection::Found>,
    norms: Vec<norm::Found>,
}

impl Found {
    fn of(graph: &Graph, cx: &Context<'_>) -> Found {
        let nodes = reassociable(graph, cx);
        let has_attention = cx.target.blocked_host().is_some();
        // Nothing is gained where nothing is turned.
        let is_turned = |&n: &NodeId| matches!(graph.node(n).form, Form::View(View::Transpose(_)));
        let turns = cx.target.has_turned_forms() && graph.nodes().any(|n| is_turned(&n));
        Found {
            attentions: nodes
                .iter()
                .filter(|_| has_attention)
                .filter_map(|&n| find_attention::find(graph, n))
                .collect(),
            projections: projection::find_all(graph, &nodes, turns),
            norms: nodes.iter().filter(|_| turns).filter_map(|&n| norm::find(graph, n)).collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.attentions.is_empty() && self.projections.is_empty() && self.norms.is_empty()
    }
}

/// Writes in its other form what is cheaper so.
pub fn choose_forms(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let mut found: Vec<Found> = Vec::new();
    each_graph(graph, "", &mut |graph, _| {
        cx.at = found.len();
        found.push(Found::of(graph, cx));
        Ok(())
    })?;
    if found.iter().all(Found::is_empty) {
        return Ok(());
    }
    let chosen = choose(graph, cx, found)?;
    let mut at = 0;
    each_graph(graph, "", &mut |graph, _| {
        let rewrite = |of: fn(&RewriteForm) -> bool| TABLE.iter().find(|r| of(&r.form));
        // What one leaves another may read: results by what took their place.
        let mut now = FxHashMap::default();
        if let Some(Found { attentions, projections, norms }) = chosen.get(at) {
            for found in attentions {
                let found = found.reading(|v| followed(&now, v));
                now.extend(attention::write(graph, &found)?);
                cx.graphs[at].count(rewrite(|form| matches!(form, RewriteForm::Attention)), found.nodes);
            }
            for found in projections {
                let found = found.reading(|v| followed(&now, v));
                now.extend(write_projection::write(graph, &found)?);
                let entry = match found.form {
                    Some(ProjectionForm::Apart) => rewrite(|form| matches!(form, RewriteForm::Projection)),
                    _ => rewrite(|form| matches!(form, RewriteForm::Turned)),
                };
                cx.graphs[at].count(entry, 1);
            }
            for found in norms {
                let found = found.reading(|v| followed(&now, v));
                now.extend(norm::write(graph, &found)?);
                cx.graphs[at].count(rewrite(|form| matches!(form, RewriteForm::Across)), 1);
            }
        }
        at += 1;
        Ok(())
    })
}

/// The value that stands for another by now.
fn followed(now: &FxHashMap<ValueId, ValueId>, v: ValueId) -> ValueId {
    now.get(&v).copied().unwrap_or(v)
}

/// Those for which the other form is chosen, by graph.
fn choose(graph: &Graph, cx: &Context<'_>, mut found: Vec<Found>) -> Result<Vec<Found>, PassError> {
    let mut trial = graph.clone();
    let mut at = 0;
    each_graph(&mut trial, "", &mut |graph, _| {
        if let Some(found) = found.get(at) {
            found.attentions.iter().for_each(|found| attention::raise(graph, found));
            found.projections.iter().for_each(|found| projection::raise(graph, found));
            found.norms.iter().for_each(|found| norm::raise(graph, found));
        }
        at += 1;
        Ok(())
    })?;
    let scopes = Scopes::with_ends(&trial, &cx.ends);
    let decision = Decision::of(&scopes, cx.target, &cx.hints, &cx.limits, cx.numerics)?;
    for (s, found) in found.iter_mut().enumerate() {
        let set = |n: NodeId| {
            let rewrite = decision.plan().kernel(s, n).and_then(|kernel| kernel.rewrite.as_ref());
            rewrite.map_or(&[][..], |rewrite| &rewrite.set)
        };
        found.attentions.retain(|found| raised::Attention::is_whole(set(found.last)));
        found.projections.iter_mut().for_each(|found| found.form = ProjectionForm::of(set(found.last)));
        found.projections.retain(|found| found.form.is_some());
        found.norms.retain(|found| raised::LayerNorm::is_across(set(found.last)));
    }
    Ok(found)
}
