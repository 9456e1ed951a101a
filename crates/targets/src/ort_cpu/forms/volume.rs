//! Convolutions and maxima over volumes, `[N, C, D, H, W]`, as blocked ones over images.
//!
//! ONNX Runtime has blocked kernels of images only, and runs a convolution of volumes as a matrix product of what it gathers. A
//! blocked volume lies in one of two ways, and is an image in both: its frames one after another, `N D C/B H W C%B`, are the images
//! of a batch; its blocks one after another, `N C/B D H W C%B`, are images with a frame per row.

use crate::ort_cpu::costs::{ConvShape, Copy, Form as Kernel, Pool, PoolShape, Reorder, Side, Spread, VolumeShape};
use crate::ort_cpu::machine::{Machine, blocked, extents};
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::{Frames, Volume};
use relayout_ir::storage::{BlockedVolume, blocked_volume};
use relayout_target::{Cost, Form, MoveQuery, NodeQuery, Offer};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "blocked_volume_conv";
/// That of maxima.
const MAXIMUM: &str = "blocked_volume_max";

/// Convolutions of volumes in blocks.
pub(super) struct Volumes(pub(super) Arc<Machine>);

/// Maxima over windows of volumes in blocks.
pub(super) struct VolumeMaxima(pub(super) Arc<Machine>);

impl Form for VolumeMaxima {
    fn name(&self) -> &'static str {
        MAXIMUM
    }

    fn of(&self) -> &'static [&'static str] {
        &["MaxPool"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.0.maximum_kernels(q)
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        self.0.plain_maximum(q)
    }
}

impl Form for Volumes {
    fn name(&self) -> &'static str {
        FORM
    }

    fn of(&self) -> &'static [&'static str] {
        &["Conv"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.0.volume_kernels(q)
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        self.0.plain_volume(q)
    }
}

/// Bytes of an element.
const WIDTH: u64 = 4;
/// How many times as long an image of a batch takes as one that is in the caches, from which convolutions were measured, in
/// hundredths: 108 to 128 for 64 images of 48 and 96 channels to 16, of 32 to 64 rows and columns.
const OF_A_BATCH: u64 = 115;

/// An op of volumes at the size hints.
struct Windows {
    volume: Volume,
    /// Extents `[n, c, d, h, w]` of operand and result.
    from: [u64; 5],
    to: [u64; 5],
}

impl Windows {
    fn of(query: &NodeQuery<'_>) -> Option<Windows> {
        let node = query.graph.node(query.node);
        let (x, y) = (node.operand(0)?, node.outputs.first().copied().flatten()?);
        let sizes = |v: ValueId| -> Option<[u64; 5]> {
            let float = query.graph.value(v).ty.dtype() == Some(DType::F32);
            let sizes: [u64; 5] = query.sizes.shape(query.graph, v)?.try_into().ok()?;
            (float && is_fixed(query.graph, v) && !sizes.contains(&0)).then_some(sizes)
        };
        Some(Windows { volume: Volume::of(query.graph, node)?, from: sizes(x)?, to: sizes(y)? })
    }

    /// A convolution of images of so many channels, all frames being images of the batch.
    fn images(&self, batch: u64, c: u64, m: u64) -> ConvShape {
        let ([.., h, w], [.., oh, ow]) = (self.from, self.to);
        let image = &self.volume.image;
        let [kh, kw] = pair(image.kernel);
        let (stride, dilation) = (pair(image.strides), pair(image.dilations));
        ConvShape { n: batch, c, h, w, m, oh, ow, kh, kw, stride, dilation, group: 1, activation: None }
    }

    fn plain(&self, group: u64) -> VolumeShape {
        let [stride, dilation, ..] = self.volume.along_frames().map(i64::unsigned_abs);
        let image = self.images(self.from[0], self.from[1], self.to[1]).grouped(group);
        VolumeShape { image, d: self.from[2], od: self.to[2], kd: self.volume.taps as u64, stride, dilation }
    }

