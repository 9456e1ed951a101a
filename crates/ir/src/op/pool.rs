//! Pools: windows over pinned spatial axes, or all of them at once.

use super::conv::{channels_last, channels_second};
use super::infer::{Answer, InferContext, Inferred, typed};
use super::query::has_result;
use super::read::{AutoPad, windows};
use super::{Axes, Case, OpDef};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::graph::{Graph, Node};

const POOL: &[Case] = &[Case::new("n c s*!^ -> n c s*!^")];
// The second result numbers elements in row-major order, so it is made as it is.
const MAX_POOL: &[Case] =
    &[Case::new("n c s*!^ -> n c s*!^").when(has_no_indices), Case::new("n~ c~ s*!^ -> n c s*!^, _")];
pub(super) const GLOBAL: &[Case] = &[Case::new("n c s*!~ -> n c s*:1")];
// Every element goes where its row-major number says, whatever its own place is.
const UNPOOL: &[Case] = &[Case::new("n c s*!, n c s*!, _? -> m~ d~ t*!~")];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("MaxPool", (1, 28), Axes::Sig(MAX_POOL), pool),
    OpDef::onnx("AveragePool", (1, 28), Axes::Sig(POOL), pool),
    OpDef::onnx("LpPool", (1, 28), Axes::Sig(POOL), pool),
    OpDef::onnx("GlobalAveragePool", (1, 28), Axes::Sig(GLOBAL), global),
    OpDef::onnx("GlobalMaxPool", (1, 28), Axes::Sig(GLOBAL), global),
    OpDef::onnx("GlobalLpPool", (1, 28), Axes::Sig(GLOBAL), global),
    OpDef::onnx("MaxUnpool", (9, 28), Axes::Sig(UNPOOL), unpool),
];

fn has_no_indices(_: &Graph, node: &Node) -> Result<(), String> {
    if has_result(node, 1) { Err("numbers elements".to_owned()) } else { Ok(()) }
}

pub(super) fn pool(ctx: &mut InferContext<'_>) -> Answer {
    let shape = pool_shape(ctx)?;
    let types = vec![typed(ctx.dtype(0), shape.clone()), typed(Some(DType::I64), shape)];
    Ok(Inferred::many(types))
}

/// Shape of a pool of operand 0; `None` if the rank is not known.
pub(super) fn pool_shape(ctx: &mut InferContext<'_>) -> Result<Option<Vec<Dim>>, String> {
    pooled(ctx, |shape| shape)
}

/// Shape of a pool of an operand that has its channels last.
pub(super) fn pool_shape_channels_last(ctx: &mut InferContext<'_>) -> Result<Option<Vec<Dim>>, String> {
    Ok(pooled(ctx, channels_second)?.map(channels_last))
}

fn pooled(ctx: &mut InferContext<'_>, seen: fn(Vec<Dim>) -> Vec<Dim>) -> Result<Option<Vec<Dim>>, String> {
    let rank = ctx.node.ints("kernel_shape").ok_or("lacks `kernel_shape`")?.len().saturating_add(2);
    if ctx.shape(0).is_none() {
        return Ok(None);
    }
    let x = seen(ctx.shape_of_rank(0, rank)?);
    let mut shape = x[..2].to_vec();
    for (extent, window) in x[2..].iter().zip(&windows(ctx.graph, ctx.node)?) {
        // ONNX Runtime pads these windows as if they had no gaps, and makes fewer places than the standard says.
        let disputed = window.auto == AutoPad::Same && window.dilation != 1;
        shape.push(if disputed { ctx.unknown() } else { ctx.window_extent(extent, window)? });
    }
    Ok(Some(shape))
}

fn global(ctx: &mut InferContext<'_>) -> Answer {
    Ok(Inferred::one(typed(ctx.dtype(0), global_shape(ctx)?)))
}

/// Shape of a pool over all spatial axes.
pub(super) fn global_shape(ctx: &InferContext<'_>) -> Result<Option<Vec<Dim>>, String> {
    let shape = ctx.shape_from_rank(0, 2)?;
    Ok(shape.map(|x| x.iter().take(2).cloned().chain(x[2..].iter().map(|_| Dim::ONE)).collect()))
}

fn unpool(ctx: &mut InferContext<'_>) -> Answer {
    let Some(x) = ctx.shape_from_rank(0, 2)? else { return Ok(Inferred::one(typed(ctx.dtype(0), None))) };
    let shape = match ctx.contents(2) {
        Some(shape) if shape.len() == x.len() => shape.to_vec(),
        Some(shape) => return Err(format!("output_shape has {} entries, needs {}", shape.len(), x.len())),
        None if ctx.has(2) => ctx.unknown_shape(x.len()),
        None => {
            let windows = windows(ctx.graph, ctx.node)?;
            if windows.len() != x.len() - 2 {
                return Err(format!("`kernel_shape` has {} entries, needs {}", windows.len(), x.len() - 2));
            }
            let mut shape = x[..2].to_vec();
            for (extent, window) in x[2..].iter().zip(&windows) {
                shape.push(window.places_of_transposed(extent, 0).unwrap_or_else(|| ctx.unknown()));
            }
            shape
        }
    };
    Ok(Inferred::one(typed(ctx.dtype(0), Some(shape))))
}
