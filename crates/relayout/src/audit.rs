//! `audit`: what the moves of a model cost and what they would have to cost, without rewriting it.

use crate::certificate::decide;
use crate::error::Error;
use crate::model::Model;
use crate::optimize::{Options, Source, traffic};
use crate::report::{bytes, decided, time, way_in_words};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::op::infer::infer_graph;
use relayout_passes::decide::{Decision, SolveRecord, Standing};
use relayout_passes::pipeline::{Before, Outcome, run};
use relayout_passes::report::{GraphRecord, MoveRecord, Traffic, describe_moves, describe_standing};
use relayout_target::{Cost, Lifted, Target};
use relayout_targets::ort_cpu::read::{has_blocked_bodies, is_blocked, write_out_fused};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

/// Version of the JSON form of an [`Audit`].
pub const AUDIT_SCHEMA: u32 = 2;

/// How many moves get the price of each way out unless the options say otherwise.
const PRICED: usize = 32;

/// What there is to say of the moves of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// otherwise. `None` where the target has no price for something that the model does.
    pub predicted_ns: Option<u64>,
    /// What it costs at least, whatever is decided: proven for these rules, candidates, sizes and costs.
    pub floor_ns: u64,
    /// What the best decision found costs, and the moves that it has.
    pub best_ns: u64,
    /// Its moves.
    pub best: Traffic,
    /// The moves that [`optimize`](crate::optimize) would leave in its first round, whose rules also take nodes away, fuse and fold.
    pub optimized: Traffic,
    /// How the decision was found.
    pub solve: SolveRecord,
    /// Each move of the model, in its order.
    pub list: Vec<AuditedMove>,
    /// What else a reader should know.
    pub notes: Vec<String>,
}

/// What becomes of a move in the best decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fate {
    /// It is gone, or others do its work.
    Goes,
    /// It moves a constant, which can be stored otherwise.
    Folds,
    /// Layouts alone leave it; where nodes are rewritten as well, it is gone, or others do its work.
    Rewritten,
    /// It stays.
    Stays,
}

/// A move of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    let priced = if options.price_moves > 0 { options.price_moves } else { PRICED };
    let mut source = Source::of_model(model)?;
    let lifted = target.lift(&mut source.ir.graph)?;
    if lifted.is_none() && is_blocked(&source.ir.graph) {
        source.notes.push(BLOCKED_ELSEWHERE.to_owned());
    }
    if has_blocked_bodies(&source.ir.graph) {
        source.notes.push(BLOCKED_BODIES.to_owned());
    }
    let rewritten = rewritten(&source, target, options)?;
    decide(source, target, options, Before::Nothing, |decision, outcome, mut notes| {
        if let Some(lifted) = &lifted {
            let unlike = decision.follow(lifted);
            notes.extend(notes_of(lifted, &unlike));
        }
        of_decision(decision, outcome, &rewritten, notes, target, priced)
    })
}

/// What the whole pipeline makes of it, whose rules take nodes away, fuse and fold as well. Ops that are several standard ones
/// are those to it.
fn rewritten(source: &Source, target: &dyn Target, options: &Options) -> Result<Outcome, Error> {
    let mut model = source.ir.clone();
    // Problems of the model are told by the pipeline.
    let _ = infer_graph(&mut model.graph, &mut model.unknowns);
    write_out_fused(&mut model.graph)?;
    Ok(run(&mut model, target, &options.pipeline(target)?)?)
}

/// What is said of a blocked file under a target that has no blocks.
const BLOCKED_ELSEWHERE: &str = "the file holds ops of com.microsoft.nchwc, whose reorders this target does not price: \
                                 audit it with --target ort-cpu";

/// What is said of a file whose bodies are blocked.
const BLOCKED_BODIES: &str =
    "bodies hold ops of com.microsoft.nchwc: no layout passes through them, and their reorders are not counted";

