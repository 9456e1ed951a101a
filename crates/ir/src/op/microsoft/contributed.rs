//! Ops of domain `com.microsoft` that exporters and ONNX Runtime's quantizer write into files.

use crate::dim::Dim;
use crate::dtype::DType;
use crate::form::Renumber;
use crate::graph::{Graph, Node};
use crate::op::concat::concat_shape;
use crate::op::conv::{conv, conv_shape, conv_shape_channels_last};
use crate::op::elementwise::{UNARY, same};
use crate::op::infer::{Answer, InferContext, Inferred, typed};
use crate::op::matmul::product_shape;
use crate::op::pool::{global_shape, pool_shape, pool_shape_channels_last};
use crate::op::quant::{LINEAR, dequantize, q_weights_by_tensor, quantize};
use crate::op::query::{has_result, is_scalar, ty};
use crate::op::{Axes, AxisSource, Case, OpDef};
use crate::types::Type;

const BIASED: &[Case] = &[Case::new("a* c, c? -> a* c")];
const Q_UNARY: &[Case] = &[Case::new("a*, _, _?, _, _? -> a*").when(unary_scalars)];
const Q_BINARY: &[Case] = &[Case::new("a*, _, _?, a*, _, _?, _, _? -> a*").when(binary_scalars)];
const Q_POOL: &[Case] = &[
    Case::new("n s*!^ c, _, _?, _, _? -> n s*!^ c").when(channels_last),
    Case::new("n c s*!^, _, _?, _, _? -> n c s*!^").when(channels_first),
];
const Q_GLOBAL: &[Case] = &[
    Case::new("n s*!~ c, _, _, _, _ -> n s*:1 c").when(channels_last),
    Case::new("n c s*!~, _, _, _, _ -> n c s*:1").when(channels_first),
];
const Q_CONCAT: &[Case] = &[Case::new("_, _, a* [x]| b*, _, _...3 -> a* [x] b*")
    .axis(AxisSource::Attr("axis", 1))
    .renumber(&[Renumber::AxisAttr("axis", 1)])];
const Q_CONV: &[Case] = &[
    Case::new("n s*!^ (g ci), _, _, (g co) ci k*!^, _, _, _, _, (g co)? -> n s*!^ (g co)").when(q_conv_last_by_tensor),
    Case::new("n s*!^ (g ci), _, _, (g co) ci k*!^, (g co), (g co), _, _, (g co)? -> n s*!^ (g co)")
        .when(channels_last),
    Case::new("n s*!^ (g ci), _, _, (g co) ci k*!^, (g co), _, _, _, (g co)? -> n s*!^ (g co)").when(channels_last),
    Case::new("n (g ci) s*!^, _, _, (g co) ci k*!^, _, _, _, _, (g co)? -> n (g co) s*!^").when(q_weights_by_tensor),
    Case::new("n (g ci) s*!^, _, _, (g co) ci k*!^, (g co), (g co), _, _, (g co)? -> n (g co) s*!^"),
    Case::new("n (g ci) s*!^, _, _, (g co) ci k*!^, (g co), _, _, _, (g co)? -> n (g co) s*!^"),
];
const NHWC_POOL: &[Case] = &[Case::new("n s*!^ c -> n s*!^ c")];
// A sum is added to the convolution before what it is fused with.
const FUSED_CONV: &[Case] = &[Case::new("n (g ci) s*!^, (g co) ci k*!^, (g co)?, n (g co) s*!^? -> n (g co) s*!^")];
// MatMul's readings, with the last two axes of an operand exchanged.
pub(super) const FUSED_MATMUL: &[Case] = &[
    Case::new("a* k, k -> a*").when(turns_nothing),
    Case::new("a* k, k n -> a* n").when(turns_nothing),
    Case::new("k, a* k n -> a* n").when(turns_nothing),
    Case::new("a* m k, a* k n -> a* m n").when(turns_nothing),
    Case::new("a* k, n k -> a* n").when(turns_right),
    Case::new("a* m k, a* n k -> a* m n").when(turns_right),
    Case::new("a* k m, a* k n -> a* m n").when(turns_left),
    Case::new("a* k~ m, a* n l~ -> a* m n").when(turns_both),
];
// The operand that is skipped to may have fewer rows, which repeat; then the rows are found by position.
const SKIP_NORM: &[Case] = &[
    Case::new("a* c~, a* c, c, c?, c? -> a* c, _, _, a* c").when(skips_alike),
    Case::new("a*!~ c~, b*!~ c, c, c?, c? -> a*! c, _, _, a*! c").when(has_no_statistics),
];
const SIMPLE_SKIP_NORM: &[Case] = &[
    Case::new("a* c~, a* c, c, c? -> a* c, _, _, a* c").when(skips_alike),
    Case::new("a*!~ c~, b*!~ c, c, c? -> a*! c, _, _, a*! c").when(has_no_statistics),
];

