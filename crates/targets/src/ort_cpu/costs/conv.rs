//! Convolutions.

use super::case::{Activation, Case, ConvKernel, ConvShape, VolumeShape, conv_work};
use super::table::MeasuredCosts;

impl MeasuredCosts {
    /// What a convolution costs in a form, in nanoseconds; `None` where that form has no kernel.
    ///
    /// The addition of a fourth operand, which the blocked kernel does while it stores, counts nothing.
    #[must_use]
    pub fn conv_ns(&self, shape: &ConvShape, form: ConvKernel) -> Option<u64> {
        let group = shape.group.max(1);
        if !shape.c.is_multiple_of(group) || !shape.m.is_multiple_of(group) {
            return None;
        }
        if form == ConvKernel::BlockedFromNchw && (group != 1 || shape.c >= self.block()) {
            return None;
        }
        Some(self.timed_or(|| Case::Conv(*shape, form), || self.conv_by_grids(shape, form)))
    }

    fn conv_by_grids(&self, shape: &ConvShape, form: ConvKernel) -> u64 {
        let (shared_as, work_ns) = match form {
            ConvKernel::Plain if shape.is_depthwise() => ("conv-plain-depthwise", self.plain(shape)),
            ConvKernel::Plain => ("conv-plain-im2col", self.plain(shape)),
            ConvKernel::Blocked if shape.is_depthwise() => ("conv-blocked-depthwise", self.depthwise(shape)),
            ConvKernel::Blocked => ("conv-blocked-regular", self.blocked(shape)),
            ConvKernel::BlockedFromNchw => ("conv-from-nchw", self.first(shape)),
        };
        self.node(shared_as, work_ns + self.activation(shape))
    }

    /// What a three-dimensional convolution costs, in nanoseconds; `None` where its groups are none.
    #[must_use]
    pub fn volume_ns(&self, shape: &VolumeShape) -> Option<u64> {
        let (s, group) = (&shape.image, shape.image.group.max(1));
        if !s.c.is_multiple_of(group) || !s.m.is_multiple_of(group) {
            return None;
        }
        Some(self.timed_or(|| Case::Volume(*shape), || self.volume_by_grids(shape)))
    }

    fn volume_by_grids(&self, shape: &VolumeShape) -> u64 {
        let s = &shape.image;
        let group = s.group.max(1);
        // As in two dimensions, what counts is how long the sum is.
        let sum = |c: f64, kd: f64, k: f64| c * kd * k * k / 27.0;
        let (c, m, pixels) = ((s.c / group) as f64, (s.m / group) as f64, mean(s.oh, s.ow));
        let (kd, k, stride) = (shape.kd as f64, mean(s.kh, s.kw), s.stride.into_iter().max().unwrap_or(1) as f64);
        let dense = |c: f64, m: f64, pixels: f64| self.rate("conv-volume", &[c, m, pixels]);
        let kernel = self.ratio("conv-volume-kernel", [kd, k, stride, pixels], |[kd, k, _, pixels]| {
            dense(sum(64.0, kd, k), 64.0, pixels)
        });
        let work = Case::Volume(*shape).work(self.block());
        self.node("conv-volume", work * dense(sum(c, kd, k), m, pixels) * kernel)
    }

    fn plain(&self, s: &ConvShape) -> f64 {
        let group = s.group.max(1);
        let work = conv_work(s, ConvKernel::Plain, self.block());
        let (stride, area) = (s.stride.into_iter().max().unwrap_or(1), mean(s.kh, s.kw));
        if s.is_depthwise() {
            return work * self.rate("conv-plain-depthwise", &[s.c as f64, area, stride as f64, s.ow as f64]);
        }
        let (cg, mg, pixels) = ((s.c / group) as f64, (s.m / group) as f64, mean(s.oh, s.ow));
        if group > 1 && stride == 1 {
            return work * self.rate("conv-plain-grouped", &[cg, mg, area, pixels]);
        }
        if is_pixel(s) && group == 1 {
            let grid = if stride > 1 { "conv-plain-pointwise-strided" } else { "conv-plain-pointwise" };
            return work * self.rate(grid, &[cg, mg, pixels]);
        }
        // The matrix product sums over the kernel as well: what counts is how long that sum is.
        let sum = |c: f64, kh: f64, kw: f64| c * kh * kw / 9.0;
        if group > 1 && stride > 1 && is_pixel(s) {
            let strided = self
                .ratio("conv-plain-pointwise-strided", [cg, mg, pixels], |at| self.rate("conv-plain-pointwise", &at));
            return work * self.rate("conv-plain-grouped", &[cg, mg, area, pixels]) * strided;
        }
        let rate = if group > 1 {
            self.rate("conv-plain-grouped", &[cg, mg, area, pixels])
        } else {
            self.rate("conv-plain-im2col", &[sum(cg, s.kh as f64, s.kw as f64), mg, s.ow as f64])
        };
        if stride > 1 {
            // Windows are gathered more slowly, once for all output channels: 64 of them where that was measured.
            let place = [cg, area, s.ow as f64];
            let dense = |[c, k, ow]: [f64; 3]| self.rate("conv-plain-im2col", &[sum(c, k, k), 64.0, ow]);
            let slower = self.ratio("conv-plain-strided", place, dense) - 1.0;
            return work * (rate + (slower * dense(place)).max(0.0) * 64.0 / mg.max(1.0));
        }
        if group > 1 {
            return work * rate;
        }
        work * rate
            * self.ratio("conv-plain-kernel", [s.kh as f64, s.kw as f64, s.ow as f64], |[kh, kw, ow]| {
                self.rate("conv-plain-im2col", &[sum(64.0, kh, kw), 64.0, ow])
            })
    }

