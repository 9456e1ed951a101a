//! Normalizations. Statistics run over axes that are whole; what is per channel is found by position.

use super::infer::{Answer, InferContext, Inferred, agree, typed};
use super::query::{has_result, listed, rank};
use super::{Axes, AxisSource, Case, OpDef};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::form::{Implicit, Renumber};
use crate::graph::{Graph, Node};

const BATCH: &[Case] = &[Case::new("n c s*, c, c, c, c -> n c s*").when(is_inference)];
pub(super) const BATCH_CHANNELS_LAST: &[Case] = &[Case::new("n s*! c, c, c, c, c -> n s*! c").when(is_inference)];
pub(super) const INSTANCE_CHANNELS_LAST: &[Case] = &[Case::new("n s*!~ c, c, c -> n s*! c")];
const INSTANCE: &[Case] = &[Case::new("n c s*~, c, c -> n c s*")];
const GROUP: &[Case] = &[Case::new("n c~ s*~, _, _ -> n c s*")];
const LAYER: &[Case] =
    &[Case::new("a* b*!~, b*!, b*!? -> a* b*!, a* b*:1, a* b*:1").axis(AxisSource::Attr("axis", -1))];
const RMS: &[Case] = &[Case::new("a* b*!~, b*! -> a* b*!").axis(AxisSource::Attr("axis", -1))];
const SIMPLIFIED: &[Case] = &[Case::new("a* b*!~, b*! -> a* b*!, a* b*:1").axis(AxisSource::Attr("axis", -1))];
const LRN: &[Case] = &[Case::new("n c~ s* -> n c s*")];
const LP: &[Case] = &[Case::new("a* [x]~ b* -> a* [x] b*")
    .axis(AxisSource::Attr("axis", -1))
    .renumber(&[Renumber::AxisAttr("axis", -1)])];
const MEAN_VARIANCE: &[Case] = &[
    // Without a list it normalizes axes 0, 2 and 3.
    Case::new("a* -> a*").when(has_its_axes).whole(mvn_axes).renumber(&[Renumber::AxesAttr("axes", OF_IMAGES)]),
    Case::new("a*! -> a*!").whole(mvn_axes),
];

// ONNX has LayerNormalization since 17; runtimes take it in ONNX's domain at any version.
pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("BatchNormalization", (1, 28), Axes::Sig(BATCH), batch),
    OpDef::onnx("InstanceNormalization", (1, 28), Axes::Sig(INSTANCE), same),
    OpDef::onnx("GroupNormalization", (18, 28), Axes::Sig(GROUP), same),
    OpDef::onnx("LayerNormalization", (1, 28), Axes::Sig(LAYER), layer),
    OpDef::onnx("RMSNormalization", (23, 28), Axes::Sig(RMS), same),
    // A name for it that files have which a runtime saved.
    OpDef::onnx("SimplifiedLayerNormalization", (1, 28), Axes::Sig(SIMPLIFIED), layer),
    OpDef::onnx("LRN", (1, 28), Axes::Sig(LRN), same),
    OpDef::onnx("LpNormalization", (1, 28), Axes::Sig(LP), same),
    OpDef::onnx("MeanVarianceNormalization", (9, 28), Axes::Sig(MEAN_VARIANCE), same),
];

fn is_inference(_: &Graph, node: &Node) -> Result<(), String> {
    // Until opset 7 `is_test` said it, and `spatial` 0 made the statistics per element.
    let trains = if node.opset < 7 {
        node.int("is_test").unwrap_or(0) == 0 && (1..5).any(|i| has_result(node, i))
    } else {
        node.flag("training_mode") || (1..5).any(|i| has_result(node, i))
    };
    if trains {
        return Err("trains: it updates its statistics".to_owned());
    }
    if node.int("spatial") == Some(0) {
        return Err("its statistics are per element, not per channel".to_owned());
    }
    Ok(())
}

/// What `MeanVarianceNormalization` normalizes if it says nothing.
const IMAGE: &[i64] = &[0, 2, 3];
const OF_IMAGES: Implicit = Implicit::These(IMAGE);

fn has_its_axes(graph: &Graph, node: &Node) -> Result<(), String> {
    let has = node.ints("axes").is_some() || rank(graph, node, 0).is_some_and(|rank| rank > 3);
    has.then_some(()).ok_or_else(|| "names no axes".to_owned())
}

fn mvn_axes(_: &Graph, node: &Node, rank: usize) -> Vec<usize> {
    listed(Some(node.ints("axes").unwrap_or(IMAGE).to_vec()), rank)
}

fn same(ctx: &mut InferContext<'_>) -> Answer {
    Ok(Inferred::one(typed(ctx.dtype(0), ctx.shape(0).map(<[Dim]>::to_vec))))
}

fn batch(ctx: &mut InferContext<'_>) -> Answer {
    let shape = ctx.shape_from_rank(0, 1)?.map(<[Dim]>::to_vec);
    if let (Some(c), Some([scale])) = (shape.as_ref().and_then(|s| s.get(1)), ctx.shape(1)) {
        agree(c, scale, "channels and scales")?;
    }
    let statistics = typed(ctx.dtype(3).or(ctx.dtype(0)), ctx.shape(3).map(<[Dim]>::to_vec));
    let first = typed(ctx.dtype(0), shape);
    Ok(Inferred::many(std::iter::once(first).chain(vec![statistics; 4]).collect()))
}

fn layer(ctx: &mut InferContext<'_>) -> Answer {
    let Some(shape) = ctx.shape(0) else { return same(ctx) };
    let axis = ctx.axis(ctx.int("axis", -1), shape.len())?;
    let kept = shape.iter().enumerate().map(|(i, d)| if i < axis { d.clone() } else { Dim::ONE });
    // Statistics are computed in `stash_type`, 1 (f32) unless it says otherwise.
    let stash = ctx.dtype_attr("stash_type")?.or(Some(DType::F32));
    let statistics = typed(stash, Some(kept.collect()));
    Ok(Inferred::many(vec![typed(ctx.dtype(0), Some(shape.to_vec())), statistics.clone(), statistics]))
}
