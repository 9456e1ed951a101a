//! Signals: transforms along one axis, whose last axis has real and imaginary parts, and the windows for them.

use super::infer::{Answer, InferContext, Inferred, typed};
use super::{Axes, AxisSource, Case, OpDef};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::form::Renumber;

const DFT_17: &[Case] = &[Case::new("a* [x]~ b* c~, _? -> a* [x] b* c")
    .axis(AxisSource::Attr("axis", 1))
    .renumber(&[Renumber::AxisAttr("axis", 1)])];
const DFT_20: &[Case] = &[Case::new("a* [x]~ b* c~, _?, _? -> a* [x] b* c")
    .axis(AxisSource::InputOr(2, -2))
    .renumber(&[Renumber::AxisInputOr(2, -2)])];
const STFT: &[Case] = &[Case::new("n t~ c~, _, _?, _? -> n f~ k~ r~"), Case::new("n t~, _, _?, _? -> n f~ k~ r~")];
const MADE: &str = "makes a window or a table from numbers";

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("DFT", (17, 19), Axes::Sig(DFT_17), dft_17),
    OpDef::onnx("DFT", (20, 28), Axes::Sig(DFT_20), dft_20),
    OpDef::onnx("STFT", (17, 28), Axes::Sig(STFT), stft),
    OpDef::onnx("HannWindow", (17, 28), Axes::Opaque(MADE), window),
    OpDef::onnx("HammingWindow", (17, 28), Axes::Opaque(MADE), window),
    OpDef::onnx("BlackmanWindow", (17, 28), Axes::Opaque(MADE), window),
    OpDef::onnx("MelWeightMatrix", (17, 28), Axes::Opaque(MADE), mel_weights),
];

/// The one number that an operand holds.
fn number(ctx: &InferContext<'_>, slot: usize) -> Option<Dim> {
    match ctx.contents(slot) {
        Some([n]) => Some(n.clone()),
        _ => None,
    }
}

/// Number of frequencies of a transform of so many samples.
fn frequencies(ctx: &mut InferContext<'_>, samples: &Dim, onesided: bool) -> Dim {
    if !onesided {
        return samples.clone();
    }
    let half = samples.checked_floor_div(2).unwrap_or_else(|| ctx.unknown());
    ctx.add(&half, &Dim::ONE)
}

fn dft_17(ctx: &mut InferContext<'_>) -> Answer {
    let axis = ctx.int("axis", 1);
    dft(ctx, Some(axis))
}

fn dft_20(ctx: &mut InferContext<'_>) -> Answer {
    let axis = if ctx.has(2) { ctx.ints(2).and_then(|axes| axes.first().copied()) } else { Some(-2) };
    dft(ctx, axis)
}

fn dft(ctx: &mut InferContext<'_>, axis: Option<i64>) -> Answer {
    let dtype = ctx.dtype(0);
    let Some(shape) = ctx.shape_from_rank(0, 2)? else { return Ok(Inferred::one(typed(dtype, None))) };
    let Some(axis) = axis else {
        let unknown = ctx.unknown_shape(shape.len());
        return Ok(Inferred::one(typed(dtype, Some(unknown))));
    };
    let (axis, last) = (ctx.axis(axis, shape.len())?, shape.len() - 1);
    if axis == last {
        return Err("transforms along the axis of real and imaginary parts".to_owned());
    }
    let samples = match (ctx.has(1), number(ctx, 1)) {
        (false, _) => shape[axis].clone(),
        (true, Some(n)) => n,
        (true, None) => ctx.unknown(),
    };
    let (onesided, inverse) = (ctx.node.flag("onesided"), ctx.node.flag("inverse"));
    let mut result = shape.to_vec();
    // Whether half a spectrum that is transformed back is real is told otherwise from version to version.
    let doubtful = onesided && inverse;
    result[axis] = if doubtful { ctx.unknown() } else { frequencies(ctx, &samples, onesided) };
    result[last] = if doubtful { ctx.unknown() } else { Dim::from(2) };
    Ok(Inferred::one(typed(dtype, Some(result))))
}

fn stft(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype(0);
    let Some([batch, length, ..]) = ctx.shape_from_rank(0, 2)? else { return Ok(Inferred::one(typed(dtype, None))) };
    let frame = match (number(ctx, 3), ctx.has(3), ctx.shape(2)) {
        (Some(n), _, _) => n,
        (None, false, Some([n])) => n.clone(),
        _ => ctx.unknown(),
    };
    let frames = match (number(ctx, 1).as_ref().and_then(Dim::as_const), length.checked_sub(&frame)) {
        (Some(step), Some(rest)) if step > 0 => {
            let steps = rest.checked_floor_div(step).unwrap_or_else(|| ctx.unknown());
            ctx.add(&steps, &Dim::ONE)
        }
        _ => ctx.unknown(),
    };
    let onesided = ctx.int("onesided", 1) != 0;
    let frequencies = frequencies(ctx, &frame, onesided);
    Ok(Inferred::one(typed(dtype, Some(vec![batch.clone(), frames, frequencies, Dim::from(2)]))))
}

fn window(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype_attr("output_datatype")?.unwrap_or(DType::F32);
    let size = number(ctx, 0).unwrap_or_else(|| ctx.unknown());
    Ok(Inferred::one(typed(Some(dtype), Some(vec![size]))))
}

fn mel_weights(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype_attr("output_datatype")?.unwrap_or(DType::F32);
    let bins = number(ctx, 0).unwrap_or_else(|| ctx.unknown());
    let samples = number(ctx, 1).unwrap_or_else(|| ctx.unknown());
    let frequencies = frequencies(ctx, &samples, true);
    Ok(Inferred::one(typed(Some(dtype), Some(vec![frequencies, bins]))))
}
