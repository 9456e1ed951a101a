//! Attention without mask or bias as one op, `MultiHeadAttention` of `com.microsoft`, for targets that have it.
//!
//! The op reads queries, keys and values as projections leave them, positions outside of heads, and leaves its result so. A target says
//! what its kernel costs, beside two products and a Softmax.

mod find;
mod write;

pub(crate) use find::{AttentionParts, OPS, extents, find_all};
use relayout_ir::form::KernelLayouts;
use relayout_ir::layout::Layout;
use relayout_ir::raised::Attention;
use relayout_target_api::{Become, Cost, Counted, NodeQuery, Numerics, Offer, Rule};
pub(crate) use write::write;

/// The op.
pub(crate) const OP: &str = "MultiHeadAttention";

/// The rule.
pub(crate) const RULE: Rule = Rule {
    name: "attend_in_one",
    equation: "MatMul(Softmax(s * MatMul(Q, K)), V) = MultiHeadAttention(Q, K, V, scale = s)",
    condition: "the target has the op, and it is cheaper together with the moves around it; float32, and float16 or bfloat16 where the \
                target's kernel has them; no mask and no bias, s one constant; nobody else reads what is between; heads and their \
                units are known, no extent is broadcast",
    buys: "cost by the target's measurements or data",
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// A raised attention at the size hints.
pub(crate) struct Sizes {
    /// Heads of all batches.
    pub(crate) heads: u64,
    /// Positions that ask.
    pub(crate) queries: u64,
    /// Positions that are asked.
    pub(crate) keys: u64,
    /// Units of a query, and of a key.
    pub(crate) width: u64,
    /// Units of a value.
    pub(crate) value_width: u64,
    /// Sums of the scores with zeros.
    pub(crate) sums: u64,
    rank: usize,
    keys_by_rows: bool,
}

impl Sizes {
    pub(crate) fn recognize(query: &NodeQuery<'_>) -> Option<Sizes> {
        let node = query.graph.node(query.node);
        let Attention { keys_by_rows, sums } = Attention::of(node)?;
        let (q, v) = (node.operand(0)?, node.operand(2)?);
        let (from, to) = (query.sizes.shape(query.graph, q)?, query.sizes.shape(query.graph, v)?);
        let ([before @ .., queries, width], [.., keys, value_width]) = (&from[..], &to[..]) else { return None };
        let heads = before.iter().copied().fold(1, u64::saturating_mul);
        let [queries, keys, width, value_width] = [*queries, *keys, *width, *value_width];
        Some(Sizes { heads, queries, keys, width, value_width, sums, rank: from.len(), keys_by_rows })
    }

    /// Of one head, for tests.
    #[cfg(test)]
    pub(crate) fn of_one_head(queries: u64, keys: u64, width: u64, value_width: u64) -> Sizes {
        Sizes { heads: 1, queries, keys, width, value_width, sums: 0, rank: 4, keys_by_rows: false }
    }

    /// Products of a query and a key, of all heads.
    pub(crate) fn scores(&self) -> u64 {
        self.heads.saturating_mul(self.queries).saturating_mul(self.keys)
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

    /// The one kernel at this cost, with the layouts of the operands that it reads and of its result.
    pub(crate) fn offer(&self, form: &'static str, cost: Cost) -> Offer {
        let outside = || self.order([0, 2, 1, 3]);
        let keys = self.keys(|position, unit| [0, position, 1, unit]);
        let layouts = KernelLayouts { ins: vec![outside(), keys, outside()], outs: vec![outside()] };
        let set = vec![Attention::whole()];
        let becomes = Some(Become { op: Attention::op(), opset: 1, operands: None, set, remove: Vec::new() });
        Offer { form, layouts, cost, becomes, adds_zeros: false }
    }
}
