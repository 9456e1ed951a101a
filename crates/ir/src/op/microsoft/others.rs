//! What else ONNX Runtime's optimizers, exporters and packages write in domain `com.microsoft`: fused products,
//! normalizations and convolutions, older names of what the standard has now, and what devices or generators run whole.

use super::attention::undeclared;
use super::contributed::{FUSED_MATMUL, fused_matmul};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::form::{Renumber, View};
use crate::graph::{Graph, Node};
use crate::op::conv::{channels_last, channels_second, conv, conv_shape_channels_last};
use crate::op::elementwise::{UNARY, same};
use crate::op::gather::{GATHER_ND, gather_nd};
use crate::op::infer::{Answer, InferContext, Inferred, boolean, check_rank, typed};
use crate::op::matmul::{GEMM, gemm, matmul};
use crate::op::misc::TRIANGLE;
use crate::op::pool::pool;
use crate::op::query::op_name;
use crate::op::slice::{PAD_11, pad};
use crate::op::space::{GRID_SAMPLE, grid_sample};
use crate::op::{Axes, AxisSource, Case, Infer, OpDef};

const GELU_GEMM: &[Case] = &[Case::new("a* k, k n, n? -> a* n")];
const ADD_THREE: &[Case] = &[Case::new("a* c, c, a* c -> a* c")];
const SPLIT_GELU: &[Case] = &[Case::new("a* c~, c -> a* d~")];
const COMPLEX: &[Case] = &[Case::new("a* c~, a* c -> a* c")];
const DISTANCE: &[Case] = &[Case::new("m k, n k -> m n")];
const PADDED_TRANSPOSED: &[Case] = &[Case::new("n (g ci) s*!^, (g ci) co k*!^, _?, (g co)? -> n (g co) s*!^")];
const CROP: &[Case] = &[Case::new("n~ c h~ w~, r b~, r, _ -> r c h w")];
const INVERSE: &[Case] = &[Case::new("a* m~ n~ -> a* m n")];
const MASKED_POOL: &[Case] = &[Case::new("n c s*!^, n c s*!^ -> n c s*!^")];
// Weights are read as they are, in an order that depends on the device.
const NHWC_CONV: &[Case] = &[Case::new("n s*!^ (g~ ci~), (g co) w*!~, (g co)?, n s*!^ (g co)? -> n s*!^ (g co)")];
const GROUP_NORM: &[Case] =
    &[Case::new("n s*!~ c~, c, c -> n s*! c").when(is_channels_last), Case::new("n c~ s*!~, c, c -> n c s*!")];
const SKIP_GROUP_NORM: &[Case] = &[
    Case::new("n s*!~ c~, c, c, n s*! c, c? -> n s*! c, n s*! c").when(is_channels_last),
    Case::new("n s*!~ c~, c, c, n c, c? -> n s*! c, n s*! c").when(is_channels_last),
];
// Positions number rows of an embedding, so nothing is claimed of them.
const EMBED: &[Case] = &[Case::new("b s~, b s?, v~ h~, p~ h, t~ h?, h, h, b s?, b s? -> b s h, b, b s h")];
const Q_EMBED: &[Case] =
    &[Case::new("b s~, b s?, v~ h~, p~ h, t~ h?, h, h, b s?, _, _, _?, _, _, _, _, _?, _, _ -> b s h, b")];
const EXPERTS: &[Case] = &[Case::new("r h~, r e~, _... -> r h"), Case::new("b~ s~ h~, r~ e~, _... -> b s h")];
const SCALED: &[Case] = &[Case::new("a*, _? -> a*")];
const GATED_ADD: &[Case] = &[Case::new("a* c, a* c, a* o~ -> a* c")];
const GATED_NORM: &[Case] = &[Case::new("a* c~, k~, a* c -> a* c")];
const BRANCH_NORM: &[Case] = &[Case::new("a* b~ c~, _? -> a* b c"), Case::new("c~, _? -> c")];
const NO_REPEAT: &[Case] = &[Case::new("b s~, b v~ -> b v")];
// Windows are along one more axis, the last.
const UNFOLD: &[Case] = &[Case::new("a* [x]~ b* -> a* [x] b* w~")
    .axis(AxisSource::Attr("dim", -1))
    .renumber(&[Renumber::AxisAttr("dim", -1)])];
const FINITE: &[Case] = &[Case::new("a*... -> _")];
const EMBEDDING: &[Case] = &[Case::new("v~ c, b*, _?, _? -> b* c")];

const RANDOM: &str = "drops at random, in row-major order";
const SPECTRUM: &str = "transforms the last axes at once, on one device";
const GENERATES: &str = "generates a sequence with models in its attributes";
const DEVICE: &str = "runs a graph that was compiled for a device";
const ROWS: &str = "moves rows of a batch to where counts of tokens say";
const PLACES: &str = "makes a table by position";
const STATE: &str = "carries a state along a sequence, by position";
const MIXED: &str = "mixes branches that are an axis or packed into one";
const WORDS: &str = "reads words or tokens by position";
const SPARSE: &str = "reads a sparse tensor, which has no layout";

