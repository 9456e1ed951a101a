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

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("Attention", (23, 26), Axes::Sig(ATTENTION), attention),
    OpDef::onnx("RotaryEmbedding", (23, 26), Axes::Sig(ROTARY), super::elementwise::same),
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
