//! What a page shows, as data. The page's script reads it as JSON.

use relayout::audit::Fate;
use relayout::why::Why;
use serde::Serialize;

/// Version of the form of a [`Page`].
pub const PAGE_SCHEMA: u32 = 1;

/// What a page is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PageKind {
    /// What `optimize` made.
    Optimize,
    /// What `optimize` would make.
    Explain,
    /// The moves of one model, or of two side by side, as they are.
    Audit,
    /// What changed between two models.
    Diff,
}

/// A report that is to become an HTML page.
///
/// Names, types, attributes and layouts occur many times, so each is a number: its place in [`Page::strings`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Page {
    /// Version of this form.
    pub schema: u32,
    /// What it is about.
    pub kind: PageKind,
    /// The model, or both, as the caller names them.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Target; empty where nothing was decided.
    pub target: String,
    /// One sentence: what was gained, or what the page says.
    pub summary: String,
    /// The figures of the first screen.
    pub figures: Vec<Figure>,
    /// Sentences for those who read on.
    pub facts: Vec<String>,
    /// Every move: those of the first graph, then those of the second.
    pub moves: Vec<Move>,
    /// What changed, for [`PageKind::Diff`].
    pub changes: Vec<Change>,
    /// One graph, or the one before and the one after.
    pub graphs: Vec<GraphPart>,
    /// What is known about values that could lie in several layouts.
    pub whys: Vec<Why>,
    /// Texts that the graphs refer to.
    pub strings: Vec<String>,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Ns,
}

/// A figure, before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Figure {
    /// What it is.
    pub name: String,
    /// What is counted.
    pub unit: Unit,
    /// In the first model; `None` where it is not known.
    pub before: Option<u64>,
    /// In the second one; `None` where there is none, or it is not known.
    pub after: Option<u64>,
    /// What it means, in a sentence.
    pub note: String,
}

impl Figure {
    pub(crate) fn new(
        name: &str,
        unit: Unit,
        before: impl Into<Option<u64>>,
        after: impl Into<Option<u64>>,
        note: impl Into<String>,
    ) -> Figure {
        Figure { name: name.to_owned(), unit, before: before.into(), after: after.into(), note: note.into() }
    }
}

/// Run times of both models, side by side in one process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measured {
    /// Median run time of the model, in nanoseconds.
    pub before_ns: u64,
    /// Median run time of the result, in nanoseconds.
    pub after_ns: u64,
    /// How it was measured: runtime, threads, runs.
    pub how: String,
}

impl Measured {
    /// Two medians, and how they were measured.
    pub fn new(before_ns: u64, after_ns: u64, how: impl Into<String>) -> Measured {
        Measured { before_ns, after_ns, how: how.into() }
    }
}

/// A move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Move {
    /// Which graph has it.
    pub graph: usize,
    /// Its node there, if it is one.
    pub node: Option<usize>,
    /// The graph or body: empty for the main graph.
    pub path: String,
    /// The value that is moved.
    pub value: String,
    /// Who makes the value.
    pub producer: String,
    /// Who reads the moved value.
    pub readers: Vec<String>,
    /// The layout on the producer's side.
    pub from: String,
    /// The layout that is wanted.
    pub to: String,
    /// Bytes written in each run.
    pub bytes: u64,
    /// Its price in each run; `None` where none is known.
    pub cost_ns: Option<u64>,
    /// What becomes of it.
    pub fate: Fate,
    /// Why both sides differ.
    pub why: String,
    /// What it would take for it to go.
    pub ways: Vec<WayOut>,
}

/// A way to be rid of a move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WayOut {
    /// What would be otherwise.
    pub what: String,
    /// What it would take, if it is not possible as things are.
    pub missing: Option<String>,
    /// What the model then costs beyond what it costs now.
    pub more_ns: Option<i64>,
    /// Bytes that it then moves beyond what it moves now.
    pub more_bytes: Option<i64>,
}

/// Something that differs between two models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// What kind of thing it is: nodes, constants, inputs.
    pub section: String,
    /// Whether it was `added`, `removed`, `changed` or `reordered`.
    pub how: String,
    /// Its name.
    pub name: String,
    /// What it is: an op, a type.
    pub what: String,
    /// What differs, a line each.
    pub details: Vec<String>,
}

impl Change {
    /// Something that differs, with nothing to say beyond that.
    pub fn new(
        section: impl Into<String>,
        how: impl Into<String>,
        name: impl Into<String>,
        what: impl Into<String>,
    ) -> Change {
        Change { section: section.into(), how: how.into(), name: name.into(), what: what.into(), details: Vec::new() }
    }

    /// With lines that say what differs.
    #[must_use]
    pub fn details(mut self, details: Vec<String>) -> Change {
        self.details = details;
        self
    }
}

/// A graph with its bodies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GraphPart {
    /// What the page calls it.
    pub title: String,
    /// Nodes in an order in which they can run, bodies after the node that has them.
    pub nodes: Vec<NodePart>,
    /// Values, constants included.
    pub values: Vec<ValuePart>,
    /// Layouts of values: each text, and whether it is the order of the axes as declared.
    pub layouts: Vec<(String, bool)>,
}

/// What became of a node between the graphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeState {
    /// The same in both, operands, results and attributes.
    #[default]
    Same,
    /// In both, but not alike: a result lies otherwise, or an operand is another one.
    Changed,
    /// Only in the first graph.
    Gone,
    /// Only in the second graph.
    New,
}

/// A node. Constants are values only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NodePart {
    /// Operator; `input` or `outer` for what comes from outside.
    pub op: u32,
    /// Name; that of its first result where it has none.
    pub name: u32,
    /// The graph or body.
    pub path: u32,
    /// What became of it.
    pub state: NodeState,
    /// Operands: places in [`GraphPart::values`].
    pub ins: Vec<Option<u32>>,
    /// Results.
    pub outs: Vec<Option<u32>>,
    /// Attributes: name and value.
    pub attrs: Vec<(u32, u32)>,
    /// The move that it makes: a place in [`Page::moves`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<u32>,
    /// Why no layout passes through it, if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opaque: Option<u32>,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ValuePart {
    /// Name.
    pub name: u32,
    /// Element type and shape.
    #[serde(rename = "type")]
    pub ty: u32,
    /// Its layout: a place in [`GraphPart::layouts`]; `None` where its rank is not known.
    pub layout: Option<u32>,
    /// Bytes at the sizes that symbolic dims are priced at.
    pub bytes: u64,
    /// Whether it is a constant.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub constant: bool,
    /// Whether it is an output of the model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub output: bool,
    /// What is known about its layouts: a place in [`Page::whys`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<u32>,
}
