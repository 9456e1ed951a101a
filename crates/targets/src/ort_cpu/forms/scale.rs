//! Scales and shifts per channel of a blocked image as depthwise convolutions of one tap: `y = x * w + b`.
//!
//! With constant scales the weights are packed here, zeros where no channel is. Computed scales (squeeze and excitation) are
//! weights that another op computes: blocked, `[N, C, 1, 1]` is a plain vector, which a Reshape makes the filters. Computed shifts
//! are biases in the same way; a pass takes them into the convolution before if only they read it. Images of a batch have numbers of
//! their own, so they become channels of one image.

use crate::ort_cpu::costs::{ConvKernel, ConvShape, Spread};
use crate::ort_cpu::machine::{Machine, image_of};
use crate::ort_cpu::nodes::{become_one_tap, reshaped};
use crate::ort_cpu::runs::{Runs, slots_of};
use crate::shared::forms::scaled::Scalings;
use crate::shared::spans::SHORT;
use relayout_eval::{Affine, reading};
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::{Layout, Segment};
use relayout_ir::storage::{ImageAxes, axes_in_runs};
use relayout_target_api::{Candidates, Cost, Fragment, NodeQuery, Offer, Piece, Refused, TargetForm};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "blocked_scale";

/// Scales and shifts of channels that lie innermost, of any tensor.
pub(super) fn innermost(machine: &Arc<Machine>) -> Scalings {
    let price = |spread: fn([u64; 3]) -> Spread| {
        let machine = Arc::clone(machine);
        move |of: [u64; 3]| {
            let elements = of.into_iter().fold(1, u64::saturating_mul);
            Cost::new(machine.costs.elementwise_ns("Mul", elements, spread(of)))
        }
    };
    let plain = price(|[_, _, pixels]| Spread::Channel { pixels });
    Scalings { plain: Box::new(plain), pass: Box::new(price(|[_, channels, _]| Spread::Last { channels })) }
}

/// Scales and shifts per channel of blocked images.
pub(super) struct Scales(pub(super) Arc<Machine>);

impl TargetForm for Scales {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["BatchNormalization", "Add", "Sub", "Mul", "Div"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        ImageAxes::ORIGINS.into_iter().filter_map(|axes| self.offer(q, axes, None)).collect()
    }

    fn offers_among(&self, q: &NodeQuery<'_>, candidates: Candidates<'_, '_>) -> Vec<Offer> {
        self.0.among_runs(q, candidates, |axes, map| self.offer(q, axes, Some(map)))
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        let of = |axes| Some((axes, self.layouts(q, axes, None)?.1));
        let (axes, [n, c, h, w]) = ImageAxes::ORIGINS.into_iter().find_map(of)?;
        // Short spans are priced by order.
        let first = axes.c == 1 || c < SHORT;
        let spread = if first { Spread::Channel { pixels: h.saturating_mul(w) } } else { Spread::Last { channels: c } };
        let elements = n.saturating_mul(c).saturating_mul(h).saturating_mul(w);
        Some(Cost::new(self.0.costs.elementwise_ns("Mul", elements, spread)))
    }

    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        let scaled = Scaled::recognize(piece.graph, piece.node, piece.layouts);
        let made = scaled.and_then(|scaled| scaled.write(piece));
        made.ok_or_else(|| Refused::new(piece, "can't be a convolution of one tap"))
    }
}

impl Scales {
    /// The offer for an image whose axes stand there, and the pad slots of its channels.
    pub(super) fn offer(&self, query: &NodeQuery<'_>, axes: ImageAxes, runs: Runs<'_>) -> Option<Offer> {
        let (layouts, [n, c, h, w]) = self.layouts(query, axes, runs)?;
        let scaled = Scaled::recognize(query.graph, query.node, &layouts)?;
        let slots = slots_of(c, runs);
        let one_tap = ConvShape { n, h, w, ..ConvShape::same(slots, slots, [h, w], 1, 1).grouped(slots) };
        let alone = Cost::new(self.0.costs.conv_ns(&one_tap, ConvKernel::Blocked)?);
        let shifts = matches!(scaled.by, By::Shift(_));
        let in_bias = shifts && n == 1 && runs.is_none() && self.has_room_in_bias(query, scaled.x, c);
        let cost = if in_bias { self.0.small_node().times(2) } else { alone };
        Some(Offer { form: FORM, layouts, cost, becomes: None, adds_zeros: false })
    }

    /// The layouts in which an op between such an image and a number per channel, or per image and channel, is one of blocks, and the
    /// image's extents.
    pub(super) fn layouts(
        &self,
        query: &NodeQuery<'_>,
        axes: ImageAxes,
        runs: Runs<'_>,
    ) -> Option<(KernelLayouts, [u64; 4])> {
        let node = query.graph.node(query.node);
        let y = node.result(0)?;
        let image @ [n, c, h, w] = image_of(query, y, axes)?;
        let operands: Vec<ValueId> = node.inputs.iter().copied().collect::<Option<_>>()?;
        let shape = |v: ValueId| query.graph.value(v).ty.shape();
        let full = operands.iter().position(|&v| !(query.is_constant)(v) && shape(v) == shape(y))?;
        let blocked = Some(self.0.blocked_runs(axes, runs)?);
        let mut ins = vec![None; operands.len()];
        ins[full].clone_from(&blocked);
        let others = || operands.iter().enumerate().filter(|(slot, _)| *slot != full);
        let constant = others().all(|(_, &v)| (query.is_constant)(v));
        match node.onnx()? {
            "BatchNormalization" if full == 0 && axes.c == 1 && constant && node.outputs.len() == 1 => {}
            "Add" | "Sub" | "Mul" | "Div" if constant && others().all(|(_, &v)| is_per_channel(query, v, axes, c)) => {}
            // Squeeze and excitation, or what is said of an image besides: the numbers are computed, and in blocks themselves.
            "Mul" | "Add" if shape(y)?.first()?.is_const() => {
                let (slot, &scale) = others().next()?;
                if image_of(query, scale, axes)? != [n, c, 1, 1] || h * w < 2 || (query.is_constant)(scale) {
                    return None;
                }
                ins[slot].clone_from(&blocked);
            }
            _ => return None,
        }
        Some((KernelLayouts { ins, outs: vec![blocked] }, image))
    }

