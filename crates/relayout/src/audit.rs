//! `audit` says what the moves of a model cost and what they need to cost at least. It rewrites nothing.

use crate::certificate::decide;
use crate::error::Error;
use crate::model::Model;
use crate::optimize::traffic;
use crate::options::Options;
use crate::report::{decided, way_in_words};
use crate::sizes::Sized;
use crate::source::Source;
use crate::units::{bytes, time};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::op::infer::infer_graph;
use relayout_passes::decide::{Decision, SolveRecord, Standing, Way};
use relayout_passes::pipeline::{Before, Outcome, run};
use relayout_passes::report::{GraphRecord, MoveRecord, Traffic, describe_moves, describe_standing};
use relayout_target_api::{Cost, Lifted, Target};
use relayout_targets::ort_cpu::read::{has_blocked_bodies, is_blocked, write_out_fused};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

/// Version of the JSON form of an [`Audit`].
pub const AUDIT_SCHEMA: u32 = 2;

/// How many moves get the price of each way out unless the options say otherwise.
const PRICED: usize = 32;

/// What an audit says about the moves of a model.
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
    /// What they cost together in each run. Moves that could not be priced are left out.
    pub moves_ns: u64,
    /// The cost of the model as it is: its moves, and its nodes as far as they could run otherwise. `None` if the target has no
    /// price for something in the model.
    pub predicted_ns: Option<u64>,
    /// The least cost that any decision can reach. It is proven for these rules, candidates, sizes and costs.
    pub floor_ns: u64,
    /// The cost of the best decision that was found.
    pub best_ns: u64,
    /// Its moves.
    pub best: Traffic,
    /// The moves that [`optimize`](crate::optimize) would leave in its first round. Its rules also remove, fuse and fold nodes.
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
    /// It is gone, or other moves replace it.
    Goes,
    /// It moves a constant, which can be stored in the other layout.
    Folds,
    /// Layouts alone can't avoid it. If nodes are rewritten too, it is gone, or other moves replace it.
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
    /// The move, its two sides, its price, and if it stays, what it would take to avoid it.
    #[serde(flatten)]
    pub record: MoveRecord,
}

/// Audits a model. Its nodes stay as they are; only the layouts of its values are decided.
///
/// # Errors
/// As of [`optimize`](crate::optimize).
pub fn audit(model: &Model, target: &dyn Target, options: &Options) -> Result<Audit, Error> {
    let options = &Sized::new(model, options)?.options;
    let priced = if options.price_moves > 0 { options.price_moves } else { PRICED };
    let mut source = Source::checked(model)?;
    let lifted = target.lift(&mut source.ir.graph)?;
    if lifted.is_none() && is_blocked(&source.ir.graph) {
        source.notes.push(BLOCKED_ELSEWHERE.to_owned());
    }
    if has_blocked_bodies(&source.ir.graph) {
        source.notes.push(BLOCKED_BODIES.to_owned());
    }
    source.notes.extend(model.newer_opset());
    source.notes.extend(target.remarks(&model.ir.graph));
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

fn of_decision(
    decision: &Decision<'_, '_>,
    outcome: &Outcome,
    rewritten: &Outcome,
    notes: Vec<String>,
    target: &dyn Target,
    priced: usize,
) -> Audit {
    let moves = Moves::new(decision, outcome, rewritten, priced);
    let list = moves.audited();
    let total = moves.as_read.iter().map(|m| m.cost).filter(|cost| cost.is_finite()).sum::<Cost>();
    Audit {
        schema: AUDIT_SCHEMA,
        target: target.name().to_owned(),
        cost_source: target.cost_source().to_owned(),
        hints: outcome.hints.clone(),
        moves: Traffic::of(list.iter().map(|m| m.record.bytes)),
        moves_ns: total.get(),
        predicted_ns: Some(decision.cost_as_read()).filter(|cost| cost.is_finite()).map(Cost::get),
        floor_ns: decision.record().bound_ns,
        best_ns: decision.cost().get(),
        best: Traffic::of(moves.left.iter().map(|m| m.bytes)),
        optimized: traffic(rewritten, GraphRecord::after),
        solve: decision.record().clone(),
        list,
        notes,
    }
}

/// The moves of a file beside those of the best decision.
struct Moves<'a, 'g, 't> {
    decision: &'a Decision<'g, 't>,
    /// The graphs of the file.
    graphs: &'a [GraphRecord],
    as_read: Vec<Standing>,
    /// What is left after the best decision.
    left: Vec<Standing>,
    /// Where the rewritten file has moves.
    rewritten: MovesAt<'a>,
    /// Of those that stay, the ones whose ways out are priced: those that cost most.
    dearest: Vec<Standing>,
}

