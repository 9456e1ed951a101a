//! Target `ort-cpu`: ONNX Runtime's blocked kernels of domain `com.microsoft.nchwc`, float32 on x86-64, and its
//! 8-bit ones of domain `com.microsoft` that read channels last.
//!
//! A blocked value is `N C/B H W C%B`, its channels rounded up to the block B of the host: 16 with AVX-512, 8 otherwise. It is
//! declared per axis, as `[N, C, H, W]` with the rounded channels. Constant weights are packed at compile time, with zeros for
//! channels that are not there.
//!
//! A signal, `[N, C, L]`, is an image of one row: what is offered for images is offered for signals at the same costs, but only around
//! convolutions of signals. The runtime itself blocks none on load.

mod attention;
mod conv;
mod digits;
mod matrix;
mod moves;
mod norm;
mod pool;
mod projection;
mod quantized;
mod reduce;
mod resize;
mod runs;
mod scale;
mod volume;

pub(crate) use quantized::QuantizedPools;

use crate::builtin::DataTarget;
use crate::measured::{Copy, CostsError, MeasuredCosts, Reorder, Side, Spread};
use crate::{BlockedHost, Cost, Kernel, MoveKind, MoveQuery, NodeQuery, OpQuery, Target, TargetError};
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, NodeId, OpName, ValueId};
use relayout_ir::layout::{Factor, Layout, Segment};
use relayout_ir::op::{NCHWC, is_among_signals};
use relayout_ir::storage::{ImageAxes, StorageRule, blocked_axes};

