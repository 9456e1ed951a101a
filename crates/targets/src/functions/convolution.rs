//! Convolutions: float, integer and quantized ones, and transposed ones.

use super::data::Features;
use super::{Calls, FIRST_PADDING_OPSET, call, extent, kind, only_result, opset, per_channel, stored, with_slots};
use crate::functions::gpu::Convolution;
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, Node, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::read::group;
use relayout_target_api::{Cost, NodeQuery, Offer, TargetForm};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "convolution";

/// Convolutions of features.
pub(super) struct Convolutions(pub(super) Arc<Calls>);

impl TargetForm for Convolutions {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Conv", "ConvTranspose", "QLinearConv", "ConvInteger"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        let written = opset(q.graph.node(q.node)).is_some();
        Some(q).filter(|_| written).and_then(|q| self.0.convolutions(q)).unwrap_or_default()
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        let offers = self.offers(q);
        let as_it_is = self.0.plain_convolution(q).or_else(|| self.0.unpadded(q));
        as_it_is
            .map(|cost| cost.percent(AHEAD))
            .or_else(|| self.0.standard(q, &offers, self.0.data.ops.anchor_moves_percent))
    }
}

/// What channels first has to be ahead by, in percent: channels last is what libraries are made for, and what frameworks do.
const AHEAD: u64 = 102;

/// Where a convolution has its operands.
struct Slots {
    w: usize,
    bias: Option<usize>,
    /// Scales and zero points, one number or one per output channel.
    by_channel: &'static [usize],
    /// The zero point of the weights: padding slots of weights are it.
    zero: Option<usize>,
}

fn slots(node: &Node) -> Option<Slots> {
    Some(match node.onnx()? {
        "Conv" | "ConvTranspose" => Slots { w: 1, bias: Some(2), by_channel: &[], zero: None },
        "QLinearConv" => Slots { w: 3, bias: Some(8), by_channel: &[4, 5], zero: Some(5) },
        "ConvInteger" => Slots { w: 1, bias: None, by_channel: &[3], zero: Some(3) },
        _ => return None,
    })
}

/// What a convolution is made of, as far as it is known.
struct Conv<'a> {
    query: &'a NodeQuery<'a>,
    name: &'a str,
    node: &'a Node,
    slots: Slots,
    /// The type that elements are computed from, where it is known.
    dtype: Option<DType>,
    rank: usize,
    /// Input channels.
    channels: Option<u64>,
    /// Output channels.
    filters: Option<u64>,
    group: u64,
    /// One filter for each channel, which reads it alone.
    depthwise: bool,
    transposed: bool,
    /// Pixels that the filters stand at, all images together.
    pixels: u64,
    /// Pixels under a filter.
    taps: u64,
    /// Multiply-adds for one input and one output channel, all groups taken together.
    window: u64,
    may_pad: bool,
}

