//! Targets: what runs where in which layout, and at what cost.
//!
//! A target answers: what an op costs with its operands and results stored in given layouts, which kernels of its dialect can
//! stand in for an op, what a move costs, and what it is called. Built-in targets are data files behind the trait; an embedder
//! may implement it in code. Costs are [`Cost`]: integer nanoseconds, and `None` where there is no kernel.
//!
//! Absent: any knowledge of files, and any measuring.

mod builtin;
mod cost;
mod functions;
pub mod gpu;
mod kernel;
mod matrix;
pub mod measured;
mod ort_cpu;
mod projection;
mod turned;

pub use builtin::{BUILTIN, DataTarget, TargetError, builtin, parse};
pub use cost::Cost;
pub use functions::FunctionTarget;
pub use kernel::{Kernel, Rewrite};
pub use ort_cpu::{Block, OrtCpu};

use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::Bound;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::storage::StorageRule;

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
    /// Bytes at the size hints of the operands and results that this order stores otherwise than ONNX's own.
    pub turned_bytes: u64,
}

/// One op, for which kernels are sought.
#[derive(Clone, Copy)]
pub struct NodeQuery<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The node.
    pub node: NodeId,
    /// Sizes of symbolic dims.
    pub sizes: &'a dyn Sizes,
    /// Whether a value is known at compile time, so that moves of it cost nothing.
    pub is_constant: &'a dyn Fn(ValueId) -> bool,
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

/// Hosts that files in blocks are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedHost {
    /// Channels of a block.
    pub block: u64,
    /// Whether the file makes a host of another block fail with an error.
    pub guarded: bool,
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

    /// Whether its files hold standard operators only, so that they can be optimized again and for other targets.
    fn is_standard(&self) -> bool {
        true
    }

    /// How its dialect declares values whose axes are split or padded.
    fn storage(&self) -> StorageRule {
        StorageRule::PerDigit
    }

    /// Whether its files call functions of domain `relayout`: kernels of that domain, and moves.
    fn calls_functions(&self) -> bool {
        false
    }

    /// What its files ask of the host, if their bytes lie in blocks that the host decides.
    fn blocked_host(&self) -> Option<BlockedHost> {
        None
    }

    /// Whether its runtime computes convolutions of float16 in float32 anyway, so that the file had better say so.
    fn widens_halves(&self) -> bool {
        false
    }

    /// Whether its runtime makes integer ops of what stands between quantizations only where the bytes are unsigned, so that the
    /// file had better say so.
    fn computes_on_unsigned_bytes(&self) -> bool {
        false
    }

    /// Whether it has kernels for products with constant weights that read or leave columns before rows, and for normalizations of
    /// the last axis that do.
    fn has_turned_forms(&self) -> bool {
        false
    }

    /// Whether a region may move more bytes than the input did where that is cheaper. Where costs are a model and no
    /// measurement, it may not.
    fn may_move_more(&self) -> bool {
        false
    }

    /// What its files have to say about themselves beside the target's name, as metadata.
    fn metadata(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Cost of the standard op in these layouts; `None` where there is no kernel.
    fn op_cost(&self, query: &OpQuery<'_>) -> Option<Cost>;

    /// Cost of the standard op as ONNX has it: what its kernels are held against.
    fn plain_cost(&self, _query: &NodeQuery<'_>) -> Cost {
        Cost::ZERO
    }

    /// Kernels of the target's dialect that can stand in for the op.
    fn kernels(&self, _query: &NodeQuery<'_>) -> Vec<Kernel> {
        Vec::new()
    }

    /// Kernels beyond these for layouts of operands and results that ops around the node ask for: the candidates of a value, as far
    /// as they are known.
    fn kernels_among<'c>(&self, _query: &NodeQuery<'_>, _candidates: &dyn Fn(ValueId) -> &'c [Layout]) -> Vec<Kernel> {
        Vec::new()
    }

    /// Cost of a move; `None` where the dialect can't say it.
    fn move_cost(&self, query: &MoveQuery<'_>) -> Option<Cost>;

    /// The layouts before and after each of several moves that together are faster than the one that is asked for; empty where
    /// one is best. What lies between the end of one and the start of the next, and behind the last, moves no byte.
    fn split_move(&self, _query: &MoveQuery<'_>) -> Vec<[Layout; 2]> {
        Vec::new()
    }

    /// Cost of a node that moves nothing, or of a few elements.
    fn view_cost(&self) -> Cost;

    /// Cost of a node that passes once over its operands and results, this many bytes together: what is gained where an
    /// element-wise op goes.
    fn pass_cost(&self, bytes: u64) -> Cost;

    /// Cost of a node that writes this many bytes, in contiguous runs of `run` bytes as it reads them: Concat, Split, Slice, Gather.
    fn copy_cost(&self, bytes: u64, _run: u64) -> Cost {
        self.pass_cost(bytes.saturating_mul(2))
    }
}
