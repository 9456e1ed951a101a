//! Says why a value has its layout.

use crate::certificate::with_decision;
use crate::error::Error;
use crate::model::Model;
use crate::options::Options;
use crate::report::decided;
use crate::sizes::Sized;
use crate::source::Source;
use crate::units::{bytes, signed_bytes, signed_time};
use relayout_ir::graph::{Graph, Op, ValueId};
use relayout_passes::decide::{Decision, SolveRecord};
use relayout_passes::pipeline::Outcome;
use relayout_target_api::Target;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

pub use relayout_passes::decide::{Alternative, Side, Why};
pub use relayout_passes::pipeline::tell::RecognizedPiece;
pub use relayout_target_api::{EqualTerm, Explanation};

/// Names that are told where one is not known, at most.
const MOST_NEAR: usize = 3;

/// What is known about a value, in every graph that has a value of this name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Explained {
    /// Target.
    pub target: String,
    /// Where its costs come from.
    pub cost_source: String,
    /// How the decision was found.
    pub solve: SolveRecord,
    /// Each graph, by its place (empty for the main one), and what is known about its value.
    pub values: Vec<(String, Why)>,
}

/// Explains a value by its name: who makes it, who reads it, which layouts it could have, and what each would cost. Each cost
/// comes from solving again.
///
/// # Errors
/// [`Error::UnknownValue`] if there is none; else as of [`optimize`](crate::optimize).
pub fn why(model: &Model, target: &dyn Target, options: &Options, value: &str) -> Result<Explained, Error> {
    let explained = with_decision(model, target, options, |decision, outcome, _| {
        let mut values = Vec::new();
        for (s, record) in outcome.graphs.iter().enumerate() {
            if let Some(v) = decision.graph(s).and_then(|graph| graph.by_name(value)) {
                values.push((record.path.clone(), decision.why(s, v)));
            }
        }
        Explained {
            target: target.name().to_owned(),
            cost_source: target.cost_source().to_owned(),
            solve: decision.record().clone(),
            values,
        }
    })?;
    if !explained.values.is_empty() {
        return Ok(explained);
    }
    let why = if model.ir.graph.by_name(value).is_some() {
        "its node is computed at compile time or folded into others before".to_owned()
    } else {
        near(&model.ir.graph, value)
    };
    Err(Error::UnknownValue { name: value.to_owned(), why })
}

/// Names of values that have this one in them, if there are some.
fn near(graph: &Graph, name: &str) -> String {
    let found: Vec<String> = graph
        .values()
        .map(|v| &graph.value(v).name)
        .filter(|known| !name.is_empty() && known.contains(name))
        .take(MOST_NEAR)
        .map(|known| format!("`{known}`"))
        .collect();
    if found.is_empty() { "the model has no such name".to_owned() } else { format!("there are {}", found.join(", ")) }
}

/// The pieces of several nodes that the forms of a target may stand in for, each with the equations by which it was recognized.
///
/// # Errors
/// As of [`optimize`](crate::optimize).
pub fn pieces(model: &Model, target: &dyn Target, options: &Options) -> Result<Vec<RecognizedPiece>, Error> {
    let options = &Sized::new(model, options)?.options;
    let mut source = Source::checked(model)?;
    Ok(relayout_passes::pipeline::tell::pieces(&mut source.ir, target, &options.pipeline(target)?)?.0)
}

/// Explains every value that has a choice of layouts: more than one candidate, or a candidate that was dropped. Prices are found for at most `priced` values,
/// those that the plan moves first and then the largest; the alternatives of the others have none.
///
/// # Errors
/// As of [`optimize`](crate::optimize).
pub fn why_all(model: &Model, target: &dyn Target, options: &Options, priced: usize) -> Result<Explained, Error> {
    with_decision(model, target, options, |decision, outcome, _| {
        let mut found = choices(decision, outcome);
        let moves = decision.moves();
        let is_moved = |s: usize, v: ValueId| moves.iter().any(|m| (m.scope, m.value) == (s, v));
        found.sort_by_key(|(s, v, why)| std::cmp::Reverse((is_moved(*s, *v), why.bytes)));
        for (s, v, why) in found.iter_mut().take(priced) {
            *why = decision.why(*s, *v);
        }
        let path = |s: usize| outcome.graphs.get(s).map_or_else(String::new, |record| record.path.clone());
        Explained {
            target: target.name().to_owned(),
            cost_source: target.cost_source().to_owned(),
            solve: decision.record().clone(),
            values: found.into_iter().map(|(s, _, why)| (path(s), why)).collect(),
        }
    })
}

/// The values that have a choice, by the number of their graph.
fn choices(decision: &Decision<'_, '_>, outcome: &Outcome) -> Vec<(usize, ValueId, Why)> {
    let mut found = Vec::new();
    for s in 0..outcome.graphs.len() {
        let Some(graph) = decision.graph(s) else { continue };
        for v in graph.values().filter(|&v| !matches!(graph.node(graph.value(v).producer().0).op, Op::Constant(_))) {
            let why = decision.why_unpriced(s, v);
            if why.alternatives.len() > 1 || !why.dropped.is_empty() {
                found.push((s, v, why));
            }
        }
    }
    found
}

impl Explained {
    /// All of it, for people.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        for (path, why) in &self.values {
            let place = if path.is_empty() { String::new() } else { format!(" in {path}") };
            let _ = writeln!(text, "`{}`{place}: {}, {}", why.value, why.ty, bytes(why.bytes));
            if why.constant {
                let _ = writeln!(text, "  a constant: it is stored in whatever layout is read, at no cost");
            }
            for (verb, sides) in [("left", std::slice::from_ref(&why.producer)), ("read", &why.readers[..])] {
                for side in sides {
                    let (by, layout) = (&side.node, &side.layout);
                    let _ = writeln!(text, "  {verb} as {layout} by {by}; it could as {}", side.offers.join(", "));
                }
            }
            let _ = writeln!(text, "  made: {}", why.why_made);
            let _ = writeln!(text, "  wanted: {}", why.why_wanted);
            alternatives(&mut text, why);
        }
        let _ = writeln!(text, "{}", decided(&self.solve, &self.target, &self.cost_source));
        text
    }
}

fn alternatives(text: &mut String, why: &Why) {
    if why.alternatives.is_empty() {
        let _ = writeln!(text, "  no layout but its own is a candidate: nobody around it asks for another");
    } else {
        let _ = writeln!(text, "  against what was decided, everything else decided again:");
    }
    let price = |ns: Option<i64>, moved: Option<i64>| {
        Some(format!("{}, {} moved", signed_time(ns?), signed_bytes(moved.unwrap_or(0))))
    };
    for a in &why.alternatives {
        let taken = if a.taken { " (taken)" } else { "" };
        let only = price(a.only_ns, a.only_bytes).unwrap_or_else(|| a.missing.join("; "));
        let left =
            price(a.left_ns, a.left_bytes).map_or_else(String::new, |p| format!("; left so, copied for others: {p}"));
        let _ = writeln!(text, "    {}{taken}: in no other layout: {only}{left}", a.layout);
    }
    for layout in &why.dropped {
        let _ = writeln!(text, "    {layout}: not considered, a value has only so many candidates");
    }
    for node in &why.cut_short {
        let _ = writeln!(text, "  {node} has more choices than are considered");
    }
    match &why.cheapest {
        Some(way) => _ = writeln!(text, "  cheapest without a move of this value: {way}"),
        None if why.alternatives.is_empty() => {}
        None => _ = writeln!(text, "  it must be moved: no layout suits both sides"),
    }
}