impl<'a> Conv<'a> {
    fn of(query: &'a NodeQuery<'a>) -> Option<Conv<'a>> {
        let (graph, node) = (query.graph, query.graph.node(query.node));
        let slots = slots(node)?;
        let (x, w, y) = (node.operand(0)?, node.operand(slots.w)?, only_result(node)?);
        let name = node.onnx()?;
        let transposed = name == "ConvTranspose";
        let rank = graph.value(x).ty.rank()?;
        let ranked = |v: ValueId| graph.value(v).ty.rank() == Some(rank);
        if !ranked(w) || !ranked(y) {
            return None;
        }
        let group = group(node).ok()?.unsigned_abs();
        let [first, second] = [0, 1].map(|axis| extent(graph, w, axis));
        let grouped = |n: Option<u64>| n.and_then(|n| n.checked_mul(group));
        let (channels, filters) = if transposed { (first, grouped(second)) } else { (grouped(second), first) };
        // What the features say of themselves is what they are stored by.
        let agrees = |v: ValueId, n: Option<u64>| n.filter(|_| extent(graph, v, 1) == n);
        let (channels, filters) = (agrees(x, channels), agrees(y, filters));
        let depthwise = group > 1 && channels == Some(group) && filters == Some(group);
        let spatial = |v: ValueId, from: usize| {
            let shape = query.sizes.shape(graph, v).unwrap_or_default();
            shape.iter().skip(from).fold(1u64, |a, &b| a.saturating_mul(b))
        };
        let images = query.sizes.shape(graph, x).and_then(|s| s.first().copied()).unwrap_or(1);
        let places = if transposed { spatial(x, 2) } else { spatial(y, 2) };
        let (pixels, taps) = (images.saturating_mul(places), spatial(w, 2));
        let window = pixels.saturating_mul(taps);
        let dtype = kind(graph, x).map(|(dtype, _)| dtype);
        let constant = |slot: usize| node.operand(slot).is_none_or(|v| pads_with_zeros(query, v));
        let weights = constant(slots.w)
            && slots.bias.is_none_or(constant)
            && slots.by_channel.iter().all(|&slot| constant(slot))
            && slots.zero.and_then(|slot| node.operand(slot)).is_none_or(|v| is_zero(graph, v));
        let may_pad = weights && opset(node)? >= FIRST_PADDING_OPSET;
        Some(Conv {
            query,
            name,
            node,
            slots,
            dtype,
            rank,
            channels,
            filters,
            group,
            depthwise,
            transposed,
            pixels,
            taps,
            window,
            may_pad,
        })
    }

    /// Multiply-adds on these numbers of slots.
    fn work(&self, channels: u64, filters: u64) -> u64 {
        let depth = if self.depthwise { 1 } else { channels.div_ceil(self.group) };
        self.window.saturating_mul(depth).saturating_mul(filters)
    }

    /// What a table is asked for these numbers of slots.
    fn measured(&self, channels: u64, filters: u64, channels_last: bool, aligned: bool) -> Option<Convolution> {
        Some(Convolution {
            dtype: self.dtype?,
            channels_last,
            aligned,
            groups: self.group,
            depthwise: self.depthwise,
            taps: self.taps,
            channels,
            filters,
            pixels: self.pixels,
            work: self.work(channels, filters),
        })
    }

    /// Letters of the first two axes of the weights.
    fn head(&self) -> &'static str {
        // One channel in and out of each group: the first axis has them all, transposed or not.
        if self.transposed && !self.depthwise { "IO" } else { "OI" }
    }

    /// The kernel on features of so many slots.
    fn kernel(&self, x: &Side, y: &Side, weights: Layout, cost: Cost) -> Option<Offer> {
        if self.group > 1 && !self.depthwise {
            return self.grouped(x, y, weights, cost);
        }
        let (input, output) = if self.head() == "IO" { (0, 1) } else { (1, 0) };
        let mut w = with_slots(weights, output, self.filters?, y.slots?)?;
        if !self.depthwise {
            w = with_slots(w, input, self.channels?, x.slots?)?;
        }
        Some(self.call(x, y, w, cost))
    }

    /// The kernel on features with several channels in a group, none of which is padded.
    fn grouped(&self, x: &Side, y: &Side, w: Layout, cost: Cost) -> Option<Offer> {
        let even = x.slots == self.channels && y.slots == self.filters;
        let within = |extent: Option<u64>, block: u64| extent.is_some_and(|e| (e / self.group).is_multiple_of(block));
        let blocks = within(self.channels, x.layout.block_of(1)) && within(self.filters, y.layout.block_of(1));
        (even && blocks).then(|| self.call(x, y, w, cost))
    }

    fn call(&self, x: &Side, y: &Side, w: Layout, cost: Cost) -> Offer {
        let mut ins = vec![None; self.node.inputs.len()];
        let mut put = |slot: usize, layout: Option<Layout>| {
            if let Some(place) = ins.get_mut(slot) {
                *place = layout;
            }
        };
        put(0, stored(x.layout.clone()));
        put(self.slots.w, stored(w));
        if let (Some(filters), Some(slots)) = (self.filters, y.slots) {
            for slot in self.slots.bias.iter().chain(self.slots.by_channel) {
                let long = self.node.operand(*slot).is_some_and(|v| extent(self.query.graph, v, 0) == Some(filters));
                put(*slot, if long && filters > 1 { per_channel(filters, slots) } else { None });
            }
            // One filter has one number, which more slots would not repeat.
            if let Some(slot) = self.slots.bias.filter(|_| filters == 1) {
                put(slot, per_channel(filters, slots));
            }
        }
        let mut set = Vec::new();
        if let (true, Some(slots)) = (self.depthwise, x.slots.and_then(|s| i64::try_from(s).ok())) {
            set.push(("group".to_owned(), Attr::Int(slots)));
        }
        let outs = vec![stored(y.layout.clone())];
        call(FORM, self.name, KernelLayouts { ins, outs }, cost, set)
    }
}

