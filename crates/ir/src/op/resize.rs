//! Resize and Upsample. Runtimes interpolate only some axes, found by position.

use super::infer::{Answer, InferContext, Inferred, MAX_RANK, floats, typed};
use super::query::resized;
use super::{Axes, Case, OpDef};
use crate::attr::Attr;
use crate::dim::Dim;

const TWO: &[Case] = &[Case::new("a*!, _ -> a*!").whole(resized)];
const ONE: &[Case] = &[Case::new("a*! -> a*!").whole(resized)];
const RESIZE_11: &[Case] = &[Case::new("a*!, _?, _?, _? -> a*!").whole(resized)];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("Upsample", (1, 6), Axes::Sig(ONE), upsample_1),
    OpDef::onnx("Upsample", (7, 8), Axes::Sig(ONE), upsample_7),
    OpDef::onnx("Upsample", (9, 9), Axes::Sig(TWO), resize_10),
    OpDef::onnx("Resize", (10, 10), Axes::Sig(TWO), resize_10),
    OpDef::onnx("Resize", (11, 26), Axes::Sig(RESIZE_11), resize_11),
];

fn upsample_1(ctx: &mut InferContext<'_>) -> Answer {
    let Some(shape) = ctx.shape(0) else { return Ok(Inferred::one(typed(ctx.dtype(0), None))) };
    let scale = |name: &str| match ctx.node.attrs.get(name) {
        Some(Attr::Float(x)) => Some(f64::from(*x)),
        _ => None,
    };
    let scales = [Some(1.0), Some(1.0), scale("height_scale"), scale("width_scale")];
    if shape.len() != scales.len() {
        return Err(format!("operand 0 has rank {}, needs 4", shape.len()));
    }
    let result = shape.iter().zip(scales).map(|(d, s)| scaled_or_unknown(ctx, d, s)).collect();
    Ok(Inferred::one(typed(ctx.dtype(0), Some(result))))
}

fn upsample_7(ctx: &mut InferContext<'_>) -> Answer {
    let scales = match ctx.node.attrs.get("scales") {
        Some(Attr::Floats(v)) => Some(v.iter().copied().map(f64::from).collect()),
        _ => None,
    };
    by_scales(ctx, scales, None)
}

fn resize_10(ctx: &mut InferContext<'_>) -> Answer {
    let scales = scales_of(ctx, 1);
    by_scales(ctx, scales, None)
}

fn resize_11(ctx: &mut InferContext<'_>) -> Answer {
    let axes = ctx.node.ints("axes").map(<[i64]>::to_vec);
    // An operand that is there but empty counts as left out.
    let given = |slot: usize| ctx.has(slot) && ctx.shape(slot).is_none_or(|s| s != [Dim::ZERO]);
    if !given(3) {
        let scales = scales_of(ctx, 2);
        return by_scales(ctx, scales, axes);
    }
    let policy = ctx.node.str("keep_aspect_ratio_policy").unwrap_or("stretch");
    let sizes = ctx.contents(3).filter(|_| policy == "stretch").map(<[Dim]>::to_vec);
    let Some(shape) = ctx.shape(0) else {
        let rank = if axes.is_none() { sizes } else { None };
        return Ok(Inferred::one(typed(ctx.dtype(0), rank)));
    };
    let axes = touched(ctx, axes, shape.len())?;
    let mut result = shape.to_vec();
    for (i, &axis) in axes.iter().enumerate() {
        result[axis] = match &sizes {
            Some(sizes) if sizes.len() != axes.len() => {
                return Err(format!("{} sizes for {} axes", sizes.len(), axes.len()));
            }
            Some(sizes) => sizes[i].clone(),
            None => ctx.unknown(),
        };
    }
    Ok(Inferred::one(typed(ctx.dtype(0), Some(result))))
}

fn touched(ctx: &InferContext<'_>, axes: Option<Vec<i64>>, rank: usize) -> Result<Vec<usize>, String> {
    match axes {
        Some(axes) => ctx.axes(&axes, rank),
        None => Ok((0..rank).collect()),
    }
}

fn scales_of(ctx: &InferContext<'_>, slot: usize) -> Option<Vec<f64>> {
    floats(ctx.constant(slot)?, MAX_RANK)
}

fn by_scales(ctx: &mut InferContext<'_>, scales: Option<Vec<f64>>, axes: Option<Vec<i64>>) -> Answer {
    let Some(shape) = ctx.shape(0) else { return Ok(Inferred::one(typed(ctx.dtype(0), None))) };
    let axes = touched(ctx, axes, shape.len())?;
    if scales.as_ref().is_some_and(|s| s.len() != axes.len()) {
        return Err(format!("{} scales for {} axes", scales.map_or(0, |s| s.len()), axes.len()));
    }
    let mut result = shape.to_vec();
    for (i, &axis) in axes.iter().enumerate() {
        let scale = scales.as_ref().and_then(|s| s.get(i).copied());
        result[axis] = scaled_or_unknown(ctx, &shape[axis], scale);
    }
    Ok(Inferred::one(typed(ctx.dtype(0), Some(result))))
}

fn scaled_or_unknown(ctx: &mut InferContext<'_>, extent: &Dim, scale: Option<f64>) -> Dim {
    scale.and_then(|s| scaled(extent, s)).unwrap_or_else(|| ctx.unknown())
}

/// `floor(extent * scale)`, in single precision as runtimes compute it.
fn scaled(extent: &Dim, scale: f64) -> Option<Dim> {
    if !scale.is_finite() || scale <= 0.0 {
        return None;
    }
    if let Some(n) = extent.as_const() {
        let product = (n as f32) * (scale as f32);
        return (product < 9.0e15).then(|| Dim::from(product.floor() as i64));
    }
    // Whole factors, and halves of halves, are exact.
    let inverse = 1.0 / scale;
    if scale.fract() == 0.0 && scale < 1.0e9 {
        extent.checked_mul(&Dim::from(scale as i64))
    } else if inverse.fract() == 0.0 && inverse < 1.0e9 && (inverse as i64 as u64).is_power_of_two() {
        extent.checked_floor_div(inverse as i64)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_scaled_only_by_exact_factors() {
        let h = Dim::symbol("H");
        assert_eq!(scaled(&h, 2.0), "2*H".parse().ok());
        assert_eq!(scaled(&h, 0.25), "H//4".parse().ok());
        assert_eq!(scaled(&h, 1.0 / 3.0), None);
        assert_eq!(scaled(&Dim::from(7), 0.6), Some(Dim::from(4)));
        assert_eq!(scaled(&h, f64::NAN), None);
    }
}
