//! Ops that rename axes or respell a row-major sequence of elements: they move nothing by themselves.

use super::infer::{Answer, InferContext, Inferred, MAX_RANK, check_rank, typed};
use super::query::ints;
use super::read::{list, transpose_perm};
use super::{Axes, OpDef};
use crate::dim::Dim;
use crate::form::View;
use crate::graph::{Graph, Node};

const ROW_MAJOR: &str = "the same elements in row-major order";

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("Identity", (1, 28), Axes::View("the operand itself", identity_view), identity),
    OpDef::onnx("Transpose", (1, 28), Axes::View("its axes renamed by `perm`", transpose_view), transpose),
    OpDef::onnx("Reshape", (1, 28), Axes::View(ROW_MAJOR, reshape_view), reshape),
    OpDef::onnx("Flatten", (1, 28), Axes::View(ROW_MAJOR, reshape_view), flatten),
    OpDef::onnx("Squeeze", (1, 28), Axes::View(ROW_MAJOR, axes_view), squeeze),
    OpDef::onnx("Unsqueeze", (1, 28), Axes::View(ROW_MAJOR, axes_view), unsqueeze),
];

fn known_rank(graph: &Graph, node: &Node) -> Result<usize, String> {
    let v = node.operand(0).ok_or("lacks an operand")?;
    let value = graph.value(v);
    value.ty.rank().ok_or_else(|| format!("the rank of `{}` is not known", value.name))
}

fn identity_view(graph: &Graph, node: &Node) -> Result<View, String> {
    known_rank(graph, node).map(|_| View::Same)
}

fn transpose_view(graph: &Graph, node: &Node) -> Result<View, String> {
    transpose_perm(node, known_rank(graph, node)?).map(View::Transpose)
}

fn reshape_view(graph: &Graph, node: &Node) -> Result<View, String> {
    known_rank(graph, node)?;
    let v = node.result(0).ok_or("has no result")?;
    let value = graph.value(v);
    value.ty.rank().map(|_| View::Reshape).ok_or_else(|| format!("the rank of `{}` is not known", value.name))
}

fn axes_view(graph: &Graph, node: &Node) -> Result<View, String> {
    let axes = ints(graph, node, 1);
    if node.operand(1).is_some() && axes.is_none() {
        return Err("the axes are computed at run time".to_owned());
    }
    let listed = axes.as_deref().or_else(|| node.ints("axes"));
    if listed.is_some_and(<[i64]>::is_empty) && node.onnx() == Some("Squeeze") {
        return Err("the list of its axes is empty, which runtimes read as none".to_owned());
    }
    reshape_view(graph, node)
}

fn identity(ctx: &mut InferContext<'_>) -> Answer {
    Ok(Inferred::one(ctx.ty(0).clone()).with(ctx.contents(0).map(<[Dim]>::to_vec)))
}

fn transpose(ctx: &mut InferContext<'_>) -> Answer {
    let Some(shape) = ctx.shape(0) else {
        let shape = ctx.node.ints("perm").map(<[i64]>::len).filter(|n| *n <= MAX_RANK).map(|n| ctx.unknown_shape(n));
        return Ok(Inferred::one(typed(ctx.dtype(0), shape)));
    };
    let perm = transpose_perm(ctx.node, shape.len())?;
    let contents = ctx.known(0).and_then(|data| data.permute(&perm));
    let result = perm.into_iter().map(|p| shape[p].clone()).collect();
    Ok(Inferred::one(typed(ctx.dtype(0), Some(result))).with(contents))
}

fn reshape(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype(0);
    let by_attr = ctx.node.ints("shape").filter(|_| !ctx.has(1));
    let target = match by_attr {
        Some(shape) => Some(shape.iter().copied().map(Dim::from).collect()),
        None => ctx.contents(1).map(<[Dim]>::to_vec),
    };
    let shape = match target {
        Some(target) => Some(reshaped(ctx, &target)?),
        None => match ctx.shape(1) {
            Some([n]) => match n.as_const().map(usize::try_from) {
                Some(Ok(n)) if n <= MAX_RANK => Some(ctx.unknown_shape(n)),
                _ => None,
            },
            _ => None,
        },
    };
    let contents = ctx.contents(0).map(<[Dim]>::to_vec);
    Ok(Inferred::one(typed(dtype, shape)).with(contents))
}

