//! The table of ops: what each means for layouts and which type its results have.
//!
//! An op family is one file here and its entries one slice in [`TABLE`]. An entry says everything once; roles, freedom, how
//! operands bind each other and which attributes are renumbered are derived from its signature (see `sig.rs` for the
//! language). There is no default: an op that carries no layout says [`Axes::Opaque`] and why, and an op that is not in the
//! table is opaque because it is not.

#![allow(
    clippy::unnecessary_wraps,
    reason = "entries of the table share one function type, whether they can fail or not"
)]

mod alike;
mod among;
mod attention;
mod bind;
mod border;
mod concat;
mod control;
mod conv;
mod default;
mod describe;
mod elementwise;
mod gather;
pub mod infer;
mod loss;
mod matmul;
pub mod microsoft;
mod misc;
mod norm;
mod pool;
mod quant;
mod query;
pub mod read;
mod recurrent;
mod reduce;
mod renumber;
mod resize;
mod sequence;
mod shape;
mod sig;
mod signal;
mod slice;
mod softmax;
mod space;
mod text;
mod view;
mod volume;

pub use alike::{Alike, alike, extents_agree};
pub use among::is_among_signals;
pub use bind::{bind, bind_as};
pub use border::value_at;
pub use default::{AttributeDefault, default_of, float_or_default, int_or_default, text_or_default};
pub use describe::{Description, Meaning, Reading, describe};
pub use infer::{InferContext, Inferred};
pub use matmul::equation_terms;
pub use microsoft::*;
pub use read::{Cut, Padding, cuts, paddings, pads, zero_padding};
pub use renumber::{Said, renumbered};
pub use volume::{Frames, ImageWindows, Volume};

