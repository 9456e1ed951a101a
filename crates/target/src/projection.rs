//! Projections into heads: a product with constant weights whose result has its heads outermost.
//!
//! `[rows, inputs]` times `[heads, inputs, width]` is `[heads, rows, width]`, which the products of attention read without a move. It
//! is the same arithmetic in more and narrower products, and libraries prepare constant weights ahead of time only where they are
//! one matrix.

use crate::{Cost, Kernel, NodeQuery, Rewrite};
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::layout::Layout;
use relayout_ir::raised::Projection;

/// A raised projection at the size hints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Projected {
    /// Rows of the operand.
    pub(crate) rows: u64,
    /// Columns of the operand.
    pub(crate) inputs: u64,
    /// Projected, all axes of them together.
    pub(crate) heads: u64,
    /// Columns of each.
    pub(crate) width: u64,
    /// A vector is added.
    pub(crate) bias: bool,
    pub(crate) dtype: DType,
    /// How the result lies that has its heads outermost.
    apart: Layout,
}

impl Projected {
    pub(crate) fn of(query: &NodeQuery<'_>) -> Option<Projected> {
        let node = query.graph.node(query.node);
        let raised = Projection::of(node)?;
        let (x, y) = (node.inputs.first().copied().flatten()?, node.outputs.first().copied().flatten()?);
        let ty = &query.graph.value(y).ty;
        let (from, to) = (query.sizes.shape(query.graph, x)?, query.sizes.shape(query.graph, y)?);
        let (inputs, rows) = from.split_last()?;
        let (width, before) = to.split_last()?;
        let product = |extents: &[u64]| extents.iter().copied().fold(1, u64::saturating_mul);
        let apart = Layout::permutation(&raised.heads_outermost(ty.shape()?)).ok()?;
        Some(Projected {
            rows: product(rows),
            inputs: *inputs,
            heads: product(before.get(raised.rows..)?),
            width: *width,
            bias: node.inputs.get(2).copied().flatten().is_some(),
            dtype: ty.dtype()?,
            apart,
        })
    }

    /// Elements of the weights.
    pub(crate) fn weights(&self) -> u64 {
        self.inputs.saturating_mul(self.heads).saturating_mul(self.width)
    }

    /// The kernel with heads outermost; none where they are so anyway.
    pub(crate) fn kernel(&self, operands: usize, cost: Cost) -> Option<Kernel> {
        (!self.apart.is_row_major()).then(|| Kernel {
            layouts: KernelLayouts { ins: vec![None; operands], outs: vec![Some(self.apart.clone())] },
            cost,
            rewrite: Some(Rewrite {
                op: Projection::op(),
                opset: 1,
                operands: None,
                set: vec![Projection::apart()],
                remove: Vec::new(),
            }),
            adds_zeros: false,
        })
    }
}
