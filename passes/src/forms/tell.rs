//! What was recognized in a model, and why, for those who ask.

use super::{finder, of_forms};
use crate::pipeline::{self, Outcome, PipelineOptions, run_steps, steps};
use relayout_ir::graph::Graph;
use relayout_ir::model::Model;
use relayout_target::{Context, Declared, PassError, Recognized, Slot, Target};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

pub use relayout_equations::{EqualTerm, Explanation};

/// A piece of a model that is one op, however the file spells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecognizedPiece {
    /// The graph that it is in: empty for the main one.
    pub graph: String,
    /// The name of the op.
    pub op: String,
    /// The value that it leaves.
    pub result: String,
    /// Its nodes, in topological order.
    pub nodes: Vec<String>,
    /// The equations that lead from how the file spells it to the op.
    pub why: Explanation,
}

/// The pieces of a model that the forms of a target want to have recognized, as they are when their forms are looked for: what folds
/// into others is gone.
///
/// # Errors
/// As of [`run`](crate::pipeline::run).
pub fn pieces(
    model: &mut Model,
    target: &dyn Target,
    options: &PipelineOptions,
) -> Result<(Vec<RecognizedPiece>, Outcome), PassError> {
    let found: Mutex<Vec<(usize, RecognizedPiece)>> = Mutex::default();
    let look = |graph: &mut Graph, cx: &mut Context<'_>| {
        let told = told(graph, cx)?.into_iter().map(|told| (cx.scope, told));
        found.lock().unwrap_or_else(PoisonError::into_inner).extend(told);
        Ok(())
    };
    let mut wanted = steps(target)?;
    wanted.retain(|step| step.is.slot < Slot::Forms);
    wanted.push(pipeline::Step::each_graph(Declared::new("tell", Slot::Forms, "what is recognized is told"), &look));
    let outcome = run_steps(model, target, options, &wanted)?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let path = |scope: usize| outcome.graphs.get(scope).map(|record| record.path.clone()).unwrap_or_default();
    let told = found.into_iter().map(|(scope, told)| RecognizedPiece { graph: path(scope), ..told }).collect();
    Ok((told, outcome))
}

/// Those of one graph.
fn told(graph: &Graph, cx: &Context<'_>) -> Result<Vec<RecognizedPiece>, PassError> {
    let mut wanted = of_forms(cx.target());
    wanted.sort_unstable();
    wanted.dedup();
    let finder = finder(cx.target(), &wanted, cx.settings.numerics)?;
    let nodes = if wanted.is_empty() { Vec::new() } else { cx.reassociable(graph) };
    let of_one = |found: Recognized| {
        Some(RecognizedPiece {
            graph: String::new(),
            result: graph.value(found.result).name.clone(),
            nodes: found.nodes.iter().map(|&n| graph.node(n).describe(graph)).collect(),
            why: finder.explain(graph, &found)?,
            op: found.op,
        })
    };
    Ok(finder.find(graph, &nodes).into_iter().filter_map(of_one).collect())
}
