//! Ops of domain `com.microsoft` that exporters and ONNX Runtime's quantizer write into files.

use super::concat::concat_shape;
use super::elementwise::{UNARY, same};
use super::infer::{Answer, InferContext, Inferred, typed};
use super::matmul::matmul_shape;
use super::pool::{global_shape, pool_shape};
use super::quant::{LINEAR, dequantize, quantize};
use super::query::is_scalar;
use super::{Axes, AxisSource, Case, OpDef};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::form::Renumber;
use crate::graph::{Graph, Node};

const BIASED: &[Case] = &[Case::new("a* c, c? -> a* c")];
const Q_UNARY: &[Case] = &[Case::new("a*, _, _?, _, _? -> a*").when(unary_scalars)];
const Q_BINARY: &[Case] = &[Case::new("a*, _, _?, a*, _, _?, _, _? -> a*").when(binary_scalars)];
const Q_SOFTMAX: &str = "looks up exponentials along an axis that depends on the version it stands for";
const Q_POOL: &[Case] = &[
    Case::new("n s*!^ c, _, _?, _, _? -> n s*!^ c").when(channels_last),
    Case::new("n c s*!^, _, _?, _, _? -> n c s*!^").when(channels_first),
];
const Q_GLOBAL: &[Case] = &[
    Case::new("n s*!~ c, _, _, _, _ -> n s*:1 c").when(channels_last),
    Case::new("n c s*!~, _, _, _, _ -> n c s*:1").when(channels_first),
];
const Q_CONCAT: &[Case] = &[Case::new("_, _, a* [x]~ b*, _, _...3 -> a* [x] b*")
    .axis(AxisSource::Attr("axis", 1))
    .renumber(&[Renumber::AxisAttr("axis", 1)])];
const FUSED_MATMUL: &str = "transposes its operands by attributes, by position";
const SKIP_NORM: &str = "normalizes the last axis of a sum, by position";

pub(super) const OPS: &[OpDef] = &[
    OpDef::microsoft("Gelu", Axes::Sig(UNARY), same),
    OpDef::microsoft("QuickGelu", Axes::Sig(UNARY), same),
    OpDef::microsoft("FastGelu", Axes::Sig(BIASED), same),
    OpDef::microsoft("BiasGelu", Axes::Sig(BIASED), same),
    OpDef::microsoft("FusedMatMul", Axes::Opaque(FUSED_MATMUL), fused_matmul),
    OpDef::microsoft("SkipLayerNormalization", Axes::Opaque(SKIP_NORM), skip_norm),
    OpDef::microsoft("SkipSimplifiedLayerNormalization", Axes::Opaque(SKIP_NORM), skip_norm),
    OpDef::microsoft("QuantizeLinear", Axes::Sig(LINEAR), quantize),
    OpDef::microsoft("DequantizeLinear", Axes::Sig(LINEAR), dequantize),
    OpDef::microsoft("QLinearAdd", Axes::Sig(Q_BINARY), q_binary),
    OpDef::microsoft("QLinearMul", Axes::Sig(Q_BINARY), q_binary),
    OpDef::microsoft("QLinearSigmoid", Axes::Sig(Q_UNARY), same),
    OpDef::microsoft("QLinearLeakyRelu", Axes::Sig(Q_UNARY), same),
    OpDef::microsoft("QLinearSoftmax", Axes::Opaque(Q_SOFTMAX), same),
    OpDef::microsoft("QLinearConcat", Axes::Sig(Q_CONCAT), q_concat),
    OpDef::microsoft("QLinearAveragePool", Axes::Sig(Q_POOL), q_pool),
    OpDef::microsoft("QLinearGlobalAveragePool", Axes::Sig(Q_GLOBAL), q_global),
];

fn scalars(graph: &Graph, node: &Node, slots: &[usize]) -> Result<(), String> {
    if slots.iter().all(|&s| is_scalar(graph, node, s)) {
        Ok(())
    } else {
        Err("its scales and zero points are not single numbers".to_owned())
    }
}

fn unary_scalars(graph: &Graph, node: &Node) -> Result<(), String> {
    scalars(graph, node, &[1, 2, 3, 4])
}

fn binary_scalars(graph: &Graph, node: &Node) -> Result<(), String> {
    scalars(graph, node, &[1, 2, 4, 5, 6, 7])
}

fn channels_last(_: &Graph, node: &Node) -> Result<(), String> {
    if node.int("channels_last").unwrap_or(0) != 0 { Ok(()) } else { Err("has its channels first".to_owned()) }
}

fn channels_first(_: &Graph, node: &Node) -> Result<(), String> {
    if node.int("channels_last").unwrap_or(0) == 0 { Ok(()) } else { Err("has its channels last".to_owned()) }
}

fn fused_matmul(ctx: &mut InferContext<'_>) -> Answer {
    let turns = ["transA", "transB", "transBatchA", "transBatchB"].iter().any(|name| ctx.int(name, 0) != 0);
    let shape = if turns { None } else { matmul_shape(ctx, 0, 1)? };
    Ok(Inferred::one(typed(ctx.dtype(0), shape)))
}

fn skip_norm(ctx: &mut InferContext<'_>) -> Answer {
    let Some(shape) = ctx.shape_from_rank(0, 1)? else { return same(ctx) };
    let (data, mut kept) = (ctx.ty(0).clone(), shape.to_vec());
    if let Some(last) = kept.last_mut() {
        *last = Dim::ONE;
    }
    let statistics = typed(Some(DType::F32), Some(kept));
    Ok(Inferred::many(vec![data.clone(), statistics.clone(), statistics, data]))
}

fn q_binary(ctx: &mut InferContext<'_>) -> Answer {
    let shape = ctx.broadcast(&[ctx.shape(0), ctx.shape(3)])?;
    Ok(Inferred::one(typed(ctx.dtype(0), shape)))
}

fn q_concat(ctx: &mut InferContext<'_>) -> Answer {
    let slots: Vec<usize> = (2..ctx.node.inputs.len()).step_by(3).collect();
    let axis = ctx.node.int("axis").ok_or("lacks `axis`")?;
    let dtype = ctx.dtype(1).or(ctx.dtype(2));
    Ok(Inferred::one(typed(dtype, concat_shape(ctx, axis, slots)?)))
}

fn is_channels_last(ctx: &InferContext<'_>) -> bool {
    ctx.int("channels_last", 0) != 0
}

fn q_pool(ctx: &mut InferContext<'_>) -> Answer {
    let shape = if is_channels_last(ctx) {
        ctx.shape_from_rank(0, 2)?.map(|s| ctx.unknown_shape(s.len()))
    } else {
        pool_shape(ctx)?
    };
    Ok(Inferred::one(typed(ctx.dtype(0), shape)))
}

fn q_global(ctx: &mut InferContext<'_>) -> Answer {
    let shape = if is_channels_last(ctx) {
        let shape = ctx.shape_from_rank(0, 2)?;
        shape.map(|s| {
            s.iter().enumerate().map(|(i, d)| if i == 0 || i + 1 == s.len() { d.clone() } else { Dim::ONE }).collect()
        })
    } else {
        global_shape(ctx)?
    };
    Ok(Inferred::one(typed(ctx.dtype(0), shape)))
}