/// How features are stored on one side of a convolution.
struct Side {
    layout: Layout,
    /// Slots of the channels, if they are known.
    slots: Option<u64>,
    /// Whether the kernel finds as many as it takes at a time.
    aligned: bool,
}

/// Features with their channels in one digit, with as many slots as a kernel likes or as they are.
fn whole(features: &Features, rank: usize, channels: Option<u64>, padded: bool) -> Option<Side> {
    let layout = features.layout(rank)?;
    let wanted = channels.map(|c| c.next_multiple_of(features.channels));
    if !padded {
        return Some(Side { layout, slots: channels, aligned: features.channels == 1 || wanted == channels });
    }
    let (channels, slots) = (channels?, wanted?);
    if channels == slots {
        return None;
    }
    Some(Side { layout: with_slots(layout, 1, channels, slots)?, slots: Some(slots), aligned: true })
}

impl Calls {
    pub(super) fn convolutions(&self, query: &NodeQuery<'_>) -> Option<Vec<Offer>> {
        let conv = Conv::of(query)?;
        let (dtype, rank) = kind(query.graph, conv.node.operand(0)?)?;
        let mut kernels = Vec::new();
        for features in self.layouts_of(dtype, rank) {
            if features.block() > 1 {
                self.blocked(&conv, features, &mut kernels);
            } else {
                self.channels_last(&conv, features, &mut kernels);
            }
        }
        Some(kernels)
    }

    /// What a convolution takes as ONNX has it, where that was measured.
    pub(super) fn plain_convolution(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let costs = self.costs.as_ref()?;
        let conv = Conv::of(query)?;
        let plain = conv.measured(conv.channels.unwrap_or(1), conv.filters.unwrap_or(1), false, true)?;
        costs.conv_ns(&plain).map(Cost::new)
    }

    /// What a dense convolution takes as ONNX has it whose features the library would pad on both sides if channels were last.
    fn unpadded(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let conv = Conv::of(query).filter(|conv| !conv.depthwise)?;
        let features = self.layouts_of(conv.dtype?, conv.rank).find(|features| features.pads_unaligned)?;
        let odd = |channels: &u64| *channels > features.images && !channels.is_multiple_of(features.channels);
        let (channels, filters) = (conv.channels.filter(odd)?, conv.filters.filter(odd)?);
        Some(self.pass(query) + Cost::new(conv.work(channels, filters) / features.macs_per_ns))
    }

