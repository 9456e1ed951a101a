//! Targets: what runs where in which layout, and at what cost.
//!
//! A target answers three questions: what an op costs with its operands and results stored in given orders, what a move costs,
//! and what it is called. Built-in targets are data files behind the trait; an embedder may implement it in code. Costs are
//! [`Cost`]: integer nanoseconds, and `None` where there is no kernel.
//!
//! Absent: any knowledge of files, and any measuring.

mod builtin;
mod cost;
pub mod measured;

pub use builtin::{BUILTIN, DataTarget, TargetError, builtin};
pub use cost::Cost;

use relayout_ir::form::Bound;
use relayout_ir::graph::{Graph, NodeId};

/// One op with its operands and results stored in some order.
#[derive(Clone, Copy, Debug)]
pub struct OpQuery<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The node.
    pub node: NodeId,
    /// Its signature.
    pub bound: &'a Bound,
    /// Order of its atoms, outermost first.
    pub order: &'a [u16],
    /// Bytes of operand 0 at the size hints.
    pub bytes: u64,
}

/// What a physical change of layout is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveKind {
    /// Every byte stays: a Reshape between storage shapes.
    View,
    /// A permutation that moves bytes.
    Permute,
}

/// What a target answers.
pub trait Target: Sync {
    /// Name, as `--target` takes it.
    fn name(&self) -> &str;

    /// One line for people: what it is for.
    fn about(&self) -> &str;

    /// Layouts in words.
    fn layouts(&self) -> &str;

    /// Where its costs come from.
    fn cost_source(&self) -> &str;

    /// Cost of an op in these orders, beyond what it costs in ONNX's own order; `None` where there is no kernel.
    fn op_cost(&self, query: &OpQuery<'_>) -> Option<Cost>;

    /// Cost of a move of this many bytes.
    fn move_cost(&self, kind: MoveKind, bytes: u64) -> Cost;

    /// Cost of a node that passes once over its operands and results, this many bytes together: what is gained where an
    /// element-wise op goes. Unless the target knows better, that of a view and as many bytes moved.
    fn pass_cost(&self, bytes: u64) -> Cost {
        self.move_cost(MoveKind::View, bytes)
    }
}
