//! Scales and shifts per channel, as depthwise convolutions of one tap.

use crate::ort_cpu::costs::{ConvShape, Form as Kernel, Spread};
use crate::ort_cpu::finish::can_write_scale as can_write;
use crate::ort_cpu::machine::{Machine, image_of};
use crate::ort_cpu::runs::{Runs, slots_of};
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::ValueId;
use relayout_ir::storage::ImageAxes;
use relayout_target::{Candidates, Cost, Form, NodeQuery, Offer};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "blocked_scale";

/// Scales and shifts per channel of blocked images.
pub(super) struct Scales(pub(super) Arc<Machine>);

impl Form for Scales {
    fn name(&self) -> &'static str {
        FORM
    }

    fn of(&self) -> &'static [&'static str] {
        &["BatchNormalization", "Add", "Sub", "Mul", "Div"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.0.scale_kernels(q).into_iter().filter(|offer| can_write(q.graph, q.node, &offer.layouts)).collect()
    }

    fn offers_among(&self, q: &NodeQuery<'_>, candidates: Candidates<'_, '_>) -> Vec<Offer> {
        let written = |offer: &Offer| can_write(q.graph, q.node, &offer.layouts);
        self.0.among_runs(q, candidates, |axes, map| self.0.scale_kernel(q, axes, Some(map)).filter(written))
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        self.0.plain_scale(q)
    }
}

impl Machine {
    /// Kernels of element-wise ops between an image and a number per channel, or per image and channel.
    pub(super) fn scale_kernels(&self, query: &NodeQuery<'_>) -> Vec<Offer> {
        ImageAxes::ORIGINS.into_iter().filter_map(|axes| self.scale_kernel(query, axes, None)).collect()
    }

    /// What such an op costs as ONNX has it.
    pub(super) fn plain_scale(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let axes = ImageAxes::ORIGINS.into_iter().find(|&axes| self.scale_kernel(query, axes, None).is_some())?;
        let node = query.graph.node(query.node);
        let [n, c, h, w] = image_of(query, node.outputs.first().copied().flatten()?, axes)?;
        let last = Spread::Last { channels: c };
        let spread = if axes.c == 1 { Spread::Channel { pixels: h.saturating_mul(w) } } else { last };
        let elements = n.saturating_mul(c).saturating_mul(h).saturating_mul(w);
        Some(Cost::new(self.costs.elementwise_ns("Mul", elements, spread)))
    }

    /// The kernel of such an op of an image whose axes stand there, and the pad slots of its channels.
    pub(super) fn scale_kernel(&self, query: &NodeQuery<'_>, axes: ImageAxes, runs: Runs<'_>) -> Option<Offer> {
        let node = query.graph.node(query.node);
        let y = node.outputs.first().copied().flatten()?;
        let [n, c, h, w] = image_of(query, y, axes)?;
        let operands: Vec<ValueId> = node.inputs.iter().copied().collect::<Option<_>>()?;
        let shape = |v: ValueId| query.graph.value(v).ty.shape();
        let full = operands.iter().position(|&v| !(query.is_constant)(v) && shape(v) == shape(y))?;
        let blocked = Some(self.blocked_runs(axes, runs)?);
        let mut ins = vec![None; operands.len()];
        ins[full].clone_from(&blocked);
        let others = || operands.iter().enumerate().filter(|(slot, _)| *slot != full);
        let constant = others().all(|(_, &v)| (query.is_constant)(v));
        match node.onnx()? {
            "BatchNormalization" if full == 0 && axes.c == 1 && constant && node.outputs.len() == 1 => {}
            "Add" | "Sub" | "Mul" | "Div" if constant && others().all(|(_, &v)| is_per_channel(query, v, axes, c)) => {}
            // Squeeze and excitation, or what is said of an image besides: the numbers are computed, and in blocks themselves.
            "Mul" | "Add" if query.graph.value(y).ty.shape()?.first()?.is_const() => {
                let (slot, &scale) = others().next()?;
                if image_of(query, scale, axes)? != [n, c, 1, 1] || h * w < 2 || (query.is_constant)(scale) {
                    return None;
                }
                ins[slot].clone_from(&blocked);
            }
            _ => return None,
        }
        let slots = slots_of(c, runs);
        let one_tap = ConvShape { n, h, w, ..ConvShape::same(slots, slots, [h, w], 1, 1).grouped(slots) };
        let alone = Cost::new(self.costs.conv_ns(&one_tap, Kernel::Blocked)?);
        let computed = node.onnx() == Some("Add") && ins.iter().flatten().count() == 2;
        let in_bias = computed && n == 1 && runs.is_none() && self.has_room_in_bias(query, operands[full], c);
        let cost = if in_bias { self.small_node().times(2) } else { alone };
        Some(Offer {
            form: FORM,
            layouts: KernelLayouts { ins, outs: vec![blocked] },
            cost,
            becomes: None,
            adds_zeros: false,
        })
    }

    /// Whether a value is that of a convolution which only one node reads, so that a shift per channel can go into its bias.
    fn has_room_in_bias(&self, query: &NodeQuery<'_>, x: ValueId, channels: u64) -> bool {
        let graph = query.graph;
        let conv = NodeQuery { node: graph.value(x).producer().0, ..*query };
        graph.node(conv.node).onnx() == Some("Conv")
            && graph.only_use(x).is_some()
            && channels.is_multiple_of(self.block.channels())
            && self.runs_blocked(&conv)
    }
}

/// Whether a value has one entry per channel of an image whose axes stand there, and nothing else.
fn is_per_channel(query: &NodeQuery<'_>, v: ValueId, axes: ImageAxes, channels: u64) -> bool {
    let Some(shape) = query.sizes.shape(query.graph, v) else { return false };
    let axis = (shape.len() + axes.c).checked_sub(axes.rank());
    let along = |(i, &d): (usize, &u64)| d == 1 || (Some(i) == axis && d == channels);
    shape.len() <= axes.rank()
        && channels > 1
        && shape.iter().enumerate().all(along)
        && shape.iter().product::<u64>() == channels
}
