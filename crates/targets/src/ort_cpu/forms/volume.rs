//! Volumes, `[N, C, D, H, W]`, in blocks of their channels, and what moves of them cost.
//!
//! ONNX Runtime has blocked kernels of images only, and runs a convolution of volumes as a matrix product of what it gathers. A
//! blocked volume lies in one of two ways, and is an image in both: its frames one after another, `N D C/B H W C%B`, are the images
//! of a batch; its blocks one after another, `N C/B D H W C%B`, are images with a frame per row.

use crate::ort_cpu::costs::{ConvShape, Reorder, Side};
use crate::ort_cpu::machine::{Machine, blocked};
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::Volume;
use relayout_ir::storage::{BlockedVolume, blocked_volume};
use relayout_target_api::{Cost, MoveQuery, NodeQuery};

/// Bytes of an element.
pub(super) const WIDTH: u64 = 4;
/// The axis of the frames where a volume is stored frame by frame.
pub(super) const FRAMES: usize = 1;

/// An op of volumes at the size hints.
pub(super) struct Windows {
    pub(super) volume: Volume,
    /// Extents `[n, c, d, h, w]` of operand and result.
    pub(super) from: [u64; 5],
    pub(super) to: [u64; 5],
}

impl Windows {
    pub(super) fn of(query: &NodeQuery<'_>) -> Option<Windows> {
        let node = query.graph.node(query.node);
        let (x, y) = (node.operand(0)?, node.result(0)?);
        let sizes = |v: ValueId| -> Option<[u64; 5]> {
            let float = query.graph.value(v).ty.dtype() == Some(DType::F32);
            let sizes: [u64; 5] = query.sizes.shape(query.graph, v)?.try_into().ok()?;
            (float && is_fixed(query.graph, v) && !sizes.contains(&0)).then_some(sizes)
        };
        Some(Windows { volume: Volume::recognize(query.graph, node)?, from: sizes(x)?, to: sizes(y)? })
    }

    /// A convolution of `n` images of `c` to `m` channels.
    pub(super) fn images(&self, [n, c, m]: [u64; 3]) -> ConvShape {
        let ([.., h, w], [.., oh, ow]) = (self.from, self.to);
        let image = &self.volume.image;
        let [kh, kw] = pair(image.kernel);
        let (stride, dilation) = (pair(image.strides), pair(image.dilations));
        ConvShape { n, c, h, w, m, oh, ow, kh, kw, stride, dilation, group: 1, activation: None }
    }

    /// A convolution of images with a frame per row, along the frames alone.
    pub(super) fn rows(&self, [n, c, m]: [u64; 3]) -> ConvShape {
        let ([_, _, h, rows, columns], oh) = (self.from, self.to[2]);
        let [stride, dilation, ..] = self.volume.along_frames().map(i64::unsigned_abs);
        let (w, kh) = (rows.saturating_mul(columns), self.volume.taps as u64);
        let (stride, dilation) = ([stride, 1], [dilation, 1]);
        ConvShape { n, c, h, w, m, oh, ow: w, kh, kw: 1, stride, dilation, group: 1, activation: None }
    }
}

/// Numbers along rows and columns, at least 1.
pub(super) fn pair(list: [i64; 2]) -> [u64; 2] {
    list.map(|n| n.max(1).unsigned_abs())
}

/// Whether everything but the batch is known: frames and images of a volume are written in numbers.
fn is_fixed(graph: &Graph, v: ValueId) -> bool {
    graph.value(v).ty.shape().is_some_and(|shape| shape.get(1..).is_some_and(|dims| dims.iter().all(Dim::is_const)))
}

impl Machine {
    /// How a volume in blocks of this host lies.
    pub(crate) fn blocked_volume(&self, layout: &Layout) -> Option<BlockedVolume> {
        blocked_volume(layout).filter(|v| v.block == self.block.channels())
    }

    /// `N D C/B H W C%B`.
    pub(super) fn by_frame(&self) -> Layout {
        blocked(&[0, 2, 1, 3, 4], &[(1, self.block.channels())])
    }

    /// `N C/B D H W C%B`.
    pub(super) fn by_block(&self) -> Layout {
        blocked(&[0, 1, 2, 3, 4], &[(1, self.block.channels())])
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
