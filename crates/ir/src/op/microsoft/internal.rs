//! Ops that ONNX Runtime writes into files which it saves after its own layout passes, so that such files can be read: blocked
//! convolutions and pools of domain `com.microsoft.nchwc`, channels-last ones of `com.ms.internal.nhwc`.
//!
//! A blocked value is declared as `[N, C, H, W]` with its channels rounded up to the block of the host; its bytes lie in blocks of
//! channels. The block is nowhere in the file, so no layout passes through: the values stay as they are.

use crate::dim::Dim;
use crate::dtype::DType;
use crate::op::conv::{channels_last, conv_shape, conv_shape_channels_last};
use crate::op::elementwise::same;
use crate::op::infer::{Answer, InferContext, Inferred, typed};
use crate::op::norm::{BATCH_CHANNELS_LAST, INSTANCE_CHANNELS_LAST};
use crate::op::pool::{global_shape, pool_shape, pool_shape_channels_last};
use crate::op::read::per_axis;
use crate::op::{Axes, Case, Infer, OpDef};

const BLOCKED: &str = "its bytes lie in blocks of channels whose size is the host's and not in the file";
const LAST: &str = "has its channels last, by position, and its parameters in other orders";

const CONV: &[Case] = &[Case::new("n s*!^ (g ci), (g co) ci k*!^, (g co)?, n s*!^ (g co)? -> n s*!^ (g co)")];
const POOL: &[Case] = &[Case::new("n s*!^ c -> n s*!^ c")];
const GLOBAL: &[Case] = &[Case::new("n s*!~ c -> n s*:1 c")];

/// The largest block of any host, in channels: a multiple of it is rounded up on none.
const LARGEST_BLOCK: i64 = 16;

const fn blocked(name: &'static str, infer: Infer) -> OpDef {
    OpDef { name, domain: super::NCHWC, opsets: (1, 1), axes: Axes::Opaque(BLOCKED), infer }
}

/// The domain has the versions of ONNX's own operator set.
const fn nhwc(name: &'static str, axes: Axes, infer: Infer) -> OpDef {
    OpDef { name, domain: super::INTERNAL_NHWC, opsets: (1, 26), axes, infer }
}

pub(super) const OPS: &[OpDef] = &[
    blocked("Conv", blocked_conv),
    blocked("MaxPool", blocked_pool),
    blocked("AveragePool", blocked_pool),
    blocked("GlobalAveragePool", blocked_global),
    blocked("GlobalMaxPool", blocked_global),
    blocked("ReorderInput", reorder_input),
    blocked("ReorderOutput", reorder_output),
    blocked("Upsample", blocked_upsample),
    nhwc("Conv", Axes::Sig(CONV), conv),
    nhwc("ConvTranspose", Axes::Opaque(LAST), unknown_extents),
    nhwc("QLinearConv", Axes::Opaque(LAST), q_conv),
    nhwc("QLinearConvTranspose", Axes::Opaque(LAST), unknown_extents),
    nhwc("MaxPool", Axes::Sig(POOL), pool),
    nhwc("AveragePool", Axes::Sig(POOL), pool),
    nhwc("LpPool", Axes::Sig(POOL), pool),
    nhwc("QLinearAveragePool", Axes::Opaque(LAST), pool),
    nhwc("MaxUnpool", Axes::Opaque(LAST), unknown_extents),
    nhwc("GlobalAveragePool", Axes::Sig(GLOBAL), global),
    nhwc("GlobalMaxPool", Axes::Sig(GLOBAL), global),
    nhwc("GlobalLpPool", Axes::Sig(GLOBAL), global),
    nhwc("BatchNormalization", Axes::Sig(BATCH_CHANNELS_LAST), same),
    nhwc("InstanceNormalization", Axes::Sig(INSTANCE_CHANNELS_LAST), same),
    nhwc("LRN", Axes::Opaque(LAST), same),
    nhwc("DepthToSpace", Axes::Opaque(LAST), unknown_extents),
    nhwc("SpaceToDepth", Axes::Opaque(LAST), unknown_extents),
    nhwc("GridSample", Axes::Opaque(LAST), unknown_extents),
    nhwc("Resize", Axes::Opaque(LAST), unknown_extents),
];

fn one(ctx: &InferContext<'_>, shape: Option<Vec<Dim>>) -> Answer {
    Ok(Inferred::one(typed(ctx.dtype(0), shape)))
}

/// Weights are declared with the rounded number of channels that they read, or are per channel.
fn blocked_conv(ctx: &mut InferContext<'_>) -> Answer {
    let shape = conv_shape(ctx, 0, 1)?;
    one(ctx, shape)
}

fn blocked_pool(ctx: &mut InferContext<'_>) -> Answer {
    let shape = pool_shape(ctx)?;
    one(ctx, shape)
}

fn blocked_global(ctx: &mut InferContext<'_>) -> Answer {
    one(ctx, global_shape(ctx)?)
}

fn reorder_input(ctx: &mut InferContext<'_>) -> Answer {
    let x = ctx.shape_of_rank(0, 4)?;
    let [n, c, h, w] = match (ctx.node.flag("channels_last"), &x[..]) {
        (false, [n, c, h, w]) | (true, [n, h, w, c]) => [n, c, h, w].map(Dim::clone),
        _ => return Err("operand 0 needs rank 4".to_owned()),
    };
    let rounded = if c.as_const().is_some_and(|c| c % LARGEST_BLOCK == 0) { c } else { ctx.unknown() };
    one(ctx, Some(vec![n, rounded, h, w]))
}

fn reorder_output(ctx: &mut InferContext<'_>) -> Answer {
    let channels = Dim::from(ctx.node.int("channels").ok_or("lacks `channels`")?);
    let mut shape = ctx.shape_of_rank(0, 4)?;
    shape[1] = channels;
    let shape = if ctx.int("channels_last", 0) == 0 { shape } else { channels_last(shape) };
    one(ctx, Some(shape))
}

fn blocked_upsample(ctx: &mut InferContext<'_>) -> Answer {
    let x = ctx.shape_of_rank(0, 4)?;
    let scales = per_axis(ctx.node, "scales", 4, 1)?;
    let shape = x.iter().zip(scales).map(|(d, s)| ctx.mul(d, &Dim::from(s))).collect();
    one(ctx, Some(shape))
}

fn conv(ctx: &mut InferContext<'_>) -> Answer {
    let shape = conv_shape_channels_last(ctx, 0, 1)?;
    one(ctx, shape)
}

fn q_conv(ctx: &mut InferContext<'_>) -> Answer {
    let shape = conv_shape_channels_last(ctx, 0, 3)?;
    Ok(Inferred::one(typed(ctx.dtype(7), shape)))
}

fn pool(ctx: &mut InferContext<'_>) -> Answer {
    let shape = pool_shape_channels_last(ctx)?;
    Ok(Inferred::many(vec![typed(ctx.dtype(0), shape.clone()), typed(Some(DType::I64), shape)]))
}

fn global(ctx: &mut InferContext<'_>) -> Answer {
    let shape = ctx.shape_from_rank(0, 2)?.map(|s| {
        let ends = |i: usize| i == 0 || i + 1 == s.len();
        s.iter().enumerate().map(|(i, d)| if ends(i) { d.clone() } else { Dim::ONE }).collect()
    });
    one(ctx, shape)
}

fn unknown_extents(ctx: &mut InferContext<'_>) -> Answer {
    let shape = ctx.rank(0).map(|rank| ctx.unknown_shape(rank));
    one(ctx, shape)
}
