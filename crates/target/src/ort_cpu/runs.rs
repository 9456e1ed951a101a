//! Kernels of images whose channels have pad slots between runs: what was concatenated in blocks that its operands do not fill,
//! `C[24:32,24:32]`.
//!
//! They are the kernels of other images: what is constant has zeros in those slots, and what they compute of them is paid for. Where
//! the slots are is not theirs to ask for: they are offered where an operand or the result may lie so.

use super::{OrtCpu, image_of};
use crate::measured::{Copy, Reorder, Side};
use crate::{Cost, Kernel, MoveQuery, NodeQuery};
use relayout_ir::dtype::DType;
use relayout_ir::graph::ValueId;
use relayout_ir::layout::{Layout, Segment};
use relayout_ir::storage::{ImageAxes, axes_in_runs};

/// Bytes of an element.
const WIDTH: u64 = 4;

/// Where the pad slots of an image's channels are; `None` for the end of their last block.
pub(super) type Runs<'a> = Option<&'a [Segment]>;

/// Channels of an image, those of its pad slots with them if it has any between its runs.
pub(super) fn slots_of(channels: u64, runs: Runs<'_>) -> u64 {
    runs.map_or(channels, |map| map.iter().map(|segment| segment.slots).sum())
}

impl OrtCpu {
    /// `NCHW16c` of an image, or of a signal, whose axes stand there, with the pad slots of its channels there.
    pub(super) fn blocked_runs(&self, axes: ImageAxes, runs: Runs<'_>) -> Option<Layout> {
        let blocked = self.blocked_in(axes);
        match runs {
            Some(map) => blocked.with_slot_map(axes.c, map).ok(),
            None => Some(blocked),
        }
    }

    /// The axes of an image in blocks of this host, with pad slots anywhere among its channels.
    pub(super) fn axes_in_runs(&self, layout: &Layout) -> Option<ImageAxes> {
        let own = |(axes, block): &(ImageAxes, u64)| *block == self.block.channels() && axes.h.is_some();
        axes_in_runs(layout).filter(own).map(|(axes, _)| axes)
    }

    /// Cost of a move of an image with pad slots between its channels: a reorder of all slots to channels first, and a copy of those
    /// that are channels. Nothing is put into such an order.
    pub(super) fn run_move(&self, query: &MoveQuery<'_>) -> Option<Cost> {
        let axes = self.axes_in_runs(query.from)?;
        let to_rows = query.to.as_permutation()? == axes.first() && query.dtype == Some(DType::F32);
        let [n, c, h, w] = axes.extents(query.shape)?;
        let slots = slots_of(c, query.from.slot_map(axes.c));
        let pixels = h.saturating_mul(w);
        // A pixel per channel lies in order as it is.
        let reordered =
            if pixels < 2 { Cost::ZERO } else { self.reorder(Reorder::Output, Side::Nchw, [n, slots, h, w]) };
        let run = pixels.saturating_mul(WIDTH);
        let bytes = n.saturating_mul(c).saturating_mul(run);
        to_rows.then(|| reordered + Cost::new(self.costs.copy_ns(Copy::Slice, bytes, run)))
    }

    /// The kernels of a node for which an operand or the result has such a candidate.
    pub(super) fn kernels_in_runs<'c>(
        &self,
        query: &NodeQuery<'_>,
        candidates: &dyn Fn(ValueId) -> &'c [Layout],
    ) -> Vec<Kernel> {
        let node = query.graph.node(query.node);
        let maps = |values: &mut dyn Iterator<Item = ValueId>, at: ImageAxes| {
            let mut maps: Vec<&'c [Segment]> = Vec::new();
            for layout in values.filter(|&v| !(query.is_constant)(v)).flat_map(candidates) {
                let map = layout.slot_map(at.c).filter(|_| self.axes_in_runs(layout) == Some(at));
                maps.extend(map.filter(|map| !maps.contains(map)));
            }
            maps
        };
        let result = node.outputs.first().copied().flatten();
        if node.onnx() == Some("Conv") {
            let of = |v: Option<ValueId>| maps(&mut v.into_iter(), ImageAxes::ORIGINS[0]);
            return self.convs_in_runs(query, &of(node.operand(0)), &of(result));
        }
        let mut kernels = Vec::new();
        for axes in ImageAxes::ORIGINS.into_iter().filter(|axes| axes.h.is_some()) {
            // A reduction may leave no image.
            let image = |v: Option<ValueId>| v.and_then(|v| image_of(query, v, axes));
            let Some([_, channels, ..]) = image(result).or_else(|| image(node.operand(0))) else { continue };
            for map in maps(&mut node.inputs.iter().copied().flatten().chain(result), axes) {
                let all = map.iter().map(|run| run.len).sum::<u64>() == channels;
                kernels.extend(all.then(|| self.kernel_in_runs(query, axes, map)).flatten());
            }
        }
        kernels
    }

    /// The kernel of a node that leaves the channels of an image where they are.
    fn kernel_in_runs(&self, query: &NodeQuery<'_>, axes: ImageAxes, map: &[Segment]) -> Option<Kernel> {
        let first = axes == ImageAxes::ORIGINS[0];
        match query.graph.node(query.node).onnx()? {
            "MaxPool" | "AveragePool" | "GlobalAveragePool" | "GlobalMaxPool" if first => {
                self.pool_kernel(query, Some(map))
            }
            "Resize" | "Upsample" if first => self.resize_kernel(query, Some(map)),
            "ReduceMean" | "ReduceMax" => self.reduce_kernel(query, axes, Some(map)),
            "Pad" | "Slice" => self.digit_kernel(query, axes, Some(map)),
            "BatchNormalization" | "Add" | "Sub" | "Mul" | "Div" => self.scale_kernel(query, axes, Some(map)),
            _ => None,
        }
    }
}
