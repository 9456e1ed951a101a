//! What can be measured and priced: one op of ONNX Runtime on float32 tensors of given sizes.
//!
//! A [`Case`] is both what a calibration runs and what a table answers for. Sizes are the logical ones; blocked forms pad channels
//! to the block by themselves.

use super::products::{Attention, AttentionShape, GemmShape, Projection, ProjectionShape};

/// A two-dimensional convolution. Padding follows from the sizes: what the windows reach beyond the input, half of it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvShape {
    /// Batch.
    pub n: u64,
    /// Input channels, all groups together.
    pub c: u64,
    /// Input rows.
    pub h: u64,
    /// Input columns.
    pub w: u64,
    /// Output channels, all groups together.
    pub m: u64,
    /// Output rows.
    pub oh: u64,
    /// Output columns.
    pub ow: u64,
    /// Offer rows.
    pub kh: u64,
    /// Offer columns.
    pub kw: u64,
    /// Strides along rows and columns.
    pub stride: [u64; 2],
    /// Dilations along rows and columns.
    pub dilation: [u64; 2],
    /// Groups; `c` of them with as many output channels is a depthwise convolution.
    pub group: u64,
    /// What is applied to the result in the same kernel.
    pub activation: Option<Activation>,
}

impl ConvShape {
    /// A convolution with a square kernel that keeps the image at stride 1 and halves it at stride 2.
    #[must_use]
    pub fn same(c: u64, m: u64, [oh, ow]: [u64; 2], k: u64, stride: u64) -> ConvShape {
        ConvShape {
            n: 1,
            c,
            h: oh.saturating_mul(stride),
            w: ow.saturating_mul(stride),
            m,
            oh,
            ow,
            kh: k,
            kw: k,
            stride: [stride; 2],
            dilation: [1; 2],
            group: 1,
            activation: None,
        }
    }

    /// With groups.
    #[must_use]
    pub fn grouped(self, group: u64) -> ConvShape {
        ConvShape { group, ..self }
    }

    /// Rows of padding before and after the image, and columns.
    #[must_use]
    pub fn pads(&self) -> [[u64; 2]; 2] {
        let along = |size: u64, out: u64, k: u64, [stride, dilation]: [u64; 2]| {
            let reach = out.saturating_sub(1).saturating_mul(stride);
            let window = k.saturating_sub(1).saturating_mul(dilation).saturating_add(1);
            let total = reach.saturating_add(window).saturating_sub(size);
            [total / 2, total - total / 2]
        };
        [
            along(self.h, self.oh, self.kh, [self.stride[0], self.dilation[0]]),
            along(self.w, self.ow, self.kw, [self.stride[1], self.dilation[1]]),
        ]
    }

    /// Whether every channel is convolved with a filter of its own, and gives one.
    #[must_use]
    pub fn is_depthwise(&self) -> bool {
        self.group > 1 && self.group == self.c && self.group == self.m
    }

    /// Elements of the result.
    pub(super) fn outputs(&self) -> f64 {
        product([self.n, self.m, self.oh, self.ow])
    }

    /// Sum over output rows of the kernel rows that fall into the image.
    pub(super) fn row_taps(&self) -> f64 {
        let [[before, _], _] = self.pads();
        let dilation = self.dilation[0].max(1);
        let inside = |row: u64| {
            let first = row.saturating_mul(self.stride[0]);
            // Offer rows k with before <= first + k * dilation < before + h.
            let skipped = before.saturating_sub(first).div_ceil(dilation).min(self.kh);
            let end = (before.saturating_add(self.h)).saturating_sub(first).div_ceil(dilation).min(self.kh);
            end.saturating_sub(skipped)
        };
        // Rows in the middle are alike: enough of both ends are looked at.
        let edge = self.kh.saturating_mul(dilation).min(1 << 12);
        if self.oh <= 2 * edge {
            return (0..self.oh).map(|row| inside(row) as f64).sum();
        }
        let ends: f64 = (0..edge).chain(self.oh - edge..self.oh).map(|row| inside(row) as f64).sum();
        ends + (self.oh - 2 * edge) as f64 * inside(self.oh / 2) as f64
    }
}