    /// A frame per row: a convolution along the frames alone.
    fn rows(&self, group: u64) -> ConvShape {
        let ([n, c, d, h, w], [_, m, od, ..]) = (self.from, self.to);
        let [stride, dilation, ..] = self.volume.along_frames().map(i64::unsigned_abs);
        let pixels = h.saturating_mul(w);
        ConvShape {
            n,
            c,
            h: d,
            w: pixels,
            m,
            oh: od,
            ow: pixels,
            kh: self.volume.taps as u64,
            kw: 1,
            stride: [stride, 1],
            dilation: [dilation, 1],
            group,
            activation: None,
        }
    }
}

/// What so many nanoseconds of a convolution are where its images come from memory.
fn of_batch(ns: u64, images: u64) -> Cost {
    if images > 1 { Cost::new(ns).percent(OF_A_BATCH) } else { Cost::new(ns) }
}

fn pair(list: [i64; 2]) -> [u64; 2] {
    list.map(|n| n.max(1).unsigned_abs())
}

/// Whether everything but the batch is known: what is said of a volume's frames and images is said in numbers.
fn is_fixed(graph: &Graph, v: ValueId) -> bool {
    graph.value(v).ty.shape().is_some_and(|shape| shape.get(1..).is_some_and(|dims| dims.iter().all(Dim::is_const)))
}

impl Machine {
    /// How a volume in blocks of this host lies.
    pub(crate) fn blocked_volume(&self, layout: &Layout) -> Option<BlockedVolume> {
        blocked_volume(layout).filter(|v| v.block == self.block.channels())
    }

    /// `N D C/B H W C%B`.
    fn by_frame(&self) -> Layout {
        blocked(&[0, 2, 1, 3, 4], &[(1, self.block.channels())])
    }

    /// `N C/B D H W C%B`.
    fn by_block(&self) -> Layout {
        blocked(&[0, 1, 2, 3, 4], &[(1, self.block.channels())])
    }

    /// What a convolution of volumes costs as ONNX has it.
    pub(super) fn plain_volume(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let (windows, group) = Machine::convolved(query)?;
        self.costs.volume_ns(&windows.plain(group)).map(Cost::new)
    }

    /// A convolution with constant weights, and its groups.
    fn convolved(query: &NodeQuery<'_>) -> Option<(Windows, u64)> {
        let node = query.graph.node(query.node);
        let w = node.operand(1)?;
        let constant = |slot| node.operand(slot).is_none_or(|v| (query.is_constant)(v));
        let windows = Windows::of(query)?;
        let filters = extents(query.graph, w)?;
        let group = u64::try_from(node.int("group").unwrap_or(1)).ok().filter(|&group| group > 0)?;
        let [c, m] = [windows.from[1], windows.to[1]];
        let whole = c.is_multiple_of(group) && m.is_multiple_of(group) && filters.get(..2) == Some(&[m, c / group]);
        let float = query.graph.value(w).ty.dtype() == Some(DType::F32);
        (constant(1) && constant(2) && float && whole).then_some((windows, group))
    }

    /// Kernels of a convolution of volumes.
    pub(super) fn volume_kernels(&self, query: &NodeQuery<'_>) -> Vec<Offer> {
        let Some((windows, group)) = Machine::convolved(query) else { return Vec::new() };
        let mut kernels = Vec::new();
        let ([n, c, d, ..], [_, m, od, ..]) = (windows.from, windows.to);
        if windows.volume.image.is_pixel() {
            let plain = Layout::row_major(5);
            kernels.extend(self.images(query, windows.rows(group), [plain, self.by_block()], (Cost::ZERO, m)));
        }
        let frames = Layout::permutation(&[0, 2, 1, 3, 4]).unwrap_or(Layout::row_major(5));
        let small = c < self.block.channels();
        let (shape, copies) = match windows.volume.as_images() {
            Frames::Each => (windows.images(n.saturating_mul(d), c, m).grouped(group), Cost::ZERO),
            // What a frame has beyond its groups would have to be put in order.
            _ if group > 1 => return kernels,
            way => {
                let (read, left, batch) = match way {
                    Frames::Joined => (d, od, n),
                    _ => (windows.volume.taps as u64, 1, n.saturating_mul(od)),
                };
                let thin = small && c.saturating_mul(read) < self.block.channels();
                let c = if thin { c } else { self.round(c) };
                let m = if left > 1 { self.round(m) } else { m };
                let shape = windows.images(batch, c.saturating_mul(read), m.saturating_mul(left));
                (shape, if way == Frames::Joined { Cost::ZERO } else { self.gathered(&windows, c) })
            }
        };
        kernels.extend(self.images(query, shape, [frames, self.by_frame()], (copies, m)));
        kernels
    }

