//! The report of `optimize`, made from the records that the passes keep.

mod proof;

use crate::give_back::is_given_back;
use crate::io::IoRecord;
use crate::machine::Fitting;
use crate::passes::rules;
use crate::sizes::{SizeRecord, SizeSource};
use crate::units::{bytes, elements, signed_bytes, signed_time, time};
use relayout_target_api::{Counted, DeviceMoves, Rule};
use relayout_targets::builtin;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

pub use proof::ProofRecord;
pub(crate) use proof::why_not;
pub use relayout_passes::decide::{SolveRecord, Way};
pub use relayout_passes::report::{GraphRecord, MoveRecord, OpaqueRecord, Traffic};

/// Version of the report's JSON form.
pub const SCHEMA: u32 = 1;

/// Report of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// Version of this form.
    pub schema: u32,
    /// Target.
    pub target: String,
    /// Where the target's costs come from.
    pub cost_source: String,
    /// What was chosen for this machine and why, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_this_machine: Option<Fitting>,
    /// Whether the model changed.
    pub changed: bool,
    /// Whether the file was made for this target before, in operators that are not standard. If so, nothing was decided.
    pub settled: bool,
    /// Why the model is left as it is, where no result serves it better; nothing else is said of it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// Whether the result is proved to compute what the model computes, if the options ask for that and the model changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofRecord>,
    /// Inputs and outputs that are stored otherwise than in the model that the result was made from.
    pub io: Vec<IoRecord>,
    /// Sizes that symbolic dims were priced at.
    pub hints: BTreeMap<String, i64>,
    /// Where these sizes come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeRecord>,
    /// How large the files are, if the model changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileSize>,
    /// Transposes of the input.
    pub before: Traffic,
    /// Moves that are left.
    pub after: Traffic,
    /// What the device runs of the model's Transposes and of the result's, if the target is for an execution provider and the model changed,
    /// or the provider has several kinds of sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceRecord>,
    /// Constants stored otherwise than before.
    pub folded: usize,
    /// How the decision was found, in the first round.
    pub solve: SolveRecord,
    /// Nodes that rules removed, or tensors that they wrote in another form, by the name of the rule.
    pub rewrites: BTreeMap<String, usize>,
    /// Per graph: the main one, then bodies.
    pub graphs: Vec<GraphRecord>,
    /// What the target says of the model whatever is decided, such as that its runtime takes none of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What else a user should know.
    pub notes: Vec<String>,
    /// The rules of the target.
    #[serde(skip)]
    pub(crate) rules: Rules,
}

/// What the device of an execution provider runs of a model and of its result, as it is predicted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceRecord {
    /// Of the model.
    pub before: OnDevice,
    /// Of the result.
    pub after: OnDevice,
    /// The option of ONNX Runtime's sessions that the result is for, where one decides how the provider runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What moves of the result cost there in each run, those within kernels too, where files for other sessions were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_ns: Option<u64>,
    /// A file for sessions with another option, whose moves cost no less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<OtherSession>,
}

/// What the device runs of the best file for sessions with another option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OtherSession {
    /// The option.
    pub session: String,
    /// Of its Transposes.
    pub moves: OnDevice,
    /// What its moves cost in each run, those within kernels too.
    pub predicted_ns: u64,
}

impl DeviceRecord {
    /// In a part of a sentence.
    fn told(&self) -> String {
        let DeviceRecord { before, after, session, .. } = self;
        let instead = self.predicted_ns.zip(self.instead.as_ref()).map_or(String::new(), |(ns, other)| {
            let OtherSession { session, moves, predicted_ns } = other;
            let (own, theirs) = (time(ns), time(*predicted_ns));
            format!(
                "; its moves take {own} (predicted), of a file for {session} {theirs} with {} Transposes",
                moves.transposes
            )
        });
        let session = session.as_ref().map_or(String::new(), |option| format!(", in sessions with {option}"));
        let (from, to) = (elements(before.elements), elements(after.elements));
        format!(
            "on the device{session}: Transposes {} -> {}, {from} -> {to} (predicted){instead}",
            before.transposes, after.transposes
        )
    }
}

