//! What was recognized in a model, why, and what became of it, for those who ask.

use super::{Outcome, PipelineOptions, Step, run_steps, steps};
use crate::forms::{finder, named, of_forms};
use relayout_ir::graph::{Graph, NodeId};
use relayout_ir::model::Model;
use relayout_target_api::{Context, Declared, Explanation, PassError, Recognized, Slot, Target};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

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
    /// The form that the result has it in; `None` if it stays as the file has it.
    pub written: Option<String>,
}

/// One that was found, and where.
struct Told {
    scope: usize,
    last: NodeId,
    piece: RecognizedPiece,
}

/// The pieces of a model that equations give a name to, as they are when forms are looked for: what folds into others is gone. Those
/// of one node are left out where no form of the target asks for them. The model is optimized, to say what became of each.
///
/// # Errors
/// As of [`run`](crate::pipeline::run).
pub fn pieces(
    model: &mut Model,
    target: &dyn Target,
    options: &PipelineOptions,
) -> Result<(Vec<RecognizedPiece>, Outcome), PassError> {
    let found: Mutex<Vec<Told>> = Mutex::default();
    let look = |graph: &mut Graph, cx: &mut Context<'_>| {
        let all = Told::all(graph, cx)?;
        found.lock().unwrap_or_else(PoisonError::into_inner).extend(all);
        Ok(())
    };
    let mut all = steps(target)?;
    let before = all.partition_point(|step| step.is.slot < Slot::Decide);
    all.insert(before, Step::each_graph(Declared::new("tell", Slot::Forms, "what is recognized is told"), &look));
    let outcome = run_steps(model, target, options, &all)?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let path = |scope: usize| outcome.graphs.get(scope).map(|record| record.path.clone()).unwrap_or_default();
    let ended = |Told { scope, last, piece }: Told| {
        let form = outcome.pieces.iter().find(|(s, n, _)| (*s, *n) == (scope, last));
        RecognizedPiece { graph: path(scope), written: form.map(|(_, _, form)| (*form).to_owned()), ..piece }
    };
    Ok((found.into_iter().map(ended).collect(), outcome))
}

impl Told {
    /// Those of one graph.
    fn all(graph: &Graph, cx: &Context<'_>) -> Result<Vec<Told>, PassError> {
        let target = cx.target();
        let asked = of_forms(target);
        let mut wanted = [&asked[..], &named(target.equations())].concat();
        wanted.sort_unstable();
        wanted.dedup();
        let finder = finder(target, &wanted, cx.settings.numerics)?;
        let mut found = finder.find(graph, &cx.reassociable(graph));
        found.retain(|piece| piece.nodes.len() > 1 || asked.contains(&piece.op.as_str()));
        let of_one = |found: Recognized| {
            let piece = RecognizedPiece {
                graph: String::new(),
                result: graph.value(found.result).name.clone(),
                nodes: found.nodes.iter().map(|&n| graph.node(n).describe(graph)).collect(),
                why: finder.explain(graph, &found)?,
                written: None,
                op: found.op.clone(),
            };
            Some(Told { scope: cx.scope, last: found.last(graph), piece })
        };
        Ok(found.into_iter().filter_map(of_one).collect())
    }
}
