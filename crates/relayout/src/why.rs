//! Why one value lies as it does.

use crate::certificate::with_decision;
use crate::error::Error;
use crate::model::Model;
use crate::optimize::Options;
use crate::report::{bytes, decided, signed_bytes, signed_time};
use relayout_passes::decide::SolveRecord;
use relayout_target::Target;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

pub use relayout_passes::decide::{Alternative, Side, Why};

/// What there is to say of a value, in every graph that has one of its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Explained {
    /// Target.
    pub target: String,
    /// Where its costs come from.
    pub cost_source: String,
    /// How the decision was found.
    pub solve: SolveRecord,
    /// The place of each graph (empty: the main one) and what there is to say of its value.
    pub values: Vec<(String, Why)>,
}

/// Explains a value by its name: who makes and who reads it, which layouts it could have and what each would cost, with all
/// other nodes decided anew.
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
        "`relayout print` shows the names of a model".to_owned()
    };
    Err(Error::UnknownValue { name: value.to_owned(), why })
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