/// A three-dimensional convolution, which ONNX Runtime has as a matrix product only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VolumeShape {
    /// What it does in an image: batch, channels, rows and columns.
    pub image: ConvShape,
    /// Input frames.
    pub d: u64,
    /// Output frames.
    pub od: u64,
    /// Frames of the kernel.
    pub kd: u64,
    /// Stride along the frames.
    pub stride: u64,
    /// Dilation along the frames.
    pub dilation: u64,
}

impl VolumeShape {
    /// One of a batch that keeps so many frames, its kernel being as long as it is wide.
    #[must_use]
    pub fn same(image: ConvShape, frames: u64) -> VolumeShape {
        VolumeShape { image, d: frames, od: frames, kd: image.kh, stride: 1, dilation: 1 }
    }

    /// Frames of padding before and after the volume.
    #[must_use]
    pub fn frame_pads(&self) -> [u64; 2] {
        let along = ConvShape {
            h: self.d,
            oh: self.od,
            kh: self.kd,
            stride: [self.stride; 2],
            dilation: [self.dilation; 2],
            ..self.image
        };
        along.pads()[0]
    }
}

/// Activations that a convolution's kernel applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// Relu.
    Relu,
    /// `LeakyRelu`.
    LeakyRelu,
    /// Clip.
    Clip,
    /// `HardSigmoid`.
    HardSigmoid,
    /// Sigmoid.
    Sigmoid,
    /// Tanh.
    Tanh,
    /// `HardSwish`.
    HardSwish,
}

impl Activation {
    /// All of them, in the order in which tables count them, from 2 on; 1 is none.
    pub const ALL: [Activation; 7] = [
        Activation::Relu,
        Activation::LeakyRelu,
        Activation::Clip,
        Activation::HardSigmoid,
        Activation::Sigmoid,
        Activation::Tanh,
        Activation::HardSwish,
    ];

    /// The attribute's value.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Activation::Relu => "Relu",
            Activation::LeakyRelu => "LeakyRelu",
            Activation::Clip => "Clip",
            Activation::HardSigmoid => "HardSigmoid",
            Activation::Sigmoid => "Sigmoid",
            Activation::Tanh => "Tanh",
            Activation::HardSwish => "HardSwish",
        }
    }
}

/// How a convolution runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvKernel {
    /// Channels-first in and out: a matrix product, after im2col where the kernel is larger than a pixel.
    Plain,
    /// Blocked in and out. Groups whose channels are no multiples of the block are padded one by one, unless there is a
    /// channel per group.
    Blocked,
    /// Channels-first in, blocked out: fewer input channels than a block, and one group.
    BlockedFromNchw,
}

/// The direction of a reorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reorder {
    /// `ReorderInput`: to blocks.
    Input,
    /// `ReorderOutput`: from blocks.
    Output,
}

/// The order of axes on a reorder's unblocked side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// N C H W.
    Nchw,
    /// N H W C.
    ChannelsLast,
}

/// How the second operand of an element-wise op meets the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spread {
    /// No second operand, or one of the same shape.
    Same,
    /// One number.
    Scalar,
    /// A number per channel, channels-first: runs of `pixels` elements share one.
    Channel {
        /// Elements of a channel, H times W.
        pixels: u64,
    },
    /// A number per channel, channels-last: rows of `channels` elements, each multiplied by the same row.
    Last {
        /// Channels.
        channels: u64,
    },
    /// A number per channel on the five-dimensional view of a blocked tensor: `[N, C/B, H, W, B]` by `[1, C/B, 1, 1, B]`.
    Blocked {
        /// Elements of a channel, H times W.
        pixels: u64,
    },
}

/// Pooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pool {
    /// The largest of a window.
    Max,
    /// The mean of a window.
    Average,
    /// The largest of a channel; only the input's sizes count.
    GlobalMax,
    /// The mean of a channel; only the input's sizes count.
    GlobalAverage,
}