impl<'a, 'g, 't> Moves<'a, 'g, 't> {
    fn new(decision: &'a Decision<'g, 't>, outcome: &'a Outcome, rewritten: &'a Outcome, priced: usize) -> Self {
        let (as_read, left) = (decision.moves_as_read(), decision.moves());
        let (graphs, rewritten) = (outcome.graphs.as_slice(), MovesAt::of(rewritten));
        let mut moves = Moves { decision, graphs, as_read, left, rewritten, dearest: Vec::new() };
        let mut stay: Vec<&Standing> = moves.left.iter().filter(|m| !moves.is_rewritten(m.scope, m.value)).collect();
        stay.sort_by_key(|m| std::cmp::Reverse((m.cost, m.bytes)));
        moves.dearest = stay.into_iter().take(priced).cloned().collect();
        moves
    }

    /// Whether a move of the best decision is none in the rewritten file.
    fn is_rewritten(&self, scope: usize, v: ValueId) -> bool {
        let place = self.decision.graph(scope).zip(self.graphs.get(scope));
        place.is_some_and(|(graph, record)| !self.rewritten.has(&record.path, graph, v))
    }

    /// The moves of the file, with what becomes of each.
    fn audited(&self) -> Vec<AuditedMove> {
        let mut list = Vec::new();
        for (scope, of) in self.graphs.iter().enumerate() {
            let Some(graph) = self.decision.graph(scope) else { continue };
            let transposes = describe_moves(graph, self.decision.hints(), of.weight);
            let told: Vec<ValueId> = transposes.iter().filter_map(|(n, _)| *graph.node(*n).outputs.first()?).collect();
            let transposes = transposes.into_iter().map(|(n, record)| self.transpose(scope, graph, n, record));
            let others = self.as_read.iter().filter(|m| m.scope == scope && !told.contains(&m.value));
            let others = others.map(|m| self.reorder(graph, m));
            let at = |(fate, record)| AuditedMove { path: of.path.clone(), fate, record };
            list.extend(transposes.chain(others).map(at));
        }
        list
    }

    /// A node that only moves.
    fn transpose(&self, scope: usize, graph: &Graph, n: NodeId, mut record: MoveRecord) -> (Fate, MoveRecord) {
        let Some(y) = graph.node(n).outputs.first().copied().flatten() else { return (Fate::Stays, record) };
        let is_here = |m: &&Standing| (m.scope, m.value) == (scope, y);
        let (as_read, left) = (self.as_read.iter().find(is_here), self.left.iter().find(is_here));
        record.cost_ns = as_read.and_then(Standing::price_ns);
        let fate = if self.decision.is_constant(scope, y) {
            Fate::Folds
        } else if left.is_none() && as_read.is_some() {
            Fate::Goes
        } else if self.is_rewritten(scope, y) {
            Fate::Rewritten
        } else {
            Fate::Stays
        };
        record.ways = self.ways(fate, left);
        (fate, record)
    }

    /// A move of a blocked file that is no Transpose.
    fn reorder(&self, graph: &Graph, m: &Standing) -> (Fate, MoveRecord) {
        let left = self.left.iter().find(|other| same_place(graph, m, other));
        let fate = match left {
            None => Fate::Goes,
            Some(_) if self.is_rewritten(m.scope, m.value) => Fate::Rewritten,
            Some(_) => Fate::Stays,
        };
        let mut record = describe_standing(graph, m);
        record.ways = self.ways(fate, left);
        (fate, record)
    }

    /// What it would take to avoid a move that stays, where that is priced.
    fn ways(&self, fate: Fate, left: Option<&Standing>) -> Vec<Way> {
        let left = left.filter(|m| fate == Fate::Stays && self.dearest.contains(m));
        left.map(|m| self.decision.ways(m)).unwrap_or_default()
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
    /// How far the predicted cost lies above the floor, in percent of the floor; infinite if the floor is 0. `None` if there is
    /// no prediction.
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
