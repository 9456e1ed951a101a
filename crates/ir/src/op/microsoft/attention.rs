//! ONNX Runtime's fused attention: batches are carried, heads are packed into the last axis or found by position.
//!
//! Only where every position attends to every other and nothing else is read is anything claimed of positions. A mask of one
//! axis has as many entries as there are batches or several times as many: nothing is claimed of batches then.

use crate::graph::{Graph, Node};
use crate::op::elementwise::same;
use crate::op::infer::{Answer, InferContext, Inferred, typed};
use crate::op::query::{has_result, op_name};
use crate::op::{Axes, Case, OpDef};

const ATTENTION: &[Case] = &[
    Case::new("b s i, i h~, h? -> b s v~").when(attends_everywhere),
    Case::new("b s~ i, i h~, h?, b t~?, c~ b n~ p~ d~?, b n s t?, _? -> b s v~, c b n u~ d"),
    Case::new("b s~ i, i h~, h?, b s t~, c~ b n~ p~ d~?, b n s t?, _? -> b s v~, c b n u~ d"),
    Case::new("b~ s~ i, i h~, h?, m~, c~ b n~ p~ d~?, b n s t~?, _? -> b s v~, c b n u~ d"),
];
// Keys and values apart, as they lie in a cache, or packed with each other or with the query.
const MULTI_HEAD: &[Case] = &[
    Case::new("b s e~, b t f~, b t w~, c~? -> b s v~").when(attends_everywhere),
    Case::new(
        "b s~ e~, b t~ f~, b t w~, c~?, b t?, b n~ s u~?, b n p~ d~?, b n p r~?, _?, _? -> b s v~, b n u d, b n u r, b n s u",
    ),
    Case::new(
        "b~ s~ e~, b t~ f~, b t w~, c~?, m~, b n~ s u~?, b n p~ d~?, b n p r~?, _?, _? -> b s v~, b n u d, b n u r, b n s u",
    ),
    Case::new("b s~ e~, b n~ t~ d~, b n t r~, c~?, b t?, b n s u~? -> b s v~, b n t d, b n t r, b n s u"),
    Case::new("b s~ e~, b t~ n~ x~ d~ -> b s v~"),
    Case::new("b s~ n~ x~ d~ -> b s v~"),
];
const GROUPED: &[Case] = &[Case::new(
    "b s~ e~, b s f~?, b s w~?, b n~ p~ d~?, b n p d?, b, _, r~ q~?, r q?, b s?, b m~ s u~?, _?, _?, _?, _?, _? -> b s o~, b n u d, b n u d, b m s u",
)];
const Q_ATTENTION: &[Case] = &[
    Case::new("b s i, i h~, h, _, _, _?, _?, _? -> b s v~").when(attends_everywhere),
    Case::new("b~ s~ i, i h~, h, _, _, _?, _?, _?, c~ b n~ p~ d~? -> b s v~, c b n u~ d"),
];
const ROTARY: &[Case] = &[
    Case::new("b h s d~, b s, p~ r~, p r -> b h s d"),
    Case::new("b s e~, b s, p~ r~, p r -> b s e"),
    Case::new("b h s~ d~, o~, p~ r~, p r -> b h s d"),
    Case::new("b s~ e~, o~, p~ r~, p r -> b s e"),
];
const MULTI_ROTARY: &[Case] =
    &[Case::new("b h s d~, c~ b s, p~ r~, p r -> b h s d"), Case::new("b s e~, c~ b s, p~ r~, p r -> b s e")];
const GATE: &[Case] = &[Case::new("a* h, h, h, a* h? -> a* h, a* h")];
const CACHED: &str = "attends over heads and positions of caches, which it finds by position";

/// An attention of which no type is known but what the file declares.
const fn cached(name: &'static str) -> OpDef {
    OpDef::microsoft(name, Axes::Opaque(CACHED), undeclared)
}

pub(super) const OPS: &[OpDef] = &[
    OpDef::microsoft("Attention", Axes::Sig(ATTENTION), attention),
    OpDef::microsoft("MultiHeadAttention", Axes::Sig(MULTI_HEAD), multi_head),
    OpDef::microsoft("GroupQueryAttention", Axes::Sig(GROUPED), grouped),
    OpDef::microsoft("QAttention", Axes::Sig(Q_ATTENTION), q_attention),
    OpDef::microsoft("RotaryEmbedding", Axes::Sig(ROTARY), same),
    OpDef::microsoft("MRotaryEmbedding", Axes::Sig(MULTI_ROTARY), same),
    OpDef::microsoft("LinearAttentionGate", Axes::Sig(GATE), gate),
    cached("DecoderAttention"),
    cached("DecoderMaskedMultiHeadAttention"),
    cached("DecoderMaskedSelfAttention"),
    cached("DynamicSparseAttention"),
    cached("GatedDeltaNet"),
    cached("GemmaRotaryEmbedding"),
    cached("LinearAttention"),
    cached("LongformerAttention"),
    cached("PackedAttention"),
    cached("PackedMultiHeadAttention"),
    cached("PackedSparseAttentionIndexer"),
    cached("PagedAttention"),
    cached("SparseAttention"),
    cached("SparseAttentionIndexer"),
    cached("SparsePagedAttention"),
];

/// Results of which nothing is known but what the file declares.
pub(super) fn undeclared(_: &mut InferContext<'_>) -> Answer {
    Ok(Inferred::default())
}

fn attends_everywhere(_: &Graph, node: &Node) -> Result<(), String> {
    let others: &[usize] = match op_name(node) {
        "QAttention" => &[5, 8],
        "Attention" => &[3, 4, 5, 6],
        _ => &[4, 5, 6, 7, 8, 9],
    };
    let turns = node.flag("do_rotary");
    let causal = node.flag("unidirectional");
    let reads = others.iter().any(|&slot| node.operand(slot).is_some());
    if turns || causal || reads || (1..4).any(|slot| has_result(node, slot)) {
        return Err("masks positions, or has a cache".to_owned());
    }
    Ok(())
}

/// First result of an attention whose query has batch, sequence and hidden units, and `ranks` of the others.
fn with_others(ctx: &mut InferContext<'_>, ranks: &[usize]) -> Inferred {
    let dtype = ctx.dtype(0);
    let shape = match ctx.shape(0) {
        Some([batch, sequence, _] | [batch, sequence, _, _, _]) => {
            Some(vec![batch.clone(), sequence.clone(), ctx.unknown()])
        }
        _ => None,
    };
    let mut types = vec![typed(dtype, shape)];
    for &rank in ranks {
        let shape = ctx.unknown_shape(rank);
        types.push(typed(dtype, Some(shape)));
    }
    Inferred::many(types)
}

fn attention(ctx: &mut InferContext<'_>) -> Answer {
    Ok(with_others(ctx, &[5]))
}

fn multi_head(ctx: &mut InferContext<'_>) -> Answer {
    Ok(with_others(ctx, &[4, 4, 4]))
}

fn grouped(ctx: &mut InferContext<'_>) -> Answer {
    Ok(with_others(ctx, &[4, 4, 4]))
}

/// The product is scaled back to floats, of the type of the bias.
fn q_attention(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype(2);
    let types = with_others(ctx, &[5]).types;
    Ok(Inferred::many(types.into_iter().map(|ty| typed(dtype, ty.shape().map(<[_]>::to_vec))).collect()))
}

fn gate(ctx: &mut InferContext<'_>) -> Answer {
    let ty = ctx.ty(0).clone();
    Ok(Inferred::many(vec![ty, ctx.ty(3).clone()]))
}
