//! ONNX Runtime's products and others on quantized numbers. A scale or zero point is one number or one per column.

use super::attention::undeclared;
use super::contributed::scalars;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::form::{Implicit, Renumber};
use crate::graph::{Graph, Node};
use crate::op::infer::{Answer, InferContext, Inferred, typed};
use crate::op::matmul::{MATMUL, matmul_shape};
use crate::op::query::{is_scalar, op_name, rank};
use crate::op::read::{keeps_axes, reduced_by};
use crate::op::reduce::{OF_ATTR, without};
use crate::op::{Axes, AxisSource, Case, OpDef};

const DYNAMIC_MATMUL: &[Case] = &[
    Case::new("a* k, k n, _, _?, n? -> a* n").when(one_scale),
    Case::new("a* k, k n, n, n?, n? -> a* n"),
    Case::new("a* k, k n, n, _?, n? -> a* n"),
    Case::new("a*! m k, a*! k n, _, _?, n~? -> a*! m n"),
];
const INTEGER_TO_FLOAT: &[Case] = &[
    Case::new("a* k, k n, _, _, _?, _?, n? -> a* n").when(one_scale_each),
    Case::new("a* k, k n, _, n, _?, n?, n? -> a* n").when(one_left_scale),
    Case::new("a* k, k n, _, n, _?, _?, n? -> a* n").when(one_left_scale),
    Case::new("a*! m~ k, a*! k n~, _, _, _?, _?, n? -> a*! m n"),
];
static GEMM: Case =
    Case::new("that of Gemm, transposed as its attributes say, with scales by column where they are vectors");
// Weights lie in blocks, of which another operand has the scales.
const BLOCKED_WEIGHTS: &[Case] = &[Case::new("a* k~, _, _ -> a* n~")];
const BLOCKED_BITS: &[Case] = &[Case::new("a* k~, _, _, _?, _?, n~? -> a* n")];
const BLOCKED_GATHER: &[Case] = &[Case::new("_, b*, _, _? -> b* c*!").when(gathers_rows)];
const WHERE: &[Case] = &[Case::new("a*, a*, _, _, a*, _, _, _, _ -> a*").when(where_scalars)];
const SOFTMAX: &[Case] = &[
    Case::new("a* [x]~ b*, _, _?, _, _ -> a* [x] b*")
        .axis(AxisSource::Attr("axis", -1))
        .renumber(&[Renumber::AxisAttr("axis", -1)])
        .when(is_of_one_axis),
    Case::new("a* x*!~, _, _?, _, _ -> a* x*!").axis(AxisSource::Attr("axis", -1)),
];
const MEAN: &[Case] =
    &[Case::new("a*, _, _?, _, _? -> a*").reduce(OF_ATTR).renumber(&[Renumber::AxesAttr("axes", Implicit::All)])];
const SUM: &[Case] = &[Case::new("a* -> a*").reduce(OF_ATTR).renumber(&[Renumber::AxesAttr("axes", Implicit::All)])];
const MUL: &[Case] = &[Case::new("a*, _?, a*, _? -> a*")];
// Weights of the input are transposed against those of LSTM.
const LSTM: &[Case] =
    &[Case::new("s~ n i, d~ i g~, d h~ g, d b~?, n?, d n h?, d n h?, d p~?, _, _, _, _ -> s d n h, d n h, d n h")];
const EIGHT_BITS: &str = "multiplies 8-bit or 4-bit floats whose operands a device wants in one order";
const ORDERED: &str = "its bytes lie in an order of tiles that an attribute names";

const fn opaque(name: &'static str, why: &'static str) -> OpDef {
    OpDef::microsoft(name, Axes::Opaque(why), undeclared)
}