/// Channels of a block: what the vector registers of the host hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// AVX and AVX2.
    B8,
    /// AVX-512.
    B16,
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
    fn signal_weights(self) -> [Layout; 2] {
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

/// The target.
#[derive(Clone, Debug)]
pub struct OrtCpu {
    block: Block,
    guarded: bool,
    costs: MeasuredCosts,
    source: String,
    /// Whether the costs are others than the built-in ones.
    own_costs: bool,
    base: DataTarget,
}

impl OrtCpu {
    /// The target for hosts of this block.
    ///
    /// # Errors
    /// [`TargetError::Malformed`] if the built-in data does not read.
    pub fn new(block: Block) -> Result<OrtCpu, TargetError> {
        let base = DataTarget::parse("ort-cpu", include_str!("../targets/ort-cpu.toml"))?;
        let malformed = |e: CostsError| TargetError::Malformed { name: "ort-cpu".to_owned(), why: e.to_string() };
        let costs = MeasuredCosts::builtin().map_err(malformed)?;
        Ok(OrtCpu { block, guarded: true, source: source_of(&costs), costs, own_costs: false, base })
    }

    /// Without the guard that makes hosts of another block fail.
    #[must_use]
    pub fn unguarded(mut self) -> OrtCpu {
        self.guarded = false;
        self
    }

    /// With costs measured elsewhere than the built-in ones; its files say where in their metadata. A table that was measured on
    /// hosts of another block serves too, as the built-in one does.
    #[must_use]
    pub fn with_costs(self, costs: MeasuredCosts) -> OrtCpu {
        OrtCpu { source: source_of(&costs), costs, own_costs: true, ..self }
    }

    /// Channels of a block.
    pub fn block(&self) -> Block {
        self.block
    }

    /// `NCHW16c`.
    fn blocked(&self) -> Layout {
        self.blocked_in(ImageAxes::ORIGINS[0])
    }

    /// `NCHW16c` of an image whose axes stand there, `NCW16c` of a signal.
    fn blocked_in(&self, axes: ImageAxes) -> Layout {
        axes.blocked(self.block.channels())
    }

    /// A vector per channel, padded to whole blocks.
    fn per_channel(&self, channels: u64) -> Layout {
        let plain = Layout::row_major(1);
        if channels == 0 {
            return plain;
        }
        let segment = Segment { len: channels, slots: self.round(channels) };
        plain.with_slot_map(0, &[segment]).unwrap_or(plain)
    }

    /// Cost of a Transpose between two orders of whole axes.
    fn transpose(&self, query: &MoveQuery<'_>) -> Option<Cost> {
        let (from, to) = (query.from.as_permutation()?, query.to.as_permutation()?);
        let shape: Vec<u64> = from.iter().map(|&axis| query.shape.get(axis).copied()).collect::<Option<_>>()?;
        let perm: Vec<usize> = to.iter().map(|axis| from.iter().position(|a| a == axis)).collect::<Option<_>>()?;
        let bytes = u64::from(query.dtype.and_then(DType::bits).unwrap_or(32).div_ceil(8));
        Some(Cost::new(self.costs.transpose_ns(&shape, &perm, bytes)))
    }

    /// Elements per channel of the first blocked result, its channels, and their slots; symbolic extents taken as 1: only ratios
    /// count.
    fn blocked_result(&self, graph: &Graph, node: NodeId, outs: &[Layout]) -> Option<[u64; 3]> {
        let (slot, channels) = outs.iter().enumerate().find_map(|(slot, l)| Some((slot, self.blocked_axis(l)?)))?;
        let v = graph.node(node).outputs.get(slot).copied().flatten()?;
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
    fn blocked_axis(&self, layout: &Layout) -> Option<usize> {
        let volume = || self.blocked_volume(layout).map(|v| v.axes[1]);
        let signal = || self.blocked_axes(layout).map(|axes| axes.c);
        self.axes_in_runs(layout).map(|axes| axes.c).or_else(signal).or_else(volume)
    }

    /// The axes of an image or a signal in blocks of this host.
    fn blocked_axes(&self, layout: &Layout) -> Option<ImageAxes> {
        blocked_axes(layout).filter(|(_, block)| *block == self.block.channels()).map(|(axes, _)| axes)
    }

    /// Whether a layout is that of a signal in blocks of this host.
    fn is_blocked_signal(&self, layout: &Layout) -> bool {
        self.blocked_axes(layout).is_some_and(|axes| axes.h.is_none())
    }

    /// Cost of a reorder of an image, between blocks and this order.
    fn reorder(&self, kind: Reorder, side: Side, image: [u64; 4]) -> Cost {
        Cost::new(self.costs.reorder_ns(kind, side, image))
    }

    /// Cost of a node that does next to nothing.
    fn small_node(&self) -> Cost {
        Cost::new(self.costs.node_ns())
    }

    /// Cost of an element-wise op on this many elements, its operands of one shape.
    fn pass(&self, node: &Node, elements: u64) -> u64 {
        self.costs.elementwise_ns(node.onnx().unwrap_or_default(), elements, Spread::Same)
    }

    /// Channels rounded up to whole blocks.
    fn round(&self, channels: u64) -> u64 {
        channels.next_multiple_of(self.block.channels())
    }
}

/// Whether a node reads dequantized numbers or leaves some to be quantized: ONNX Runtime makes one integer op of the three.
fn is_quantized(graph: &Graph, node: NodeId) -> bool {
    let is = |n: NodeId, name: &str| graph.node(n).op.is_named(name);
    let node = graph.node(node);
    node.inputs.iter().flatten().any(|&v| is(graph.value(v).producer().0, "DequantizeLinear"))
        || node.outputs.iter().flatten().flat_map(|&v| graph.uses(v)).any(|u| is(u.node, "QuantizeLinear"))
}

/// Whether a convolution takes in a node: a sum with its result, and an activation of that or of its result.
fn is_taken_in(graph: &Graph, n: NodeId) -> bool {
    let node = graph.node(n);
    let made_by = |v: &ValueId| graph.only_use(*v).is_some().then(|| graph.value(*v).producer().0);
    let is_conv = |maker: NodeId| graph.node(maker).onnx() == Some("Conv");
    let is_sum = |maker: NodeId| graph.node(maker).onnx() == Some("Add") && is_taken_in(graph, maker);
    match node.onnx() {
        Some("Add") => node.inputs.iter().flatten().filter_map(made_by).any(is_conv),
        Some("Relu" | "LeakyRelu" | "Sigmoid" | "Tanh" | "HardSigmoid" | "HardSwish" | "Clip") => {
            let maker = node.operand(0).as_ref().and_then(made_by);
            maker.is_some_and(|maker| is_conv(maker) || is_sum(maker))
        }
        _ => false,
    }
}

/// Where costs come from, for people.
fn source_of(costs: &MeasuredCosts) -> String {
    let m = costs.machine();
    let threads = if m.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", m.threads) };
    format!("measured on {} with {}, {threads}, {}", m.machine, m.runtime, m.date)
}

/// The axes in this order, and within them these digits, outermost first.
fn blocked(order: &[u8], inner: &[(u8, u64)]) -> Layout {
    let split = |axis: u8| inner.iter().find(|(a, _)| *a == axis).map_or(1, |(_, block)| *block);
    let outer = order.iter().map(|&axis| Factor::outer(axis, split(axis)));
    let digits = inner.iter().map(|&(axis, block)| Factor::inner(axis, 1, block));
    let plain = Layout::row_major(order.len());
    Layout::new(order.len(), outer.chain(digits), []).unwrap_or(plain)
}

/// An op of the domain.
fn op(name: &str) -> OpName {
    OpName { domain: NCHWC.to_owned(), name: name.to_owned(), overload: String::new() }
}

/// Extents of a float32 image whose channels are known: `[N, C, H, W]`.
fn image(query: &NodeQuery<'_>, v: ValueId) -> Option<[u64; 4]> {
    image_of(query, v, ImageAxes::ORIGINS[0])
}

/// The axes of a float32 image or signal of channels-first origin whose channels are known, and its extents `[N, C, H, W]`.
fn image_or_signal(query: &NodeQuery<'_>, v: ValueId) -> Option<(ImageAxes, [u64; 4])> {
    let axes = ImageAxes::channels_first(query.graph.value(v).ty.rank()?)?;
    Some((axes, image_of(query, v, axes)?))
}

/// The extents of an image or a signal whose axes stand there.
fn image_of(query: &NodeQuery<'_>, v: ValueId, axes: ImageAxes) -> Option<[u64; 4]> {
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
fn extents(graph: &Graph, v: ValueId) -> Option<Vec<u64>> {
    graph.value(v).ty.const_shape()?.into_iter().map(|d| u64::try_from(d).ok()).collect()
}

impl Target for OrtCpu {
    fn name(&self) -> &str {
        self.base.name()
    }

    fn about(&self) -> &str {
        self.base.about()
    }

    fn layouts(&self) -> &str {
        self.base.layouts()
    }

    fn dialect(&self) -> &str {
        self.base.dialect()
    }

    fn cost_source(&self) -> &str {
        &self.source
    }

    fn is_standard(&self) -> bool {
        false
    }

    fn storage(&self) -> StorageRule {
        StorageRule::PerAxis
    }

    fn blocked_host(&self) -> Option<BlockedHost> {
        Some(BlockedHost { block: self.block.channels(), guarded: self.guarded })
    }

    fn widens_halves(&self) -> bool {
        true
    }

    fn computes_on_unsigned_bytes(&self) -> bool {
        true
    }

    fn may_move_more(&self) -> bool {
        true
    }

    fn metadata(&self) -> Vec<(String, String)> {
        let block = ("relayout.block".to_owned(), self.block.channels().to_string());
        // The built-in table is told by the version of the program.
        let costs = self.own_costs.then(|| ("relayout.costs".to_owned(), self.source.clone()));
        std::iter::once(block).chain(costs).collect()
    }

    fn op_cost(&self, query: &OpQuery<'_>) -> Option<Cost> {
        let mut sides = query.ins.iter().chain(query.outs);
        // The runtime turns quantized units round by itself, together with what stands between them.
        let node = &query.graph.node(query.node).op;
        if (node.is_named("QuantizeLinear") || node.is_named("DequantizeLinear"))
            && !sides.clone().all(Layout::is_row_major)
        {
            return None;
        }
        let taken_in = is_taken_in(query.graph, query.node);
        if sides.clone().all(|l| l.as_permutation().is_some()) {
            // Before a move out of blocks it is part of the convolution, behind it it is not.
            return self.base.op_cost(query).map(|cost| cost + Cost::new(u64::from(taken_in)));
        }
        if is_quantized(query.graph, query.node) {
            return None;
        }
        // What is blocked otherwise than this host's kernels have it has no kernel.
        if !sides.all(|l| l.as_permutation().is_some() || self.blocked_axis(l).is_some()) {
            return None;
        }
        let is_signal = |l: &Layout| self.is_blocked_signal(l);
        if query.ins.iter().chain(query.outs).any(is_signal) && !is_among_signals(query.graph, query.node) {
            return None;
        }
        // Extents are read off the declaration.
        if node.is_named("Shape") {
            return Some(Cost::ZERO);
        }
        if taken_in {
            return Some(Cost::ZERO);
        }
        // Channels that fill a block are computed for nothing.
        let [pixels, c, slots] = self.blocked_result(query.graph, query.node, query.outs)?;
        let node = query.graph.node(query.node);
        let (own, padded) = (pixels.saturating_mul(c), pixels.saturating_mul(slots));
        Some(Cost::new(self.pass(node, padded).saturating_sub(self.pass(node, own))))
    }

    fn plain_cost(&self, query: &NodeQuery<'_>) -> Cost {
        match query.graph.node(query.node).onnx() {
            Some("Conv") => self.plain_conv(query).or_else(|| self.plain_volume(query)),
            Some("MaxPool" | "AveragePool" | "GlobalAveragePool" | "GlobalMaxPool") => {
                self.plain_pool(query).or_else(|| self.plain_maximum(query))
            }
            Some("BatchNormalization" | "Add" | "Sub" | "Mul" | "Div") => self.plain_scale(query),
            Some("ReduceMean" | "ReduceMax") => self.plain_reduce(query),
            Some("Pad" | "Slice") => self.plain_digits(query),
            Some("Resize" | "Upsample") => self.plain_resize(query),
            _ => None,
        }
        .or_else(|| self.plain_norm(query))
        .or_else(|| self.plain_attention(query))
        .or_else(|| self.plain_projection(query))
        .or_else(|| self.plain_quantized(query))
        .or_else(|| self.plain_product(query))
        .unwrap_or(Cost::ZERO)
    }

    fn kernels(&self, query: &NodeQuery<'_>) -> Vec<Kernel> {
        if is_quantized(query.graph, query.node) {
            return Vec::new();
        }
        if let Some(kernel) = self.quantized_kernel(query) {
            return vec![kernel];
        }
        let mut kernels = match query.graph.node(query.node).onnx() {
            Some("Conv") => [self.conv_kernels(query), self.volume_kernels(query)].concat(),
            Some("MaxPool" | "AveragePool" | "GlobalAveragePool" | "GlobalMaxPool") => {
                self.pool_kernel(query, None).into_iter().chain(self.maximum_kernels(query)).collect()
            }
            Some("ReduceMean" | "ReduceMax") => self.reduce_kernels(query),
            Some("Pad" | "Slice") => self.digit_kernels(query),
            Some("Resize" | "Upsample") => self.resize_kernel(query, None).into_iter().collect(),
            Some("BatchNormalization" | "Add" | "Sub" | "Mul" | "Div") => self.scale_kernels(query),
            _ => {
                let raised = [self.norm_kernels(query), self.attention_kernels(query), self.projection_kernels(query)];
                [raised.concat(), self.product_kernels(query)].concat()
            }
        };
        let is_signal = |l: &Option<Layout>| l.as_ref().is_some_and(|l| self.is_blocked_signal(l));
        let of_signals = |k: &Kernel| k.layouts.ins.iter().chain(&k.layouts.outs).any(is_signal);
        if kernels.iter().any(of_signals) && !is_among_signals(query.graph, query.node) {
            kernels.retain(|k| !of_signals(k));
        }
        kernels
    }

    fn kernels_among<'c>(&self, query: &NodeQuery<'_>, candidates: &dyn Fn(ValueId) -> &'c [Layout]) -> Vec<Kernel> {
        if is_quantized(query.graph, query.node) { Vec::new() } else { self.kernels_in_runs(query, candidates) }
    }

    fn move_cost(&self, query: &MoveQuery<'_>) -> Option<Cost> {
        if query.kind == MoveKind::View {
            return Some(self.small_node());
        }
        let side = |plain: &Layout, axes: ImageAxes| {
            let order = plain.as_permutation()?;
            let sides = [(Side::Nchw, axes.first()), (Side::ChannelsLast, axes.last())];
            sides.into_iter().find_map(|(side, axes)| (order == axes).then_some(side))
        };
        let float = query.dtype == Some(DType::F32);
        let (kind, axes, plain) = match (self.blocked_axes(query.from), self.blocked_axes(query.to)) {
            (None, None) if [query.from, query.to].into_iter().any(|l| self.blocked_volume(l).is_some()) => {
                return self.volume_move(query);
            }
            (None, None) if [query.from, query.to].into_iter().any(|l| self.axes_in_runs(l).is_some()) => {
                return self.run_move(query);
            }
            (None, None) => return self.chain(query).map(|c| c.cost).or_else(|| self.transpose(query)),
            (Some(_), Some(_)) => return None,
            (None, Some(_)) if self.axes_in_runs(query.from).is_some() => return None,
            (Some(_), None) if self.axes_in_runs(query.to).is_some() => return None,
            (None, Some(axes)) => (Reorder::Input, axes, query.from),
            (Some(axes), None) => (Reorder::Output, axes, query.to),
        };
        let image = axes.extents(query.shape)?;
        // ReorderInput takes whole groups of four channels.
        let whole = kind == Reorder::Output || image[1].is_multiple_of(4);
        let side = side(plain, axes)?;
        // A signal is declared as an image by a Reshape.
        let views = if axes.h.is_none() { self.small_node() } else { Cost::ZERO };
        (float && whole).then(|| self.reorder(kind, side, image) + views)
    }

    fn split_move(&self, query: &MoveQuery<'_>) -> Vec<[Layout; 2]> {
        self.chained_layouts(query).unwrap_or_default()
    }

    fn view_cost(&self) -> Cost {
        self.small_node()
    }

    fn pass_cost(&self, bytes: u64) -> Cost {
        self.base.pass_cost(bytes)
    }

    fn copy_cost(&self, bytes: u64, run: u64) -> Cost {
        Cost::new(self.costs.copy_ns(Copy::Concat, bytes, run)).max(self.small_node())
    }
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
}