/// Transposes on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OnDevice {
    /// How many there are.
    pub transposes: usize,
    /// Elements that they write in each run.
    pub elements: u64,
    /// How many of them have more axes than the device takes, or longer ones.
    pub refused: usize,
}

impl From<DeviceMoves> for OnDevice {
    fn from(DeviceMoves { transposes, elements, refused }: DeviceMoves) -> OnDevice {
        OnDevice { transposes, elements, refused }
    }
}

/// Bytes of a model and of its result, data beside them included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileSize {
    /// Bytes of the model.
    pub before: u64,
    /// Bytes of the result.
    pub after: u64,
    /// Of these bytes, zeros that fill channels up to whole blocks.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub filled: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_nothing(bytes: &u64) -> bool {
    *bytes == 0
}

impl FileSize {
    pub(crate) fn new(before: u64, after: u64, filled: u64) -> FileSize {
        FileSize { before, after, filled }
    }

    /// What the file grew by, if that is more than a few percent.
    fn growth(self) -> Option<String> {
        let FileSize { before, after, filled } = self;
        let more = after.checked_sub(before).filter(|more| more.saturating_mul(20) > before)?;
        let rest = more.saturating_sub(filled);
        let filled = (filled > 0).then(|| format!("{} of zeros that fill channels up to whole blocks", bytes(filled)));
        let rest = (rest > more / 4).then(|| format!("{} of nodes and constants that were added", bytes(rest)));
        Some(filled.into_iter().chain(rest).collect::<Vec<_>>().join(", "))
    }
}

/// The rules of a report's target. They follow from its name where the target is a built-in one, so they are neither written nor
/// compared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules(pub(crate) Vec<&'static Rule>);

impl PartialEq for Rules {
    fn eq(&self, _: &Rules) -> bool {
        true
    }
}

impl Eq for Rules {}

impl Report {
    /// Every move that is left, in all graphs.
    pub fn moves(&self) -> impl Iterator<Item = &MoveRecord> {
        self.graphs.iter().flat_map(|g| &g.moves)
    }

    /// One sentence: what was gained, or why nothing was.
    pub fn summary(&self) -> String {
        if self.changed {
            return format!(
                "{}, {} constant{} re-laid{} ({})",
                self.moved(),
                self.folded,
                if self.folded == 1 { "" } else { "s" },
                self.rewritten(),
                self.verdict()
            );
        }
        if self.settled {
            return format!("unchanged: the model was made for target {} already", self.target);
        }
        if let Some(why) = &self.kept {
            return format!("unchanged: {why}");
        }
        let given_back = self.notes.iter().find(|note| is_given_back(note));
        if let (0, Some(why)) = (self.before.nodes, given_back) {
            return format!("unchanged: {why}");
        }
        let given_back = given_back.map_or(String::new(), |why| format!("; {why}"));
        let what = match self.before.nodes {
            0 => return "unchanged: nothing moves data in this model".to_owned(),
            1 => "its one move".to_owned(),
            n => format!("its {n} moves"),
        };
        format!("unchanged: nothing that this target knows costs less than {what} ({}){given_back}", self.verdict())
    }

    /// What became of the moves, in a part of a sentence.
    fn moved(&self) -> String {
        let (before, after) = (&self.before, &self.after);
        if before.nodes == 0 && after.nodes == 0 {
            return "no moves before or after".to_owned();
        }
        let (from, to) = (bytes(before.bytes), bytes(after.bytes));
        format!("moves {} -> {}, bytes moved {from} -> {to}", before.nodes, after.nodes)
    }

    /// The sizes of open dims that nobody said and no node asks for: `N=1, H=64`. Empty if there are none.
    pub fn assumed(&self) -> String {
        let assumed = self.sizes.iter().filter(|record| record.source == SizeSource::Assumed);
        assumed.map(|record| format!("{}={}", record.name, record.size)).collect::<Vec<_>>().join(", ")
    }