/// Extents of a Reshape to `target`: -1 is what is left, 0 the operand's extent at this place unless `allowzero`.
fn reshaped(ctx: &mut InferContext<'_>, target: &[Dim]) -> Result<Vec<Dim>, String> {
    check_rank(target.len())?;
    let data = ctx.shape(0);
    let copies = ctx.int("allowzero", 0) == 0;
    let mut shape = Vec::with_capacity(target.len());
    let mut rest = None;
    for (i, d) in target.iter().enumerate() {
        shape.push(match d.as_const() {
            Some(-1) if rest.replace(i).is_some() => return Err("more than one extent is -1".to_owned()),
            Some(-1) => Dim::ONE,
            Some(c) if c < -1 => return Err(format!("extent {c} of the shape is negative")),
            Some(0) if copies => match data {
                Some(data) => {
                    data.get(i).cloned().ok_or_else(|| format!("extent 0 at {i} copies from rank {}", data.len()))?
                }
                None => ctx.unknown(),
            },
            _ => d.clone(),
        });
    }
    let total = data.and_then(Dim::product);
    let Some(rest) = rest else { return check_total(total.as_ref(), shape) };
    shape[rest] = match (total, Dim::product(&shape)) {
        (Some(total), Some(others)) => match (total.as_const(), others.as_const()) {
            (Some(0), Some(0)) => ctx.unknown(),
            (Some(t), Some(o)) if o == 0 || t % o != 0 => {
                return Err(format!("{t} elements do not fill a shape of multiples of {o}"));
            }
            _ => ctx.divide(&total, &others),
        },
        _ => ctx.unknown(),
    };
    Ok(shape)
}

fn check_total(total: Option<&Dim>, shape: Vec<Dim>) -> Result<Vec<Dim>, String> {
    match (total.and_then(Dim::as_const), Dim::product(&shape).as_ref().and_then(Dim::as_const)) {
        (Some(from), Some(to)) if from != to => Err(format!("{from} elements do not fill a shape of {to}")),
        _ => Ok(shape),
    }
}

fn flatten(ctx: &mut InferContext<'_>) -> Answer {
    let Some(shape) = ctx.shape(0) else {
        let shape = ctx.unknown_shape(2);
        return Ok(Inferred::one(typed(ctx.dtype(0), Some(shape))));
    };
    let axis = ctx.int("axis", 1);
    // One past the end is a place too.
    let axis = if axis == shape.len() as i64 { shape.len() } else { ctx.axis(axis, shape.len())? };
    let (outer, inner) = shape.split_at(axis);
    let shape = vec![ctx.product(outer), ctx.product(inner)];
    let contents = ctx.contents(0).map(<[Dim]>::to_vec);
    Ok(Inferred::one(typed(ctx.dtype(0), Some(shape))).with(contents))
}

fn squeeze(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype(0);
    let axes = list(ctx.graph, ctx.node, "axes");
    let Some(shape) = ctx.shape(0) else { return Ok(Inferred::one(typed(dtype, None))) };
    let dropped: Vec<usize> = match axes.ints() {
        // To the standard none goes then, to ONNX Runtime each of extent 1.
        Some(axes) if axes.is_empty() && !shape.iter().all(|d| d.as_const().is_some_and(|d| d != 1)) => {
            return Ok(Inferred::one(typed(dtype, None)));
        }
        Some(axes) => ctx.axes(&axes, shape.len())?,
        None if !axes.is_absent() => return Ok(Inferred::one(typed(dtype, None))),
        // All extents of 1 go; which those are must be known.
        None if shape.iter().all(Dim::is_const) => (0..shape.len()).filter(|&i| shape[i].is_one()).collect(),
        None => return Ok(Inferred::one(typed(dtype, None))),
    };
    if let Some(&bad) = dropped.iter().find(|&&i| shape[i].as_const().is_some_and(|d| d != 1)) {
        return Err(format!("axis {bad} has extent {}, not 1", shape[bad]));
    }
    let kept = shape.iter().enumerate().filter(|(i, _)| !dropped.contains(i)).map(|(_, d)| d.clone());
    let contents = ctx.contents(0).map(<[Dim]>::to_vec);
    Ok(Inferred::one(typed(dtype, Some(kept.collect()))).with(contents))
}

fn unsqueeze(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype(0);
    let axes = list(ctx.graph, ctx.node, "axes");
    if axes.is_absent() {
        return Err("lacks `axes`".to_owned());
    }
    let (Some(shape), Some(axes)) = (ctx.shape(0), axes.ints()) else { return Ok(Inferred::one(typed(dtype, None))) };
    let rank = shape.len() + axes.len();
    check_rank(rank)?;
    let added = ctx.axes(&axes, rank)?;
    let mut old = shape.iter();
    let dims = (0..rank).map(|i| if added.contains(&i) { Some(Dim::ONE) } else { old.next().cloned() });
    let contents = ctx.contents(0).map(<[Dim]>::to_vec);
    Ok(Inferred::one(typed(dtype, dims.collect())).with(contents))
}
