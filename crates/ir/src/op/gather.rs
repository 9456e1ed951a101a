//! Indexing by an operand: Gather, `GatherElements`, `ScatterElements`, `TopK`, `CumSum`, Compress bind the axis they are told;
//! `GatherND` and `ScatterND` address leading axes by position.

use super::elementwise::same;
use super::infer::{Answer, InferContext, Inferred, check_rank, typed};
use super::{Axes, AxisSource, Case, OpDef};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::form::Renumber;
use crate::graph::{Graph, Node};

const GATHER: &[Case] = &[Case::new("a* [x]~ c*, b*@x -> a* b* c*")
    .axis(AxisSource::Attr("axis", 0))
    .when(is_of_no_texts)
    .renumber(&[Renumber::AxisAttr("axis", 0)])];
// Indices may have smaller extents than the data beside the axis too, so all axes count as cut.
const GATHER_ELEMENTS: &[Case] = &[Case::new("a*~ [x]~ b*~, a* [x] b* -> a* [x] b*")
    .axis(AxisSource::Attr("axis", 0))
    .renumber(&[Renumber::AxisAttr("axis", 0)])];
const SCATTER_ELEMENTS: &[Case] = &[Case::new("a*~ [x]~ b*~, a* [x] b*, a* [x] b* -> a* [x] b*")
    .axis(AxisSource::Attr("axis", 0))
    .renumber(&[Renumber::AxisAttr("axis", 0)])];
const TOP_K_1: &[Case] = &[Case::new("a* [x]~ b* -> a* [x] b*, a* [x] b*")
    .axis(AxisSource::Attr("axis", -1))
    .renumber(&[Renumber::AxisAttr("axis", -1)])];
const TOP_K_10: &[Case] = &[Case::new("a* [x]~ b*, _ -> a* [x] b*, a* [x] b*")
    .axis(AxisSource::Attr("axis", -1))
    .renumber(&[Renumber::AxisAttr("axis", -1)])];
const ALONG: &[Case] =
    &[Case::new("a* [x]~ b*, _ -> a* [x] b*").axis(AxisSource::Input(1)).renumber(&[Renumber::AxisInput(1)])];
// Tuples address the leading axes `x`, as many as a tuple is long; the axes behind those are free among themselves.
pub(super) const GATHER_ND: &[Case] =
    &[Case::new("x*!~ c*, i*! k~ -> i*! c*").axis(AxisSource::LastExtent(1)).when(has_no_batch)];
const SCATTER_ND: &[Case] = &[Case::new("x*!~ c*, i*! k~, i*! c* -> x*! c*").axis(AxisSource::LastExtent(1))];
const COMPRESS: &[Case] = &[Case::new("a* [x]~ b*, _ -> a* [x] b*")
    .axis(AxisSource::Attr("axis", 0))
    .when(names_its_axis)
    .renumber(&[Renumber::AxisAttr("axis", 0)])];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("Gather", (1, 28), Axes::Sig(GATHER), gather),
    OpDef::onnx("GatherElements", (11, 28), Axes::Sig(GATHER_ELEMENTS), gather_elements),
    OpDef::onnx("Scatter", (9, 10), Axes::Sig(SCATTER_ELEMENTS), same),
    OpDef::onnx("ScatterElements", (11, 28), Axes::Sig(SCATTER_ELEMENTS), same),
    OpDef::onnx("TopK", (1, 9), Axes::Sig(TOP_K_1), top_k),
    OpDef::onnx("TopK", (10, 28), Axes::Sig(TOP_K_10), top_k),
    OpDef::onnx("CumSum", (11, 28), Axes::Sig(ALONG), same),
    OpDef::onnx("CumProd", (26, 28), Axes::Sig(ALONG), same),
    OpDef::onnx("GatherND", (11, 28), Axes::Sig(GATHER_ND), gather_nd),
    OpDef::onnx("ScatterND", (11, 28), Axes::Sig(SCATTER_ND), same),
    OpDef::onnx("Compress", (9, 28), Axes::Sig(COMPRESS), compress),
];

/// ONNX Runtime copies the first text of each slice only, so which texts come out depends on where the axis stands.
fn is_of_no_texts(graph: &Graph, node: &Node) -> Result<(), String> {
    let texts = node.operand(0).is_some_and(|v| graph.value(v).ty.dtype() == Some(DType::String));
    if texts { Err("gathers texts, which ONNX Runtime does by the axis".to_owned()) } else { Ok(()) }
}

fn has_no_batch(_: &Graph, node: &Node) -> Result<(), String> {
    match node.int("batch_dims").unwrap_or(0) {
        0 => Ok(()),
        _ => Err("its tuples address axes behind those of a batch".to_owned()),
    }
}

