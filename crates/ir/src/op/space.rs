//! Channels to space and back, and sampling at computed places. Axes are spelled by digits, all found by position.

use super::infer::{Answer, InferContext, Inferred, agree, typed};
use super::read::is_depth_first;
use super::{Axes, Case, OpDef};
use crate::dim::Dim;
use crate::graph::{Graph, Node};

const DEPTH_TO_SPACE: &[Case] =
    &[Case::new("n (p q c) h w -> n c (h p) (w q)").when(depth_first), Case::new("n (c p q) h w -> n c (h p) (w q)")];
// Opset 28 has both orders here too.
const SPACE_TO_DEPTH: &[Case] =
    &[Case::new("n c (h p) (w q) -> n (p q c) h w").when(depth_first), Case::new("n c (h p) (w q) -> n (c p q) h w")];
pub(super) const GRID_SAMPLE: &[Case] = &[Case::new("n c s*!~, n t*! r~ -> n c t*!")];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("DepthToSpace", (1, 28), Axes::Sig(DEPTH_TO_SPACE), depth_to_space),
    OpDef::onnx("SpaceToDepth", (1, 28), Axes::Sig(SPACE_TO_DEPTH), space_to_depth),
    OpDef::onnx("GridSample", (16, 28), Axes::Sig(GRID_SAMPLE), grid_sample),
];

fn depth_first(_: &Graph, node: &Node) -> Result<(), String> {
    if is_depth_first(node) { Ok(()) } else { Err("takes columns and rows before depth".to_owned()) }
}

fn block(ctx: &InferContext<'_>) -> Result<Dim, String> {
    match ctx.node.int("blocksize") {
        Some(b) if b > 0 => Ok(Dim::from(b)),
        Some(b) => Err(format!("`blocksize` is {b}")),
        None => Err("lacks `blocksize`".to_owned()),
    }
}

/// `a / b`; an error if both are numbers and it leaves a remainder.
fn part(ctx: &mut InferContext<'_>, a: &Dim, b: &Dim) -> Result<Dim, String> {
    match (a.as_const(), b.as_const()) {
        (Some(x), Some(y)) if y == 0 || x % y != 0 => Err(format!("{x} is not divisible by {y}")),
        _ => Ok(ctx.divide(a, b)),
    }
}

fn depth_to_space(ctx: &mut InferContext<'_>) -> Answer {
    let block = block(ctx)?;
    let x = ctx.shape_of_rank(0, 4)?;
    let square = ctx.mul(&block, &block);
    let shape = vec![x[0].clone(), part(ctx, &x[1], &square)?, ctx.mul(&x[2], &block), ctx.mul(&x[3], &block)];
    Ok(Inferred::one(typed(ctx.dtype(0), Some(shape))))
}

fn space_to_depth(ctx: &mut InferContext<'_>) -> Answer {
    let block = block(ctx)?;
    let x = ctx.shape_of_rank(0, 4)?;
    let square = ctx.mul(&block, &block);
    let shape = vec![x[0].clone(), ctx.mul(&x[1], &square), part(ctx, &x[2], &block)?, part(ctx, &x[3], &block)?];
    Ok(Inferred::one(typed(ctx.dtype(0), Some(shape))))
}

pub(super) fn grid_sample(ctx: &mut InferContext<'_>) -> Answer {
    let Some(rank) = ctx.rank(0).or(ctx.rank(1)) else { return Ok(Inferred::one(typed(ctx.dtype(0), None))) };
    if rank < 3 {
        return Err(format!("operand 0 has rank {rank}, needs at least 3"));
    }
    let (x, grid) = (ctx.shape_of_rank(0, rank)?, ctx.shape_of_rank(1, rank)?);
    let batch = agree(&x[0], &grid[0], "batches of data and grid")?;
    let shape = [&[batch, x[1].clone()], &grid[1..rank - 1]].concat();
    Ok(Inferred::one(typed(ctx.dtype(0), Some(shape))))
}
