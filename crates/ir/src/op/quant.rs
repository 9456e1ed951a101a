//! Quantization and what computes on quantized numbers. Scales and zero points are one number, or one per index of an axis.

use super::conv::conv_shape;
use super::infer::{Answer, InferContext, Inferred, typed};
use super::matmul::matmul_shape;
use super::query::{is_scalar, rank};
use super::{Axes, AxisSource, Case, OpDef};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::form::Renumber;
use crate::graph::{Graph, Node};

/// Versions before 13 name no axis, and take single numbers.
const LINEAR_10: &[Case] = &[Case::new("a*, _, _? -> a*").when(per_tensor)];
pub(super) const LINEAR: &[Case] = &[
    Case::new("a*, _, _? -> a*").when(per_tensor),
    Case::new("a* [x] b*, [x], [x]? -> a* [x] b*")
        .axis(AxisSource::Attr("axis", 1))
        .renumber(&[Renumber::AxisAttr("axis", 1)])
        .when(per_axis),
    // One scale per block of the axis: data and scales are stored alike.
    Case::new("a* [x]~ b*, a* [x] b*, a* [x] b*? -> a* [x] b*")
        .axis(AxisSource::Attr("axis", 1))
        .renumber(&[Renumber::AxisAttr("axis", 1)])
        .when(blocked),
];
const DYNAMIC: &[Case] = &[Case::new("a*~ -> a*, _, _")];
const Q_CONV: &[Case] = &[
    Case::new("n (g ci) s*!^, _, _, (g co) ci k*!^, _, _, _, _, (g co)? -> n (g co) s*!^").when(q_weights_by_tensor),
    Case::new("n (g ci) s*!^, _, _, (g co) ci k*!^, (g co), (g co), _, _, (g co)? -> n (g co) s*!^"),
    // A zero point for all rows beside a scale for each.
    Case::new("n (g ci) s*!^, _, _, (g co) ci k*!^, (g co), _, _, _, (g co)? -> n (g co) s*!^"),
];
const CONV_INTEGER: &[Case] = &[
    Case::new("n (g ci) s*!^, (g co) ci k*!^, _?, _? -> n (g co) s*!^").when(integer_weights_by_tensor),
    Case::new("n (g ci) s*!^, (g co) ci k*!^, _?, (g co)? -> n (g co) s*!^"),
];
// A scale or zero point per row would have to follow the rows, so only single numbers leave them free.
const Q_MATMUL: &[Case] = &[
    Case::new("a* k, _, _, k n, _, _, _, _ -> a* n").when(q_matmul_scalars),
    Case::new("a*! m k, _, _, a*! k n, _, _, _, _ -> a*! m n"),
];
const MATMUL_INTEGER: &[Case] = &[
    Case::new("a* k, k n, _?, _? -> a* n").when(matmul_integer_scalar),
    Case::new("a*! m k, a*! k n, _?, _? -> a*! m n"),
];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("QuantizeLinear", (10, 12), Axes::Sig(LINEAR_10), quantize),
    OpDef::onnx("QuantizeLinear", (13, 28), Axes::Sig(LINEAR), quantize),
    OpDef::onnx("DequantizeLinear", (10, 12), Axes::Sig(LINEAR_10), dequantize),
    OpDef::onnx("DequantizeLinear", (13, 28), Axes::Sig(LINEAR), dequantize),
    OpDef::onnx("DynamicQuantizeLinear", (11, 28), Axes::Sig(DYNAMIC), dynamic),
    OpDef::onnx("QLinearConv", (10, 28), Axes::Sig(Q_CONV), q_conv),
    OpDef::onnx("ConvInteger", (10, 28), Axes::Sig(CONV_INTEGER), conv_integer),
    OpDef::onnx("QLinearMatMul", (10, 28), Axes::Sig(Q_MATMUL), q_matmul),
    OpDef::onnx("MatMulInteger", (10, 28), Axes::Sig(MATMUL_INTEGER), matmul_integer),
];

fn per_tensor(graph: &Graph, node: &Node) -> Result<(), String> {
    not_blocked(node)?;
    fills_bytes(graph, node)?;
    if is_scalar(graph, node, 1) && is_scalar(graph, node, 2) {
        Ok(())
    } else {
        Err("its scale and zero point are not single numbers".to_owned())
    }
}

