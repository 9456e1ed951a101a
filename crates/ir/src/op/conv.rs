//! Convolutions: windows over pinned spatial axes, channels spelled by group and channel in group.

use super::infer::{Answer, InferContext, Inferred, agree, same_dtype, typed};
use super::read::{AutoPad, group, per_axis, windows_over};
use super::{Axes, Case, OpDef};
use crate::dim::Dim;

pub(super) const CONV: &[Case] = &[Case::new("n (g ci) s*!^, (g co) ci k*!^, (g co)? -> n (g co) s*!^")];
const TRANSPOSED: &[Case] = &[Case::new("n (g ci) s*!^, (g ci) co k*!^, (g co)? -> n (g co) s*!^")];
// Offsets and masks number groups of channels and places of the kernel by row-major digits of their axis 1.
const DEFORMED: &[Case] =
    &[Case::new("n (g~ ci~) s*!^, (g co) ci k*!^, n d~ t*!^, (g co)?, n m~ t*!^? -> n (g co) t*!^")];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("Conv", (1, 28), Axes::Sig(CONV), conv),
    OpDef::onnx("ConvTranspose", (1, 28), Axes::Sig(TRANSPOSED), conv_transpose),
    OpDef::onnx("DeformConv", (19, 28), Axes::Sig(DEFORMED), conv),
];

pub(super) fn conv(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = same_dtype(ctx, [0, 1])?;
    Ok(Inferred::one(typed(dtype, conv_shape(ctx, 0, 1)?)))
}

/// Shape of a convolution of these operands; `None` if the rank is not known.
pub(super) fn conv_shape(ctx: &mut InferContext<'_>, x: usize, w: usize) -> Result<Option<Vec<Dim>>, String> {
    let operands = operands(ctx, x, w)?;
    convolved(ctx, operands)
}

/// Shape of a convolution of data that has its channels last; the weights have them where they always are.
pub(super) fn conv_shape_channels_last(
    ctx: &mut InferContext<'_>,
    x: usize,
    w: usize,
) -> Result<Option<Vec<Dim>>, String> {
    let operands = operands(ctx, x, w)?.map(|(x, w, kernel)| (channels_second(x), w, kernel));
    Ok(convolved(ctx, operands)?.map(channels_last))
}

/// A shape with its last axis moved to place 1.
pub(super) fn channels_second(mut shape: Vec<Dim>) -> Vec<Dim> {
    if let Some(tail) = shape.get_mut(1..) {
        tail.rotate_right(usize::from(!tail.is_empty()));
    }
    shape
}

/// A shape with axis 1 moved to its end.
pub(super) fn channels_last(mut shape: Vec<Dim>) -> Vec<Dim> {
    if let Some(tail) = shape.get_mut(1..) {
        tail.rotate_left(usize::from(!tail.is_empty()));
    }
    shape
}

fn convolved(ctx: &mut InferContext<'_>, operands: Option<Operands>) -> Result<Option<Vec<Dim>>, String> {
    let Some((x, w, kernel)) = operands else { return Ok(None) };
    check_channels(ctx, &x[1], &w[1])?;
    let mut shape = vec![x[0].clone(), w[0].clone()];
    for (extent, window) in x[2..].iter().zip(&windows_over(ctx.node, &kernel)?) {
        shape.push(ctx.window_extent(extent, window)?);
    }
    Ok(Some(shape))
}

type Operands = (Vec<Dim>, Vec<Dim>, Vec<Option<i64>>);

/// Shapes of data and weights and the extents of the kernel.
fn operands(ctx: &mut InferContext<'_>, x: usize, w: usize) -> Result<Option<Operands>, String> {
    let Some(rank) = ctx.rank(x).or(ctx.rank(w)) else { return Ok(None) };
    if rank < 2 {
        return Err(format!("operand {x} has rank {rank}, needs at least 2"));
    }
    let (x, w) = (ctx.shape_of_rank(x, rank)?, ctx.shape_of_rank(w, rank)?);
    let kernel = match ctx.node.ints("kernel_shape") {
        Some(k) if k.len() == rank - 2 => k.iter().copied().map(Some).collect(),
        Some(k) => return Err(format!("`kernel_shape` has {} entries, needs {}", k.len(), rank - 2)),
        None => w[2..].iter().map(Dim::as_const).collect(),
    };
    Ok(Some((x, w, kernel)))
}

fn check_channels(ctx: &InferContext<'_>, x: &Dim, per_group: &Dim) -> Result<(), String> {
    let group = group(ctx.node)?;
    match (x.as_const(), per_group.as_const()) {
        (Some(x), Some(w)) if w.checked_mul(group) != Some(x) => {
            Err(format!("data has {x} channels, weights are for {group} groups of {w}"))
        }
        _ => Ok(()),
    }
}

fn conv_transpose(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = same_dtype(ctx, [0, 1])?;
    let Some((x, w, kernel)) = operands(ctx, 0, 1)? else { return Ok(Inferred::one(typed(dtype, None))) };
    agree(&x[1], &w[0], "channels of data and weights")?;
    let axes = kernel.len();
    let extra = per_axis(ctx.node, "output_padding", axes, 0)?;
    let channels = Dim::from(group(ctx.node)?);
    let mut shape = vec![x[0].clone(), ctx.mul(&w[1], &channels)];
    let windows = windows_over(ctx.node, &kernel)?;
    if ctx.node.ints("output_shape").is_some() {
        shape.extend(per_axis(ctx.node, "output_shape", axes, 0)?.into_iter().map(Dim::from));
        return Ok(Inferred::one(typed(dtype, Some(shape))));
    }
    for ((extent, window), extra) in x[2..].iter().zip(&windows).zip(extra) {
        // What is padded by itself is padded otherwise by ONNX Runtime where more is asked for, or windows leave gaps.
        let gaps = window.kernel.is_none_or(|kernel| kernel < window.stride);
        let disputed = window.auto == AutoPad::Same && (extra != 0 || gaps);
        let places = window.places_of_transposed(extent, extra).filter(|_| !disputed);
        shape.push(places.unwrap_or_else(|| ctx.unknown()));
    }
    if let Some(bad) = shape.iter().filter_map(Dim::as_const).find(|d| *d < 0) {
        return Err(format!("the result would have an extent of {bad}"));
    }
    Ok(Inferred::one(typed(dtype, Some(shape))))
}
