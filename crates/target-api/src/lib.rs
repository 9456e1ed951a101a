//! Targets: which ops run in which layouts, and at what cost.
//!
//! ```
//! use relayout_ir::layout::Layout;
//! use relayout_target_api::hints::Size;
//! use relayout_target_api::{Cost, MoveQuery};
//!
//! let (from, to): (Layout, Layout) = ("NCHW".parse()?, "NHWC".parse()?);
//! let query = MoveQuery::permute(&from, &to, &[1, 64, 56, 56]).bytes(802_816);
//! assert_eq!(query.shape.len(), query.from.rank());
//! assert_eq!(Cost::new(40).times(2) + Cost::new(20), Cost::new(100));
//! assert_eq!("1..32".parse::<Size>()?.typical(), 16);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To write a target, implement [`Target`]. It answers
//!
//! - what an op costs with its operands and results in given layouts;
//! - which forms can stand in for an op ([`TargetForm`]);
//! - what a move costs;
//! - which passes it brings ([`Pass`]).
//!
//! Costs are [`Cost`]: integer nanoseconds. `None` means that there is no kernel.
//!
//! Absent: any knowledge of files, and any measuring.

mod capabilities;
mod equation;
mod form;
mod fragment;
pub mod hints;
mod lifted;
pub mod moves;
mod pass;
mod recognized;
mod rounding;
mod rule;
mod since;

pub use capabilities::Capabilities;
pub use equation::{Equation, When};
pub use form::{Become, Candidates, Offer, Piece, Raise, Raised, RaisedOperand, TargetForm};
pub use fragment::{Fragment, Left, Made, Operand, Refused, Written};
pub use lifted::{Lifted, Loaded};
pub use pass::{
    Context, Declared, Fact, Pass, PassError, PassReport, Run, RunPass, Settings, Slot, Trial, Trials, Visit,
    each_graph, reassociable,
};
pub use recognized::{Arg, EqualTerm, Explanation, Literal, Recognized};
pub use relayout_solve::Cost;
pub use rule::{Counted, Numerics, Rule};
pub use since::Since;

use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::Bound;
use relayout_ir::graph::{Graph, NodeId, Op, OpName, ValueId};
use relayout_ir::layout::Layout;

/// Sizes at which symbolic dims are priced.
pub trait Sizes {
    /// A dim as a number of at least 0.
    fn extent(&self, dim: &Dim) -> u64;

    /// Extents of a value's logical shape; `None` where its rank is not known.
    fn shape(&self, graph: &Graph, v: ValueId) -> Option<Vec<u64>> {
        Some(graph.value(v).ty.shape()?.iter().map(|d| self.extent(d)).collect())
    }
}

/// One op with its operands and results stored in some layouts.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OpQuery<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The node.
    pub node: NodeId,
    /// Its signature.
    pub bound: &'a Bound,
    /// Layout of each operand, by slot.
    pub ins: &'a [Layout],
    /// Layout of each result.
    pub outs: &'a [Layout],
    /// Bytes of operand 0 at the size hints.
    pub bytes: u64,
    /// Bytes, at the size hints, of the operands and results that are stored otherwise than in ONNX's own order.
    pub turned_bytes: u64,
}

impl<'a> OpQuery<'a> {
    /// A node with its operands and results in these layouts, of no bytes.
    pub fn new(graph: &'a Graph, node: NodeId, bound: &'a Bound, ins: &'a [Layout], outs: &'a [Layout]) -> OpQuery<'a> {
        OpQuery { graph, node, bound, ins, outs, bytes: 0, turned_bytes: 0 }
    }

    /// The query with the bytes of operand 0, and of what is stored otherwise than in ONNX's own order.
    #[must_use]
    pub fn bytes(self, bytes: u64, turned_bytes: u64) -> OpQuery<'a> {
        OpQuery { bytes, turned_bytes, ..self }
    }
}

/// A node, for which forms are asked to make offers.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct NodeQuery<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The node.
    pub node: NodeId,
    /// Sizes of symbolic dims.
    pub sizes: &'a dyn Sizes,
    /// Whether a value is known at compile time, so that moves of it cost nothing.
    pub is_constant: &'a dyn Fn(ValueId) -> bool,
    /// Whether the graph is the body of a node.
    pub in_body: bool,
}