/// Sizes of a pool; for a global one only those of the input count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PoolShape {
    /// Batch.
    pub n: u64,
    /// Channels.
    pub c: u64,
    /// Input rows.
    pub h: u64,
    /// Input columns.
    pub w: u64,
    /// Output rows.
    pub oh: u64,
    /// Output columns.
    pub ow: u64,
    /// Offer rows and columns.
    pub kernel: [u64; 2],
    /// Strides along rows and columns.
    pub stride: [u64; 2],
}

impl PoolShape {
    /// As a convolution that has the same windows.
    #[must_use]
    pub fn windows(&self) -> ConvShape {
        let (kh, kw) = (self.kernel[0], self.kernel[1]);
        let whole = ConvShape::same(self.c, self.c, [self.oh, self.ow], 1, 1);
        ConvShape { n: self.n, h: self.h, w: self.w, kh, kw, stride: self.stride, group: self.c, ..whole }
    }
}

/// How an image is scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scaling {
    /// Nearest, asymmetric and floor.
    Nearest,
    /// Linear in both directions.
    Linear,
}

/// Sizes of a scaled image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResizeShape {
    /// Batch.
    pub n: u64,
    /// Channels.
    pub c: u64,
    /// Input rows and columns.
    pub from: [u64; 2],
    /// Output rows and columns.
    pub to: [u64; 2],
}

/// Ops that copy runs of contiguous bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Copy {
    /// Concat of two operands; a run is what one of them gives at once.
    Concat,
    /// Split in two; a run is what one of the results takes at once.
    Split,
    /// Slice of contiguous rows; a run is a row of the result.
    Slice,
    /// Slice with a step along the last axis; a run is a row of the result.
    StridedSlice,
    /// Pad; a run is a row of the result.
    Pad,
}

/// A run of elements along an axis, for ops that read all of it at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AxisShape {
    /// Elements before the axis.
    pub outer: u64,
    /// Length of the axis.
    pub length: u64,
    /// Elements after the axis; 1 if it is the last.
    pub inner: u64,
}

/// One op on tensors of given sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Case {
    /// A convolution with bias.
    Conv(ConvShape, ConvKernel),
    /// A three-dimensional convolution with bias.
    Volume(VolumeShape),
    /// A move to or from blocks: batch, channels, rows, columns.
    Reorder(Reorder, Side, [u64; 4]),
    /// A Transpose that moves data: shape, permutation, bytes of an element.
    Transpose(Vec<u64>, Vec<usize>, u64),
    /// An element-wise op by its ONNX name, elements of the result, and how its operands meet.
    Elementwise(&'static str, u64, Spread),
    /// A pool, and whether it runs on blocks.
    Pool(Pool, PoolShape, bool),
    /// A scaled image, and whether it is blocked.
    Resize(Scaling, ResizeShape, bool),
    /// A copy of bytes in runs of bytes.
    Copy {
        /// The op.
        kind: Copy,
        /// Bytes written, into all results together.
        bytes: u64,
        /// Contiguous bytes.
        run: u64,
    },
    /// A matrix product.
    Gemm(GemmShape),
    /// Softmax along an axis.
    Softmax(AxisShape),
    /// `ReduceMean` over an axis.
    Reduce(AxisShape),
    /// An attention.
    Attention(AttentionShape, Attention),
    /// A product with constant weights whose columns belong to heads.
    Projection(ProjectionShape, Projection),
}

