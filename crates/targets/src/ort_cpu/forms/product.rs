//! Products of matrices that lie turned: `FusedMatMul` of domain `com.microsoft`, and Gemm.
//!
//! Priced is what was measured beyond the multiplications (docs/ort-cpu.md). A right operand is packed by rows or by columns
//! alike, and rows outside of the batch cost nothing. A left operand that is turned is turned while it is read, which costs what
//! a Transpose of it does. Operands that change places, so that the result is turned, may have more to pack on the right, and
//! packing costs one to two copies.

use crate::ort_cpu::costs::Copy;
use crate::ort_cpu::machine::Machine;
use crate::shared::forms::product::{Product, Rows, Turns, Way, exchanged, flags, gemm_kernels};
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Node, OpName};
use relayout_target_api::{Become, Cost, NodeQuery, Offer, TargetForm};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "turned_product";

/// Products of matrices that lie turned.
pub(super) struct Products(pub(super) Arc<Machine>);

impl TargetForm for Products {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["MatMul", "Gemm", "FusedMatMul", "TransposeMatMul"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.0.product_kernels(q)
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        self.0.plain_product(q)
    }
}

/// Copies that packing a right operand takes as long as.
const PACKED_COPIES: u64 = 2;

/// Bytes of a number.
const ELEMENT: u64 = 4;

impl Machine {
    /// What the product costs as the file has it, if there are others to hold against it.
    pub(super) fn plain_product(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let product = Product::recognize(query).filter(|_| !self.product_kernels(query).is_empty())?;
        Some(self.product(query, &product, product.plain()))
    }

    /// Kernels of a product of two computed operands. A constant one is packed on load whatever its order is, and then what is
    /// added to the product becomes a part of it, which `FusedMatMul` does not have.
    pub(super) fn product_kernels(&self, query: &NodeQuery<'_>) -> Vec<Offer> {
        let (graph, node) = (query.graph, query.graph.node(query.node));
        if node.onnx() == Some("Gemm") {
            return gemm_kernels(query, &|product, way| self.product(query, product, way));
        }
        let float = |v| graph.value(v).ty.dtype() == Some(DType::F32);
        let values = || node.inputs.iter().chain(&node.outputs).flatten().copied();
        let Some(rank) = node.result(0).and_then(|y| graph.value(y).ty.rank()) else {
            return Vec::new();
        };
        let Some(product) =
            Product::recognize(query).filter(|p| values().all(float) && p.operands.iter().all(|o| !o.constant))
        else {
            return Vec::new();
        };
        let of = |way: Way| Offer {
            form: FORM,
            layouts: product.layouts(way, node.inputs.len(), rank),
            cost: self.product(query, &product, way),
            becomes: Some(fused(node, way)),
            adds_zeros: false,
        };
        product.ways(Rows::OutsideIfSome).into_iter().map(of).collect()
    }

    /// What one way to compute a product costs beyond the product of operands that lie as ONNX has them.
    fn product(&self, query: &NodeQuery<'_>, product: &Product, way: Way) -> Cost {
        let extents = |slot: usize| -> Vec<u64> {
            product.operands[slot].stored(way.turns[slot]).iter().map(|d| query.sizes.extent(d)).collect()
        };
        let left = usize::from(way.result.last);
        let turned = if way.read()[0].last { self.turned(&extents(left)) } else { Cost::ZERO };
        // No move is made for the sake of what is packed: what another order of operands saves does not count.
        let packed = |slot: usize| if product.operands[slot].constant { 0 } else { self.packed_ns(&extents(slot)) };
        turned + Cost::new(packed(1 - left).saturating_sub(packed(1)))
    }

    /// What it costs to turn a left operand of these extents while it is read.
    fn turned(&self, extents: &[u64]) -> Cost {
        let ns = self.costs.transpose_alone(extents, &Turns::LAST.axes(extents.len()), ELEMENT);
        Cost::new(ns.saturating_sub(self.costs.node_ns()))
    }

    /// What it costs at most to pack a right operand of these extents.
    fn packed_ns(&self, extents: &[u64]) -> u64 {
        let bytes = extents.iter().fold(ELEMENT, |n, &d| n.saturating_mul(d));
        self.costs.copy_ns(Copy::Concat, bytes, bytes).saturating_mul(PACKED_COPIES)
    }
}

/// `FusedMatMul` with the flags of a way; what it multiplies the product with stays.
fn fused(node: &Node, way: Way) -> Become {
    let [a, b] = way.read();
    let set = flags(node, [("transA", a.last), ("transBatchA", a.batch), ("transB", b.last), ("transBatchB", b.batch)]);
    let op = OpName { domain: "com.microsoft".to_owned(), name: "FusedMatMul".to_owned(), overload: String::new() };
    Become { op, opset: 1, operands: exchanged(way), set, remove: Vec::new() }
}
