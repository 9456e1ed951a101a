//! Shapes as data: Shape and Size read extents; `ConstantOfShape`, Range, `NonZero`, `OneHot` and `EyeLike` make tensors of them.

use super::infer::{Answer, InferContext, Inferred, MAX_RANK, check_rank, is_extent, same_dtype, typed};
use super::read::number;
use super::{Axes, AxisSource, Case, OpDef};
use crate::attr::Attr;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::form::Renumber;
use crate::graph::{CONTENTS_LIMIT, Graph, Node};

const SHAPE: &[Case] = &[Case::new("a* -> _").renumber(&[Renumber::Extents])];
const SIZE: &[Case] = &[Case::new("a* -> _")];
const MADE: &str = "makes a row-major tensor from a shape";
const NON_ZERO: &str = "lists coordinates in row-major order";
// All elements are alike, so that any order of the shape does.
const FILLED: &[Case] = &[Case::new("_ -> a*").renumber(&[Renumber::PerAxisInput(0, 1)])];
const ONE_HOT: &[Case] = &[Case::new("a* b*, _, _ -> a* [x] b*")
    .axis(AxisSource::ResultAttr("axis", -1))
    .renumber(&[Renumber::ResultAxisAttr("axis", -1)])];
const EYE: &[Case] = &[Case::new("a*~ -> a*").when(is_main_diagonal), Case::new("m~ n~ -> m n")];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("Shape", (1, 28), Axes::Sig(SHAPE), shape),
    OpDef::onnx("Size", (1, 28), Axes::Sig(SIZE), size),
    OpDef::onnx("Constant", (1, 28), Axes::Opaque(MADE), constant),
    OpDef::onnx("ConstantOfShape", (9, 28), Axes::Sig(FILLED), constant_of_shape),
    OpDef::onnx("Range", (11, 28), Axes::Opaque(MADE), range),
    OpDef::onnx("NonZero", (9, 28), Axes::Opaque(NON_ZERO), non_zero),
    OpDef::onnx("OneHot", (9, 28), Axes::Sig(ONE_HOT), one_hot),
    OpDef::onnx("EyeLike", (9, 28), Axes::Sig(EYE), eye_like),
];

fn is_main_diagonal(_: &Graph, node: &Node) -> Result<(), String> {
    match node.int("k").unwrap_or(0) {
        0 => Ok(()),
        _ => Err("its diagonal is another seen from the other axis".to_owned()),
    }
}

fn shape(ctx: &mut InferContext<'_>) -> Answer {
    let Some(dims) = ctx.shape(0) else {
        let length = ctx.unknown();
        return Ok(Inferred::one(typed(Some(DType::I64), Some(vec![length]))));
    };
    let rank = dims.len() as i64;
    let place = |axis: i64| if axis < 0 { axis.saturating_add(rank) } else { axis }.clamp(0, rank) as usize;
    let (start, end) = (place(ctx.int("start", 0)), place(ctx.int("end", rank)));
    let dims = dims.get(start..end).unwrap_or_default().to_vec();
    let length = Dim::from(dims.len() as i64);
    Ok(Inferred::one(typed(Some(DType::I64), Some(vec![length]))).with(Some(dims)))
}

fn size(ctx: &mut InferContext<'_>) -> Answer {
    let contents = ctx.shape(0).and_then(Dim::product).map(|n| vec![n]);
    Ok(Inferred::one(typed(Some(DType::I64), Some(vec![]))).with(contents))
}

/// A Constant that import left an op (sparse, strings).
fn constant(ctx: &mut InferContext<'_>) -> Answer {
    let ty = match ctx.node.attrs.values().next() {
        Some(Attr::Tensor(c)) => typed(Some(c.dtype), Some(c.dims.iter().copied().map(Dim::from).collect())),
        Some(Attr::Float(_)) => typed(Some(DType::F32), Some(vec![])),
        Some(Attr::Int(_)) => typed(Some(DType::I64), Some(vec![])),
        Some(Attr::String(_)) => typed(Some(DType::String), Some(vec![])),
        Some(Attr::Floats(v)) => typed(Some(DType::F32), Some(vec![Dim::from(v.len() as i64)])),
        Some(Attr::Ints(v)) => typed(Some(DType::I64), Some(vec![Dim::from(v.len() as i64)])),
        Some(Attr::Strings(v)) => typed(Some(DType::String), Some(vec![Dim::from(v.len() as i64)])),
        _ => typed(None, None),
    };
    Ok(Inferred::one(ty))
}