use crate::form::{Renumber, View};
use crate::graph::{Graph, Node, NodeId, OpName};
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// One op over a range of versions of its operator set.
pub struct OpDef {
    /// Operator type.
    pub name: &'static str,
    /// Operator set domain; empty for ONNX's own.
    pub domain: &'static str,
    /// First and last version of the operator set that this entry speaks of.
    pub opsets: (i64, i64),
    /// What it means for layouts.
    pub axes: Axes,
    /// Types of its results, and contents of small integer ones.
    pub infer: fn(&mut InferContext<'_>) -> Result<Inferred, String>,
}

/// Types of an op's results.
type Infer = fn(&mut InferContext<'_>) -> Result<Inferred, String>;

/// The last version of ONNX's operator set that the table was written against; an op of a newer one is opaque.
pub const LAST_OPSET: i64 = 28;

/// The version that a graph is written in that names none: the last one that ONNX Runtime 1.31 loads.
pub const WRITTEN_OPSET: i64 = 26;

impl OpDef {
    /// An op of ONNX's own domain.
    const fn onnx(name: &'static str, opsets: (i64, i64), axes: Axes, infer: Infer) -> OpDef {
        OpDef { name, domain: "", opsets, axes, infer }
    }
}

/// What an op means for layouts.
pub enum Axes {
    /// A relabelling of operand 0, in words. The function answers which, or why it can't be known.
    View(&'static str, fn(&Graph, &Node) -> Result<View, String>),
    /// The first case that fits.
    Sig(&'static [Case]),
    /// A signature that an attribute spells: what holds of all of them, its text being words. The function answers it in the
    /// language of `sig.rs`, or why there is none.
    Spelled(&'static Case, fn(&Graph, &Node) -> Result<String, String>),
    /// No layout passes, for this reason.
    Opaque(&'static str),
}

/// Which axes of operand 0, of this rank, are cut or extended.
pub type WholeAxes = fn(&Graph, &Node, usize) -> Vec<usize>;

/// The only orders of the axes of operand 0, of this rank, in which runtimes compute the op, outermost first; `None` for any.
pub type Orders = fn(&Graph, &Node, usize) -> Option<Vec<Vec<usize>>>;

/// Whether a reading applies: `Err` says why not.
pub type Condition = fn(&Graph, &Node) -> Result<(), String>;

/// One reading of an op: it applies where `when` holds and the operands' ranks fit the signature.
pub struct Case {
    /// Signature text; the language is in `sig.rs`.
    pub sig: &'static str,
    /// Where the position of `[x]`, or of the second of two runs, is said.
    pub axis: AxisSource,
    /// Axes that are reduced: the results lack them, or have them with extent 1.
    pub reduce: Option<Reduce>,
    /// Axes of operand 0 (of this rank) that are not simply carried, because the op cuts or extends them.
    pub whole: Option<WholeAxes>,
    /// Orders in which runtimes compute it, if not in all that the letters allow.
    pub orders: Option<Orders>,
    /// Attributes and operands that speak of axes.
    pub renumber: &'static [Renumber],
    /// Extra condition: `Err` says why this reading does not apply, which becomes the reason if no other does.
    pub when: Option<Condition>,
}

impl Case {
    /// A case with nothing but its signature.
    #[must_use]
    pub const fn new(sig: &'static str) -> Case {
        Case { sig, axis: AxisSource::None, reduce: None, whole: None, orders: None, renumber: &[], when: None }
    }

    /// With the place where the axis is said.
    #[must_use]
    pub const fn axis(mut self, axis: AxisSource) -> Case {
        self.axis = axis;
        self
    }

    /// With reduced axes.
    #[must_use]
    pub const fn reduce(mut self, reduce: Reduce) -> Case {
        self.reduce = Some(reduce);
        self
    }

    /// With the axes that are not simply carried.
    #[must_use]
    pub const fn whole(mut self, whole: WholeAxes) -> Case {
        self.whole = Some(whole);
        self
    }

    /// With the orders in which runtimes compute it.
    #[must_use]
    pub const fn orders(mut self, orders: Orders) -> Case {
        self.orders = Some(orders);
        self
    }

    /// With what is renumbered.
    #[must_use]
    pub const fn renumber(mut self, renumber: &'static [Renumber]) -> Case {
        self.renumber = renumber;
        self
    }

    /// With a condition.
    #[must_use]
    pub const fn when(mut self, when: Condition) -> Case {
        self.when = Some(when);
        self
    }
}

/// Where an op says an axis.
#[derive(Clone, Copy, Debug)]
pub enum AxisSource {
    /// Nowhere.
    None,
    /// In an attribute, with its default.
    Attr(&'static str, i64),
    /// In an attribute, with its default, and it counts the axes of result 0, of which it makes one.
    ResultAttr(&'static str, i64),
    /// In an operand, which must be constant.
    Input(usize),
    /// In an operand, which must be constant; the default if it is left out.
    InputOr(usize, i64),
    /// It is the last extent of an operand: so many leading axes are addressed together.
    LastExtent(usize),
}

/// Which axes an op reduces.
#[derive(Clone, Copy, Debug)]
pub struct Reduce {
    /// Attribute that lists them (or is the one axis).
    pub attr: Option<&'static str>,
    /// Operand that lists them.
    pub input: Option<usize>,
    /// What an absent or empty list means: all axes, or this one axis.
    pub absent: Absent,
}

/// What an absent list of reduced axes means.
#[derive(Clone, Copy, Debug)]
pub enum Absent {
    /// All axes.
    All,
    /// All axes, unless the attribute `noop_with_empty_axes` is set: then none.
    AllUnlessNoop,
    /// This axis.
    Axis(i64),
}

/// A family: ops that are one idea, and one file.
pub struct Family {
    /// What it has, for people.
    pub name: &'static str,
    /// Its entries.
    pub ops: &'static [OpDef],
}

const fn family(name: &'static str, ops: &'static [OpDef]) -> Family {
    Family { name, ops }
}

/// The families; the order is that of `docs/ops.md`.
pub static TABLE: &[Family] = &[
    family("Convolutions", conv::OPS),
    family("Pools", pool::OPS),
    family("Normalizations", norm::OPS),
    family("Element-wise ops", elementwise::OPS),
    family("Reductions", reduce::OPS),
    family("Softmax", softmax::OPS),
    family("Concat and Split", concat::OPS),
    family("Cutting and extending", slice::OPS),
    family("Indexing", gather::OPS),
    family("Resizing", resize::OPS),
    family("Products", matmul::OPS),
    family("Views", view::OPS),
    family("Shapes", shape::OPS),
    family("Quantization", quant::OPS),
    family("Channels and space", space::OPS),
    family("Bodies", control::OPS),
    family("Sequences and optionals", sequence::OPS),
    family("Recurrent nets", recurrent::OPS),
    family("Attention", attention::OPS),
    family("Signals", signal::OPS),
    family("Texts", text::OPS),
    family("Losses", loss::OPS),
    family("Others", misc::OPS),
    microsoft::CONTRIBUTED,
    microsoft::ATTENTION,
    microsoft::QUANTIZED,
    microsoft::OTHERS,
    microsoft::INTERNAL,
];

/// Every entry, in the order of the table.
pub fn entries() -> impl Iterator<Item = &'static OpDef> {
    TABLE.iter().flat_map(|family| family.ops)
}

type Index = FxHashMap<(&'static str, &'static str), Vec<&'static OpDef>>;

/// The entry for an op of this operator-set version; there is none for a version newer than the table.
pub fn lookup(op: &OpName, opset: i64) -> Option<&'static OpDef> {
    static INDEX: OnceLock<Index> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let mut index = Index::default();
        for def in entries() {
            index.entry((def.domain, def.name)).or_default().push(def);
        }
        index
    });
    let defs = index.get(&(op.domain.as_str(), op.name.as_str()))?;
    defs.iter().copied().find(|d| (d.opsets.0..=d.opsets.1).contains(&opset))
}

/// Whether what ops of a domain do is known: one that the table speaks of, or that of classical models, which take no layout through.
pub fn is_described(domain: &str) -> bool {
    domain == "ai.onnx.ml" || entries().any(|def| def.domain == domain)
}

/// Looks up the entry of a node.
pub fn def_of(graph: &Graph, node: NodeId) -> Option<&'static OpDef> {
    let node = graph.node(node);
    match &node.op {
        crate::graph::Op::Onnx(name) => lookup(name, node.opset),
        _ => None,
    }
}

/// Axis `axis` of a tensor of this rank, negative ones counted from the end; `None` if it is out of range.
pub fn normalize_axis(axis: i64, rank: usize) -> Option<usize> {
    let rank = rank as i64;
    let axis = if axis < 0 { axis.checked_add(rank)? } else { axis };
    (0..rank).contains(&axis).then_some(axis as usize)
}

/// Several axes of a tensor of this rank, in the order given.
///
/// # Errors
/// If one is out of range or occurs twice.
pub(crate) fn axes_among(axes: &[i64], rank: usize) -> Result<Vec<usize>, String> {
    let mut seen = vec![false; rank];
    let mut result = Vec::with_capacity(axes.len().min(rank));
    for &axis in axes {
        let a = normalize_axis(axis, rank).ok_or_else(|| format!("axis {axis} is out of range for rank {rank}"))?;
        if std::mem::replace(&mut seen[a], true) {
            return Err(format!("axis {axis} occurs twice"));
        }
        result.push(a);
    }
    Ok(result)
}
