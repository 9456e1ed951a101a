//! Ops on features that find their axes by position: pools, resizes, normalizations, rearrangements of depth and space.

use super::data::Features;
use super::{Calls, FIRST_PADDING_OPSET, call, extent, kind, only_result, opset, per_channel, stored, with_slots};
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Node, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::read::epsilon;
use relayout_ir::op::{int_or_default, normalize_axis};
use relayout_target_api::{Cost, NodeQuery, Offer, TargetForm};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "on_features";

/// Other ops that find the channels of features by position.
pub(super) struct OnFeatures(pub(super) Arc<Calls>);

impl TargetForm for OnFeatures {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &[
            "MaxPool",
            "AveragePool",
            "GlobalAveragePool",
            "GlobalMaxPool",
            "LpPool",
            "GlobalLpPool",
            "LRN",
            "DepthToSpace",
            "SpaceToDepth",
            "Resize",
            "Upsample",
            "GridSample",
            "BatchNormalization",
            "InstanceNormalization",
            "GroupNormalization",
            "QuantizeLinear",
            "DequantizeLinear",
        ]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        let written = opset(q.graph.node(q.node)).is_some();
        Some(q).filter(|_| written).and_then(|q| self.0.others(q)).unwrap_or_default()
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        let offers = self.offers(q);
        self.0.standard(q, &offers, self.0.data.ops.other_moves_percent)
    }
}

/// What the op asks of the channels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Channels {
    /// Each by itself: padding slots may hold anything finite, and hold it afterwards.
    Apart,
    /// They are counted, mixed or rearranged: no padding slots.
    Counted,
}

/// A node that has a form in the dialect.
struct Use<'a> {
    name: &'a str,
    channels: Channels,
    /// Slots that hold a number per channel.
    by_channel: &'static [usize],
}