const fn signed(name: &'static str, cases: &'static [Case], infer: Infer) -> OpDef {
    OpDef::microsoft(name, Axes::Sig(cases), infer)
}

const fn opaque(name: &'static str, why: &'static str) -> OpDef {
    OpDef::microsoft(name, Axes::Opaque(why), undeclared)
}

pub(super) const OPS: &[OpDef] = &[
    signed("FusedGemm", GEMM, gemm),
    signed("GemmFastGelu", GELU_GEMM, matmul),
    signed("FusedMatMulActivation", FUSED_MATMUL, fused_matmul),
    signed("BiasAdd", ADD_THREE, same),
    signed("BiasSplitGelu", SPLIT_GELU, halved),
    signed("ComplexMul", COMPLEX, multiplied),
    signed("ComplexMulConj", COMPLEX, multiplied),
    signed("CDist", DISTANCE, distances),
    signed("ConvTransposeWithDynamicPads", PADDED_TRANSPOSED, unknown_space),
    signed("CropAndResize", CROP, cropped),
    signed("Inverse", INVERSE, same),
    signed("Trilu", TRIANGLE, same),
    signed("GatherND", GATHER_ND, gather_nd),
    signed("Pad", PAD_11, pad),
    signed("GridSample", GRID_SAMPLE, grid_sample),
    signed("MaxpoolWithMask", MASKED_POOL, pool),
    signed("NhwcConv", NHWC_CONV, nhwc_conv),
    signed("NhwcFusedConv", NHWC_CONV, nhwc_conv),
    signed("GroupNorm", GROUP_NORM, same),
    signed("SkipGroupNorm", SKIP_GROUP_NORM, twice),
    signed("EmbedLayerNormalization", EMBED, embedded),
    signed("QEmbedLayerNormalization", Q_EMBED, embedded),
    signed("MoE", EXPERTS, same),
    signed("QMoE", EXPERTS, same),
    signed("ScaledSiLU", SCALED, same),
    signed("GatedAdd", GATED_ADD, same),
    signed("GatedRMSNorm", GATED_NORM, same),
    signed("BranchwiseRMSNorm", BRANCH_NORM, same),
    signed("NGramRepeatBlock", NO_REPEAT, second),
    signed("UnfoldTensor", UNFOLD, unfolded),
    signed("IsAllFinite", FINITE, one_truth),
    signed("MurmurHash3", UNARY, hashed),
    signed("SampleOp", UNARY, same),
    signed("TorchEmbedding", EMBEDDING, looked_up),
    OpDef::microsoft("ExpandDims", Axes::View("the same elements in row-major order", expands), expand_dims),
    opaque("Range", "makes a vector from numbers"),
    opaque("Unique", "numbers elements in the order in which they stand"),
    opaque("BiasSoftmax", "matches the axes of its bias from the front or from the end, as an attribute says"),
    opaque("BiasDropout", RANDOM),
    opaque("BitmaskBiasDropout", RANDOM),
    opaque("BitmaskDropout", RANDOM),
    opaque("Rfft", SPECTRUM),
    opaque("Irfft", SPECTRUM),
    opaque("BeamSearch", GENERATES),
    opaque("GreedySearch", GENERATES),
    opaque("Sampling", GENERATES),
    opaque("WhisperBeamSearch", GENERATES),
    opaque("EPContext", DEVICE),
    opaque("Snpe", DEVICE),
    opaque("RemovePadding", ROWS),
    opaque("RestorePadding", ROWS),
    opaque("RelativePositionBias", PLACES),
    opaque("GatedRelativePositionBias", PLACES),
    opaque("CausalConvWithState", STATE),
    opaque("VarlenCausalConvWithState", STATE),
    opaque("AttnLSTM", STATE),
    opaque("EngramGate", MIXED),
    opaque("HyperConnectionPostMix", MIXED),
    opaque("HyperConnectionPreMix", MIXED),
    opaque("NGramHashMapping", WORDS),
    opaque("VarlenNGramHashMapping", WORDS),
    opaque("BifurcationDetector", WORDS),
    opaque("DynamicTimeWarping", WORDS),
    opaque("Tokenizer", WORDS),
    opaque("WordConvEmbedding", WORDS),
    opaque("SparseToDenseMatMul", SPARSE),
];

fn is_channels_last(_: &Graph, node: &Node) -> Result<(), String> {
    match node.int("channels_last").unwrap_or(1) {
        0 => Err("has its channels first".to_owned()),
        _ => Ok(()),
    }
}

fn expands(_: &Graph, _: &Node) -> Result<View, String> {
    Ok(View::Reshape)
}

fn one(dtype: Option<DType>, shape: Option<Vec<Dim>>) -> Answer {
    Ok(Inferred::one(typed(dtype, shape)))
}

fn twice(ctx: &mut InferContext<'_>) -> Answer {
    Ok(Inferred::many(vec![ctx.ty(0).clone(), ctx.ty(0).clone()]))
}

fn second(ctx: &mut InferContext<'_>) -> Answer {
    Ok(Inferred::one(ctx.ty(1).clone()))
}

