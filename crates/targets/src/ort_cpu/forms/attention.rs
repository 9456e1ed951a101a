//! Attention without mask or bias: `MultiHeadAttention` of `com.microsoft` as one kernel, or two products and a Softmax
//! (`attention` of the forms that targets share).

use crate::ort_cpu::costs::{Attention as Kernel, AttentionShape, Spread};
use crate::ort_cpu::machine::Machine;
use crate::shared::forms::attention::{self, Sizes};
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_target_api::{Cost, NodeQuery, Offer, PassError, Raised, Recognized, Rule, TargetForm};
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
        attention::OPS
    }

    fn pieces(&self, graph: &Graph, _: &[NodeId], recognized: &[Recognized]) -> Vec<Raised> {
        attention::find_all(graph, recognized, &[DType::F32], &|_| true)
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &[&attention::RULE]
    }

    fn rule(&self, _offer: &Offer) -> Option<&'static Rule> {
        Some(&attention::RULE)
    }

    fn spell(&self, graph: &mut Graph, node: NodeId, _opset: i64) -> Result<Option<ValueId>, PassError> {
        attention::write(graph, node)
    }
}

/// What the one kernel is priced at, in percent of what was measured: half of all prices are within a few percent of what their
/// ops take, and it should win by more than that.
const DOUBTED_PERCENT: u64 = 103;

/// The extents that costs were measured of.
fn shape(sizes: &Sizes) -> AttentionShape {
    let Sizes { heads, queries, keys, width, value_width, .. } = *sizes;
    AttentionShape { heads, queries, keys, width, value_width }
}

impl Machine {
    /// What such an attention costs as ONNX has it.
    pub(super) fn plain_attention(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let sizes = Sizes::recognize(query)?;
        Some(Cost::new(self.apart_ns(&sizes)))
    }

    /// Two products, the Softmax, and what is added between.
    fn apart_ns(&self, sizes: &Sizes) -> u64 {
        let sum = self.costs.elementwise_ns("Add", sizes.scores(), Spread::Same);
        self.costs.attention_ns(&shape(sizes), Kernel::Apart).saturating_add(sum.saturating_mul(sizes.sums))
    }

    /// Kernels for it.
    pub(super) fn attention_kernels(&self, query: &NodeQuery<'_>) -> Vec<Offer> {
        let Some(sizes) = Sizes::recognize(query) else { return Vec::new() };
        let ns = self.costs.attention_ns(&shape(&sizes), Kernel::Whole).saturating_mul(DOUBTED_PERCENT) / 100;
        vec![sizes.offer(FORM, Cost::new(ns))]
    }
}