fn names_its_axis(_: &Graph, node: &Node) -> Result<(), String> {
    node.int("axis").map(|_| ()).ok_or_else(|| "picks from all elements in row-major order".to_owned())
}

fn gather(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype(0);
    let Some(data) = ctx.shape_from_rank(0, 1)? else { return Ok(Inferred::one(typed(dtype, None))) };
    let axis = ctx.axis(ctx.int("axis", 0), data.len())?;
    let Some(indices) = ctx.shape(1) else { return Ok(Inferred::one(typed(dtype, None))) };
    check_rank(data.len() + indices.len())?;
    let shape = [&data[..axis], indices, &data[axis + 1..]].concat();
    let contents = picked(ctx, axis)?;
    Ok(Inferred::one(typed(dtype, Some(shape))).with(contents))
}

/// Elements of a tensor of known contents at known places of an axis.
fn picked(ctx: &InferContext<'_>, axis: usize) -> Result<Option<Vec<Dim>>, String> {
    let (Some(data), Some(shape), Some(places)) = (ctx.known(0), ctx.ty(0).const_shape(), ctx.ints(1)) else {
        return Ok(None);
    };
    let mut picks: Vec<Vec<usize>> = shape.iter().map(|&d| (0..d as usize).collect()).collect();
    let extent = picks[axis].len();
    let pick = |i: i64| super::normalize_axis(i, extent).ok_or_else(|| format!("index {i} is out of range"));
    picks[axis] = places.into_iter().map(pick).collect::<Result<_, String>>()?;
    Ok(data.take(&picks))
}

fn gather_elements(ctx: &mut InferContext<'_>) -> Answer {
    if let (Some(a), Some(b)) = (ctx.rank(0), ctx.rank(1)) {
        if a != b {
            return Err(format!("data of rank {a} and indices of rank {b}"));
        }
        ctx.axis(ctx.int("axis", 0), a)?;
    }
    Ok(Inferred::one(typed(ctx.dtype(0), ctx.shape(1).map(<[Dim]>::to_vec))))
}

fn top_k(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype(0);
    let Some(data) = ctx.shape_from_rank(0, 1)? else {
        return Ok(Inferred::many(vec![typed(dtype, None), typed(Some(DType::I64), None)]));
    };
    let axis = ctx.axis(ctx.int("axis", -1), data.len())?;
    let k = match (ctx.node.opset, ctx.contents(1)) {
        (..10, _) => Some(Dim::from(ctx.node.int("k").ok_or("lacks `k`")?)),
        (_, Some([k])) => Some(k.clone()),
        _ => None,
    };
    let mut shape = data.to_vec();
    shape[axis] = k.unwrap_or_else(|| ctx.unknown());
    let over = match (shape[axis].as_const(), data[axis].as_const()) {
        (Some(k), Some(n)) => k > n || k < 0,
        _ => false,
    };
    if over {
        return Err(format!("takes {} of {}", shape[axis], data[axis]));
    }
    Ok(Inferred::many(vec![typed(dtype, Some(shape.clone())), typed(Some(DType::I64), Some(shape))]))
}

pub(super) fn gather_nd(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype(0);
    let batch = usize::try_from(ctx.int("batch_dims", 0)).map_err(|_| "`batch_dims` is negative".to_owned())?;
    let (Some(data), Some([lead @ .., width])) = (ctx.shape(0), ctx.shape(1)) else {
        return Ok(Inferred::one(typed(dtype, None)));
    };
    let Some(width) = width.as_const() else { return Ok(Inferred::one(typed(dtype, None))) };
    let taken = usize::try_from(width).ok().and_then(|w| w.checked_add(batch));
    let rest = taken
        .and_then(|t| data.get(t..))
        .ok_or_else(|| format!("index tuples of {width} after {batch} batch axes for rank {}", data.len()))?;
    check_rank(lead.len() + rest.len())?;
    Ok(Inferred::one(typed(dtype, Some([lead, rest].concat()))))
}

fn compress(ctx: &mut InferContext<'_>) -> Answer {
    let count = ctx.unknown();
    let shape = match (ctx.node.int("axis"), ctx.shape(0)) {
        (None, _) => Some(vec![count]),
        (Some(axis), Some(shape)) => {
            let mut shape = shape.to_vec();
            let axis = ctx.axis(axis, shape.len())?;
            shape[axis] = count;
            Some(shape)
        }
        (Some(_), None) => None,
    };
    Ok(Inferred::one(typed(ctx.dtype(0), shape)))
}