pub(super) const OPS: &[OpDef] = &[
    OpDef::microsoft("Gelu", Axes::Sig(UNARY), same),
    OpDef::microsoft("QuickGelu", Axes::Sig(UNARY), same),
    OpDef::microsoft("FastGelu", Axes::Sig(BIASED), same),
    OpDef::microsoft("BiasGelu", Axes::Sig(BIASED), same),
    OpDef::microsoft("FusedMatMul", Axes::Sig(FUSED_MATMUL), fused_matmul),
    OpDef::microsoft("TransposeMatMul", Axes::Sig(FUSED_MATMUL), fused_matmul),
    OpDef::microsoft("FusedConv", Axes::Sig(FUSED_CONV), conv),
    OpDef::microsoft("SkipLayerNormalization", Axes::Sig(SKIP_NORM), skip_norm),
    OpDef::microsoft("SkipSimplifiedLayerNormalization", Axes::Sig(SIMPLE_SKIP_NORM), skip_norm),
    OpDef::microsoft("NhwcMaxPool", Axes::Sig(NHWC_POOL), nhwc_pool),
    OpDef::microsoft("QLinearConv", Axes::Sig(Q_CONV), q_conv),
    OpDef::microsoft("QuantizeLinear", Axes::Sig(LINEAR), quantize),
    OpDef::microsoft("DequantizeLinear", Axes::Sig(LINEAR), dequantize),
    OpDef::microsoft("QLinearAdd", Axes::Sig(Q_BINARY), q_binary),
    OpDef::microsoft("QLinearMul", Axes::Sig(Q_BINARY), q_binary),
    OpDef::microsoft("QLinearSigmoid", Axes::Sig(Q_UNARY), same),
    OpDef::microsoft("QLinearLeakyRelu", Axes::Sig(Q_UNARY), same),
    OpDef::microsoft("QLinearConcat", Axes::Sig(Q_CONCAT), q_concat),
    OpDef::microsoft("QLinearAveragePool", Axes::Sig(Q_POOL), q_pool),
    OpDef::microsoft("QLinearGlobalAveragePool", Axes::Sig(Q_GLOBAL), q_global),
];

/// Refuses unless each of these operands is left out or one number.
pub(super) fn scalars(graph: &Graph, node: &Node, slots: &[usize]) -> Result<(), String> {
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
    if node.flag("channels_last") { Ok(()) } else { Err("has its channels first".to_owned()) }
}

fn channels_first(_: &Graph, node: &Node) -> Result<(), String> {
    if node.int("channels_last").unwrap_or(0) == 0 { Ok(()) } else { Err("has its channels last".to_owned()) }
}

fn q_conv_last_by_tensor(graph: &Graph, node: &Node) -> Result<(), String> {
    channels_last(graph, node)?;
    q_weights_by_tensor(graph, node)
}

/// Refuses unless exactly these operands have their last axes exchanged.
fn turns(node: &Node, left: bool, right: bool) -> Result<(), String> {
    let is = |name| node.flag(name);
    if is("transBatchA") || is("transBatchB") {
        return Err("moves batch axes of its operands, by position".to_owned());
    }
    if is("transA") == left && is("transB") == right { Ok(()) } else { Err("transposes other operands".to_owned()) }
}

fn turns_nothing(_: &Graph, node: &Node) -> Result<(), String> {
    turns(node, false, false)
}

fn turns_left(_: &Graph, node: &Node) -> Result<(), String> {
    turns(node, true, false)
}

fn turns_right(_: &Graph, node: &Node) -> Result<(), String> {
    turns(node, false, true)
}

fn turns_both(_: &Graph, node: &Node) -> Result<(), String> {
    turns(node, true, true)
}

fn has_no_statistics(_: &Graph, node: &Node) -> Result<(), String> {
    if has_result(node, 1) || has_result(node, 2) { Err("has its statistics as results".to_owned()) } else { Ok(()) }
}

fn skips_alike(graph: &Graph, node: &Node) -> Result<(), String> {
    has_no_statistics(graph, node)?;
    let shape = |slot| ty(graph, node, slot).and_then(Type::shape);
    match (shape(0), shape(1)) {
        (Some(a), Some(b)) if a == b => Ok(()),
        _ => Err("its operands are not known to have the same shape".to_owned()),
    }
}

pub(super) fn fused_matmul(ctx: &mut InferContext<'_>) -> Answer {
    let turned = |ctx: &InferContext<'_>, slot: usize, batch: &str, last: &str| -> Result<Option<Vec<Dim>>, String> {
        let Some(shape) = ctx.shape_from_rank(slot, 1)? else { return Ok(None) };
        let (mut shape, rank) = (shape.to_vec(), shape.len());
        if rank >= 2 && ctx.int(batch, 0) != 0 {
            // The first axis goes before the last.
            shape[..rank - 1].rotate_left(1);
        }
        if rank >= 2 && ctx.int(last, 0) != 0 {
            shape.swap(rank - 2, rank - 1);
        }
        Ok(Some(shape))
    };
    let (a, b) = (turned(ctx, 0, "transBatchA", "transA")?, turned(ctx, 1, "transBatchB", "transB")?);
    let shape = match (a, b) {
        (Some(a), Some(b)) => Some(product_shape(ctx, &a, &b)?),
        _ => None,
    };
    Ok(Inferred::one(typed(ctx.dtype(0), shape)))
}

fn nhwc_pool(ctx: &mut InferContext<'_>) -> Answer {
    let shape = pool_shape_channels_last(ctx)?;
    Ok(Inferred::one(typed(ctx.dtype(0), shape)))
}

fn q_conv(ctx: &mut InferContext<'_>) -> Answer {
    let shape = if is_channels_last(ctx) { conv_shape_channels_last(ctx, 0, 3)? } else { conv_shape(ctx, 0, 3)? };
    Ok(Inferred::one(typed(ctx.dtype(7), shape)))
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
    ctx.node.flag("channels_last")
}

fn q_pool(ctx: &mut InferContext<'_>) -> Answer {
    let shape = if is_channels_last(ctx) { pool_shape_channels_last(ctx)? } else { pool_shape(ctx)? };
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
