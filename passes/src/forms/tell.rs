//! What was recognized in a model, why, and what became of it, for those who ask.

use super::{finder, of_forms, of_pieces};
use crate::pipeline::{Outcome, PipelineOptions, Step, run_steps, steps};
use relayout_equations::named;
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::model::Model;
use relayout_ir::raised::DOMAIN;
use relayout_target::{Context, Declared, PassError, Recognized, Slot, Target, Written};
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
    /// The form or the rule that the result has it in; `None` if it stays as the file has it.
    pub written: Option<String>,
}

/// One that was found, and where.
struct Told {
    scope: usize,
    last: NodeId,
    rank: u32,
    result: ValueId,
    /// The op that it was raised to while layouts were decided.
    raised: Option<String>,
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
    let look_again = |graph: &mut Graph, cx: &mut Context<'_>| {
        let mut all = found.lock().unwrap_or_else(PoisonError::into_inner);
        for told in all.iter_mut().filter(|told| told.scope == cx.scope) {
            told.look_again(graph, cx.target());
        }
        Ok(())
    };
    let mut all = steps(target)?;
    let place = |slot: Slot| move |step: &Step<'_>| step.is.slot < slot;
    let (before, behind) = (all.partition_point(place(Slot::Forms)), all.partition_point(place(Slot::Decide)));
    all.insert(behind, Step::each_graph(Declared::new("tell_again", Slot::Forms, "pieces are written"), &look_again));
    all.insert(before, Step::each_graph(Declared::new("tell", Slot::Forms, "what is recognized is told"), &look));
    let outcome = run_steps(model, target, options, &all)?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let path = |scope: usize| outcome.graphs.get(scope).map(|record| record.path.clone()).unwrap_or_default();
    let ended = |told: Told| {
        let form = told.form(&outcome.written, target);
        RecognizedPiece { graph: path(told.scope), written: told.piece.written.or(form), ..told.piece }
    };
    Ok((found.into_iter().map(ended).collect(), outcome))
}

impl Told {
    /// Those of one graph.
    fn all(graph: &Graph, cx: &Context<'_>) -> Result<Vec<Told>, PassError> {
        let target = cx.target();
        let asked = [of_forms(target), of_pieces(target)].concat();
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
            let last = found.last(graph);
            let rank = graph.node(last).rank;
            Some(Told { scope: cx.scope, last, rank, result: found.result, raised: None, piece })
        };
        Ok(found.into_iter().filter_map(of_one).collect())
    }

    /// Notes what the passes of forms made of it.
    fn look_again(&mut self, graph: &Graph, target: &dyn Target) {
        let node = Some(self.last).filter(|&n| graph.contains(n)).map(|n| graph.node(n));
        let there = node.filter(|node| node.rank == self.rank && node.only_result() == Some(self.result));
        match there.map(|node| &node.op) {
            Some(Op::Onnx(op)) if op.domain == DOMAIN => self.raised = Some(op.name.clone()),
            Some(_) => {}
            None => self.piece.written = rule_for(target, &self.piece.op),
        }
    }

    /// The form that was written for it, if it was one raised op.
    fn form(&self, written: &[(usize, Written)], target: &dyn Target) -> Option<String> {
        let raised = self.raised.as_deref()?;
        let stands_in = |name: &str| target.forms().iter().any(|f| f.name() == name && f.of().contains(&raised));
        let mut own = written.iter().filter(|(scope, one)| *scope == self.scope && one.origins.contains(&self.rank));
        own.find(|(_, one)| stands_in(one.form)).map(|(_, one)| one.form.to_owned())
    }
}

/// The rule by which a target writes pieces of this name that it spans itself.
fn rule_for(target: &dyn Target, op: &str) -> Option<String> {
    let spanning = target.pieces().iter().find(|pieces| pieces.ops().contains(&op))?;
    spanning.rules().first().map(|rule| rule.name.to_owned())
}
