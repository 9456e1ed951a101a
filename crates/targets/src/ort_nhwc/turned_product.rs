//! Products of two computed operands whose right one lies by columns, as the keys of attention do: an Einsum says so, and a device that
//! has products of a turned operand needs no Transpose.
//!
//! ```text
//! MatMul(q, Transpose(k)) = Einsum(q, k), "ik,jk->ij"        Transpose(MatMul(q, Transpose(k))) = Einsum(k, q), "ik,jk->ij"
//! ```

use super::VIEW_NS;
use crate::shared::forms::product::{FORM, is_dequantized, only_result};
use crate::shared::forms::projection::turns;
use relayout_ir::attr::Attr;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::OpName;
use relayout_ir::layout::Layout;
use relayout_target_api::{Become, Cost, NodeQuery, Offer, TargetForm};

/// The first operator set with Einsum.
const EINSUM_SINCE: i64 = 12;

/// Letters of axes before the last two.
const LETTERS: &str = "abcdefgh";

/// Products of turned operands.
pub(super) struct TurnedProducts;

impl TargetForm for TurnedProducts {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["MatMul"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        offers(q).unwrap_or_default()
    }
}

fn offers(q: &NodeQuery<'_>) -> Option<Vec<Offer>> {
    let node = q.graph.node(q.node);
    let operands = [node.operand(0)?, node.operand(1)?];
    only_result(node)?;
    let fits = |v| {
        let float = matches!(q.graph.value(v).ty.dtype(), Some(DType::F32 | DType::F16));
        // A product among quantized values is a unit with them, an Einsum is none.
        float && !(q.is_constant)(v) && !is_dequantized(q.graph, v)
    };
    if node.opset < EINSUM_SINCE || q.in_body || !operands.into_iter().all(fits) || !turns(q.graph) {
        return None;
    }
    // Letters do not broadcast.
    let [batch, other] = operands.map(|v| q.graph.value(v).ty.shape().and_then(|shape| shape.split_last_chunk::<2>()));
    let (batch, _) = batch.filter(|(batch, _)| other.is_some_and(|(other, _)| *batch == other))?;
    let letters = LETTERS.get(..batch.len())?;
    let equation = format!("{letters}ik,{letters}jk->{letters}ij");
    let rank = batch.len() + 2;
    // The batch lies in any order that is the same for both: as it is, and heads before images.
    let batches: Vec<Vec<usize>> =
        if batch.len() == 2 { vec![vec![0, 1], vec![1, 0]] } else { vec![(0..batch.len()).collect()] };
    let lies = |batch: &[usize], last: [usize; 2]| {
        let order: Vec<usize> = batch.iter().copied().chain(last).collect();
        Layout::permutation(&order).ok().filter(|layout| !layout.is_row_major())
    };
    let offer = |batch: &[usize], turned: bool| {
        let [rows, columns] = [[rank - 2, rank - 1], [rank - 1, rank - 2]].map(|last| lies(batch, last));
        Offer {
            form: FORM,
            cost: Cost::new(VIEW_NS),
            becomes: Some(Become {
                op: OpName::onnx("Einsum"),
                opset: node.opset,
                operands: turned.then(|| vec![1, 0]),
                set: vec![("equation".to_owned(), Attr::String(equation.clone().into_bytes().into()))],
                remove: Vec::new(),
            }),
            layouts: KernelLayouts {
                ins: vec![rows.clone(), columns.clone()],
                outs: vec![if turned { columns } else { rows }],
            },
            adds_zeros: false,
        }
    };
    Some(batches.iter().flat_map(|batch| [offer(batch, false), offer(batch, true)]).collect())
}