/// How a file of the blocked dialect was read.
fn notes_of(lifted: &Lifted, unlike: &[String]) -> Vec<String> {
    let mut notes = vec![format!(
        "its blocked ops were taken for the standard ones over the channels that are read, in blocks of {block}: the block is not \
         in the file; {} reorders",
        lifted.reorders.len(),
        block = lifted.block
    )];
    if !lifted.left.is_empty() {
        let left: Vec<&str> = lifted.left.iter().map(String::as_str).collect();
        notes.push(format!("no layout passes through the blocked ops {}", left.join(", ")));
    }
    if let Some(first) = unlike.first() {
        let more = unlike.len() - 1;
        notes.push(format!(
            "{first} and {more} more nodes run in the file in a form that the target does not have; they are priced as ONNX runs \
             them, so what is predicted is not what the file does"
        ));
    }
    notes
}

#[expect(clippy::too_many_lines, reason = "one record, field by field")]
fn of_decision(
    decision: &Decision<'_, '_>,
    outcome: &Outcome,
    rewritten: &Outcome,
    notes: Vec<String>,
    target: &dyn Target,
    priced: usize,
) -> Audit {
    let as_read = decision.moves_as_read();
    let left = decision.moves();
    let mut by_cost: Vec<&Standing> = left.iter().collect();
    let there = MovesAt::of(rewritten);
    let gone = |s: usize, v: ValueId| {
        let place = decision.graph(s).zip(outcome.graphs.get(s));
        place.is_some_and(|(graph, record)| !there.has(&record.path, graph, v))
    };
    by_cost.retain(|m| !gone(m.scope, m.value));
    by_cost.sort_by_key(|m| std::cmp::Reverse((m.cost, m.bytes)));
    by_cost.truncate(priced);
    let find = |list: &[Standing], s: usize, v: ValueId| list.iter().find(|m| (m.scope, m.value) == (s, v)).cloned();
    let mut list = Vec::new();
    for (s, graph_record) in outcome.graphs.iter().enumerate() {
        let Some(graph) = decision.graph(s) else { continue };
        let one = |(n, mut record): (NodeId, MoveRecord)| {
            let y = graph.node(n).outputs.first().copied().flatten();
            record.cost_ns = y.and_then(|y| find(&as_read, s, y)).and_then(|m| m.price_ns());
            let stays = y.and_then(|y| find(&left, s, y));
            let fate = match (&stays, y) {
                (_, Some(y)) if decision.is_constant(s, y) => Fate::Folds,
                (None, Some(y)) if find(&as_read, s, y).is_some() => Fate::Goes,
                (_, Some(y)) if gone(s, y) => Fate::Rewritten,
                _ => Fate::Stays,
            };
            if let Some(m) = stays.filter(|m| fate == Fate::Stays && by_cost.contains(&m)) {
                record.ways = decision.ways(&m);
            }
            AuditedMove { path: graph_record.path.clone(), fate, record }
        };
        let transposes = describe_moves(graph, decision.hints(), graph_record.weight);
        let told: Vec<ValueId> = transposes.iter().filter_map(|(n, _)| *graph.node(*n).outputs.first()?).collect();
        list.extend(transposes.into_iter().map(one));
        for m in as_read.iter().filter(|m| m.scope == s && !told.contains(&m.value)) {
            let mut record = describe_standing(graph, m);
            let stays = left.iter().find(|other| same_place(graph, m, other));
            if let Some(m) = stays.filter(|m| by_cost.contains(m)) {
                record.ways = decision.ways(m);
            }
            let fate = match stays {
                None => Fate::Goes,
                Some(_) if gone(s, m.value) => Fate::Rewritten,
                Some(_) => Fate::Stays,
            };
            list.push(AuditedMove { path: graph_record.path.clone(), fate, record });
        }
    }
    let total = |moves: &[Standing]| moves.iter().map(|m| m.cost).filter(|cost| cost.is_finite()).sum::<Cost>();
    Audit {
        schema: AUDIT_SCHEMA,
        target: target.name().to_owned(),
        cost_source: target.cost_source().to_owned(),
        hints: outcome.hints.clone(),
        moves: Traffic::of(list.iter().map(|m| m.record.bytes)),
        moves_ns: total(&as_read).get(),
        predicted_ns: Some(decision.cost_as_read()).filter(|cost| cost.is_finite()).map(Cost::get),
        floor_ns: decision.record().bound_ns,
        best_ns: decision.cost().get(),
        best: Traffic::of(left.iter().map(|m| m.bytes)),
        optimized: traffic(rewritten, GraphRecord::after),
        solve: decision.record().clone(),
        list,
        notes,
    }
}

