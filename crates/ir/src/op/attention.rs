//! Attention: batches and heads are carried, positions and the units of a head are found by position.
//!
//! A query has `g` heads for each head of the keys and values. Where every position attends to every other and nothing else is
//! read, the positions of the query are carried and those of the keys are summed over; masks, caches and causality speak of
//! positions, so that nothing is claimed of these then. Heads that are packed into the last axis are as many as an attribute
//! says: nothing is claimed of them.

use super::infer::{Answer, InferContext, Inferred, agree, typed};
use super::query::has_result;
use super::{Axes, Case, OpDef};
use crate::dim::Dim;
use crate::graph::{Graph, Node};

const ATTENTION: &[Case] = &[
    Case::new("b (h g) s d, b h t d, b h t v -> b (h g) s v").when(attends_everywhere),
    Case::new(
        "b (h g) s~ d, b h t~ d, b h t v, b (h g) s m~?, b h p~ d?, b h p v?, b? -> b (h g) s v, b h u~ d, b h u v, b (h g) s u",
    ),
    Case::new(
        "b (h g) s~ d, b h t~ d, b h t v, (h g) s m~, b h p~ d?, b h p v?, b? -> b (h g) s v, b h u~ d, b h u v, b (h g) s u",
    ),
    Case::new(
        "b (h g) s~ d, b h t~ d, b h t v, s m~, b h p~ d?, b h p v?, b? -> b (h g) s v, b h u~ d, b h u v, b (h g) s u",
    ),
    Case::new("b s e~, b t f~, b t w~ -> b s o~").when(attends_everywhere),
    Case::new("b s~ e~, b t~ f~, b t w~, b q~ s m~?, b k~ p~ d~?, b k p r~?, b? -> b s o~, b k u~ d, b k u r, b q s u"),
    Case::new("b s~ e~, b t~ f~, b t w~, q~ s m~, b k~ p~ d~?, b k p r~?, b? -> b s o~, b k u~ d, b k u r, b q s u"),
    Case::new("b s~ e~, b t~ f~, b t w~, s m~, b k~ p~ d~?, b k p r~?, b? -> b s o~, b k u~ d, b k u r, b q~ s u"),
];
// Angles by position, of a table that positions look up or of the tokens themselves.
const ROTARY: &[Case] = &[
    Case::new("b h s d~, p~ r~, p r, b s -> b h s d"),
    Case::new("b h s d~, b s r~, b s r -> b h s d"),
    Case::new("b s e~, p~ r~, p r, b s -> b s e"),
    Case::new("b s e~, b s r~, b s r -> b s e"),
];

// A recurrence over positions, in heads that are packed into the last axis.
const LINEAR: &[Case] = &[Case::new("b t~ e~, b t f~, b t w~, b h~ k~ v~?, b t g~?, b t z~? -> b t o~, b h k v")];
// Each position reads those before it, the first ones those of the step before.
const CAUSAL_CONV: &[Case] = &[Case::new("b c t~, c i~ k~, c?, b c p~? -> b c t, b c p")];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("Attention", (23, 28), Axes::Sig(ATTENTION), attention),
    OpDef::onnx("RotaryEmbedding", (23, 28), Axes::Sig(ROTARY), super::elementwise::same),
    OpDef::onnx("LinearAttention", (27, 28), Axes::Sig(LINEAR), linear),
    OpDef::onnx("CausalConvWithState", (27, 28), Axes::Sig(CAUSAL_CONV), causal_conv),
];

fn attends_everywhere(_: &Graph, node: &Node) -> Result<(), String> {
    let bounded = |name: &str| node.int(name).is_some_and(|window| window >= 0);
    let causal = node.flag("is_causal");
    let reads = (3..7).any(|slot| node.operand(slot).is_some());
    let tells = (1..4).any(|slot| has_result(node, slot));
    if causal || reads || tells || bounded("left_window_size") || bounded("right_window_size") {
        return Err("masks positions, or has caches".to_owned());
    }
    Ok(())
}

/// Extents of an attention: those of the packed and of the unpacked form alike.
struct Extents {
    batch: Dim,
    heads: Dim,
    queries: Dim,
    kv_heads: Dim,
    keys: Dim,
    width: Dim,
    value_width: Dim,
}