pub(super) const OPS: &[OpDef] = &[
    OpDef::microsoft("DynamicQuantizeMatMul", Axes::Sig(DYNAMIC_MATMUL), dynamic_matmul),
    OpDef::microsoft("MatMulIntegerToFloat", Axes::Sig(INTEGER_TO_FLOAT), integer_to_float),
    OpDef::microsoft("MatMulInteger16", Axes::Sig(MATMUL), matmul_16),
    OpDef::microsoft("QGemm", Axes::Spelled(&GEMM, spelled_gemm), q_gemm),
    OpDef::microsoft("MatMulNBits", Axes::Sig(BLOCKED_BITS), matmul_blocks),
    OpDef::microsoft("MatMulBnb4", Axes::Sig(BLOCKED_WEIGHTS), matmul_blocks),
    OpDef::microsoft("MatMulFpQ4", Axes::Sig(BLOCKED_WEIGHTS), matmul_blocks),
    OpDef::microsoft("GatherBlockQuantized", Axes::Sig(BLOCKED_GATHER), gather_blocks),
    OpDef::microsoft("QLinearWhere", Axes::Sig(WHERE), choose),
    OpDef::microsoft("QLinearSoftmax", Axes::Sig(SOFTMAX), crate::op::elementwise::same),
    OpDef::microsoft("QLinearReduceMean", Axes::Sig(MEAN), reduced),
    OpDef::microsoft("ReduceSumInteger", Axes::Sig(SUM), reduced),
    OpDef::microsoft("MulInteger", Axes::Sig(MUL), multiplied),
    OpDef::microsoft("DynamicQuantizeLSTM", Axes::Sig(LSTM), crate::op::recurrent::recurrent_transposed),
    opaque("GemmFloat8", EIGHT_BITS),
    opaque("MatMulBlockQuantizedFp4Weight", EIGHT_BITS),
    opaque("MatMulBlockQuantizedFp8Weight", EIGHT_BITS),
    opaque("MatMulNBitsMlp", "fuses several products with weights in packed blocks"),
    opaque("MatMulNBitsQkv", "fuses several products with weights in packed blocks"),
    opaque("QuantizeBFP", "makes blocks of floats with one exponent"),
    opaque("DequantizeBFP", "reads blocks of floats with one exponent"),
    opaque("QuantizeWithOrder", ORDERED),
    opaque("DequantizeWithOrder", ORDERED),
    opaque("QOrderedAttention", ORDERED),
    opaque("QOrderedGelu", ORDERED),
    opaque("QOrderedLayerNormalization", ORDERED),
    opaque("QOrderedLongformerAttention", ORDERED),
    opaque("QOrderedMatMul", ORDERED),
];

fn one_scale(graph: &Graph, node: &Node) -> Result<(), String> {
    scalars(graph, node, &[2, 3])
}

fn one_scale_each(graph: &Graph, node: &Node) -> Result<(), String> {
    scalars(graph, node, &[2, 3, 4, 5])
}

fn one_left_scale(graph: &Graph, node: &Node) -> Result<(), String> {
    scalars(graph, node, &[2, 4])
}

fn where_scalars(graph: &Graph, node: &Node) -> Result<(), String> {
    scalars(graph, node, &[2, 3, 5, 6, 7, 8])
}

fn gathers_rows(_: &Graph, node: &Node) -> Result<(), String> {
    match node.int("gather_axis").unwrap_or(0) {
        0 => Ok(()),
        _ => Err("picks along an axis of blocks".to_owned()),
    }
}

/// Whether it stands for Softmax of opset 13 or newer, which is along one axis.
fn is_of_one_axis(_: &Graph, node: &Node) -> Result<(), String> {
    if node.int("opset").is_some_and(|opset| opset >= 13) {
        Ok(())
    } else {
        Err("is along all axes from the named one on".to_owned())
    }
}

fn spelled_gemm(graph: &Graph, node: &Node) -> Result<String, String> {
    let turned = |name| node.flag(name);
    // Where both are transposed no one order fits; see Gemm.
    let (left, right) = match (turned("transA"), turned("transB")) {
        (false, false) => ("m k", "k n"),
        (false, true) => ("m k", "n k"),
        (true, false) => ("k m", "k n"),
        (true, true) => ("k~ m", "n l~"),
    };
    let column = |slot| if is_scalar(graph, node, slot) { "_" } else { "n" };
    let added = match rank(graph, node, 6) {
        Some(2) => "m n",
        Some(1) => "n",
        _ => "_",
    };
    Ok(format!("{left}, _, _, {right}, {}, {}, {added}?, _?, _? -> m n", column(4), column(5)))
}

