//! Products of matrices. Libraries read every operand by rows or by columns, and with rows that stand outside of the batch, at
//! the same speed; so each of these ways is a kernel that costs nothing beyond the product.

use super::{FunctionTarget, call, only_result};
use crate::matrix::{Product, Rows, Turns, Way};
use crate::{Cost, Kernel, NodeQuery};
use relayout_ir::graph::Node;

/// Whether the op is one of these.
pub(super) fn is(node: &Node) -> bool {
    matches!(node.onnx(), Some("MatMul" | "Gemm"))
}

impl FunctionTarget {
    /// The ways to compute a product of operands that lie turned.
    pub(super) fn products(query: &NodeQuery<'_>) -> Option<Vec<Kernel>> {
        let node = query.graph.node(query.node);
        let product = Product::of(query)?;
        let rank = query.graph.value(only_result(node)?).ty.rank()?;
        let results = if product.has_batches() {
            &[Turns::NONE, Turns::LAST, Turns::BATCH][..]
        } else {
            &[Turns::NONE, Turns::LAST]
        };
        let mut kernels: Vec<Kernel> = Vec::new();
        // Which operands the result is turned with is no matter to a function: its name says how each is stored.
        for way in
            product.ways(Rows::Outside).into_iter().chain([product.plain()]).filter(|way| way.result == Turns::NONE)
        {
            for &result in results {
                let layouts = product.layouts(Way { result, ..way }, node.inputs.len(), rank);
                if layouts.ins.iter().chain(&layouts.outs).all(Option::is_none) {
                    continue;
                }
                kernels.push(call(node.onnx()?, layouts, Cost::ZERO, Vec::new()));
            }
        }
        Some(kernels)
    }
}
