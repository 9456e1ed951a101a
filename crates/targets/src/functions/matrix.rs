//! Products of matrices. Libraries read every operand by rows or by columns, and with rows that stand outside of the batch, at
//! the same speed; so each of these ways is a kernel that costs nothing beyond the product.

use super::{call, only_result, opset};
use crate::shared::forms::product::{Product, Rows, Turns, Way};
use relayout_target_api::{Cost, NodeQuery, Offer, TargetForm};

/// The form's name.
const FORM: &str = "turned_product";

/// Products of matrices that lie turned.
pub(super) struct Products;

impl TargetForm for Products {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["MatMul", "Gemm"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        let written = opset(q.graph.node(q.node)).is_some();
        Some(q).filter(|_| written).and_then(products).unwrap_or_default()
    }
}

/// The ways to compute a product of operands that lie turned.
fn products(query: &NodeQuery<'_>) -> Option<Vec<Offer>> {
    let node = query.graph.node(query.node);
    let product = Product::recognize(query)?;
    let rank = query.graph.value(only_result(node)?).ty.rank()?;
    let results =
        if product.has_batches() { &[Turns::NONE, Turns::LAST, Turns::BATCH][..] } else { &[Turns::NONE, Turns::LAST] };
    let mut kernels: Vec<Offer> = Vec::new();
    // Which operands the result is turned with is no matter to a function: its name says how each is stored.
    for way in product.ways(Rows::Outside).into_iter().chain([product.plain()]).filter(|way| way.result == Turns::NONE)
    {
        for &result in results {
            let layouts = product.layouts(Way { result, ..way }, node.inputs.len(), rank);
            if layouts.ins.iter().chain(&layouts.outs).all(Option::is_none) {
                continue;
            }
            kernels.push(call(FORM, node.onnx()?, layouts, Cost::ZERO, Vec::new()));
        }
    }
    Some(kernels)
}
