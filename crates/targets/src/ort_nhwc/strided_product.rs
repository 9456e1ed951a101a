//! Products of matrices whose operands lie as a provider's product reads them by strides: by columns, as the keys of attention do, or
//! with rows before batches, as heads lie behind the positions of one sequence.
//!
//! ```text
//! MatMul(q, k) with k stored by columns = MatMul(q, Transpose(k)), where the runtime takes the Transpose into the product
//! ```
//!
//! So such a Transpose stands in the file, and nothing runs for it.

use super::{Rates, VIEW_NS};
use crate::shared::forms::product::{is_dequantized, only_result};
use crate::shared::forms::projection::turns;
use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::perm::{inverse, is_identity};
use relayout_ir::storage::reshape_target;
use relayout_ir::types::Type;
use relayout_target_api::{Cost, Fragment, Left, Made, NodeQuery, Offer, Operand, Piece, Refused, TargetForm};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "strided_product";

/// Ranks of operands: matrices, and one or two axes of batches.
const RANKS: std::ops::RangeInclusive<usize> = 3..=4;

/// Products of operands that are read by strides.
pub(super) struct StridedProducts(pub(super) Arc<Rates>);

impl TargetForm for StridedProducts {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["MatMul"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        let fuses = self.0.provider.device.fuses_products && !q.in_body;
        let Some(product) = Product::recognize(q.graph, q.node).filter(|_| fuses && turns(q.graph)) else {
            return Vec::new();
        };
        let [left, right] = [product.orders(false), product.orders(true)];
        let pairs = left.iter().flat_map(|a| right.iter().map(move |b| [a, b]));
        let moved = pairs.filter(|orders| !orders.iter().all(|order| is_identity(order)));
        let own: Vec<usize> = (0..product.rank).collect();
        let strided = moved.filter_map(|[a, b]| offer([a, b, &own]));
        // Heads before images, as a product per head leaves them.
        let swapped = (product.rank == 4).then(|| offer([&[1, 0, 2, 3], &[1, 0, 3, 2], &[1, 0, 2, 3]])).flatten();
        strided.chain(swapped).collect()
    }

    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        let product = Product::recognize(piece.graph, piece.node);
        let made = product.and_then(|product| product.write(piece));
        made.ok_or_else(|| Refused::new(piece, "can't be a product of strided operands"))
    }
}

/// A product of operands that lie in these orders, and its result.
fn offer(orders: [&[usize]; 3]) -> Option<Offer> {
    let layout = |order: &[usize]| Layout::permutation(order).ok();
    let declared = orders.map(|order| layout(order).map(|layout| layout.declared()));
    let [a, b, y] = declared;
    let layouts = KernelLayouts { ins: vec![a?, b?], outs: vec![y?] };
    Some(Offer { form: FORM, layouts, cost: Cost::new(VIEW_NS), becomes: None, adds_zeros: false })
}

/// A product of two computed operands of the same batches.
struct Product {
    operands: [ValueId; 2],
    rank: usize,
    /// Whether the first axis of batches has one element, so that it may lie anywhere.
    one: bool,
}

impl Product {
    fn recognize(graph: &Graph, n: NodeId) -> Option<Product> {
        let node = graph.node(n);
        let operands = [node.operand(0)?, node.operand(1)?];
        only_result(node)?;
        let fits = |v: ValueId| {
            let float = matches!(graph.value(v).ty.dtype(), Some(DType::F32 | DType::F16 | DType::BF16));
            float && graph.constant(v).is_none() && !is_dequantized(graph, v)
        };
        let [a, b] = operands.map(|v| graph.value(v).ty.shape());
        let ((batch, _), (other, _)) = (a?.split_last_chunk::<2>()?, b?.split_last_chunk::<2>()?);
        let rank = batch.len() + 2;
        let one = batch.len() == 2 && batch[0].is_one();
        (operands.into_iter().all(fits) && batch == other && RANKS.contains(&rank)).then_some(Product {
            operands,
            rank,
            one,
        })
    }

