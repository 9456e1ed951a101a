//! Attention as one op of ONNX Runtime, `MultiHeadAttention` of domain `com.microsoft`, for those who allow that domain.
//!
//! ```text
//! [N, S, heads * width], [N, T, heads * width], [N, T, heads * value width] -> MultiHeadAttention -> [N, S, heads * value width]
//! ```
//!
//! Heads lie where projections leave them, so nothing is moved around it, and the scores of queries and keys are in no tensor: one kernel
//! in place of two products and a Softmax. That holds for two of the kernels that CUDA's provider has for the op. Where it takes neither
//! it brings heads before positions by itself, with a kernel for each of queries, keys, values and the result
//! (`contrib_ops/cuda/bert/attention_prepare_qkv.cu`), so there the op is not offered:
//!
//! | kernel | takes |
//! |---|---|
//! | flash attention | halves and bfloat16; as many units of values as of queries; GPUs of compute capability 8.0 and newer |
//! | memory-efficient attention | halves, and of any type if queries or keys are many |
//!
//! Which one it is is asked in that order (`contrib_ops/cuda/bert/multihead_attention.cc`).

use super::Rates;
use crate::shared::forms::attention::{self, AttentionParts, Sizes, extents};
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_target_api::{Cost, NodeQuery, Offer, PassError, Raised, Recognized, Rule, TargetForm};
use std::sync::Arc;

/// The op.
pub(super) const OP: &str = attention::OP;

/// The form's name.
const FORM: &str = "contributed_attention";

/// Types that the op has kernels of (`contrib_ops/cuda/cuda_contrib_kernels.cc`).
const DTYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];
/// Both kernels read units in vectors of as many (`is_supported` of `contrib_ops/cuda/bert/flash_attention/flash_api.h`,
/// `has_memory_efficient_attention` of `contrib_ops/cuda/bert/cutlass_fmha/memory_efficient_attention.h`).
const UNITS_OF_A_VECTOR: u64 = 8;
/// Most units of a head that flash attention takes (`flash_api.h` there).
const MOST_UNITS_FLASH: u64 = 256;
/// Most units of a head that memory-efficient attention takes (`kEfficientAttentionMaxHeadSize` of `memory_efficient_attention.h` there).
const MOST_UNITS: u64 = 1024;
/// From so many queries or keys on memory-efficient attention is taken for types other than halves
/// (`kDefaultMinSeqLenForEfficientAttentionFp32` of `contrib_ops/cpu/bert/attention_common.h`).
const LONG: u64 = 256;
/// Most heads: threads of a block (`CheckInputs` of `contrib_ops/cpu/bert/multihead_attention_helper.h` is given them).
const MOST_HEADS: i64 = 1024;
/// Nodes that it stands for beside itself: two products and a Softmax.
const OTHER_NODES: u64 = 2;
/// How often the scores of queries and keys are read and written: by the first product, by the Softmax, and by the second product.
/// A Transpose does both once.
const PASSES_OF_SCORES: u64 = 2;

/// Attention, for providers that have the op.
pub(super) struct ContributedAttention(pub(super) Arc<Rates>);

impl ContributedAttention {
    /// What the nodes cost beyond those of the op.
    fn nodes(&self, sizes: &Sizes) -> Cost {
        let device = &self.0.provider.device;
        let passes = sizes.scores().saturating_mul(PASSES_OF_SCORES + sizes.sums);
        let started = device.node_ns.saturating_mul(OTHER_NODES + sizes.sums);
        Cost::new(started.saturating_add(passes / device.elements_per_ns.max(1)))
    }
}

impl TargetForm for ContributedAttention {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Attention"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        let dtype = q.graph.node(q.node).operand(0).and_then(|v| q.graph.value(v).ty.dtype());
        let sizes = Sizes::recognize(q).zip(dtype).filter(|(sizes, dtype)| !q.in_body && moves_nothing(sizes, *dtype));
        sizes.map(|(sizes, _)| sizes.offer(FORM, Cost::ZERO)).into_iter().collect()
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        Some(self.nodes(&Sizes::recognize(q)?))
    }

    fn recognizes(&self) -> &'static [&'static str] {
        attention::OPS
    }

    fn pieces(&self, graph: &Graph, _: &[NodeId], recognized: &[Recognized]) -> Vec<Raised> {
        attention::find_all(graph, recognized, &DTYPES, &|found| has_kernel(graph, found))
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

/// Whether one of the two kernels takes heads of this width.
fn has_kernel(graph: &Graph, found: &AttentionParts) -> bool {
    let fits = |units: i64| u64::try_from(units).is_ok_and(|n| n % UNITS_OF_A_VECTOR == 0 && n <= MOST_UNITS);
    let few = found.heads.is_none_or(|heads| heads <= MOST_HEADS);
    few && extents(graph, found).is_some_and(|of| fits(of.width) && fits(of.value_width))
}

/// Whether the kernel that the provider takes reads and leaves heads where they lie.
fn moves_nothing(sizes: &Sizes, dtype: DType) -> bool {
    let long = sizes.queries >= LONG || sizes.keys >= LONG;
    let flash = sizes.width == sizes.value_width && sizes.width <= MOST_UNITS_FLASH;
    match dtype {
        DType::F16 => true,
        DType::BF16 => flash || long,
        _ => long,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_where_they_lie_by_two_kernels() {
        let taken = |dtype, [queries, keys, width, value_width]: [u64; 4]| {
            moves_nothing(&Sizes::of_one_head(queries, keys, width, value_width), dtype)
        };
        let (few, many) = ([16, 255, 64, 64], [16, 256, 64, 64]);
        for (dtype, sizes, expected) in [
            (DType::F32, few, false),
            (DType::F32, many, true),
            (DType::F32, [256, 16, 64, 64], true),
            (DType::F16, few, true),
            (DType::F16, [16, 16, 512, 64], true),
            (DType::BF16, few, true),
            (DType::BF16, [16, 16, 64, 32], false),
            (DType::BF16, [16, 16, 264, 264], false),
            (DType::BF16, [16, 256, 264, 264], true),
        ] {
            assert_eq!(taken(dtype, sizes), expected, "{dtype:?} {sizes:?}");
        }
    }
}