    /// Whether a value is that of a convolution which only one node reads, so that a shift per channel can go into its bias.
    fn has_room_in_bias(&self, query: &NodeQuery<'_>, x: ValueId, channels: u64) -> bool {
        let graph = query.graph;
        let conv = query.at(graph.value(x).producer().0);
        graph.node(conv.node).onnx() == Some("Conv")
            && graph.only_use(x).is_some()
            && channels.is_multiple_of(self.0.block.channels())
            && self.0.runs_blocked(&conv)
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

/// What is done to the channels of an image.
pub(super) enum By {
    /// The same to those of each image.
    Constant(Affine),
    /// They are multiplied by this, a number per image and channel.
    Scale(ValueId),
    /// This is added.
    Shift(ValueId),
}

/// An image whose channels are scaled or shifted.
pub(super) struct Scaled {
    pub(super) x: ValueId,
    pub(super) by: By,
    blocked: Layout,
    axes: ImageAxes,
    /// Channels with those that only fill blocks.
    slots: i64,
}

impl Scaled {
    /// Where operands with a layout are the image, and computed numbers.
    pub(super) fn recognize(graph: &Graph, n: NodeId, layouts: &KernelLayouts) -> Option<Scaled> {
        let node = graph.node(n);
        let blocked = layouts.outs.first()?.clone()?;
        let (axes, block) = axes_in_runs(&blocked)?;
        let operands = node.inputs.iter().zip(&layouts.ins).filter(|(_, layout)| layout.is_some());
        let operands: Vec<ValueId> = operands.map(|(v, _)| *v).collect::<Option<_>>()?;
        let shape = |v: ValueId| graph.value(v).ty.shape();
        let full = operands.iter().position(|&v| shape(v) == node.result(0).and_then(shape))?;
        let x = operands[full];
        let channels = u64::try_from(shape(x)?.get(axes.c)?.as_const()?).ok()?;
        let slots = slots_of(channels, blocked.slot_map(axes.c)).next_multiple_of(block) as i64;
        let by = match (&operands[..], node.onnx()?) {
            ([_], _) => By::Constant(reading(graph, node, x, Some(axes.c), usize::try_from(channels).ok()?)?),
            (&[a, b], "Mul") => By::Scale(if full == 0 { b } else { a }),
            (&[a, b], "Add") => By::Shift(if full == 0 { b } else { a }),
            _ => return None,
        };
        Some(Scaled { x, by, blocked, axes, slots })
    }

    fn write(self, piece: &Piece<'_>) -> Option<Fragment> {
        let (graph, slots) = (piece.graph, self.slots);
        let mut made = Fragment::new(piece, FORM);
        let shape = graph.value(self.x).ty.shape()?;
        let extent = |axis: Option<usize>| axis.map_or(Some(Dim::ONE), |axis| shape.get(axis).cloned());
        let [h, w] = [extent(self.axes.h)?, extent(Some(self.axes.w))?];
        let numbers = |dims: &[i64]| dims.iter().map(|&d| Dim::from(d)).collect::<Vec<_>>();
        let images = match &self.by {
            By::Constant(_) => 1,
            By::Scale(_) | By::Shift(_) => shape.get(self.axes.n)?.as_const()?,
        };
        let wide = images * slots;
        let filters = [wide, 1, 1, 1];
        let taps = match &self.by {
            By::Constant(affine) => {
                let runs = self.blocked.slot_map(self.axes.c);
                let packed = |of: &[f64], dims: &[i64]| Constant::floats(widened(of, slots as usize, runs), dims);
                let scale = made.constant(made.named("scale"), packed(&affine.scale, &filters));
                let shifts = !affine.keeps_origin();
                let shift = shifts.then(|| made.constant(made.named("shift"), packed(&affine.shift, &[wide])));
                [Some(scale), shift]
            }
            By::Scale(scale) => [Some(reshaped(&mut made, graph, *scale, &filters, numbers(&filters))), None],
            By::Shift(shift) => {
                let unit = made.constant("unit", Constant::floats(vec![1.0; wide as usize], &filters));
                [Some(unit), Some(reshaped(&mut made, graph, *shift, &[wide], numbers(&[wide])))]
            }
        };
        let flat = [Dim::ONE, Dim::from(wide), h, w];
        let x = match images {
            1 => self.x.into(),
            _ => reshaped(&mut made, graph, self.x, &[1, wide, 0, 0], flat.to_vec()),
        };
        let operands = std::iter::once(x).chain(taps.into_iter().flatten()).collect();
        become_one_tap(&mut made, piece, operands, images, &flat);
        Some(made)
    }
}

/// With channels that only fill blocks: the last one, or where runs have pad slots.
fn widened(numbers: &[f64], slots: usize, runs: Option<&[Segment]>) -> Vec<f64> {
    let mut wide = vec![0.0; slots];
    let mut left = numbers.iter();
    let whole = [Segment { len: numbers.len() as u64, slots: slots as u64 }];
    let mut at = 0;
    for run in runs.unwrap_or(&whole) {
        for (to, from) in wide.iter_mut().skip(at).zip(left.by_ref().take(run.len as usize)) {
            *to = *from;
        }
        at += run.slots as usize;
    }
    wide
}
