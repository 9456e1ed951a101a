//! Cutting and extending along axes: Slice, Pad, Tile, Expand. The axes are numbers in attributes or operands.

use super::infer::{Answer, InferContext, Inferred, MAX_RANK, is_extent, typed};
use super::query::{known_or_absent, listed, rank, resized, ty};
use super::read::{
    Cut, List, SymbolicCut, SymbolicPad, axes_of_slice, elements_taken, list, symbolic_cuts, symbolic_pads,
};
use super::{Axes, Case, OpDef};
use crate::dim::Dim;
use crate::form::{Implicit, Renumber};
use crate::graph::{CONTENTS_LIMIT, Graph, Node};
use crate::types::Type;

const SLICE_1: &[Case] =
    &[Case::new("a* -> a*").whole(sliced).renumber(&[Renumber::AxesAttr("axes", Implicit::Leading)])];
const SLICE_10: &[Case] = &[Case::new("a*, _, _, _?, _? -> a*")
    .when(slices_known_axes)
    .whole(sliced)
    .renumber(&[Renumber::AxesInput(3, Implicit::Leading)])];
const PAD_1: &[Case] = &[Case::new("a* -> a*").whole(padded).renumber(&[Renumber::PerAxisAttr("paddings", 2)])];
const PAD_2: &[Case] = &[Case::new("a* -> a*").whole(padded).renumber(&[Renumber::PerAxisAttr("pads", 2)])];
pub(super) const PAD_11: &[Case] =
    &[Case::new("a*, _, _? -> a*").whole(padded).renumber(&[Renumber::PerAxisInput(1, 2)])];
const PAD_18: &[Case] = &[
    Case::new("a*, _, _?, _ -> a*")
        .when(pads_named_axes)
        .whole(padded)
        .renumber(&[Renumber::AxesInput(3, Implicit::Leading)]),
    Case::new("a*, _, _? -> a*").whole(padded).renumber(&[Renumber::PerAxisInput(1, 2)]),
];
const TILE: &[Case] = &[Case::new("a*, _ -> a*").whole(resized).renumber(&[Renumber::PerAxisInput(1, 1)])];
const EXPAND: &[Case] = &[
    Case::new("a*, _ -> a*").when(expands_own_axes).whole(resized).renumber(&[Renumber::PerAxisInput(1, 1)]),
    Case::new("a*~, _ -> n*! a*").when(adds_axes).renumber(&[Renumber::TrailingInput(1)]),
];

// A size per named axis, or per axis of the operand.
const CENTER: &[Case] = &[
    Case::new("a*, _ -> a*").when(names_axes).whole(resized).renumber(&[Renumber::AxesAttr("axes", Implicit::All)]),
    Case::new("a*, _ -> a*").when(expands_own_axes).whole(resized).renumber(&[Renumber::PerAxisInput(1, 1)]),
];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("Slice", (1, 9), Axes::Sig(SLICE_1), slice),
    OpDef::onnx("Slice", (10, 28), Axes::Sig(SLICE_10), slice),
    OpDef::onnx("Pad", (1, 1), Axes::Sig(PAD_1), pad),
    OpDef::onnx("Pad", (2, 10), Axes::Sig(PAD_2), pad),
    OpDef::onnx("Pad", (11, 17), Axes::Sig(PAD_11), pad),
    OpDef::onnx("Pad", (18, 28), Axes::Sig(PAD_18), pad),
    OpDef::onnx("Tile", (1, 5), Axes::Opaque("tiles one axis by two scalar operands"), tile_1),
    OpDef::onnx("Tile", (6, 28), Axes::Sig(TILE), tile),
    OpDef::onnx("Expand", (8, 28), Axes::Sig(EXPAND), expand),
    OpDef::onnx("CenterCropPad", (18, 28), Axes::Sig(CENTER), center),
];

fn sliced(graph: &Graph, node: &Node, rank: usize) -> Vec<usize> {
    listed(axes_of_slice(graph, node), rank)
}

fn slices_known_axes(graph: &Graph, node: &Node) -> Result<(), String> {
    known_or_absent(graph, node, 3, "axes")?;
    if node.operand(3).is_some() {
        return Ok(());
    }
    // The list that is written in its place has one axis per start.
    let starts = ty(graph, node, 1).and_then(Type::const_shape);
    match (starts.as_deref(), rank(graph, node, 0)) {
        (Some([n]), Some(rank)) if *n <= rank as i64 => Ok(()),
        _ => Err("names no axes, and the number of its starts is not known".to_owned()),
    }
}

