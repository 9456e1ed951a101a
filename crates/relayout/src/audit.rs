//! `audit`: what the moves of a model cost and what they would have to cost, without rewriting it.

use crate::certificate::with_decision;
use crate::error::Error;
use crate::model::Model;
use crate::optimize::Options;
use crate::report::{bytes, decided, way_in_words};
use relayout_ir::graph::{NodeId, ValueId};
use relayout_passes::assign::{Decision, SolveRecord, Standing};
use relayout_passes::pipeline::Outcome;
use relayout_passes::record::{MoveRecord, Traffic, describe_moves};
use relayout_target::{Cost, Target};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Version of the JSON form of an [`Audit`].
pub const AUDIT_SCHEMA: u32 = 1;

/// How many moves get the price of each way out unless the options say otherwise.
const PRICED: usize = 32;

/// What there is to say of the moves of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Audit {
    /// Version of this form.
    pub schema: u32,
    /// Target.
    pub target: String,
    /// Where its costs come from.
    pub cost_source: String,
    /// Sizes that symbolic dims were priced at.
    pub hints: BTreeMap<String, i64>,
    /// The model's moves.
    pub moves: Traffic,
    /// What they cost together for each run; those that could not be priced left out.
    pub moves_ns: u64,
    /// What everything that could be decided costs as the model has it: its moves, and its nodes as far as they could run
    /// otherwise.
    pub predicted_ns: u64,
    /// What it costs at least, whatever is decided: proven for these rules, candidates, sizes and costs.
    pub floor_ns: u64,
    /// What the best decision found costs, and the moves that it has.
    pub best_ns: u64,
    /// Its moves.
    pub best: Traffic,
    /// How the decision was found.
    pub solve: SolveRecord,
    /// Each move of the model, in its order.
    pub list: Vec<AuditedMove>,
    /// What else a reader should know.
    pub notes: Vec<String>,
}

/// What becomes of a move in the best decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fate {
    /// It is gone, or others do its work.
    Goes,
    /// It moves a constant, which can be stored otherwise.
    Folds,
    /// It stays.
    Stays,
}

/// A move of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AuditedMove {
    /// Where it is: empty for the main graph.
    pub path: String,
    /// What becomes of it.
    pub fate: Fate,
    /// The move, its sides, its price and, if it stays, what it would take for it to go.
    #[serde(flatten)]
    pub record: MoveRecord,
}

/// Audits a model: its nodes stay what they are, only the layouts of its values are decided.
///
/// # Errors
/// As of [`optimize`](crate::optimize).
pub fn audit(model: &Model, target: &dyn Target, options: &Options) -> Result<Audit, Error> {
    with_decision(model, target, options, false, |decision, outcome, notes| {
        of_decision(
            decision,
            outcome,
            notes,
            target,
            if options.price_moves > 0 { options.price_moves } else { PRICED },
        )
    })
}

fn of_decision(
    decision: &Decision<'_, '_>,
    outcome: &Outcome,
    notes: Vec<String>,
    target: &dyn Target,
    priced: usize,
) -> Audit {
    let as_read = decision.moves_as_read();
    let left = decision.moves();
    let mut by_cost: Vec<&Standing> = left.iter().collect();
    by_cost.sort_by_key(|m| std::cmp::Reverse((m.cost, m.bytes)));
    by_cost.truncate(priced);
    let find = |list: &[Standing], s: usize, v: ValueId| list.iter().find(|m| (m.scope, m.value) == (s, v)).cloned();
    let mut list = Vec::new();
    for (s, graph_record) in outcome.graphs.iter().enumerate() {
        let Some(graph) = decision.graph(s) else { continue };
        let one = |(n, mut record): (NodeId, MoveRecord)| {
            let y = graph.node(n).outputs.first().copied().flatten();
            record.cost_ns = y.and_then(|y| find(&as_read, s, y)).map(|m| m.cost.get());
            let stays = y.and_then(|y| find(&left, s, y));
            let fate = match (&stays, y) {
                (_, Some(y)) if decision.is_constant(s, y) => Fate::Folds,
                (None, Some(y)) if find(&as_read, s, y).is_some() => Fate::Goes,
                _ => Fate::Stays,
            };
            if let Some(m) = stays.filter(|m| fate == Fate::Stays && by_cost.contains(&m)) {
                record.ways = decision.ways(&m);
            }
            AuditedMove { path: graph_record.path.clone(), fate, record }
        };
        list.extend(describe_moves(graph, decision.hints(), graph_record.weight).into_iter().map(one));
    }
    let total = |moves: &[Standing]| moves.iter().map(|m| m.cost).sum::<Cost>();
    Audit {
        schema: AUDIT_SCHEMA,
        target: target.name().to_owned(),
        cost_source: target.cost_source().to_owned(),
        hints: outcome.hints.clone(),
        moves: Traffic { nodes: list.len(), bytes: list.iter().fold(0, |n: u64, m| n.saturating_add(m.record.bytes)) },
        moves_ns: total(&as_read).get(),
        predicted_ns: decision.cost_as_read().get(),
        floor_ns: decision.record().bound_ns,
        best_ns: decision.cost().get(),
        best: Traffic { nodes: left.len(), bytes: left.iter().fold(0, |n, m| n.saturating_add(m.bytes)) },
        solve: decision.record().clone(),
        list,
        notes,
    }
}

