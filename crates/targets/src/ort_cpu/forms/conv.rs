//! Convolutions.

use crate::ort_cpu::costs::{ConvKernel, ConvShape, Reorder, Side};
use crate::ort_cpu::machine::{Machine, extents, image_of, image_or_signal, op};
use crate::ort_cpu::nodes::bias_fits;
use crate::ort_cpu::on_load;
use crate::ort_cpu::runs::{Runs, slots_of};
use crate::shared::forms::product::BROADCASTS_SINCE;
use relayout_ir::attr::Attr;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::ValueId;
use relayout_ir::layout::{Layout, Segment};
use relayout_ir::op::read::{Window, group, windows};
use relayout_ir::storage::ImageAxes;
use relayout_target_api::{Become, Candidates, Cost, NodeQuery, Offer, TargetForm};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "blocked_conv";

/// Convolutions of images and signals in blocks.
pub(super) struct Conv(pub(super) Arc<Machine>);

impl TargetForm for Conv {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Conv"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.0.conv_kernels(q)
    }

    fn offers_among(&self, q: &NodeQuery<'_>, candidates: Candidates<'_, '_>) -> Vec<Offer> {
        self.0.convs_among(q, candidates)
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        self.0.plain_conv(q)
    }
}

/// A convolution of images or signals with constant weights, and where their axes stand. `None` for operator sets without sums that
/// broadcast, which the guard of blocked files needs.
pub(super) fn conv_of(query: &NodeQuery<'_>) -> Option<(ImageAxes, ConvShape)> {
    conv_with(query, query.is_constant)
}

/// A convolution of images or signals with weights that are `known` in some way.
fn conv_with(query: &NodeQuery<'_>, known: &dyn Fn(ValueId) -> bool) -> Option<(ImageAxes, ConvShape)> {
    let node = query.graph.node(query.node);
    (node.opset >= BROADCASTS_SINCE).then_some(())?;
    let (x, w) = (node.operand(0)?, node.operand(1)?);
    let y = node.result(0)?;
    let constant = |slot| node.operand(slot).is_none_or(known);
    let windows = windows(query.graph, node).ok()?;
    let filters = extents(query.graph, w)?;
    let typed = query.graph.value(w).ty.dtype() == Some(DType::F32);
    if !typed || !constant(1) || !constant(2) || windows.iter().any(|w| w.pads.0 < 0 || w.pads.1 < 0) {
        return None;
    }
    let (axes, [n, c, h, w]) = image_or_signal(query, x)?;
    let [_, _, oh, ow] = image_of(query, y, axes)?;
    let [m, _, kh, kw] = axes.extents(&filters)?;
    (node.operand(2).is_none() || bias_fits(query.graph, node) == Some(true)).then_some(())?;
    let group = group(node).ok()?.unsigned_abs();
    (m % group == 0 && c % group == 0).then_some(())?;
    let (stride, dilation) = (along_image(&windows, |w| w.stride)?, along_image(&windows, |w| w.dilation)?);
    Some((axes, ConvShape { n, c, h, w, m, oh, ow, kh, kw, stride, dilation, group, activation: None }))
}

/// A number of each window, along rows and along columns; those of signals run along columns alone.
pub(super) fn along_image(windows: &[Window], number: impl Fn(&Window) -> i64) -> Option<[u64; 2]> {
    match windows {
        [h, w] => Some([h, w].map(|window| number(window).unsigned_abs())),
        [w] => Some([1, number(w).unsigned_abs()]),
        _ => None,
    }
}

/// What a convolution that ONNX Runtime would block has to gain by staying plain, in percent of its cost: so far costs are trusted. Inception v3
/// ran at 0.99 with four shields for which 1.4 % were predicted.
const DOUBT_PERCENT: u64 = 3;

impl Machine {
    pub(super) fn plain_conv(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let Some((axes, conv)) = conv_of(query) else { return self.conv_on_load(query) };
        let cost = Cost::new(self.costs.conv_ns(&conv, ConvKernel::Plain)?);
        // One of images stays plain only if its bias is computed, which is a node.
        let shield = if axes.h.is_some() { self.small_node() } else { Cost::ZERO };
        let taken = on_load::takes(query.graph, query.graph.node(query.node), self.block.channels());
        Some(cost + shield + if taken { cost.percent(DOUBT_PERCENT) } else { Cost::ZERO })
    }

    /// What a convolution costs whose weights ONNX Runtime computes when it loads the file. It blocks it then, with a reorder on
    /// each side, unless it can't.
    pub(super) fn conv_on_load(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let known = |v: ValueId| (query.is_constant)(v) || on_load::knows(query.graph, v);
        // It does not look outside of a body.
        let (axes, conv) = conv_with(query, &known).filter(|_| !query.in_body)?;
        if axes.h.is_none() || !on_load::takes(query.graph, query.graph.node(query.node), self.block.channels()) {
            return Some(Cost::new(self.costs.conv_ns(&conv, ConvKernel::Plain)?));
        }
        self.isolated_conv(&conv)
    }