    /// The summary, how the size of the file changed, the sizes of dims that were assumed, and what the target says of the model: what a
    /// command line says of a run.
    pub fn line(&self) -> String {
        let mut line = self.summary();
        if let Some(file) = self.file {
            let _ = write!(line, "; file {} -> {}", bytes(file.before), bytes(file.after));
            if let Some(growth) = file.growth() {
                let _ = write!(line, " ({growth})");
            }
        }
        let assumed = self.assumed();
        if !assumed.is_empty() {
            let _ = write!(line, "; sizes assumed: {assumed}");
        }
        if let Some(device) = &self.device {
            let _ = write!(line, "; {}", device.told());
        }
        for remark in &self.remarks {
            let _ = write!(line, "; {remark}");
        }
        if let Some(proof) = &self.proof {
            let _ = write!(line, "; {}", proof.brief);
        }
        line
    }

    /// What rewrites did, in a part of a sentence.
    fn rewritten(&self) -> String {
        let rules = self.rules();
        let sum = |nodes: bool| -> usize {
            let counted = |name: &str| rule(&rules, name).is_none_or(|rule| rule.counted == Counted::Nodes) == nodes;
            self.rewrites.iter().filter(|(name, _)| counted(name)).map(|(_, count)| count).sum()
        };
        let part = |count: usize, what: &str, done: &str| match count {
            0 => String::new(),
            1 => format!(", 1 {what} {done}"),
            n => format!(", {n} {what}s {done}"),
        };
        part(sum(true), "node", "folded") + &part(sum(false), "tensor", "restated")
    }

    /// The rules of the target; of a report that was read, those of the built-in target that it names.
    fn rules(&self) -> Vec<&'static Rule> {
        if self.rules.0.is_empty() && !self.rewrites.is_empty() {
            return builtin(&self.target).map(|target| rules(target.as_ref())).unwrap_or_default();
        }
        self.rules.0.clone()
    }

    fn verdict(&self) -> String {
        if self.solve.optimal {
            return "optimal among the candidates".to_owned();
        }
        let (cost, bound) = (self.solve.cost_ns, self.solve.bound_ns);
        let gap = (cost - bound.min(cost)) as f64 * 100.0 / cost.max(1) as f64;
        format!("within {gap:.1} % of the optimum among the candidates")
    }

    /// The whole report for people: the moves before, the moves after, and why each remaining move is there, the dearest first.
    pub fn explain(&self) -> String {
        self.explain_dearest(usize::MAX)
    }

    /// [`Report::explain`] with at most `most` of the moves that are left in a graph: those that cost most. The others are counted.
    pub fn explain_dearest(&self, most: usize) -> String {
        let mut text = format!("{}\n", self.summary());
        if let Some(proof) = &self.proof {
            let why = proof.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            let _ = writeln!(text, "{}{why}", proof.brief);
        }
        if !self.hints.is_empty() {
            let hints: Vec<String> = self.hints.iter().map(|(name, n)| format!("{name}={n}")).collect();
            let _ = writeln!(text, "symbolic dims priced at {}", hints.join(", "));
        }
        for SizeRecord { name, size, why, .. } in &self.sizes {
            if let Some(why) = why {
                let _ = writeln!(text, "{name}={size}: {why} asks for it");
            }
        }
        for io in &self.io {
            let why = if io.chosen { ", chosen" } else { "" };
            let _ = writeln!(
                text,
                "{} `{}` is {} for the caller, {} in the original{why}",
                io.end, io.name, io.to, io.from
            );
        }
        if self.solve.variables > 0 {
            let _ = writeln!(text, "{}", decided(&self.solve, &self.target, &self.cost_source));
        }
        for graph in self.graphs.iter().filter(|g| !g.moves.is_empty()) {
            let place = if graph.path.is_empty() { String::new() } else { format!(" in {}", graph.path) };
            let priced = if graph.moves.iter().any(|m| !m.ways.is_empty()) { PRICES } else { "" };
            let _ = writeln!(text, "left{place}{priced}:");
            text.push_str(&dearest(&graph.moves, most));
        }
        let rules = self.rules();
        for (name, &count) in &self.rewrites {
            if let Some(r) = rule(&rules, name) {
                let _ = writeln!(text, "{}: {}", r.told(count), r.equation);
            }
        }
        self.explain_opaque(&mut text);
        for note in self.remarks.iter().chain(&self.notes) {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }

    /// Opaque ops by reason, with how many there are.
    fn explain_opaque(&self, text: &mut String) {
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for o in self.graphs.iter().flat_map(|g| &g.opaque) {
            reasons.entry(&o.why).or_default().push(&o.node);
        }
        if reasons.is_empty() {
            return;
        }
        let _ = writeln!(text, "no layout passes through:");
        for (why, nodes) in reasons {
            let more = if nodes.len() > 1 { format!(" and {} more", nodes.len() - 1) } else { String::new() };
            let _ = writeln!(text, "  {}{more}: {why}", nodes[0]);
        }
    }
}

