//! Concat and Split: one axis whose extents add up.

use super::infer::{Answer, InferContext, Inferred, Known, agree, join, same_dtype, typed};
use super::read::list;
use super::{Axes, AxisSource, Case, OpDef, normalize_axis};
use crate::dim::Dim;
use crate::form::Renumber;

// Until opset 4 the axis was 1 unless given; since then it must be.
const CONCAT: &[Case] = &[Case::new("a* [x]| b*... -> a* [x] b*")
    .axis(AxisSource::Attr("axis", 1))
    .renumber(&[Renumber::AxisAttr("axis", 1)])];
const SPLIT: &[Case] = &[Case::new("a* [x]| b*, _? -> a* [x] b*...")
    .axis(AxisSource::Attr("axis", 0))
    .renumber(&[Renumber::AxisAttr("axis", 0)])];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("Concat", (1, 28), Axes::Sig(CONCAT), concat),
    OpDef::onnx("Split", (1, 28), Axes::Sig(SPLIT), split),
];

fn concat(ctx: &mut InferContext<'_>) -> Answer {
    let slots = ctx.node.inputs.len();
    if slots == 0 {
        return Err("has no operands".to_owned());
    }
    let axis = match ctx.node.int("axis") {
        Some(axis) => axis,
        None if ctx.node.opset < 4 => 1,
        None => return Err("lacks `axis`".to_owned()),
    };
    let dtype = same_dtype(ctx, 0..slots)?;
    let shape = concat_shape(ctx, axis, (0..slots).collect())?;
    let contents = shape.as_ref().and_then(|s| join(&known_parts(ctx)?, normalize_axis(axis, s.len())?));
    Ok(Inferred::one(typed(dtype, shape)).with(contents))
}

/// Shape of these operands side by side; unknown extents where one of them is of unknown shape.
pub(super) fn concat_shape(
    ctx: &mut InferContext<'_>,
    axis: i64,
    slots: Vec<usize>,
) -> Result<Option<Vec<Dim>>, String> {
    let Some(rank) = slots.iter().find_map(|&i| ctx.rank(i)) else { return Ok(None) };
    let axis = ctx.axis(axis, rank)?;
    let mut shape: Option<Vec<Dim>> = None;
    for i in slots {
        let next = ctx.shape_of_rank(i, rank)?;
        let Some(so_far) = &mut shape else {
            shape = Some(next);
            continue;
        };
        for (k, (d, e)) in so_far.iter_mut().zip(&next).enumerate() {
            *d = if k == axis { ctx.add(d, e) } else { agree(d, e, "extents beside the concatenated axis")? };
        }
    }
    Ok(shape)
}

fn known_parts<'a>(ctx: &InferContext<'a>) -> Option<Vec<Known<'a>>> {
    (0..ctx.node.inputs.len()).map(|i| ctx.known(i)).collect()
}

fn split(ctx: &mut InferContext<'_>) -> Answer {
    let (parts, dtype) = (ctx.results(), ctx.dtype(0));
    let Some(shape) = ctx.shape(0) else { return Ok(Inferred::many(vec![typed(dtype, None); parts])) };
    let axis = ctx.axis(ctx.int("axis", 0), shape.len())?;
    let sizes = sizes(ctx, &shape[axis], parts)?;
    let contents = match (shape, ctx.contents(0)) {
        ([_], Some(all)) => parted(all, &sizes),
        _ => Vec::new(),
    };
    let with = |size: Dim| {
        let mut part = shape.to_vec();
        part[axis] = size;
        typed(dtype, Some(part))
    };
    Ok(Inferred::many(sizes.into_iter().map(with).collect()).with_each(contents))
}

/// The elements of each part of a vector, as far as it is known where the parts begin.
fn parted(all: &[Dim], sizes: &[Dim]) -> Vec<Option<Vec<Dim>>> {
    let mut first = Some(0_usize);
    let part = |size: &Dim| {
        let start = first?;
        let end = size.as_const().and_then(|n| start.checked_add(usize::try_from(n).ok()?));
        first = end;
        all.get(start..end?).map(<[Dim]>::to_vec)
    };
    sizes.iter().map(part).collect()
}

/// Extents of the parts, one per result.
fn sizes(ctx: &mut InferContext<'_>, extent: &Dim, parts: usize) -> Result<Vec<Dim>, String> {
    let told = list(ctx.graph, ctx.node, "split");
    if !told.is_absent() {
        let Some(sizes) = told.ints() else { return Ok(ctx.unknown_shape(parts)) };
        let total = sizes.iter().try_fold(0i64, |n, s| n.checked_add(*s));
        if sizes.len() != parts || sizes.iter().any(|s| *s < 0) {
            return Err(format!("parts of {sizes:?} for {parts} results"));
        }
        if extent.as_const().is_some_and(|e| Some(e) != total) {
            return Err(format!("parts of {sizes:?} do not add up to {extent}"));
        }
        return Ok(sizes.into_iter().map(Dim::from).collect());
    }
    let count = ctx.int("num_outputs", parts as i64);
    if count < 1 || count < parts as i64 {
        return Err(format!("{count} parts for {parts} results"));
    }
    if let Some(each) = extent.exact_div(&Dim::from(count)) {
        return Ok(vec![each; parts]);
    }
    let Some(extent) = extent.as_const() else { return Ok(ctx.unknown_shape(parts)) };
    if ctx.node.opset < 18 {
        return Err(format!("{extent} is not divisible into {count} equal parts"));
    }
    // The last part is shorter.
    let each = extent.div_euclid(count) + 1;
    let size = |i: i64| each.min(extent.saturating_sub(i.saturating_mul(each))).max(0);
    Ok((0..parts as i64).map(|i| Dim::from(size(i))).collect())
}
