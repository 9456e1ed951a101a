//! Attention without mask or bias: `MultiHeadAttention` of `com.microsoft` as one kernel, or two products and a Softmax.
//!
//! The one kernel reads queries, keys and values as projections leave them, positions outside of heads, and leaves its result so.

mod find;
mod write;

use crate::ort_cpu::costs::{Attention as Kernel, AttentionShape, Spread};
use crate::ort_cpu::machine::Machine;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::raised::Attention;
use relayout_target_api::{
    Become, Cost, Counted, NodeQuery, Numerics, Offer, PassError, Raised, Recognized, Rule, TargetForm,
};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "attention";

/// Attention as one op.
pub(super) struct Attentions(pub(super) Arc<Machine>);

impl TargetForm for Attentions {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Attention"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.0.attention_kernels(q)
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        self.0.plain_attention(q)
    }

    fn recognizes(&self) -> &'static [&'static str] {
        find::OPS
    }

    fn pieces(&self, graph: &Graph, _: &[NodeId], recognized: &[Recognized]) -> Vec<Raised> {
        find::find_all(graph, recognized)
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &[&RULE]
    }

    fn rule(&self, _offer: &Offer) -> Option<&'static Rule> {
        Some(&RULE)
    }

    fn spell(&self, graph: &mut Graph, node: NodeId, _opset: i64) -> Result<Option<ValueId>, PassError> {
        write::write(graph, node)
    }
}

/// The rule.
pub(crate) const RULE: Rule = Rule {
    name: "attend_in_one",
    equation: "MatMul(Softmax(s * MatMul(Q, K)), V) = MultiHeadAttention(Q, K, V, scale = s)",
    condition: "the target has the op, and it is cheaper together with the moves around it; float32, no mask and no bias, s one \
                constant; nobody else reads what is between; heads and their units are known, no extent is broadcast",
    buys: "cost by the target's measurements",
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// What the one kernel is priced at, in percent of what was measured: half of all prices are within a few percent of what their
/// ops take, and it should win by more than that.
const DOUBTED_PERCENT: u64 = 103;

/// A raised attention at the size hints.
struct Heads {
    shape: AttentionShape,
    rank: usize,
    keys_by_rows: bool,
    /// Sums of the scores with zeros.
    sums: u64,
}

impl Heads {
    fn recognize(query: &NodeQuery<'_>) -> Option<Heads> {
        let node = query.graph.node(query.node);
        let Attention { keys_by_rows, sums } = Attention::of(node)?;
        let (q, v) = (node.operand(0)?, node.operand(2)?);
        let (from, to) = (query.sizes.shape(query.graph, q)?, query.sizes.shape(query.graph, v)?);
        let ([before @ .., queries, width], [.., keys, value_width]) = (&from[..], &to[..]) else { return None };
        let heads = before.iter().copied().fold(1, u64::saturating_mul);
        let shape = AttentionShape { heads, queries: *queries, keys: *keys, width: *width, value_width: *value_width };
        Some(Heads { shape, rank: from.len(), keys_by_rows, sums })
    }

    /// Axes `[batch, heads, ..]` of the operand, or `[batch, ..]`, in another order of these four.
    fn order(&self, of_four: [usize; 4]) -> Option<Layout> {
        let order: Vec<usize> = match self.rank {
            4 => of_four.to_vec(),
            // Without an axis of heads.
            _ => of_four.into_iter().filter(|&axis| axis != 1).map(|axis| axis.saturating_sub(1)).collect(),
        };
        Layout::permutation(&order).ok().filter(|layout| !layout.is_row_major())
    }

    /// Keys, the places of whose positions and units are these two.
    fn keys(&self, order: impl Fn(usize, usize) -> [usize; 4]) -> Option<Layout> {
        self.order(if self.keys_by_rows { order(2, 3) } else { order(3, 2) })
    }

    /// Layouts of the operands that the one kernel reads, and of its result.
    fn whole(&self) -> KernelLayouts {
        let outside = || self.order([0, 2, 1, 3]);
        let keys = self.keys(|position, unit| [0, position, 1, unit]);
        KernelLayouts { ins: vec![outside(), keys, outside()], outs: vec![outside()] }
    }
}

impl Machine {
    /// What such an attention costs as ONNX has it.
    pub(super) fn plain_attention(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let heads = Heads::recognize(query)?;
        Some(Cost::new(self.apart_ns(&heads)))
    }

    /// Two products, the Softmax, and what is added between.
    fn apart_ns(&self, heads: &Heads) -> u64 {
        let AttentionShape { heads: count, queries, keys, .. } = heads.shape;
        let scores = count.saturating_mul(queries).saturating_mul(keys);
        let sum = self.costs.elementwise_ns("Add", scores, Spread::Same);
        self.costs.attention_ns(&heads.shape, Kernel::Apart).saturating_add(sum.saturating_mul(heads.sums))
    }

    /// Kernels for it.
    pub(super) fn attention_kernels(&self, query: &NodeQuery<'_>) -> Vec<Offer> {
        let Some(heads) = Heads::recognize(query) else { return Vec::new() };
        let ns = self.costs.attention_ns(&heads.shape, Kernel::Whole).saturating_mul(DOUBTED_PERCENT) / 100;
        let set = vec![Attention::whole()];
        vec![Offer {
            form: FORM,
            layouts: heads.whole(),
            cost: Cost::new(ns),
            becomes: Some(Become { op: Attention::op(), opset: 1, operands: None, set, remove: Vec::new() }),
            adds_zeros: false,
        }]
    }
}