impl<'a> NodeQuery<'a> {
    /// A node of a graph.
    pub fn new(
        graph: &'a Graph,
        node: NodeId,
        sizes: &'a dyn Sizes,
        is_constant: &'a dyn Fn(ValueId) -> bool,
    ) -> NodeQuery<'a> {
        NodeQuery { graph, node, sizes, is_constant, in_body: false }
    }

    /// The query in the body of a node, if `in_body` says so.
    #[must_use]
    pub fn within(self, in_body: bool) -> NodeQuery<'a> {
        NodeQuery { in_body, ..self }
    }

    /// The query for another node.
    #[must_use]
    pub fn at(self, node: NodeId) -> NodeQuery<'a> {
        NodeQuery { node, ..self }
    }
}

/// What a physical change of layout is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveKind {
    /// Every byte stays: a Reshape between storage shapes.
    View,
    /// A permutation that moves bytes.
    Permute,
}

/// One move of a value between two layouts.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MoveQuery<'a> {
    /// What it is.
    pub kind: MoveKind,
    /// The layout that is there.
    pub from: &'a Layout,
    /// The layout that is wanted.
    pub to: &'a Layout,
    /// The logical shape at the size hints.
    pub shape: &'a [u64],
    /// Element type of the value, if it is known.
    pub dtype: Option<DType>,
    /// Bytes of the logical value at the size hints.
    pub bytes: u64,
}

impl<'a> MoveQuery<'a> {
    /// A permutation from one layout to another of a value of this shape, of no bytes and an element type that is not known.
    pub fn permute(from: &'a Layout, to: &'a Layout, shape: &'a [u64]) -> MoveQuery<'a> {
        MoveQuery { kind: MoveKind::Permute, from, to, shape, dtype: None, bytes: 0 }
    }

    /// Another kind of move.
    #[must_use]
    pub fn kind(self, kind: MoveKind) -> MoveQuery<'a> {
        MoveQuery { kind, ..self }
    }

    /// The query about elements of this type.
    #[must_use]
    pub fn dtype(self, dtype: Option<DType>) -> MoveQuery<'a> {
        MoveQuery { dtype, ..self }
    }

    /// The query about so many bytes.
    #[must_use]
    pub fn bytes(self, bytes: u64) -> MoveQuery<'a> {
        MoveQuery { bytes, ..self }
    }
}

/// Transposes that run on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceMoves {
    /// How many there are.
    pub transposes: usize,
    /// Elements that they write.
    pub elements: u64,
    /// How many of them the device does not take.
    pub refused: usize,
}

impl DeviceMoves {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: DeviceMoves) -> DeviceMoves {
        DeviceMoves {
            transposes: self.transposes + other.transposes,
            elements: self.elements.saturating_add(other.elements),
            refused: self.refused + other.refused,
        }
    }
}

/// What a target answers.
pub trait Target: Sync {
    /// Name, as `--target` takes it.
    fn name(&self) -> &str;

    /// One line for people: what it is for.
    fn about(&self) -> &str;

    /// Layouts in words.
    fn layouts(&self) -> &str;

    /// The operators of its output, in words.
    fn dialect(&self) -> &str;

    /// Where its costs come from.
    fn cost_source(&self) -> &str;

    /// What its files and runtime are like.
    fn capabilities(&self) -> Capabilities {
        Capabilities::STANDARD
    }

    /// The forms in which it runs pieces of the graph, beside the standard ops as they are.
    fn forms(&self) -> &[Box<dyn TargetForm>] {
        &[]
    }

    /// Equations beside the built-in ones, by which its forms recognize what they stand for.
    fn equations(&self) -> &[Equation] {
        &[]
    }

    /// The passes that it brings.
    fn passes(&self) -> &[Pass] {
        &[]
    }

    /// What users should know of a model before they rely on a decision about it, each a sentence: that its runtime takes none of it, say.
    fn remarks(&self, _graph: &Graph) -> Vec<String> {
        Vec::new()
    }

