//! Kernels of images whose channels have pad slots between runs: what was concatenated in blocks that its operands do not fill,
//! `C[24:32,24:32]`.
//!
//! They are the kernels of other images: what is constant has zeros in those slots, and what they compute of them is paid for. Where
//! the slots are is not theirs to ask for: they are offered where an operand or the result may lie so.

use super::machine::{Machine, image_of};
use crate::ort_cpu::costs::{Copy, Reorder, Side};
use relayout_ir::dtype::DType;
use relayout_ir::graph::ValueId;
use relayout_ir::layout::{Layout, Segment};
use relayout_ir::storage::{ImageAxes, axes_in_runs};
use relayout_target_api::{Candidates, Cost, MoveQuery, NodeQuery, Offer};

/// Bytes of an element.
const WIDTH: u64 = 4;

/// Where the pad slots of an image's channels are; `None` for the end of their last block.
pub(crate) type Runs<'a> = Option<&'a [Segment]>;

/// Channels of an image, those of its pad slots with them if it has any between its runs.
pub(crate) fn slots_of(channels: u64, runs: Runs<'_>) -> u64 {
    runs.map_or(channels, |map| map.iter().map(|segment| segment.slots).sum())
}

impl Machine {
    /// `NCHW16c` of an image, or of a signal, whose axes stand there, with the pad slots of its channels there.
    pub(crate) fn blocked_runs(&self, axes: ImageAxes, runs: Runs<'_>) -> Option<Layout> {
        let blocked = self.blocked_in(axes);
        match runs {
            Some(map) => blocked.with_slot_map(axes.c, map).ok(),
            None => Some(blocked),
        }
    }

    /// The axes of an image in blocks of this host, with pad slots anywhere among its channels.
    pub(crate) fn axes_in_runs(&self, layout: &Layout) -> Option<ImageAxes> {
        let own = |(axes, block): &(ImageAxes, u64)| *block == self.block.channels() && axes.h.is_some();
        axes_in_runs(layout).filter(own).map(|(axes, _)| axes)
    }

    /// Cost of a move of an image with pad slots between its channels: a reorder of all slots to channels first, and a copy of those
    /// that are channels. Nothing is put into such an order.
    pub(crate) fn run_move(&self, query: &MoveQuery<'_>) -> Option<Cost> {
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

    /// What a form offers for a node that leaves the channels of an image where they are, of which an operand or the result has a
    /// candidate with pad slots between its runs: one offer for each order of axes and each such place of slots.
    pub(crate) fn among_runs(
        &self,
        query: &NodeQuery<'_>,
        candidates: Candidates<'_, '_>,
        offer: impl Fn(ImageAxes, &[Segment]) -> Option<Offer>,
    ) -> Vec<Offer> {
        let node = query.graph.node(query.node);
        let result = node.result(0);
        let mut offers = Vec::new();
        for axes in ImageAxes::of_images() {
            // A reduction may leave no image.
            let image = |v: Option<ValueId>| v.and_then(|v| image_of(query, v, axes));
            let Some([_, channels, ..]) = image(result).or_else(|| image(node.operand(0))) else { continue };
            for map in self.maps(query, candidates, node.inputs.iter().copied().flatten().chain(result), axes) {
                let all = map.iter().map(|run| run.len).sum::<u64>() == channels;
                offers.extend(all.then(|| offer(axes, map)).flatten());
            }
        }
        offers
    }

    /// What a form offers for a convolution, whose operand and result have slots of their own.
    pub(crate) fn convs_among(&self, query: &NodeQuery<'_>, candidates: Candidates<'_, '_>) -> Vec<Offer> {
        let node = query.graph.node(query.node);
        let of = |v: Option<ValueId>| self.maps(query, candidates, v.into_iter(), ImageAxes::ORIGINS[0]);
        self.convs_in_runs(query, &of(node.operand(0)), &of(node.result(0)))
    }

    /// Where candidates of values have pad slots; none twice.
    fn maps<'c>(
        &self,
        query: &NodeQuery<'_>,
        candidates: Candidates<'_, 'c>,
        values: impl Iterator<Item = ValueId>,
        at: ImageAxes,
    ) -> Vec<&'c [Segment]> {
        let mut maps: Vec<&'c [Segment]> = Vec::new();
        for layout in values.filter(|&v| !(query.is_constant)(v)).flat_map(candidates) {
            let map = layout.slot_map(at.c).filter(|_| self.axes_in_runs(layout) == Some(at));
            maps.extend(map.filter(|map| !maps.contains(map)));
        }
        maps
    }
}