/// Axes that any padding touches; all that may be if the padding is not known.
fn padded(graph: &Graph, node: &Node, rank: usize) -> Vec<usize> {
    let axes = match list(graph, node, "axes") {
        List::Absent => (0..rank).collect(),
        axes => listed(axes.ints(), rank),
    };
    let pads = node.ints("paddings").map(<[i64]>::to_vec).or_else(|| list(graph, node, "pads").ints());
    let Some(pads) = pads.filter(|p| p.len() == 2 * axes.len()) else { return axes };
    let n = axes.len();
    axes.into_iter().enumerate().filter(|(i, _)| pads[*i] != 0 || pads[n + i] != 0).map(|(_, a)| a).collect()
}

fn pads_named_axes(graph: &Graph, node: &Node) -> Result<(), String> {
    match node.operand(3) {
        Some(_) => known_or_absent(graph, node, 3, "axes"),
        None => Err("names no axes".to_owned()),
    }
}

fn expands_own_axes(graph: &Graph, node: &Node) -> Result<(), String> {
    let entries = ty(graph, node, 1).and_then(Type::const_shape);
    if rank(graph, node, 0).is_some_and(|r| entries == Some(vec![r as i64])) {
        Ok(())
    } else {
        Err("its shape is not known to have one entry per axis".to_owned())
    }
}

fn names_axes(_: &Graph, node: &Node) -> Result<(), String> {
    node.ints("axes").map(|_| ()).ok_or_else(|| "names no axes".to_owned())
}

fn adds_axes(graph: &Graph, node: &Node) -> Result<(), String> {
    let entries = ty(graph, node, 1).and_then(Type::const_shape);
    match (rank(graph, node, 0), entries.as_deref()) {
        (Some(rank), Some([n])) if *n > rank as i64 => Ok(()),
        _ => Err("its shape has fewer entries than there are axes, or not known how many".to_owned()),
    }
}

fn slice(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype(0);
    let Some(shape) = ctx.shape(0) else { return Ok(Inferred::one(typed(dtype, None))) };
    let Some(cuts) = symbolic_cuts(ctx.graph, ctx.node, shape.len())? else {
        let unknown = ctx.unknown_shape(shape.len());
        return Ok(Inferred::one(typed(dtype, Some(unknown))));
    };
    let mut result = shape.to_vec();
    for cut in &cuts {
        result[cut.axis] = cut_extent(&shape[cut.axis], cut).unwrap_or_else(|| ctx.unknown());
    }
    let contents = cut_contents(ctx, &cuts);
    Ok(Inferred::one(typed(dtype, Some(result))).with(contents))
}

/// Bounds that stand for "to the end", whatever the extent: exporters write this or more.
const FAR: i64 = 1_000_000_000;

fn cut_extent(extent: &Dim, cut: &SymbolicCut) -> Option<Dim> {
    let (start, end, step) = (cut.start.as_ref()?, cut.end.as_ref()?, cut.step?);
    if let (Some(n), Some(first), Some(last)) = (extent.as_const(), start.as_const(), end.as_const()) {
        return Some(Dim::from(elements_taken(n, first, last, step).1));
    }
    let at_end = |d: &Dim| d == extent || d.as_const().is_some_and(|c| c >= FAR);
    if step == -1 {
        let from_last = start.as_const().is_some_and(|s| s == -1 || s >= FAR);
        return (from_last && end.as_const().is_some_and(|e| e <= -FAR)).then(|| extent.clone());
    }
    if step < 0 {
        return None;
    }
    // A symbolic bound that may be negative would count from the end.
    if [start, end].into_iter().any(|d| !d.is_const() && d != extent && !is_extent(d)) {
        return None;
    }
    let start = match start.as_const() {
        Some(s) if s < 0 => extent.checked_add(&Dim::from(s))?,
        _ => start.clone(),
    };
    let end = match end.as_const() {
        _ if at_end(end) => extent.clone(),
        Some(e) if e < 0 => extent.checked_add(&Dim::from(e))?,
        _ => end.clone(),
    };
    let length = end.checked_sub(&start)?;
    // A number is claimed only where no clamping can change it.
    if length.is_const() && !(start == Dim::ZERO && end == *extent) {
        return None;
    }
    length.checked_ceil_div(step)
}

fn cut_contents(ctx: &InferContext<'_>, cuts: &[SymbolicCut]) -> Option<Vec<Dim>> {
    let (data, shape) = (ctx.known(0)?, ctx.ty(0).const_shape()?);
    let mut picks: Vec<Vec<usize>> = shape.iter().map(|&d| (0..d as usize).collect()).collect();
    for cut in cuts {
        let Cut { axis, start, end, step } = cut.known()?;
        let (first, count) = elements_taken(*shape.get(axis)?, start, end, step);
        picks[axis] = (0..count).map(|k| usize::try_from(first + k * step).ok()).collect::<Option<_>>()?;
    }
    data.take(&picks)
}