fn one_truth(_: &mut InferContext<'_>) -> Answer {
    Ok(Inferred::one(boolean(Some(Vec::new()))))
}

fn halved(ctx: &mut InferContext<'_>) -> Answer {
    let shape = match ctx.shape_from_rank(0, 1)? {
        Some([before @ .., last]) => {
            let half = last.checked_floor_div(2).unwrap_or_else(|| ctx.unknown());
            Some([before, &[half]].concat())
        }
        _ => None,
    };
    one(ctx.dtype(0), shape)
}

fn multiplied(ctx: &mut InferContext<'_>) -> Answer {
    let shape = ctx.broadcast(&[ctx.shape(0), ctx.shape(1)])?;
    one(ctx.dtype(0), shape)
}

fn distances(ctx: &mut InferContext<'_>) -> Answer {
    let (mut a, mut b) = (ctx.shape_of_rank(0, 2)?, ctx.shape_of_rank(1, 2)?);
    one(ctx.dtype(0), Some(vec![a.swap_remove(0), b.swap_remove(0)]))
}

fn unknown_space(ctx: &mut InferContext<'_>) -> Answer {
    let shape = ctx.rank(0).map(|rank| ctx.unknown_shape(rank));
    one(ctx.dtype(0), shape)
}

fn cropped(ctx: &mut InferContext<'_>) -> Answer {
    let (x, rois) = (ctx.shape_of_rank(0, 4)?, ctx.shape_of_rank(1, 2)?);
    let size = match ctx.contents(3) {
        Some([height, width]) => [height.clone(), width.clone()],
        _ => [ctx.unknown(), ctx.unknown()],
    };
    let [height, width] = size;
    one(ctx.dtype(0), Some(vec![rois[0].clone(), x[1].clone(), height, width]))
}

/// Extents follow from the kernel where an attribute says it; the order of the weights is not known.
fn nhwc_conv(ctx: &mut InferContext<'_>) -> Answer {
    if ctx.node.ints("kernel_shape").is_none() {
        let shape = ctx.shape_from_rank(0, 3)?.map(<[Dim]>::to_vec).map(channels_second);
        let Some(mut shape) = shape else { return one(ctx.dtype(0), None) };
        for extent in shape.iter_mut().skip(1) {
            *extent = ctx.unknown();
        }
        return one(ctx.dtype(0), Some(channels_last(shape)));
    }
    let Ok(shape) = conv_shape_channels_last(ctx, 0, 1) else { return conv(ctx) };
    one(ctx.dtype(0), shape)
}

fn embedded(ctx: &mut InferContext<'_>) -> Answer {
    let (ids, words) = (ctx.shape_of_rank(0, 2)?, ctx.shape_of_rank(2, 2)?);
    let quantized = op_name(ctx.node) == "QEmbedLayerNormalization";
    let dtype = if quantized { ctx.dtype(8) } else { ctx.dtype(2) };
    let shape = [&ids[..], &words[1..]].concat();
    let mask = typed(Some(DType::I32), Some(vec![ids[0].clone()]));
    let result = typed(dtype, Some(shape));
    Ok(Inferred::many(vec![result.clone(), mask, result]))
}

fn unfolded(ctx: &mut InferContext<'_>) -> Answer {
    let Some(shape) = ctx.shape_from_rank(0, 1)? else { return one(ctx.dtype(0), None) };
    let axis = ctx.axis(ctx.int("dim", -1), shape.len())?;
    let (size, step) = (ctx.node.int("size").ok_or("lacks `size`")?, ctx.int("step", 1));
    if step < 1 {
        return Err(format!("`step` is {step}"));
    }
    let rest = shape[axis].checked_sub(&Dim::from(size)).and_then(|rest| rest.checked_floor_div(step));
    let windows = rest.and_then(|rest| rest.checked_add(&Dim::ONE)).unwrap_or_else(|| ctx.unknown());
    let mut result = shape.to_vec();
    result[axis] = windows;
    result.push(Dim::from(size));
    check_rank(result.len())?;
    one(ctx.dtype(0), Some(result))
}

fn hashed(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = if ctx.int("positive", 1) != 0 { DType::U32 } else { DType::I32 };
    one(Some(dtype), ctx.shape(0).map(<[Dim]>::to_vec))
}

fn looked_up(ctx: &mut InferContext<'_>) -> Answer {
    let rows = ctx.shape_of_rank(0, 2)?;
    let shape = ctx.shape(1).map(|indices| [indices, &rows[1..]].concat());
    one(ctx.dtype(0), shape)
}

fn expand_dims(ctx: &mut InferContext<'_>) -> Answer {
    let axis = ctx.ints(1).and_then(|axes| axes.first().copied());
    let (Some(shape), Some(axis)) = (ctx.shape(0), axis) else { return one(ctx.dtype(0), None) };
    let axis = ctx.axis(axis, shape.len() + 1)?;
    let mut result = shape.to_vec();
    result.insert(axis, Dim::ONE);
    check_rank(result.len())?;
    one(ctx.dtype(0), Some(result))
}