/// Whether a move of the plan is at the value of one of the file, or at the other end of the reorder that it was.
fn same_place(graph: &Graph, m: &Standing, other: &Standing) -> bool {
    let is_near = near(graph, m.value).any(|v| v == other.value);
    is_near && (other.scope, &other.from, &other.to) == (m.scope, &m.from, &m.to)
}

/// A value, what its producer reads, and what is left of reorders of it.
fn near(graph: &Graph, v: ValueId) -> impl Iterator<Item = ValueId> + use<'_> {
    let before = graph.node(graph.value(v).producer().0).operand(0);
    let after = graph
        .uses(v)
        .into_iter()
        .filter(|u| matches!(graph.node(u.node).onnx(), Some("Identity" | "Slice" | "Pad")))
        .filter_map(|u| graph.node(u.node).outputs.first().copied().flatten());
    [Some(v), before].into_iter().flatten().chain(after)
}

/// Where a result has moves: names of values by graph. Moves are named after what they move, and then after its layout.
struct MovesAt<'o>(BTreeMap<&'o str, HashSet<&'o str>>);

impl<'o> MovesAt<'o> {
    fn of(outcome: &'o Outcome) -> MovesAt<'o> {
        let starts = |name: &'o str| name.match_indices('.').map(|(at, _)| &name[..at]).chain([name]);
        let names = |g: &'o GraphRecord| g.moves.iter().flat_map(|m| starts(&m.value)).collect();
        MovesAt(outcome.graphs.iter().map(|g| (g.path.as_str(), names(g))).collect())
    }

    /// Whether there is one at a value of the input, or at the other end of the reorder that it was.
    fn has(&self, path: &str, graph: &Graph, v: ValueId) -> bool {
        let names = self.0.get(path);
        names.is_some_and(|names| near(graph, v).any(|v| names.contains(graph.value(v).name.as_str())))
    }
}

impl Audit {
    /// How far what is predicted lies above the floor, in percent of the floor; infinite above a floor of nothing. `None` where
    /// nothing is predicted.
    pub fn excess_percent(&self) -> Option<f64> {
        let more = self.predicted_ns?.saturating_sub(self.floor_ns);
        Some(match (more, self.floor_ns) {
            (0, _) => 0.0,
            (_, 0) => f64::INFINITY,
            (more, floor) => more as f64 * 100.0 / floor as f64,
        })
    }

    fn excess(&self) -> String {
        match self.excess_percent() {
            None => "not known".to_owned(),
            Some(percent) if percent <= 0.0 => "at the floor".to_owned(),
            Some(percent) if percent.is_finite() => format!("{percent:.1} % above the floor"),
            Some(_) => "the floor is nothing".to_owned(),
        }
    }

    /// How many moves have this fate.
    pub fn count(&self, fate: Fate) -> usize {
        self.list.iter().filter(|m| m.fate == fate).count()
    }

    /// The figures, a line for each: its name and its value.
    fn figures(&self) -> Vec<(&'static str, String)> {
        let predicted = self.predicted_ns.map_or_else(|| "no price for all of it".to_owned(), time);
        vec![
            ("moves", self.moves.nodes.to_string()),
            ("bytes they write", bytes(self.moves.bytes)),
            ("their time", time(self.moves_ns)),
            ("predicted, with nodes that could run otherwise", predicted),
            ("floor", time(self.floor_ns)),
            ("predicted against the floor", self.excess()),
            ("best decision", format!("{}, {} moves, {}", time(self.best_ns), self.best.nodes, bytes(self.best.bytes))),
            ("`optimize` would leave", format!("{} moves, {}", self.optimized.nodes, bytes(self.optimized.bytes))),
            ("moves that go", self.count(Fate::Goes).to_string()),
            ("moves that go where nodes are rewritten", self.count(Fate::Rewritten).to_string()),
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
            let cost = r.cost_ns.map_or_else(String::new, |ns| format!(", {}", time(ns)));
            let fate = match m.fate {
                Fate::Goes => "goes".to_owned(),
                Fate::Folds => "goes: what it moves is a constant".to_owned(),
                Fate::Rewritten => "goes where nodes are rewritten, as `optimize` does".to_owned(),
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