    /// The orders in which an operand may lie: as it is, with rows before batches, and of the right operand also by columns.
    fn orders(&self, is_right: bool) -> Vec<Vec<usize>> {
        let (row, column) = (self.rank - 2, self.rank - 1);
        let batches: Vec<usize> = (0..row).collect();
        let behind = |first: usize, last: usize| match &batches[..] {
            [unit, heads] if self.one => vec![*unit, first, *heads, last],
            _ => [&[first], &batches[..], &[last]].concat(),
        };
        let mut orders = vec![(0..self.rank).collect(), behind(row, column)];
        if is_right {
            orders.push([&batches[..], &[column, row]].concat());
            orders.push(behind(column, row));
        }
        orders
    }

    fn write(&self, piece: &Piece<'_>) -> Option<Fragment> {
        if let Some(stored) = piece.layouts.outs.first().cloned().flatten() {
            return self.write_heads_first(piece, stored);
        }
        let mut made = Fragment::new(piece, FORM);
        let mut op = Made::same(piece).in_layouts(Vec::new(), Vec::new());
        for (slot, what) in ["left", "right"].into_iter().enumerate() {
            if let Some(x) = self.read(&mut made, piece.graph, self.operands[slot], what)? {
                op = op.reading(slot, x);
            }
        }
        made.become_op(op);
        Some(made)
    }

    /// The product where heads lie before images in both operands and the result, and the right operand by columns.
    fn write_heads_first(&self, piece: &Piece<'_>, stored: Layout) -> Option<Fragment> {
        let graph = piece.graph;
        let keys = graph.value(self.operands[1]);
        let mut shape = graph.storage_shape(self.operands[1], &keys.layout)?;
        shape.swap(self.rank - 2, self.rank - 1);
        let mut made = Fragment::new(piece, FORM);
        let turn = Made::op("", "Transpose", 0, [Operand::Outer(self.operands[1])])
            .with("perm", Attr::Ints(vec![0, 1, 3, 2]))
            .in_layouts(vec![Some(keys.layout.clone())], Vec::new());
        let right = made.add(turn, Left::row_major(made.named("right"), Type::tensor(keys.ty.dtype()?, shape)));
        let left = graph.value(self.operands[0]).layout.clone();
        made.become_op(Made::same(piece).reading(1, right).in_layouts(vec![Some(left), None], vec![Some(stored)]));
        Some(made)
    }

    /// An operand behind the Transpose that the runtime takes in; nothing if it lies as it is.
    #[expect(clippy::option_option, reason = "what can't be written is no operand that lies as it is")]
    fn read(&self, made: &mut Fragment, graph: &Graph, v: ValueId, what: &str) -> Option<Option<Operand>> {
        let value = &graph.value(v);
        if value.layout.is_row_major() {
            return Some(None);
        }
        let mut order = value.layout.as_permutation()?;
        let dtype = value.ty.dtype()?;
        let mut x = Operand::Outer(v);
        let mut layout = Some(value.layout.clone());
        if self.one && order.first() == Some(&0) && order.get(2) == Some(&1) {
            // The unit axis lies before the heads, which is where a product has its batches.
            let stored = graph.storage_shape(v, &value.layout)?;
            order.swap(0, 1);
            let mut target: Vec<Dim> = stored.clone();
            target.swap(0, 1);
            let node = made.reshape(graph, x, &reshape_target(&stored, &target)?, &Layout::row_major(self.rank));
            x = made.add(node, Left::row_major(made.named(&format!("{what}_rows")), Type::tensor(dtype, target)));
            layout = None;
        }
        let perm = inverse(&order).into_iter().map(|axis| i64::try_from(axis).unwrap_or(0)).collect();
        let turn =
            Made::op("", "Transpose", 0, [x]).with("perm", Attr::Ints(perm)).in_layouts(vec![layout], Vec::new());
        Some(Some(made.add(turn, Left::row_major(made.named(what), value.ty.clone()))))
    }
}