    fn cost(&self, conv: &Conv<'_>, features: &Features, x: &Side, y: &Side) -> Cost {
        let slots = |side: &Side| side.slots.unwrap_or(1);
        let measured = self.costs.as_ref().zip(conv.measured(slots(x), slots(y), true, x.aligned && y.aligned));
        if let Some(ns) = measured.and_then(|(costs, conv)| costs.conv_ns(&conv)) {
            return Cost::new(ns);
        }
        // An image costs what it does with the channels that it lacks.
        let image = conv.group == 1 && x.slots.is_some_and(|channels| channels <= features.images);
        let channels = if image { slots(x).next_multiple_of(features.channels) } else { slots(x) };
        let work = Cost::new(conv.work(channels, slots(y)) / features.macs_per_ns);
        let [x, y] = [image || x.aligned, y.aligned];
        if features.pads_unaligned && !conv.depthwise && !x && !y {
            let padded = conv.node.operand(0).into_iter().chain(only_result(conv.node));
            return self.pass(conv.query) + work + self.moves(conv.query, padded);
        }
        self.pass(conv.query) + work.percent(if x && y { 100 } else { features.unaligned_percent })
    }

    /// With and without pad slots on either side.
    fn channels_last(&self, conv: &Conv<'_>, features: &Features, kernels: &mut Vec<Offer>) {
        for (pads_x, pads_y) in [(false, false), (true, true), (true, false), (false, true)] {
            let pads = pads_x || pads_y;
            let uneven = conv.depthwise && pads_x != pads_y;
            if (pads && (!conv.may_pad || (conv.group > 1 && !conv.depthwise))) || uneven {
                continue;
            }
            let x = whole(features, conv.rank, conv.channels, pads_x);
            let y = whole(features, conv.rank, conv.filters, pads_y);
            let (Some(x), Some(y)) = (x, y) else { continue };
            let cost = self.cost(conv, features, &x, &y);
            // Nothing is known of the weights but their rank, and nothing is padded.
            let weights = features.weights(conv.head(), conv.rank);
            let known = conv.channels.is_some() && conv.filters.is_some();
            let kernel = weights
                .and_then(|w| if known { conv.kernel(&x, &y, w, cost) } else { Some(conv.call(&x, &y, w, cost)) });
            kernels.extend(kernel);
        }
    }

    fn blocked(&self, conv: &Conv<'_>, features: &Features, kernels: &mut Vec<Offer>) {
        let (Some(channels), Some(filters), Some(layout)) = (conv.channels, conv.filters, features.layout(conv.rank))
        else {
            return;
        };
        let block = features.block();
        let side = |n: u64| Side { layout: layout.clone(), slots: Some(n.next_multiple_of(block)), aligned: true };
        let fits = |n: u64| conv.may_pad || n.is_multiple_of(block);
        let (head, rank) = (conv.head(), conv.rank);
        let plain = Side { layout: Layout::row_major(rank), slots: Some(channels), aligned: true };
        if features.reads_plain && conv.group == 1 && channels < block && fits(filters) {
            let y = side(filters);
            let cost = self.cost(conv, features, &plain, &y);
            kernels.extend(features.filters(head, rank).and_then(|w| conv.kernel(&plain, &y, w, cost)));
        }
        if fits(channels) && fits(filters) {
            let (x, y) = (side(channels), side(filters));
            let cost = self.cost(conv, features, &x, &y);
            let weights = if conv.depthwise { features.filters(head, rank) } else { features.weights(head, rank) };
            kernels.extend(weights.and_then(|w| conv.kernel(&x, &y, w, cost)));
        }
    }
}

/// Whether padding slots of a value are zeros wherever it is stored: it is a constant, or one that is dequantized, with no zero point.
fn pads_with_zeros(query: &NodeQuery<'_>, v: ValueId) -> bool {
    let maker = query.graph.node(query.graph.value(v).producer().0);
    let constant = |slot: usize| maker.operand(slot).is_none_or(|v| (query.is_constant)(v));
    let dequantized = maker.onnx() == Some("DequantizeLinear")
        && (0..maker.inputs.len()).all(constant)
        && maker.operand(2).is_none_or(|v| is_zero(query.graph, v));
    dequantized || (query.is_constant)(v)
}

/// Whether a constant is all zeros.
fn is_zero(graph: &Graph, v: ValueId) -> bool {
    graph.constant(v).is_some_and(Constant::is_zero)
}