    /// Metadata of its files, beside the target's name.
    fn metadata(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The execution provider of ONNX Runtime that alone runs an op of its files; `None` for ops that other runtimes of its dialect have too.
    fn only_on(&self, _op: &OpName) -> Option<&str> {
        None
    }

    /// The first release of its runtime that runs an op of its files with these attributes, by their names; `None` where each release does
    /// that files are written for.
    fn since(&self, _op: &OpName, _text: &dyn Fn(&str) -> Option<String>) -> Option<Since> {
        None
    }

    /// Whether the runtime that files are made for runs what needs this release, as [`Since`] names it.
    fn runs_since(&self, _release: &str) -> bool {
        true
    }

    /// Cost of the standard op in these layouts; `None` where there is no kernel.
    fn op_cost(&self, query: &OpQuery<'_>) -> Option<Cost>;

    /// Cost of the standard op as ONNX has it. Offers are compared with it.
    fn plain_cost(&self, query: &NodeQuery<'_>) -> Cost {
        forms_of(self.forms(), query).find_map(|form| form.plain(query)).unwrap_or(Cost::ZERO)
    }

    /// What the forms offer for an op.
    fn offers(&self, query: &NodeQuery<'_>) -> Vec<Offer> {
        forms_of(self.forms(), query).flat_map(|form| form.offers(query)).collect()
    }

    /// More offers, for layouts that ops around the node ask for. `candidates` gives the candidates of an operand or result, as
    /// far as they are known.
    fn offers_among(&self, query: &NodeQuery<'_>, candidates: Candidates<'_, '_>) -> Vec<Offer> {
        forms_of(self.forms(), query).flat_map(|form| form.offers_among(query, candidates)).collect()
    }

    /// Whether a value can be moved between two layouts, whatever that costs.
    fn can_move(&self, _graph: &Graph, _v: ValueId, _from: &Layout, _to: &Layout) -> bool {
        true
    }

    /// Turns a file that was made for this target back into standard ops, for an audit. The graph need not run any more. `None`
    /// if nothing in it is of the target's dialect.
    ///
    /// # Errors
    /// [`PassError`].
    fn lift(&self, _graph: &mut Graph) -> Result<Option<Lifted>, PassError> {
        Ok(None)
    }

    /// What the target's runtime makes of a graph by itself when it loads it, for targets whose files leave that to the runtime: a decision
    /// is held against it, and equal price keeps it. `None` where it runs every node as the file has it.
    fn loads(&self, _graph: &Graph, _is_constant: &dyn Fn(ValueId) -> bool) -> Option<Loaded> {
        None
    }

    /// The layout in which files have a value that is decided to lie so, for targets whose files leave some layouts to the runtime; `None`
    /// where it is the same. A view that moves nothing between two layouts has to move nothing between these as well.
    fn written(&self, _layout: &Layout) -> Option<Layout> {
        None
    }

    /// Whether a value may cross the border of a body in this layout.
    fn crosses(&self, _layout: &Layout) -> bool {
        true
    }

    /// The Transposes that the target's runtime leaves of a file on its device, and what they and moves within its kernels cost there. The
    /// graph is the file's, its types inferred. `None` if the target can't tell. If it can, a file in which nothing is gained there
    /// comes out as it was.
    fn on_device(&self, _graph: &Graph, _sizes: &dyn Sizes) -> Option<(DeviceMoves, Cost)> {
        None
    }

    /// A target for the same device whose files need other options of the runtime. A file is made for each, and the one is taken of which
    /// [`Target::on_device`] says the lower cost.
    fn in_other_sessions(&self) -> Option<&dyn Target> {
        None
    }

    /// Cost of a move; `None` where the dialect has none.
    fn move_cost(&self, query: &MoveQuery<'_>) -> Option<Cost>;

    /// Several moves that together are faster than the one in the query, each as its layouts before and after. Empty if the one
    /// move is best. Between the end of one move and the start of the next, and behind the last one, only views that move no byte
    /// are needed.
    fn split_move(&self, _query: &MoveQuery<'_>) -> Vec<[Layout; 2]> {
        Vec::new()
    }

    /// Cost of a node that moves nothing, or of a few elements.
    fn view_cost(&self) -> Cost;

    /// Cost of a node that passes once over its operands and results, which have this many bytes together. It is the gain where
    /// an element-wise op is removed.
    fn pass_cost(&self, bytes: u64) -> Cost;

    /// Cost of a node that copies this many bytes in contiguous runs of `run` bytes: Concat, Split, Slice, Gather.
    fn copy_cost(&self, bytes: u64, _run: u64) -> Cost {
        self.pass_cost(bytes.saturating_mul(2))
    }
}

/// The forms that may stand in for a node's op.
pub fn forms_of<'f>(
    forms: &'f [Box<dyn TargetForm>],
    query: &NodeQuery<'_>,
) -> impl Iterator<Item = &'f dyn TargetForm> {
    let name = match &query.graph.node(query.node).op {
        Op::Onnx(op) if !query.graph.node(query.node).kept => op.name.clone(),
        _ => String::new(),
    };
    forms.iter().map(AsRef::as_ref).filter(move |form| form.ops().contains(&name.as_str()))
}