    /// The kernel of a convolution of volumes to `m` channels that is this one of images, reading `plain` where these have few
    /// channels.
    fn images(
        &self,
        query: &NodeQuery<'_>,
        conv: ConvShape,
        [plain, blocked]: [Layout; 2],
        (copies, m): (Cost, u64),
    ) -> Option<Offer> {
        let node = query.graph.node(query.node);
        let block = self.block.channels();
        let whole = |channels: u64| (channels / conv.group).is_multiple_of(block);
        let thin = conv.group == 1 && conv.c < block;
        let runs = conv.is_depthwise() || conv.group == 1 || (whole(conv.c) && whole(conv.m));
        let form = if thin { Kernel::BlockedFromNchw } else { Kernel::Blocked };
        let cost = self.costs.conv_ns(&conv, form).filter(|_| runs)?;
        let x = if thin { plain } else { blocked.clone() };
        let mut ins = vec![None; node.inputs.len()];
        if let Some(first) = ins.first_mut() {
            *first = Some(x).filter(|x| !x.is_row_major());
        }
        // The bias of each frame that is left has to be said.
        if conv.m == m
            && let Some(bias) = ins.get_mut(2)
        {
            *bias = Some(self.per_channel(m)).filter(|_| node.operand(2).is_some());
        }
        Some(Offer {
            form: FORM,
            layouts: KernelLayouts { ins, outs: vec![Some(blocked)] },
            cost: of_batch(cost, conv.n) + copies + self.small_node().times(2),
            becomes: None,
            // For frames that are not there, or that a tap does not reach; and sums are formed otherwise than by the runtime, which
            // has no such kernel to take on load.
            adds_zeros: true,
        })
    }

    /// What it costs to put side by side the frames that each one reads, of `c` channels.
    fn gathered(&self, windows: &Windows, c: u64) -> Cost {
        let ([n, _, d, h, w], od) = (windows.from, windows.to[2]);
        let frame = [c, h, w].into_iter().fold(WIDTH, u64::saturating_mul);
        let bytes = |frames: u64| frame.saturating_mul(frames).saturating_mul(n);
        let copied = |kind: Copy, frames: u64| Cost::new(self.costs.copy_ns(kind, bytes(frames), frame));
        let padded = if windows.volume.reads_padding() { copied(Copy::Pad, d + 1) } else { Cost::ZERO };
        padded + copied(Copy::Slice, od.saturating_mul(windows.volume.taps as u64))
    }

    /// A maximum over windows of a volume, whose indices nobody asks for.
    fn maximum(query: &NodeQuery<'_>) -> Option<Windows> {
        let node = query.graph.node(query.node);
        let indices = node.outputs.iter().skip(1).any(Option::is_some);
        let windows = Windows::of(query).filter(|_| node.onnx() == Some("MaxPool") && !indices)?;
        // A window of nothing but padding has no frame to stand for it.
        let volume = &windows.volume;
        let reads = |left: usize| (0..volume.taps).any(|tap| volume.frame(left, tap).is_some());
        (0..volume.left).all(reads).then_some(windows)
    }

    /// What a maximum over windows of a volume costs as ONNX has it: that of the images, once for each frame that is read.
    pub(super) fn plain_maximum(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let windows = Machine::maximum(query)?;
        let images = windows.to[0].saturating_mul(windows.to[2]).saturating_mul(windows.volume.taps as u64);
        Some(Cost::new(self.costs.pool_ns(Pool::Max, &pool(&windows, images), false)))
    }

