//! What the target's forms share: the host's block, the costs, and how images lie in blocks.

use super::costs::{MeasuredCosts, Reorder, Side, Spread};
use super::release::Release;
use super::runs;
use crate::shared::data::DataTarget;
use crate::shared::spans::{SHORT, short_spans};
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, NodeId, OpName, ValueId};
use relayout_ir::layout::{Factor, Layout, Segment};
use relayout_ir::op::NCHWC;
use relayout_ir::storage::{ImageAxes, blocked_axes};
use relayout_target_api::{Cost, MoveQuery, NodeQuery, OpQuery};

/// Channels of a block: what the vector registers of the host hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// AVX and AVX2.
    B8,
    /// AVX-512.
    B16,
}

/// A kind of processors, as far as the built-in tables of costs tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Who made it, in its own words: `AuthenticAMD`, `GenuineIntel`.
    pub vendor: [u8; 12],
    /// Its family, as it says itself.
    pub family: u32,
}

impl Processor {
    /// The processor of this machine, where the system tells it in `/proc/cpuinfo` as Linux does; `None` elsewhere, and where it is none of
    /// x86-64.
    pub fn of_host() -> Option<Processor> {
        Processor::told(&std::fs::read_to_string("/proc/cpuinfo").ok()?)
    }

    /// The first processor of a list as Linux has it.
    fn told(list: &str) -> Option<Processor> {
        let of = |key: &str| {
            let value =
                |line: &'_ str| line.strip_prefix(key)?.trim_start().strip_prefix(':').map(|v| v.trim().to_owned());
            list.lines().find_map(value)
        };
        let vendor = of("vendor_id")?.as_bytes().try_into().ok()?;
        Some(Processor { vendor, family: of("cpu family")?.parse().ok()? })
    }
}

impl Block {
    /// Channels.
    pub fn channels(self) -> u64 {
        match self {
            Block::B8 => 8,
            Block::B16 => 16,
        }
    }

    /// The block that ONNX Runtime takes on this machine.
    pub fn of_host() -> Block {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx512f") {
            return Block::B16;
        }
        Block::B8
    }

    /// The block of this many channels, if ONNX Runtime has it.
    pub fn of(channels: u64) -> Option<Block> {
        [Block::B8, Block::B16].into_iter().find(|b| b.channels() == channels)
    }

    /// Weights that read blocked images: `OIHW16i16o`.
    pub fn dense_weights(self) -> Layout {
        blocked(&[0, 1, 2, 3], &[(1, self.channels()), (0, self.channels())])
    }

    /// Weights that read ordinary images, or a channel each: `OIHW16o`.
    pub fn filter_weights(self) -> Layout {
        blocked(&[0, 1, 2, 3], &[(0, self.channels())])
    }

    /// Both of signals: `OIW16i16o` and `OIW16o`.
    pub(crate) fn signal_weights(self) -> [Layout; 2] {
        let (order, block) = ([0, 1, 2], self.channels());
        [blocked(&order, &[(1, block), (0, block)]), blocked(&order, &[(0, block)])]
    }

    /// How many neighbouring groups of a convolution of `inputs` to `outputs` channels, the fewest, are one group of whole blocks;
    /// all of them, padded, where no fewer are. `None` where the channels are not those of so many groups, or of one.
    pub fn joined_groups(self, groups: u64, inputs: u64, outputs: u64) -> Option<u64> {
        if groups < 2 || !inputs.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
            return None;
        }
        let [inputs, outputs] = [inputs, outputs].map(|c| c / groups);
        let whole = |channels: u64, joined: u64| (channels * joined).is_multiple_of(self.channels());
        let joins = |&joined: &u64| groups.is_multiple_of(joined) && whole(inputs, joined) && whole(outputs, joined);
        // With a block of groups everything is whole.
        Some((2..=self.channels().min(groups)).find(joins).unwrap_or(groups))
    }
}

/// A host: its block, and what its runtime's kernels cost.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) block: Block,
    /// The release of its runtime; the newest if none is said.
    pub(crate) release: Option<Release>,
    pub(crate) costs: MeasuredCosts,
    /// What a data file has of the target.
    pub(crate) base: DataTarget,
}

impl Machine {
    /// `NCHW16c`.
    pub(crate) fn blocked(&self) -> Layout {
        self.blocked_in(ImageAxes::ORIGINS[0])
    }