impl Audit {
    /// How far what is predicted lies above the floor, in percent of the floor; infinite above a floor of nothing.
    pub fn excess_percent(&self) -> f64 {
        let more = self.predicted_ns.saturating_sub(self.floor_ns);
        match (more, self.floor_ns) {
            (0, _) => 0.0,
            (_, 0) => f64::INFINITY,
            (more, floor) => more as f64 * 100.0 / floor as f64,
        }
    }

    fn excess(&self) -> String {
        match self.excess_percent() {
            0.0 => "at the floor".to_owned(),
            percent if percent.is_finite() => format!("{percent:.1} % above the floor"),
            _ => "the floor is nothing".to_owned(),
        }
    }

    /// How many moves have this fate.
    pub fn count(&self, fate: Fate) -> usize {
        self.list.iter().filter(|m| m.fate == fate).count()
    }

    /// The figures, a line for each: its name and its value.
    fn figures(&self) -> Vec<(&'static str, String)> {
        vec![
            ("moves", self.moves.nodes.to_string()),
            ("bytes they write", bytes(self.moves.bytes)),
            ("their time", format!("{} ns", self.moves_ns)),
            ("predicted, with nodes that could run otherwise", format!("{} ns", self.predicted_ns)),
            ("floor", format!("{} ns", self.floor_ns)),
            ("predicted against the floor", self.excess()),
            ("best decision", format!("{} ns, {} moves, {}", self.best_ns, self.best.nodes, bytes(self.best.bytes))),
            ("moves that go", self.count(Fate::Goes).to_string()),
            ("moves of constants", self.count(Fate::Folds).to_string()),
            ("moves that stay", self.count(Fate::Stays).to_string()),
        ]
    }

    /// All of it, for people.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.figures() {
            let _ = writeln!(text, "{name}: {value}");
        }
        if !self.hints.is_empty() {
            let hints: Vec<String> = self.hints.iter().map(|(name, n)| format!("{name}={n}")).collect();
            let _ = writeln!(text, "symbolic dims priced at {}", hints.join(", "));
        }
        let _ = writeln!(text, "{}", decided(&self.solve, &self.target, &self.cost_source));
        for m in &self.list {
            let r = &m.record;
            let place = if m.path.is_empty() { String::new() } else { format!(" in {}", m.path) };
            let cost = r.cost_ns.map_or_else(String::new, |ns| format!(", {ns} ns"));
            let fate = match m.fate {
                Fate::Goes => "goes".to_owned(),
                Fate::Folds => "goes: what it moves is a constant".to_owned(),
                Fate::Stays => format!("stays: {}", r.why),
            };
            let _ = writeln!(text, "  `{}`{place} {} -> {}, {}{cost}: {fate}", r.value, r.from, r.to, bytes(r.bytes));
            for way in &r.ways {
                let _ = writeln!(text, "    {}", way_in_words(way));
            }
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }

    /// The figures of this model beside those of another, as a Markdown table.
    pub fn beside(&self, other: &Audit, names: [&str; 2]) -> String {
        let mut text = format!("| | {} | {} |\n|---|---|---|\n", names[0], names[1]);
        for ((name, a), (_, b)) in self.figures().into_iter().zip(other.figures()) {
            let _ = writeln!(text, "| {name} | {a} | {b} |");
        }
        text
    }
}