fn dynamic_matmul(ctx: &mut InferContext<'_>) -> Answer {
    let shape = matmul_shape(ctx, 0, 1)?;
    Ok(Inferred::one(typed(ctx.dtype(0), shape)))
}

fn integer_to_float(ctx: &mut InferContext<'_>) -> Answer {
    let shape = matmul_shape(ctx, 0, 1)?;
    Ok(Inferred::one(typed(ctx.dtype(2), shape)))
}

fn matmul_16(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = if ctx.dtype(0) == Some(DType::U16) { DType::U32 } else { DType::I32 };
    let shape = matmul_shape(ctx, 0, 1)?;
    Ok(Inferred::one(typed(Some(dtype), shape)))
}

fn q_gemm(ctx: &mut InferContext<'_>) -> Answer {
    let (mut a, mut b) = (ctx.shape_of_rank(0, 2)?, ctx.shape_of_rank(3, 2)?);
    if ctx.node.flag("transA") {
        a.reverse();
    }
    if ctx.node.flag("transB") {
        b.reverse();
    }
    // Without a scale of the result it is not quantized.
    let dtype = if ctx.has(8) { ctx.dtype(8) } else { ctx.dtype(1) };
    Ok(Inferred::one(typed(dtype, Some(vec![a.swap_remove(0), b.swap_remove(1)]))))
}

fn matmul_blocks(ctx: &mut InferContext<'_>) -> Answer {
    let columns = match (ctx.node.int("N"), ctx.ints(2)) {
        (Some(n), _) => Dim::from(n),
        (None, Some(shape)) if shape.len() == 2 => Dim::from(shape[1]),
        _ => ctx.unknown(),
    };
    let shape = ctx.shape_from_rank(0, 1)?.map(|s| [&s[..s.len() - 1], &[columns]].concat());
    Ok(Inferred::one(typed(ctx.dtype(0), shape)))
}

fn gather_blocks(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype(2);
    let (Some(data), Some(indices)) = (ctx.shape_from_rank(0, 1)?, ctx.shape(1)) else {
        return Ok(Inferred::one(typed(dtype, None)));
    };
    let axis = ctx.axis(ctx.int("gather_axis", 0), data.len())?;
    let mut shape = [&data[..axis], indices, &data[axis + 1..]].concat();
    // Bytes may hold several numbers each, along the last axis.
    if let (Some(DType::U8), Some(last)) = (ctx.dtype(0), shape.last_mut()) {
        *last = ctx.unknown();
    }
    Ok(Inferred::one(typed(dtype, Some(shape))))
}

fn choose(ctx: &mut InferContext<'_>) -> Answer {
    let shape = ctx.broadcast(&[ctx.shape(0), ctx.shape(1), ctx.shape(4)])?;
    Ok(Inferred::one(typed(ctx.dtype(1), shape)))
}

fn reduced(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = if op_name(ctx.node) == "ReduceSumInteger" { Some(DType::I32) } else { ctx.dtype(0) };
    let Some(shape) = ctx.shape(0) else { return Ok(Inferred::one(typed(dtype, None))) };
    let axes = reduced_by(ctx.graph, ctx.node, &OF_ATTR, shape.len())?.unwrap_or_default();
    Ok(Inferred::one(typed(dtype, Some(without(shape, &axes, keeps_axes(ctx.node))))))
}

fn multiplied(ctx: &mut InferContext<'_>) -> Answer {
    let shape = ctx.broadcast(&[ctx.shape(0), ctx.shape(2)])?;
    Ok(Inferred::one(typed(Some(DType::I32), shape)))
}