    /// `NCHW16c` of an image whose axes stand there, `NCW16c` of a signal.
    pub(crate) fn blocked_in(&self, axes: ImageAxes) -> Layout {
        axes.blocked(self.block.channels())
    }

    /// A vector per channel, padded to whole blocks.
    pub(crate) fn per_channel(&self, channels: u64) -> Layout {
        let plain = Layout::row_major(1);
        if channels == 0 {
            return plain;
        }
        let segment = Segment { len: channels, slots: self.round(channels) };
        plain.with_slot_map(0, &[segment]).unwrap_or(plain)
    }

    /// Cost of a Transpose between two orders of whole axes.
    pub(crate) fn transpose(&self, query: &MoveQuery<'_>) -> Option<Cost> {
        let (from, to) = (query.from.as_permutation()?, query.to.as_permutation()?);
        let shape: Vec<u64> = from.iter().map(|&axis| query.shape.get(axis).copied()).collect::<Option<_>>()?;
        let perm: Vec<usize> = to.iter().map(|axis| from.iter().position(|a| a == axis)).collect::<Option<_>>()?;
        let bytes = u64::from(query.dtype.and_then(DType::bits).unwrap_or(32).div_ceil(8));
        Some(Cost::new(self.costs.transpose_ns(&shape, &perm, bytes)))
    }

    /// Elements per channel of the first blocked result, its channels, and their slots; symbolic extents taken as 1: only ratios
    /// count.
    pub(crate) fn blocked_result(&self, graph: &Graph, node: NodeId, outs: &[Layout]) -> Option<[u64; 3]> {
        let (slot, channels) = outs.iter().enumerate().find_map(|(slot, l)| Some((slot, self.blocked_axis(l)?)))?;
        let v = graph.node(node).result(slot)?;
        let extents = graph.value(v).ty.shape()?.iter().map(|d| d.as_const().map_or(1, |d| d.max(0) as u64));
        let (mut each, mut blocked) = (1_u64, 1);
        for (axis, extent) in extents.enumerate() {
            if axis == channels {
                blocked = extent;
            } else {
                each = each.saturating_mul(extent);
            }
        }
        let runs = outs.get(slot).and_then(|l| l.slot_map(channels));
        Some([each, blocked, self.round(runs::slots_of(blocked, runs))])
    }

    /// The axis of which an image, a signal or a volume has blocks of this host; of an image's there may be pad slots anywhere.
    pub(crate) fn blocked_axis(&self, layout: &Layout) -> Option<usize> {
        let volume = || self.blocked_volume(layout).map(|v| v.axes[1]);
        let signal = || self.blocked_axes(layout).map(|axes| axes.c);
        self.axes_in_runs(layout).map(|axes| axes.c).or_else(signal).or_else(volume)
    }

    /// The axes of an image or a signal in blocks of this host.
    pub(crate) fn blocked_axes(&self, layout: &Layout) -> Option<ImageAxes> {
        blocked_axes(layout).filter(|(_, block)| *block == self.block.channels()).map(|(axes, _)| axes)
    }

    /// Whether a layout is that of an image in blocks of this host.
    pub(crate) fn is_blocked_image(&self, layout: &Layout) -> bool {
        self.blocked_axes(layout).is_some_and(|axes| axes.h.is_some())
    }

    /// Whether a layout is that of a signal in blocks of this host.
    pub(crate) fn is_blocked_signal(&self, layout: &Layout) -> bool {
        self.blocked_axes(layout).is_some_and(|axes| axes.h.is_none())
    }

    /// Cost of a reorder of an image, between blocks and this order.
    pub(crate) fn reorder(&self, kind: Reorder, side: Side, image: [u64; 4]) -> Cost {
        Cost::new(self.costs.reorder_ns(kind, side, image))
    }

    /// Cost of a node that does next to nothing.
    pub(crate) fn small_node(&self) -> Cost {
        Cost::new(self.costs.node_ns())
    }

    /// Cost of an element-wise op on this many elements, its operands of one shape.
    pub(crate) fn pass(&self, node: &Node, elements: u64) -> u64 {
        self.costs.elementwise_ns(node.onnx().unwrap_or_default(), elements, Spread::Same)
    }