impl Case {
    /// What the time of this op is counted in: multiplications, elements or bytes.
    #[must_use]
    pub fn work(&self, block: u64) -> f64 {
        let padded = |c: u64| padded(c, block);
        let work = match self {
            Case::Conv(s, form) => conv_work(s, *form, block),
            Case::Volume(s) => conv_work(&s.image, ConvKernel::Plain, block) * product([s.od, s.kd]),
            Case::Reorder(_, _, [n, c, h, w]) => padded(*c) * product([*n, *h, *w]),
            Case::Transpose(shape, _, _) => product(shape.iter().copied()),
            Case::Elementwise(_, elements, _) => *elements as f64,
            Case::Pool(Pool::Max | Pool::Average, s, blocked) => {
                let c = if *blocked { padded(s.c) } else { s.c as f64 };
                c * product([s.n, s.oh, s.ow, s.kernel[0], s.kernel[1]])
            }
            Case::Pool(_, s, blocked) => product([s.n, s.h, s.w]) * if *blocked { padded(s.c) } else { s.c as f64 },
            Case::Resize(_, s, blocked) => {
                product([s.n, s.to[0], s.to[1]]) * if *blocked { padded(s.c) } else { s.c as f64 }
            }
            Case::Copy { bytes, .. } => *bytes as f64,
            Case::Gemm(s) => product([s.batch, s.m, s.k, s.n]),
            Case::Softmax(s) | Case::Reduce(s) => product([s.outer, s.length, s.inner]),
            Case::Attention(s, _) => product([s.heads, s.queries, s.keys]) * (s.width as f64 + s.value_width as f64),
            Case::Projection(s, form) => product([s.rows, s.inputs]) * s.packed_columns(*form),
        };
        work.max(1.0)
    }
}

/// Multiplications of a convolution: of padded channels in the blocked forms, whose kernels skip rows of padding as well.
pub(super) fn conv_work(s: &ConvShape, form: ConvKernel, block: u64) -> f64 {
    let group = s.group.max(1);
    let (cg, mg) = (s.c / group, s.m / group);
    let blocked = product([s.n, s.ow, s.kw]) * s.row_taps();
    match form {
        ConvKernel::Plain => s.outputs() * product([cg, s.kh, s.kw]),
        ConvKernel::Blocked if s.is_depthwise() => blocked * padded(s.c, block),
        ConvKernel::Blocked => blocked * group as f64 * padded(cg.max(1), block) * padded(mg.max(1), block),
        ConvKernel::BlockedFromNchw => blocked * s.c as f64 * padded(s.m, block),
    }
}

/// Channels, or columns, with those that fill the last block.
pub(super) fn padded(c: u64, block: u64) -> f64 {
    let block = block.max(1);
    c.div_ceil(block) as f64 * block as f64
}

/// The product as a float, which does not wrap.
pub(super) fn product(of: impl IntoIterator<Item = u64>) -> f64 {
    of.into_iter().map(|x| x as f64).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_row_that_hangs_over_the_edge_is_no_work() {
        let conv = ConvShape::same(16, 16, [7, 7], 3, 1);
        assert_eq!((conv.pads(), conv.row_taps() as u64), ([[1, 1], [1, 1]], 19));
        assert_eq!(ConvShape::same(16, 16, [7, 7], 1, 2).row_taps() as u64, 7);
        // Stride 2 on 14 rows reaches one row beyond, which is put at the end.
        let halved = ConvShape::same(16, 16, [7, 7], 3, 2);
        assert_eq!((halved.pads(), halved.row_taps() as u64), ([[0, 1], [0, 1]], 20));
    }

    #[test]
    fn rows_that_are_not_looked_at_one_by_one_count_the_same() {
        let tall = ConvShape { dilation: [2, 2], h: 100, oh: 100, ..ConvShape::same(1, 1, [100, 9], 5, 1) };
        let slow: u64 =
            (0..100_u64).map(|row| (0..5).filter(|k| (4..104).contains(&(row + k * 2))).count() as u64).sum();
        assert_eq!(tall.row_taps() as u64, slow);
    }

    #[test]
    fn work_of_blocks_counts_padded_channels() {
        let conv = ConvShape::same(20, 33, [1, 1], 1, 1);
        assert_eq!(Case::Conv(conv, ConvKernel::Plain).work(16) as u64, 660);
        assert_eq!(Case::Conv(conv, ConvKernel::Blocked).work(16) as u64, 32 * 48);
        let groups = ConvShape::same(32, 32, [1, 1], 1, 1).grouped(4);
        assert_eq!(Case::Conv(groups, ConvKernel::Blocked).work(16) as u64, 4 * 16 * 16);
        let depthwise = ConvShape::same(40, 40, [1, 1], 1, 1).grouped(40);
        assert_eq!(Case::Conv(depthwise, ConvKernel::Blocked).work(16) as u64, 48);
    }
}
