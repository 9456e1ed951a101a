//! Resize and Upsample. By what they mean, any axis may lie anywhere, since scales, sizes and axes are renumbered; but runtimes
//! compute only some arrangements, and those at very different speeds.
//!
//! What kernels for CPUs take, by their checks of the scales and as measured (axes that keep their extent are *kept*):
//!
//! - *nearest*: any order, at about one speed, except doubling by `asymmetric` and `floor`, which is several times faster where the
//!   two outermost of four axes are kept; and with the batch innermost it is slower than with Transposes around it;
//! - *linear*: of four axes the two outermost are kept, or for floats the outermost and the innermost; of five the two outermost; of
//!   two or three any;
//! - *cubic*: of four axes the two outermost are kept, or there are only two.
//!
//! Kernels for GPUs take less: a target whose files run there lets images be interpolated only where rows and columns lie innermost.
//!
//! Axes that are interpolated keep their order among themselves: another one sums otherwise, so that the last bit differs.

use super::default::text_or_default;
use super::infer::{Answer, InferContext, Inferred, MAX_RANK, typed};
use super::query::{listed, resized, ty};
use super::{Axes, Case, OpDef};
use crate::attr::Attr;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::form::{Implicit, Renumber};
use crate::graph::{Graph, Node};
use crate::types::Type;

const UPSAMPLE_1: &[Case] = &[Case::new("a*! -> a*!").whole(interpolated)];
const UPSAMPLE_7: &[Case] =
    &[Case::new("a* -> a*").whole(interpolated).orders(computed).renumber(&[Renumber::PerAxisAttr("scales", 1)])];
const TWO: &[Case] =
    &[Case::new("a*, _ -> a*").whole(interpolated).orders(computed).renumber(&[Renumber::PerAxisInput(1, 1)])];
const RESIZE_11: &[Case] = &[
    Case::new("a*, _?, _?, _? -> a*")
        .when(names_axes)
        .whole(interpolated)
        .orders(computed)
        .renumber(&[Renumber::AxesAttr("axes", Implicit::All)]),
    Case::new("a*, _?, _?, _? -> a*")
        .whole(interpolated)
        .orders(computed)
        .renumber(&[Renumber::PerAxisInput(2, 1), Renumber::PerAxisInput(3, 1)]),
];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("Upsample", (1, 6), Axes::Sig(UPSAMPLE_1), upsample_1),
    OpDef::onnx("Upsample", (7, 8), Axes::Sig(UPSAMPLE_7), upsample_7),
    OpDef::onnx("Upsample", (9, 9), Axes::Sig(TWO), resize_10),
    OpDef::onnx("Resize", (10, 10), Axes::Sig(TWO), resize_10),
    OpDef::onnx("Resize", (11, 28), Axes::Sig(RESIZE_11), resize_11),
];

fn names_axes(_: &Graph, node: &Node) -> Result<(), String> {
    node.ints("axes").map(|_| ()).ok_or_else(|| "names no axes".to_owned())
}

/// Axes that are not proven to be kept. An equal extent is no proof where a scale is near 1; of sizes it is one.
fn interpolated(graph: &Graph, node: &Node, rank: usize) -> Vec<usize> {
    let touched = listed(node.ints("axes").map(<[i64]>::to_vec), rank);
    let scales = match (node.opset, node.attrs.get("scales")) {
        (..9, Some(Attr::Floats(scales))) => Some(scales.iter().copied().map(f64::from).collect()),
        (..9, _) => None,
        (9..11, _) => constant_floats(graph, node, 1),
        _ => constant_floats(graph, node, 2),
    };
    match scales.filter(|scales: &Vec<f64>| scales.len() == touched.len() && !scales.is_empty()) {
        Some(scales) => touched
            .into_iter()
            .zip(scales)
            .filter(|(_, scale)| scale.total_cmp(&1.0).is_ne())
            .map(|(axis, _)| axis)
            .collect(),
        None if node.opset >= 11 && node.operand(3).is_some() => {
            let changed = resized(graph, node, rank);
            touched.into_iter().filter(|axis| changed.contains(axis)).collect()
        }
        None => touched,
    }
}

fn constant_floats(graph: &Graph, node: &Node, slot: usize) -> Option<Vec<f64>> {
    graph.constant(node.operand(slot)?)?.to_floats(MAX_RANK)
}

/// Most axes of which the orders are listed: a Resize of more stays as it is.
const MOST_AXES: usize = 5;

/// The orders of operand 0's axes that runtimes compute, and no slower than ONNX's own with Transposes around it.
fn computed(graph: &Graph, node: &Node, rank: usize) -> Option<Vec<Vec<usize>>> {
    let own: Vec<usize> = (0..rank).collect();
    // A region to crop lists starts and ends of every axis, between which it samples beyond the edges too.
    let crops = node.str("coordinate_transformation_mode") == Some("tf_crop_and_resize");
    if crops || rank > MOST_AXES {
        return Some(vec![own]);
    }
    let changed = interpolated(graph, node, rank);
    let kept = |axis: usize| !changed.contains(&axis);
    let mode = text_or_default(node, "mode").unwrap_or_default();
    let of_floats = ty(graph, node, 0).and_then(Type::dtype).is_some_and(DType::is_float);
    let fits = |order: &[usize]| {
        let outer_two = matches!(order, [a, b, ..] if kept(*a) && kept(*b));
        let first_and_last = matches!(order, [first, .., last] if kept(*first) && kept(*last));
        let in_order = || order.iter().filter(|a| !kept(**a)).is_sorted();
        match (mode, rank) {
            ("nearest", _) if doubles(graph, node) => outer_two && in_order(),
            ("nearest", _) => order.last() != Some(&0) || !kept(0),
            ("linear", 2 | 3) | ("cubic", 2) => in_order(),
            ("linear", 4) => (outer_two || (of_floats && first_and_last && order.first() < order.last())) && in_order(),
            ("linear", 5) | ("cubic", 4) => outer_two && in_order(),
            _ => false,
        }
    };
    let mut orders: Vec<Vec<usize>> = permutations(rank).into_iter().filter(|order| fits(order)).collect();
    if !orders.contains(&own) {
        orders.push(own);
    }
    Some(orders)
}

/// Whether it is the doubling of the inner two of four axes that has a kernel of its own.
fn doubles(graph: &Graph, node: &Node) -> bool {
    // Before version 11 there was no other way to count.
    let plain = node.opset < 11
        || (node.str("coordinate_transformation_mode") == Some("asymmetric")
            && node.str("nearest_mode") == Some("floor"));
    let result = node.result(0);
    let shapes = (ty(graph, node, 0).and_then(Type::shape), result.and_then(|v| graph.value(v).ty.shape()));
    let (Some(from), Some(to)) = shapes else { return plain };
    let two = Dim::from(2);
    plain && from.len() == 4 && from.iter().zip(to).skip(2).all(|(d, r)| d.checked_mul(&two).as_ref() == Some(r))
}

/// All orders of so many axes.
fn permutations(rank: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..rank {
        all = all
            .into_iter()
            .flat_map(|p: Vec<usize>| {
                let next = (0..rank).filter(|a| !p.contains(a)).map(|a| [&p[..], &[a]].concat());
                next.collect::<Vec<_>>()
            })
            .collect();
    }
    all
}

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
    ctx.constant(slot)?.to_floats(MAX_RANK)
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