/// The rule of this name.
fn rule(rules: &[&'static Rule], name: &str) -> Option<&'static Rule> {
    rules.iter().copied().find(|rule| rule.name == name)
}

/// Among what, at which costs, and how well it was decided.
pub(crate) fn decided(solve: &SolveRecord, target: &str, costs: &str) -> String {
    let capped = match solve.capped {
        0 => String::new(),
        n => format!("; {n} values or nodes had more candidates than are considered"),
    };
    let verdict = if solve.optimal {
        format!("{}, which nothing among these candidates undercuts", time(solve.cost_ns))
    } else {
        let (cost, bound) = (time(solve.cost_ns), time(solve.bound_ns));
        format!("{cost}, and nothing among these candidates is below {bound}")
    };
    format!(
        "decided among {} layouts of values and {} choices of {} nodes and borders{capped}; after merging and pinning {} \
         variables with {} states were left: {verdict}, at the costs of `{target}` ({costs})",
        solve.candidates, solve.choices, solve.variables, solve.variables_left, solve.states_left
    )
}

/// What the prices of ways mean.
const PRICES: &str = " (a price is what the whole graph gains or loses, everything else decided again)";

/// One way to be rid of a move, for people.
pub(crate) fn way_in_words(way: &Way) -> String {
    let price = match (way.more_ns, way.more_bytes) {
        (Some(ns), Some(moved)) => format!("{}, {} moved", signed_time(ns), signed_bytes(moved)),
        _ => "no price".to_owned(),
    };
    match &way.missing {
        None if way.more_bytes.is_some_and(|moved| moved >= 0) => {
            format!("instead: {}, with other moves: {price}", way.what)
        }
        None => format!("can go: {}: {price}", way.what),
        Some(why) if way.more_ns.is_some() => format!("can't go: {why}; without that: {price}"),
        Some(why) => format!("can't go: {}: {why}", way.what),
    }
}

/// At most so many moves, those that cost most first, with what it would take for each to go.
fn dearest(moves: &[MoveRecord], most: usize) -> String {
    let mut moves: Vec<&MoveRecord> = moves.iter().collect();
    moves.sort_by_key(|m| Reverse((m.cost_ns, m.bytes)));
    let (shown, rest) = moves.split_at(most.min(moves.len()));
    let mut text = String::new();
    for m in shown {
        let _ = writeln!(text, "  {}", Shown(m));
        for way in &m.ways {
            let _ = writeln!(text, "    {}", way_in_words(way));
        }
    }
    if !rest.is_empty() {
        let written = bytes(rest.iter().map(|m| m.bytes).sum());
        let _ = writeln!(text, "  and {} more, {written}, each of which costs no more than that", rest.len());
    }
    text
}

struct Shown<'a>(&'a MoveRecord);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let m = self.0;
        let cost = m.cost_ns.map_or_else(String::new, |ns| format!(", {}", time(ns)));
        write!(f, "`{}` {} -> {}, {}{cost}: {}", m.value, m.from, m.to, bytes(m.bytes), m.why)
    }
}