    /// What a convolution costs that the runtime blocks between images in ONNX's order.
    pub(super) fn isolated_conv(&self, conv: &ConvShape) -> Option<Cost> {
        let kernel = |form| Some(Cost::new(self.costs.conv_ns(conv, form)?));
        let after = self.reorder(Reorder::Output, Side::Nchw, [conv.n, conv.m, conv.oh, conv.ow]);
        if conv.group == 1 && conv.c < self.block.channels() {
            return Some(kernel(ConvKernel::BlockedFromNchw)? + after);
        }
        let before = self.reorder(Reorder::Input, Side::Nchw, [conv.n, conv.c, conv.h, conv.w]);
        Some(before + kernel(ConvKernel::Blocked)? + after)
    }

    pub(super) fn conv_kernels(&self, query: &NodeQuery<'_>) -> Vec<Offer> {
        let Some((axes, conv)) = conv_of(query) else { return Vec::new() };
        let of = (axes, &conv);
        let mut kernels = Vec::new();
        if conv.group == 1 && conv.c < self.block.channels() {
            // Reads ordinary NCHW, of any number of channels.
            kernels.extend(self.conv(query, of, ConvKernel::BlockedFromNchw, [None, None]));
        }
        if self.has_whole_groups(&conv) {
            kernels.extend(self.conv(query, of, ConvKernel::Blocked, [None, None]));
        }
        kernels
    }

    /// Whether the groups of a convolution are whole blocks, or a channel each, or one.
    pub(super) fn has_whole_groups(&self, conv: &ConvShape) -> bool {
        let whole = |channels: u64| (channels / conv.group).is_multiple_of(self.block.channels());
        conv.is_depthwise() || conv.group == 1 || (whole(conv.c) && whole(conv.m))
    }

    /// Whether a form runs a convolution in blocks.
    pub(super) fn runs_blocked(&self, query: &NodeQuery<'_>) -> bool {
        !self.conv_kernels(query).is_empty() || self.wide_conv(query).is_some()
    }

    /// Kernels of a convolution that reads or leaves channels with pad slots between their runs: `read` and `left` are where these
    /// may be. Its constant weights and bias have zeros there.
    pub(crate) fn convs_in_runs(&self, query: &NodeQuery<'_>, read: &[&[Segment]], left: &[&[Segment]]) -> Vec<Offer> {
        let Some((axes, conv)) = conv_of(query).filter(|(axes, _)| axes.h.is_some()) else { return Vec::new() };
        let of = (axes, &conv);
        if conv.is_depthwise() {
            let mut maps = read.to_vec();
            maps.extend(left.iter().filter(|map| !read.contains(map)));
            let each = maps.into_iter().filter_map(|map| self.conv(query, of, ConvKernel::Blocked, [Some(map); 2]));
            return each.collect();
        }
        if conv.group > 1 {
            return Vec::new();
        }
        let mut kernels = Vec::new();
        if conv.c < self.block.channels() {
            let from_nchw = |map| self.conv(query, of, ConvKernel::BlockedFromNchw, [None, Some(map)]);
            kernels.extend(left.iter().copied().filter_map(from_nchw));
        }
        for from in read.iter().copied().map(Some).chain([None]) {
            for to in left.iter().copied().map(Some).chain(from.map(|_| None)) {
                kernels.extend(self.conv(query, of, ConvKernel::Blocked, [from, to]));
            }
        }
        kernels
    }

    /// The kernel whose operand and result have the pad slots of their channels there.
    pub(super) fn conv(
        &self,
        query: &NodeQuery<'_>,
        (axes, conv): (ImageAxes, &ConvShape),
        form: ConvKernel,
        [read, left]: [Runs<'_>; 2],
    ) -> Option<Offer> {
        let node = query.graph.node(query.node);
        let slots = ConvShape { c: slots_of(conv.c, read), m: slots_of(conv.m, left), ..*conv };
        let padded = |layout: Layout, axis: usize, runs: Runs<'_>| match runs {
            Some(map) => layout.with_slot_map(axis, map).ok(),
            None => Some(layout),
        };
        let bias = match (node.operand(2), left) {
            (None, _) => None,
            (Some(_), None) => Some(self.per_channel(conv.m)),
            (Some(_), runs) => Some(padded(Layout::row_major(1), 0, runs)?),
        };
        let depthwise = conv.is_depthwise();
        let of_images = || [self.block.dense_weights(), self.block.filter_weights()];
        let [dense, filters] = if axes.h.is_some() { of_images() } else { self.block.signal_weights() };
        let weights = if depthwise || form == ConvKernel::BlockedFromNchw {
            padded(filters, 0, left)?
        } else {
            padded(padded(dense, 0, left)?, 1, read)?
        };
        let blocked = |runs: Runs<'_>| padded(self.blocked_in(axes), axes.c, runs);
        let x = if form == ConvKernel::BlockedFromNchw { None } else { Some(blocked(read)?) };
        let slots = if depthwise { slots.grouped(slots.c) } else { slots };
        let group = depthwise.then(|| ("group".to_owned(), Attr::Int(self.round(slots.c) as i64)));
        Some(Offer {
            form: FORM,
            layouts: KernelLayouts { ins: vec![x, Some(weights), bias], outs: vec![Some(blocked(left)?)] },
            cost: Cost::new(self.costs.conv_ns(&slots, form)?),
            becomes: Some(Become {
                op: op("Conv"),
                opset: 1,
                operands: None,
                set: group.into_iter().collect(),
                remove: Vec::new(),
            }),
            // Sums of a signal are formed otherwise than by the runtime, which has no such kernel to take on load.
            adds_zeros: axes.h.is_none(),
        })
    }
}