    /// What an op takes beyond one whose operands are equal, if they meet in short spans. A call takes as long for fewer elements.
    pub(crate) fn spans(&self, query: &OpQuery<'_>) -> Cost {
        let Some(spans) = short_spans(query) else { return Cost::ZERO };
        let price = |spread| self.costs.elementwise_ns("Mul", spans.saturating_mul(SHORT), spread);
        Cost::new(price(Spread::Last { channels: SHORT }).saturating_sub(price(Spread::Same)))
    }

    /// Channels rounded up to whole blocks.
    pub(crate) fn round(&self, channels: u64) -> u64 {
        channels.next_multiple_of(self.block.channels())
    }
}

/// The axes in this order, and within them these digits, outermost first.
pub(crate) fn blocked(order: &[u8], inner: &[(u8, u64)]) -> Layout {
    let split = |axis: u8| inner.iter().find(|(a, _)| *a == axis).map_or(1, |(_, block)| *block);
    let outer = order.iter().map(|&axis| Factor::outer(axis, split(axis)));
    let digits = inner.iter().map(|&(axis, block)| Factor::inner(axis, 1, block));
    let plain = Layout::row_major(order.len());
    Layout::new(order.len(), outer.chain(digits), []).unwrap_or(plain)
}

/// An op of the domain.
pub(crate) fn op(name: &str) -> OpName {
    OpName { domain: NCHWC.to_owned(), name: name.to_owned(), overload: String::new() }
}

/// Extents of a float32 image whose channels are known: `[N, C, H, W]`.
pub(crate) fn image(query: &NodeQuery<'_>, v: ValueId) -> Option<[u64; 4]> {
    image_of(query, v, ImageAxes::ORIGINS[0])
}

/// The axes of a float32 image or signal of channels-first origin whose channels are known, and its extents `[N, C, H, W]`.
pub(crate) fn image_or_signal(query: &NodeQuery<'_>, v: ValueId) -> Option<(ImageAxes, [u64; 4])> {
    let axes = ImageAxes::channels_first(query.graph.value(v).ty.rank()?)?;
    Some((axes, image_of(query, v, axes)?))
}

/// The extents of an image or a signal whose axes stand there.
pub(crate) fn image_of(query: &NodeQuery<'_>, v: ValueId, axes: ImageAxes) -> Option<[u64; 4]> {
    let ty = &query.graph.value(v).ty;
    let shape = ty.shape().filter(|shape| ty.dtype() == Some(DType::F32) && shape.len() == axes.rank())?;
    // What is declared as an image of one row can't be empty.
    let empty = axes.h.is_none() && shape.iter().any(|d| d.as_const() == Some(0));
    if shape.get(axes.c)?.as_const()? < 1 || empty {
        return None;
    }
    axes.extents(&query.sizes.shape(query.graph, v)?)
}

/// Extents of a value that are all known.
pub(crate) fn extents(graph: &Graph, v: ValueId) -> Option<Vec<u64>> {
    graph.value(v).ty.const_shape()?.into_iter().map(|d| u64::try_from(d).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_groups_are_joined_that_are_whole_blocks_or_all() {
        let joined = |block: Block, [groups, inputs, outputs]: [u64; 3]| block.joined_groups(groups, inputs, outputs);
        for (of, by_16, by_8) in [
            ([32, 128, 128], Some(4), Some(2)),
            ([16, 64, 128], Some(4), Some(2)),
            ([32, 32, 64], Some(16), Some(8)),
            ([6, 48, 48], Some(2), Some(2)),
            ([2, 48, 48], Some(2), Some(2)),
            ([5, 20, 20], Some(5), Some(5)),
            ([24, 72, 24], Some(24), Some(8)),
            ([1, 64, 64], None, None),
            ([3, 64, 63], None, None),
        ] {
            assert_eq!((joined(Block::B16, of), joined(Block::B8, of)), (by_16, by_8), "{of:?}");
        }
    }

    #[test]
    fn a_processor_is_read_off_the_list_of_linux() {
        let list = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\n\nprocessor\t: 1\ncpu family\t: 26\n";
        assert_eq!(Processor::told(list), Some(Processor { vendor: *b"AuthenticAMD", family: 25 }));
        let [short, alone, odd] = ["AMD\ncpu family : 25\n", "AuthenticAMD\n", "AuthenticAMD\ncpu family : new\n"];
        for none in ["", short, alone, odd] {
            assert_eq!(Processor::told(&format!("vendor_id : {none}")), None, "{none}");
        }
    }
}