    fn blocked(&self, s: &ConvShape) -> f64 {
        let (block, group) = (self.block(), s.group.max(1));
        let inputs = (s.c / group).div_ceil(block).max(1);
        let outputs = (s.m / group).div_ceil(block).max(1);
        let work = conv_work(s, ConvKernel::Blocked, block);
        let strided = s.stride.into_iter().max().unwrap_or(1) > 1;
        let (inputs_f, ow, pixels) = (inputs as f64, s.ow as f64, mean(s.oh, s.ow));
        if is_pixel(s) {
            let grid = if strided { "conv-blocked-pointwise-strided" } else { "conv-blocked-pointwise" };
            return work * in_sets(outputs, |out| self.rate(grid, &[inputs_f, out, pixels]));
        }
        let regular = |inputs: f64, out: f64| self.rate("conv-blocked-regular", &[inputs, out, ow]);
        let mut ratio = self.beyond_edges(s);
        if strided {
            ratio *= self.ratio("conv-blocked-strided", [inputs_f, mean(s.kh, s.kw), ow], |[inputs, _, ow]| {
                self.rate("conv-blocked-regular", &[inputs, 4.0, ow])
            });
        } else {
            ratio *= self.ratio("conv-blocked-kernel", [s.kh as f64, s.kw as f64, ow], |[_, _, ow]| {
                self.rate("conv-blocked-kernel", &[3.0, 3.0, ow])
            });
        }
        if let Some(dilation) = s.dilation.into_iter().max().filter(|&d| d > 1) {
            ratio *= self.ratio("conv-blocked-dilated", [dilation as f64, ow], |[_, ow]| {
                self.rate("conv-blocked-dilated", &[1.0, ow])
            });
        }
        work * in_sets(outputs, |out| regular(inputs_f, out)) * ratio
    }

    fn depthwise(&self, s: &ConvShape) -> f64 {
        let block = self.block();
        let stride = s.stride.into_iter().max().unwrap_or(1) as f64;
        let blocks = s.c.div_ceil(block) as f64;
        conv_work(s, ConvKernel::Blocked, block)
            * self.rate("conv-blocked-depthwise", &[blocks, mean(s.kh, s.kw), stride, s.ow as f64])
    }

    fn first(&self, s: &ConvShape) -> f64 {
        let block = self.block();
        let stride = s.stride.into_iter().max().unwrap_or(1) as f64;
        let (c, k, ow) = (s.c as f64, mean(s.kh, s.kw), s.ow as f64);
        let rate = |out: f64| self.rate("conv-from-nchw", &[c, out, k, stride, ow]);
        conv_work(s, ConvKernel::BlockedFromNchw, block) * in_sets(s.m.div_ceil(block), rate)
    }

    /// How much longer a row takes whose kernel is longer than any that was measured, where that reaches far beyond the image: results
    /// that read padding are computed one by one, and take about twice as long. Those of shorter kernels are in what was measured.
    fn beyond_edges(&self, s: &ConvShape) -> f64 {
        let [_, longest, _] = self.nearest("conv-blocked-kernel", [1.0, s.kw as f64, 1.0]);
        if s.kw as f64 <= longest + 0.5 {
            return 1.0;
        }
        let [_, [before, behind]] = s.pads();
        let stride = s.stride[1].max(1);
        let alone = (before.div_ceil(stride) + behind.div_ceil(stride)).min(s.ow);
        1.0 + 0.9 * alone as f64 / s.ow.max(1) as f64
    }

    /// What the activation adds.
    fn activation(&self, s: &ConvShape) -> f64 {
        let Some(activation) = s.activation else { return 0.0 };
        let kind = Activation::ALL.iter().position(|&a| a == activation).map_or(1.0, |i| i as f64 + 2.0);
        let block = self.block();
        let pixels = mean(s.oh, s.ow);
        // What was measured is one block of channels in and four out, so the work per element of the result is a block.
        let rate = |kind: f64| self.rate("conv-activation", &[kind, pixels]) * block as f64;
        let elements = Case::Elementwise("Relu", 1, super::Spread::Same).work(block) * s.outputs();
        ((rate(kind) - rate(1.0)) * elements).max(0.0)
    }
}

/// The rate of `blocks` blocks of output channels: as many sets of four as there are, and one of what is left.
fn in_sets(blocks: u64, rate: impl Fn(f64) -> f64) -> f64 {
    let (sets, rest) = (blocks / 4, blocks % 4);
    let mut sum = 0.0;
    if sets > 0 {
        sum += rate(4.0) * (sets * 4) as f64;
    }
    if rest > 0 {
        sum += rate(rest as f64) * rest as f64;
    }
    sum / blocks.max(1) as f64
}

/// Whether windows are single pixels and nothing is padded.
fn is_pixel(s: &ConvShape) -> bool {
    s.kh == 1 && s.kw == 1 && s.pads() == [[0, 0], [0, 0]]
}

/// The side of a square as large as a rectangle.
fn mean(a: u64, b: u64) -> f64 {
    (a as f64 * b as f64).sqrt()
}