fn extents(ctx: &mut InferContext<'_>) -> Result<Option<Extents>, String> {
    let (Some(q), Some(k), Some(v)) = (ctx.shape(0), ctx.shape(1), ctx.shape(2)) else { return Ok(None) };
    Ok(Some(match (q, k, v) {
        ([batch, heads, queries, width], [_, kv_heads, keys, _], [_, _, _, value_width]) => Extents {
            batch: batch.clone(),
            heads: heads.clone(),
            queries: queries.clone(),
            kv_heads: kv_heads.clone(),
            keys: keys.clone(),
            width: width.clone(),
            value_width: value_width.clone(),
        },
        ([batch, queries, packed], [_, keys, _], [_, _, values]) => {
            let count = |name: &str| match ctx.node.int(name) {
                Some(n) if n > 0 => Ok(Dim::from(n)),
                _ => Err(format!("has operands of rank 3 and no `{name}`")),
            };
            let (heads, kv_heads) = (count("q_num_heads")?, count("kv_num_heads")?);
            Extents {
                batch: batch.clone(),
                queries: queries.clone(),
                keys: keys.clone(),
                width: ctx.divide(packed, &heads),
                value_width: ctx.divide(values, &kv_heads),
                heads,
                kv_heads,
            }
        }
        _ => return Err("query, keys and values need rank 3 or 4 alike".to_owned()),
    }))
}

fn attention(ctx: &mut InferContext<'_>) -> Answer {
    let dtypes = [ctx.dtype(0), ctx.dtype(1), ctx.dtype(2), ctx.dtype(0)];
    let packed = ctx.rank(0) == Some(3);
    let Some(e) = extents(ctx)? else {
        return Ok(Inferred::many(dtypes.into_iter().map(|dtype| typed(dtype, None)).collect()));
    };
    let total = match (ctx.has(4), ctx.shape(4)) {
        (false, _) => e.keys.clone(),
        (true, Some([_, heads, past, _])) => {
            agree(heads, &e.kv_heads, "heads of keys and of their cache")?;
            let past = past.clone();
            ctx.add(&past, &e.keys)
        }
        (true, _) => ctx.unknown(),
    };
    let result = if packed {
        vec![e.batch.clone(), e.queries.clone(), ctx.mul(&e.heads, &e.value_width)]
    } else {
        vec![e.batch.clone(), e.heads.clone(), e.queries.clone(), e.value_width.clone()]
    };
    let shapes = [
        result,
        vec![e.batch.clone(), e.kv_heads.clone(), total.clone(), e.width],
        vec![e.batch.clone(), e.kv_heads, total.clone(), e.value_width],
        vec![e.batch, e.heads, e.queries, total],
    ];
    Ok(Inferred::many(dtypes.into_iter().zip(shapes).map(|(dtype, shape)| typed(dtype, Some(shape))).collect()))
}

/// The state that a recurrence leaves is as large as the one that it was given, or as keys and values are wide.
fn linear(ctx: &mut InferContext<'_>) -> Answer {
    let q = ctx.shape_of_rank(0, 3)?;
    let count = |name: &str| match ctx.node.int(name) {
        Some(n) if n > 0 => Ok(Dim::from(n)),
        _ => Err(format!("has no `{name}`")),
    };
    let (heads, kv_heads) = (count("q_num_heads")?, count("kv_num_heads")?);
    let (k, v) = (ctx.shape_of_rank(1, 3)?, ctx.shape_of_rank(2, 3)?);
    let (key, value) = (ctx.divide(&k[2], &kv_heads), ctx.divide(&v[2], &kv_heads));
    let result = vec![q[0].clone(), q[1].clone(), ctx.mul(&heads, &value)];
    let state = vec![q[0].clone(), kv_heads, key, value];
    Ok(Inferred::many(vec![typed(ctx.dtype(0), Some(result)), typed(ctx.dtype(3), Some(state))]))
}

/// What is left for the next step are as many positions as the window has before its last one.
fn causal_conv(ctx: &mut InferContext<'_>) -> Answer {
    let x = ctx.shape_of_rank(0, 3)?;
    let window = ctx.shape_of_rank(1, 3)?;
    let kept = window[2].checked_sub(&Dim::ONE).unwrap_or_else(|| ctx.unknown());
    let state = vec![x[0].clone(), x[1].clone(), kept];
    Ok(Inferred::many(vec![typed(ctx.dtype(0), Some(x)), typed(ctx.dtype(0), Some(state))]))
}