pub(super) fn pad(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype(0);
    let Some(shape) = ctx.shape(0) else { return Ok(Inferred::one(typed(dtype, None))) };
    let Some(pads) = symbolic_pads(ctx.graph, ctx.node, shape.len())? else {
        let unknown = ctx.unknown_shape(shape.len());
        return Ok(Inferred::one(typed(dtype, Some(unknown))));
    };
    let mut result = shape.to_vec();
    for SymbolicPad { axis, before, after, .. } in pads {
        let both = ctx.add(&before, &after);
        result[axis] = ctx.add(&shape[axis], &both);
        if result[axis].as_const().is_some_and(|d| d < 0) {
            return Err(format!("cuts more from axis {axis} than it has"));
        }
    }
    Ok(Inferred::one(typed(dtype, Some(result))))
}

fn tile_1(ctx: &mut InferContext<'_>) -> Answer {
    let shape = ctx.shape(0).map(<[Dim]>::len).map(|rank| ctx.unknown_shape(rank));
    Ok(Inferred::one(typed(ctx.dtype(0), shape)))
}

fn tile(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype(0);
    let Some(shape) = ctx.shape(0) else { return Ok(Inferred::one(typed(dtype, None))) };
    let result = match ctx.contents(1) {
        None => ctx.unknown_shape(shape.len()),
        Some(repeats) if repeats.len() != shape.len() => {
            return Err(format!("{} repeats for rank {}", repeats.len(), shape.len()));
        }
        Some(repeats) => shape.iter().zip(repeats).map(|(d, r)| ctx.mul(d, r)).collect(),
    };
    let contents = repeated(ctx, shape, &result);
    Ok(Inferred::one(typed(dtype, Some(result))).with(contents))
}

/// Elements of a vector that is repeated.
fn repeated(ctx: &InferContext<'_>, from: &[Dim], to: &[Dim]) -> Option<Vec<Dim>> {
    let ([_], [to], Some(all)) = (from, to, ctx.contents(0)) else { return None };
    let n = usize::try_from(to.as_const()?).ok().filter(|n| *n <= CONTENTS_LIMIT)?;
    Some(all.iter().cycle().take(n).cloned().collect())
}

fn expand(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype(0);
    let target: Option<Vec<Dim>> = match (ctx.contents(1), ctx.shape(1)) {
        (Some(target), _) => Some(target.to_vec()),
        (None, Some([n])) => {
            let n = n.as_const().and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= MAX_RANK);
            n.map(|n| ctx.unknown_shape(n))
        }
        _ => None,
    };
    let shape = ctx.broadcast(&[ctx.shape(0), target.as_deref()])?;
    let contents = match (ctx.contents(0), &shape) {
        (Some([one]), Some(shape)) => {
            let elems = Dim::product(shape).as_ref().and_then(Dim::as_const);
            let elems = elems.and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= CONTENTS_LIMIT);
            elems.map(|n| vec![one.clone(); n])
        }
        (Some(all), Some(shape)) if ctx.shape(0) == Some(shape.as_slice()) => Some(all.to_vec()),
        _ => None,
    };
    Ok(Inferred::one(typed(dtype, shape)).with(contents))
}

fn center(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype(0);
    let Some(shape) = ctx.shape(0) else { return Ok(Inferred::one(typed(dtype, None))) };
    let all = || (0..shape.len() as i64).collect();
    let axes = ctx.axes(&ctx.node.ints("axes").map_or_else(all, <[i64]>::to_vec), shape.len())?;
    let sizes = match ctx.contents(1) {
        Some(sizes) if sizes.len() != axes.len() => {
            return Err(format!("{} sizes for {} axes", sizes.len(), axes.len()));
        }
        Some(sizes) => sizes.to_vec(),
        None => ctx.unknown_shape(axes.len()),
    };
    let mut result = shape.to_vec();
    for (axis, size) in axes.into_iter().zip(sizes) {
        result[axis] = size;
    }
    Ok(Inferred::one(typed(dtype, Some(result))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_a_slice_are_clamped_as_numpy_does() {
        let cases = [
            ((5, 0, 5, 1), (0, 5)),
            ((5, -3, i64::MAX, 1), (2, 3)),
            ((5, 1, -1, 2), (1, 2)),
            ((5, -1, i64::MIN, -1), (4, 5)),
            ((5, 4, 0, -2), (4, 2)),
            ((5, 9, 20, 1), (5, 0)),
            ((0, -1, i64::MIN, -1), (-1, 0)),
            ((5, 4, i64::MIN, i64::MIN), (4, 1)),
        ];
        for ((n, start, end, step), expected) in cases {
            assert_eq!(elements_taken(n, start, end, step), expected, "{n} [{start}:{end}:{step}]");
        }
    }
}