impl<'a> Use<'a> {
    fn of(query: &NodeQuery<'a>) -> Option<Use<'a>> {
        let node = query.graph.node(query.node);
        let (channels, by_channel): (Channels, &[usize]) = match node.onnx()? {
            "MaxPool" | "AveragePool" | "GlobalAveragePool" | "GlobalMaxPool" => (Channels::Apart, &[]),
            "LpPool" | "GlobalLpPool" | "LRN" | "DepthToSpace" | "SpaceToDepth" => (Channels::Counted, &[]),
            "Resize" | "Upsample"
                if (node.onnx() == Some("Resize")) == (node.opset >= 10) && resizes_space(query, node) =>
            {
                // A list of sizes says how many channels there are.
                (if node.operand(3).is_some() { Channels::Counted } else { Channels::Apart }, &[])
            }
            "GridSample" if node.opset >= 16 => (Channels::Apart, &[]),
            "BatchNormalization" if infers(node) => (Channels::Apart, &[1, 2, 3, 4]),
            "InstanceNormalization" if divides(node) => (Channels::Apart, &[1, 2]),
            "GroupNormalization" if node.opset >= 18 => (Channels::Counted, &[]),
            "QuantizeLinear" | "DequantizeLinear" if is_by_channel(query, node) => (Channels::Apart, &[1, 2]),
            _ => return None,
        };
        Some(Use { name: node.onnx()?, channels, by_channel })
    }
}

/// Whether only spatial extents change. The dialect's form has no `axes`.
fn resizes_space(query: &NodeQuery<'_>, node: &Node) -> bool {
    let shape = |v: Option<ValueId>| v.and_then(|v| query.graph.value(v).ty.shape());
    let (x, y) = (shape(node.operand(0)), shape(node.result(0)));
    let same = |axis: usize| x.zip(y).is_some_and(|(x, y)| x.get(axis) == y.get(axis));
    same(0) && same(1) && node.ints("axes").is_none()
}

/// Whether it is a cubic Resize that ONNX Runtime refuses to run channels last. It moves the Transposes of the function's body through
/// the Resize when it loads the file, and has kernels for the two inner axes only, but for those that filter against aliasing.
fn is_refused_channels_last(node: &Node) -> bool {
    node.str("mode") == Some("cubic") && !node.flag("antialias")
}

/// Whether a normalization divides by something that is never zero, also where there are only zeros.
fn divides(node: &Node) -> bool {
    epsilon(node).is_some_and(|epsilon| epsilon > 0.0)
}

/// Whether a batch normalization is one of inference, per channel.
fn infers(node: &Node) -> bool {
    !node.flag("training_mode") && int_or_default(node, "spatial") == Some(1) && divides(node)
}

/// Whether scales are one per channel: with blocks of channels the standard op has no axis to name.
fn is_by_channel(query: &NodeQuery<'_>, node: &Node) -> bool {
    let scales = node.operand(1).and_then(|v| query.graph.value(v).ty.rank());
    let rank = node.operand(0).and_then(|v| query.graph.value(v).ty.rank()).unwrap_or(0);
    let axis = int_or_default(node, "axis").and_then(|axis| normalize_axis(axis, rank));
    scales == Some(1) && !node.flag("block_size") && axis == Some(1)
}

impl Calls {
    pub(super) fn others(&self, query: &NodeQuery<'_>) -> Option<Vec<Offer>> {
        let (graph, node) = (query.graph, query.graph.node(query.node));
        if let Some(kernels) = self.dequantized_weights(query) {
            return Some(kernels);
        }
        let used = Use::of(query).filter(|used| !self.data.ops.channels_first.iter().any(|op| op == used.name))?;
        let (x, y) = (node.operand(0)?, only_result(node)?);
        let (mut dtype, rank) = kind(graph, x)?;
        if used.name == "QuantizeLinear" {
            dtype = graph.value(y).ty.dtype()?;
        }
        if graph.value(y).ty.rank() != Some(rank) {
            return None;
        }
        let constant = used.by_channel.iter().filter_map(|&s| node.operand(s)).all(|v| (query.is_constant)(v));
        let may_pad = used.channels == Channels::Apart && constant && opset(node)? >= FIRST_PADDING_OPSET;
        let [before, after] = [x, y].map(|v| extent(graph, v, 1));
        let mut kernels = Vec::new();
        for features in self.layouts_of(dtype, rank) {
            if features.block() == 1 && used.name == "Resize" && is_refused_channels_last(node) {
                continue;
            }
            // Whole channels of a quantization have an axis to name, which the standard op renumbers.
            if features.block() == 1 && matches!(used.name, "QuantizeLinear" | "DequantizeLinear") {
                continue;
            }
            let widths: &[bool] = if features.channels > 1 && may_pad { &[false, true] } else { &[false] };
            for &padded in widths {
                let fits = |n: Option<u64>| side(features, rank, n, padded, may_pad);
                let (Some((from, slots)), Some((to, _))) = (fits(before), fits(after)) else { continue };
                let cost = self.pass(query);
                kernels.push(kernel(&used, query, (from, slots), to, before, cost));
            }
        }
        Some(kernels)
    }
}

impl Calls {
    /// Weights that are dequantized right before the convolution that reads them, in the layouts that its kernels ask of them:
    /// where filters are in blocks the standard op has no axis to name.
    fn dequantized_weights(&self, query: &NodeQuery<'_>) -> Option<Vec<Offer>> {
        let (graph, node) = (query.graph, query.graph.node(query.node));
        let y = only_result(node).filter(|_| node.onnx() == Some("DequantizeLinear"))?;
        let rank = graph.value(y).ty.rank()?;
        let reader = graph.uses(y).iter().find(|u| u.slot == 1).map(|u| u.node)?;
        if !matches!(graph.node(reader).onnx(), Some("Conv" | "ConvTranspose")) || node.flag("block_size") {
            return None;
        }
        let by_channel = node.operand(1).and_then(|v| graph.value(v).ty.rank()) == Some(1);
        let axis = normalize_axis(int_or_default(node, "axis")?, rank)?;
        let filters = extent(graph, y, axis)?;
        let mut kernels: Vec<Offer> = Vec::new();
        for read in self.convolutions(&query.at(reader)).unwrap_or_default() {
            let Some(layout) = read.layouts.ins.get(1).cloned().flatten() else { continue };
            if layout.as_permutation().is_some() {
                continue;
            }
            let scales = if by_channel { per_channel(filters, slots(&layout, axis, filters)) } else { None };
            let mut ins = vec![scales; node.inputs.len()];
            if let Some(first) = ins.first_mut() {
                *first = Some(layout.clone());
            }
            let layouts = KernelLayouts { ins, outs: vec![Some(layout)] };
            if !kernels.iter().any(|k| k.layouts == layouts) {
                kernels.push(call(FORM, "DequantizeLinear", layouts, self.pass(query), Vec::new()));
            }
        }
        Some(kernels)
    }
}

/// Slots of an axis of this extent.
fn slots(layout: &Layout, axis: usize, extent: u64) -> u64 {
    match layout.slot_map(axis) {
        Some(segments) => segments.iter().map(|s| s.slots).sum(),
        None => extent.next_multiple_of(layout.block_of(axis).max(1)),
    }
}

/// The layout of features and the slots of their channels.
fn side(
    features: &Features,
    rank: usize,
    channels: Option<u64>,
    padded: bool,
    may_pad: bool,
) -> Option<(Layout, Option<u64>)> {
    let layout = features.layout(rank)?;
    let block = features.block();
    if block > 1 {
        let channels = channels.filter(|c| may_pad || c.is_multiple_of(block))?;
        return Some((layout, Some(channels.next_multiple_of(block))));
    }
    if !padded {
        return Some((layout, channels));
    }
    let channels = channels.filter(|c| !c.is_multiple_of(features.channels))?;
    let slots = channels.next_multiple_of(features.channels);
    Some((with_slots(layout, 1, channels, slots)?, Some(slots)))
}

fn kernel(
    used: &Use<'_>,
    query: &NodeQuery<'_>,
    (from, slots): (Layout, Option<u64>),
    to: Layout,
    channels: Option<u64>,
    cost: Cost,
) -> Offer {
    let node = query.graph.node(query.node);
    let mut ins = vec![None; node.inputs.len()];
    if let Some(first) = ins.first_mut() {
        *first = stored(from);
    }
    if let (Some(channels), Some(slots)) = (channels, slots) {
        for (slot, place) in ins.iter_mut().enumerate().filter(|(slot, _)| used.by_channel.contains(slot)) {
            if node.operand(slot).is_some() {
                *place = per_channel(channels, slots);
            }
        }
    }
    call(FORM, used.name, KernelLayouts { ins, outs: vec![stored(to)] }, cost, Vec::new())
}