    /// The kernel of a maximum over windows of a volume: that of each image, then that of the frames.
    pub(super) fn maximum_kernels(&self, query: &NodeQuery<'_>) -> Vec<Offer> {
        let Some(windows) = Machine::maximum(query) else { return Vec::new() };
        let ([n, _, d, ..], [_, c, od, oh, ow]) = (windows.from, windows.to);
        let mut cost = Cost::new(self.costs.pool_ns(Pool::Max, &pool(&windows, n.saturating_mul(d)), true));
        let taps = windows.volume.taps as u64;
        if windows.volume.as_images() != Frames::Each {
            let frame = [self.round(c), oh, ow].into_iter().fold(1, u64::saturating_mul);
            let elements = frame.saturating_mul(n).saturating_mul(od);
            let copy = self.costs.copy_ns(Copy::Slice, elements.saturating_mul(WIDTH), frame.saturating_mul(WIDTH));
            cost += Cost::new(copy).times(taps);
            cost += Cost::new(self.costs.elementwise_ns("Max", elements, Spread::Same)).times(taps.saturating_sub(1));
        }
        let blocked = || vec![Some(self.by_frame())];
        let layouts = KernelLayouts { ins: blocked(), outs: blocked() };
        vec![Offer {
            form: MAXIMUM,
            layouts,
            cost: cost + self.small_node().times(2),
            becomes: None,
            adds_zeros: false,
        }]
    }

    /// Cost of a move to, from or between blocks of a volume.
    pub(crate) fn volume_move(&self, query: &MoveQuery<'_>) -> Option<Cost> {
        let shape: [u64; 5] = query.shape.try_into().ok()?;
        (query.dtype == Some(DType::F32)).then_some(())?;
        let views = self.small_node().times(2);
        let (kind, volume, plain) = match (self.blocked_volume(query.from), self.blocked_volume(query.to)) {
            (Some(from), Some(to)) => {
                let [n, c, d, h, w] = from.axes.map(|axis| shape[axis]);
                (from.axes == to.axes).then_some(())?;
                let blocks = c.div_ceil(self.block.channels());
                let [outer, inner] = if from.by_frame { [d, blocks] } else { [blocks, d] };
                let run = h.saturating_mul(w).saturating_mul(self.block.channels());
                let ns = self.costs.transpose_ns(&[n, outer, inner, run], &[0, 2, 1, 3], WIDTH);
                return Some(Cost::new(ns) + views);
            }
            (None, Some(to)) => (Reorder::Input, to, query.from),
            (Some(from), None) => (Reorder::Output, from, query.to),
            (None, None) => return None,
        };
        let [n, c, d, h, w] = volume.axes.map(|axis| shape[axis]);
        // ReorderInput takes whole groups of four channels.
        if kind == Reorder::Input && !c.is_multiple_of(4) {
            return None;
        }
        let order: [usize; 5] = plain.as_permutation()?.try_into().ok()?;
        let [an, ac, ad, ah, aw] = volume.axes;
        let image = if volume.by_frame { [n.saturating_mul(d), c, h, w] } else { [n, c, d.saturating_mul(h), w] };
        let reorder = |side| self.reorder(kind, side, image) + views;
        if order == [an, ad, ah, aw, ac] {
            return Some(reorder(Side::ChannelsLast));
        }
        let (by_frame, by_block) = ([an, ad, ac, ah, aw], [an, ac, ad, ah, aw]);
        if order == if volume.by_frame { by_frame } else { by_block } {
            return Some(reorder(Side::Nchw));
        }
        // The frames of each channel go to their volume, or come from it.
        (volume.by_frame && order == by_block).then_some(())?;
        if d == 1 || c == 1 {
            return Some(reorder(Side::Nchw));
        }
        let run = h.saturating_mul(w);
        Some(reorder(Side::Nchw) + Cost::new(self.costs.transpose_ns(&[n, c, d, run], &[0, 2, 1, 3], WIDTH)))
    }
}

/// The maximum over windows of so many images.
fn pool(windows: &Windows, images: u64) -> PoolShape {
    let ([_, c, _, h, w], [.., oh, ow]) = (windows.from, windows.to);
    let image = &windows.volume.image;
    PoolShape { n: images, c, h, w, oh, ow, kernel: pair(image.kernel), stride: pair(image.strides) }
}