fn per_axis(graph: &Graph, node: &Node) -> Result<(), String> {
    not_blocked(node)?;
    fills_bytes(graph, node)?;
    if rank(graph, node, 1) == Some(1) {
        return Ok(());
    }
    Err("quantizes by blocks: its scale is neither a single number nor a vector".to_owned())
}

fn blocked(graph: &Graph, node: &Node) -> Result<(), String> {
    fills_bytes(graph, node)?;
    match node.int("block_size").unwrap_or(0) {
        0 => Err("does not quantize by blocks".to_owned()),
        _ => Ok(()),
    }
}

/// ONNX Runtime joins a product with dequantized numbers of 2 bits that nothing turns any more, and is wrong where they have other columns
/// than fours. It turns constants before that, so a Transpose in front of the numbers is no help.
fn fills_bytes(graph: &Graph, node: &Node) -> Result<(), String> {
    let Some(value) = node.operand(0).map(|x| graph.value(x)) else { return Ok(()) };
    let twos = matches!(value.ty.dtype(), Some(DType::U2 | DType::I2));
    let fours = |shape: &[Dim]| shape.iter().all(|dim| dim.as_const().is_some_and(|extent| extent % 4 == 0));
    if node.onnx() == Some("DequantizeLinear") && twos && !value.ty.shape().is_some_and(fours) {
        return Err(
            "has numbers of 2 bits whose extents are no fours, which ONNX Runtime multiplies wrongly".to_owned()
        );
    }
    Ok(())
}

fn not_blocked(node: &Node) -> Result<(), String> {
    match node.int("block_size").unwrap_or(0) {
        0 => Ok(()),
        n => Err(format!("quantizes by blocks of {n}")),
    }
}

fn q_matmul_scalars(graph: &Graph, node: &Node) -> Result<(), String> {
    one_number(graph, node, &[1, 2, 6, 7])
}

fn matmul_integer_scalar(graph: &Graph, node: &Node) -> Result<(), String> {
    one_number(graph, node, &[2])
}

pub(super) fn q_weights_by_tensor(graph: &Graph, node: &Node) -> Result<(), String> {
    one_number(graph, node, &[4, 5])
}

fn integer_weights_by_tensor(graph: &Graph, node: &Node) -> Result<(), String> {
    one_number(graph, node, &[3])
}

fn one_number(graph: &Graph, node: &Node, slots: &[usize]) -> Result<(), String> {
    if slots.iter().all(|&s| is_scalar(graph, node, s)) {
        Ok(())
    } else {
        Err("its scales and zero points are not single numbers".to_owned())
    }
}

pub(super) fn quantize(ctx: &mut InferContext<'_>) -> Answer {
    // The type of the zero point, else what `output_dtype` says, else bytes.
    let dtype = ctx.dtype(2).or(ctx.dtype_attr("output_dtype")?);
    let dtype = if ctx.has(2) { dtype } else { dtype.or(Some(DType::U8)) };
    Ok(Inferred::one(typed(dtype, ctx.shape(0).map(<[Dim]>::to_vec))))
}

pub(super) fn dequantize(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype_attr("output_dtype")?.or(ctx.dtype(1));
    Ok(Inferred::one(typed(dtype, ctx.shape(0).map(<[Dim]>::to_vec))))
}

fn dynamic(ctx: &mut InferContext<'_>) -> Answer {
    let shape = ctx.shape(0).map(<[Dim]>::to_vec);
    let types = [(DType::U8, shape), (DType::F32, Some(vec![])), (DType::U8, Some(vec![]))];
    Ok(Inferred::many(types.into_iter().map(|(d, s)| typed(Some(d), s)).collect()))
}

fn q_conv(ctx: &mut InferContext<'_>) -> Answer {
    let shape = conv_shape(ctx, 0, 3)?;
    Ok(Inferred::one(typed(ctx.dtype(7), shape)))
}

fn conv_integer(ctx: &mut InferContext<'_>) -> Answer {
    let shape = conv_shape(ctx, 0, 1)?;
    Ok(Inferred::one(typed(Some(DType::I32), shape)))
}

fn q_matmul(ctx: &mut InferContext<'_>) -> Answer {
    let shape = matmul_shape(ctx, 0, 3)?;
    Ok(Inferred::one(typed(ctx.dtype(7), shape)))
}

fn matmul_integer(ctx: &mut InferContext<'_>) -> Answer {
    let shape = matmul_shape(ctx, 0, 1)?;
    Ok(Inferred::one(typed(Some(DType::I32), shape)))
}