fn constant_of_shape(ctx: &mut InferContext<'_>) -> Answer {
    let (dtype, value) = match ctx.node.attrs.get("value") {
        Some(Attr::Tensor(c)) => (c.dtype, c.to_ints(1).and_then(|v| v.first().copied())),
        _ => (DType::F32, None),
    };
    let shape = match (ctx.contents(0), ctx.shape(0)) {
        (Some(dims), _) => Some(dims.to_vec()),
        (None, Some([n])) => {
            let rank = n.as_const().and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= MAX_RANK);
            rank.map(|n| ctx.unknown_shape(n))
        }
        _ => None,
    };
    if let Some(bad) = shape.iter().flatten().filter_map(Dim::as_const).find(|d| *d < 0) {
        return Err(format!("extent {bad} of the shape is negative"));
    }
    let elems = shape.as_ref().and_then(|s| Dim::product(s)).and_then(|n| n.as_const());
    let elems = elems.and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= CONTENTS_LIMIT);
    let contents = value.zip(elems).map(|(value, n)| vec![Dim::from(value); n]);
    Ok(Inferred::one(typed(Some(dtype), shape)).with(contents))
}

fn range(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = same_dtype(ctx, [0, 1, 2])?;
    let one = |slot: usize| match ctx.contents(slot) {
        Some([d]) => Some(d.clone()),
        _ => None,
    };
    if let (Some(start), Some(limit), Some(step)) = (one(0), one(1), one(2)) {
        return integer_range(ctx, dtype, &start, &limit, &step);
    }
    let float = |slot: usize| number(ctx.graph, ctx.node.operand(slot)?);
    let count = match (float(0), float(1), float(2)) {
        (Some(start), Some(limit), Some(step)) => {
            let count = ((limit - start) / step).ceil().max(0.0);
            (count < 9.0e15).then(|| Dim::from(count as i64))
        }
        _ => None,
    };
    let count = count.unwrap_or_else(|| ctx.unknown());
    Ok(Inferred::one(typed(dtype, Some(vec![count]))))
}

fn integer_range(ctx: &mut InferContext<'_>, dtype: Option<DType>, start: &Dim, limit: &Dim, step: &Dim) -> Answer {
    let distance = limit.checked_sub(start);
    let count = match (distance.as_ref().and_then(Dim::as_const), step.as_const()) {
        (_, Some(0)) => return Err("the step is 0".to_owned()),
        (Some(d), Some(s)) if (d > 0) == (s > 0) => {
            i64::try_from(d.unsigned_abs().div_ceil(s.unsigned_abs())).ok().map(Dim::from)
        }
        (Some(_), Some(_)) => Some(Dim::ZERO),
        (None, Some(s)) if s > 0 => distance.filter(is_extent).and_then(|d| d.checked_ceil_div(s)),
        _ => None,
    };
    let contents = match (start.as_const(), step.as_const(), count.as_ref().and_then(Dim::as_const)) {
        (Some(start), Some(step), Some(n)) if n <= CONTENTS_LIMIT as i64 => {
            (0..n).map(|k| start.checked_add(k.checked_mul(step)?).map(Dim::from)).collect()
        }
        _ => None,
    };
    let count = count.unwrap_or_else(|| ctx.unknown());
    Ok(Inferred::one(typed(dtype, Some(vec![count]))).with(contents))
}

fn non_zero(ctx: &mut InferContext<'_>) -> Answer {
    let rank = match ctx.rank(0) {
        // Runtimes list a scalar as a vector of one.
        None | Some(0) => ctx.unknown(),
        Some(rank) => Dim::from(rank as i64),
    };
    let found = ctx.unknown();
    Ok(Inferred::one(typed(Some(DType::I64), Some(vec![rank, found]))))
}

fn one_hot(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype(2);
    let Some(indices) = ctx.shape(0) else { return Ok(Inferred::one(typed(dtype, None))) };
    let axis = ctx.axis(ctx.int("axis", -1), indices.len() + 1)?;
    let depth = match ctx.contents(1) {
        Some([depth]) => depth.clone(),
        _ => ctx.unknown(),
    };
    check_rank(indices.len() + 1)?;
    let mut shape = indices.to_vec();
    shape.insert(axis, depth);
    Ok(Inferred::one(typed(dtype, Some(shape))))
}

fn eye_like(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype_attr("dtype")?.or(ctx.dtype(0));
    Ok(Inferred::one(typed(dtype, Some(ctx.shape_of_rank(0, 2)?))))
}
