//! Kernels: ops of a target's dialect that stand in for standard ones.

use crate::Cost;
use relayout_ir::attr::Attr;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::OpName;

/// A way to run a node that only the target's dialect has.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Layouts of operands and results.
    pub layouts: KernelLayouts,
    /// Cost, in the same terms as [`Target::plain_cost`](crate::Target::plain_cost).
    pub cost: Cost,
    /// What the node becomes, if that is one op of the same operands; else the dialect's legalization makes it of several.
    pub rewrite: Option<Rewrite>,
    /// Whether elements are multiplied by zeros that the standard op does not have: the same numbers, unless one is infinite or
    /// NaN. Not taken where every bit has to stay.
    pub adds_zeros: bool,
}

/// What a node becomes.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// The op.
    pub op: OpName,
    /// Version of its operator set.
    pub opset: i64,
    /// The operands that it takes, by the slots that they had, in its own order; all of them in theirs unless said.
    pub operands: Option<Vec<usize>>,
    /// Attributes that are set.
    pub set: Vec<(String, Attr)>,
    /// Attributes that go.
    pub remove: Vec<String>,
}
