//! Products of matrices that lie turned: `FusedMatMul` of domain `com.microsoft`, and Gemm.
//!
//! Priced by what they were measured to take beyond the product of operands that lie as ONNX has them (docs/targets.md): a right
//! operand by columns costs nothing, since its panels are packed either way; a left one is turned while it is read, which costs
//! what a Transpose of it does; rows outside of the batch cost half of that at most.

use super::OrtCpu;
use crate::matrix::{Product, Rows, Turns, Way, cost, exchanged, gemm_kernels};
use crate::{Cost, Kernel, NodeQuery, Rewrite};
use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::OpName;

/// What `FusedMatMul` pays for rows outside of the batch, in percent of the Transpose that it saves.
const BATCH_PERCENT: u64 = 50;

const FLAGS: [[&str; 2]; 2] = [["transA", "transBatchA"], ["transB", "transBatchB"]];

impl OrtCpu {
    /// What the product costs beyond one of row-major operands.
    pub(super) fn plain_product(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let product = Product::of(query)?;
        let price = |slot: usize, stored: &[Dim], turns| self.turned(query, slot, stored, turns);
        Some(cost(&product, &product.plain(), &price))
    }

    /// Kernels of a product of two computed operands. A constant one is packed on load whatever its order is, and then what is
    /// added to the product becomes a part of it, which `FusedMatMul` does not have.
    pub(super) fn product_kernels(&self, query: &NodeQuery<'_>) -> Vec<Kernel> {
        let (graph, node) = (query.graph, query.graph.node(query.node));
        let price = |slot: usize, stored: &[Dim], turns| self.turned(query, slot, stored, turns);
        if node.onnx() == Some("Gemm") {
            return gemm_kernels(query, &price);
        }
        let float = |v| graph.value(v).ty.dtype() == Some(DType::F32);
        let values = || node.inputs.iter().chain(&node.outputs).flatten().copied();
        let Some(rank) = node.outputs.first().copied().flatten().and_then(|y| graph.value(y).ty.rank()) else {
            return Vec::new();
        };
        let Some(product) =
            Product::of(query).filter(|p| values().all(float) && p.operands.iter().all(|o| !o.constant))
        else {
            return Vec::new();
        };
        let of = |way: &Way| Kernel {
            layouts: product.layouts(way, node.inputs.len(), rank),
            cost: cost(&product, way, &price),
            rewrite: Some(fused(way)),
        };
        product.ways(Rows::OutsideIfSome).iter().map(of).collect()
    }

    /// What it costs to read an operand that is stored with these extents turned.
    fn turned(&self, query: &NodeQuery<'_>, slot: usize, stored: &[Dim], turns: Turns) -> Cost {
        let extents: Vec<u64> = stored.iter().map(|d| query.sizes.extent(d)).collect();
        let transpose = |turns: Turns| {
            let ns = self.costs.transpose_ns(&extents, &turns.axes(extents.len()), 4);
            Cost::new(ns.saturating_sub(self.costs.node_ns()))
        };
        let last = if turns.last && slot == 0 { transpose(Turns::LAST) } else { Cost::ZERO };
        let batch = if turns.batch { transpose(Turns::BATCH).percent(BATCH_PERCENT) } else { Cost::ZERO };
        last + batch
    }
}

/// `FusedMatMul` with the flags of a way; what it multiplies the product with stays.
fn fused(way: &Way) -> Rewrite {
    let mut set = Vec::new();
    for (turns, [last, batch]) in way.read().into_iter().zip(FLAGS) {
        for (name, on) in [(last, turns.last), (batch, turns.batch)] {
            if on {
                set.push((name.to_owned(), Attr::Int(1)));
            }
        }
    }
    let op = OpName { domain: "com.microsoft".to_owned(), name: "FusedMatMul".to_owned(), overload: String::new() };
    Rewrite {
        op,
        opset: 1,
        operands: exchanged(way),
        set,
        remove: FLAGS.concat().into_iter().map(str::to_owned).collect(),
    }
}
