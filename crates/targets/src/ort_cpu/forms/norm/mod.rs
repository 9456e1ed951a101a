//! Normalizations over groups of channels, of images in blocks.
//!
//! ONNX Runtime has no blocked kernel for them. Two forms are written with what it has: [`rows`] and [`channels`]. Each is priced as a
//! multiple of some times that were measured; the ratios were taken interleaved, on images of 16,000 to 600,000 elements.

mod channels;
mod rows;

pub(super) use channels::NormsOfChannels;
pub(super) use rows::NormsOfRows;

use crate::ort_cpu::costs::{AxisShape, ConvKernel, ConvShape, Spread};
use crate::ort_cpu::machine::{Machine, image};
use relayout_eval::{Affine, floats};
use relayout_ir::dim::Dim;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::raised::GroupNorm;
use relayout_target_api::{Cost, NodeQuery, Offer};
use std::sync::Arc;

/// Passes of `InstanceNormalization` over a row, each as long as a mean of it: the mean, the squares, the result.
const ROW_PASSES: u64 = 3;

/// A raised normalization.
struct Norm {
    x: ValueId,
    y: ValueId,
    /// Its own scale and bias.
    affine: [ValueId; 2],
    /// Whether these have an entry per group, not one per channel.
    per_group: bool,
    /// How many there are, perhaps a symbol.
    images: Dim,
    channels: i64,
    /// Rows and columns, where they are numbers.
    pixels: Option<[i64; 2]>,
    op: GroupNorm,
}

impl Norm {
    fn recognize(graph: &Graph, n: NodeId) -> Option<Norm> {
        let node = graph.node(n);
        let op = GroupNorm::of(node)?;
        let (x, y, affine) = (node.operand(0)?, node.result(0)?, [node.operand(1)?, node.operand(2)?]);
        let [images, channels, h, w] = graph.value(x).ty.shape()? else { return None };
        let (images, channels) = (images.clone(), channels.as_const()?);
        let pixels = h.as_const().zip(w.as_const()).map(|(h, w)| [h, w]);
        let entries = graph.value(affine[0]).ty.const_shape()?.iter().product::<i64>();
        let per_group = entries == op.groups;
        (channels % op.groups == 0).then_some(Norm { x, y, affine, per_group, images, channels, pixels, op })
    }

    /// Channels of a group.
    fn each(&self) -> i64 {
        self.channels / self.op.groups
    }

    /// Its own scale and bias, per channel.
    fn per_channel(&self, graph: &Graph) -> Option<Affine> {
        let [scale, shift] = self.affine.map(|v| {
            let numbers = floats(graph.constant(v)?)?;
            let each = usize::try_from(self.channels).ok()?.checked_div(numbers.len())?;
            Some(numbers.into_iter().flat_map(|x| std::iter::repeat_n(x, each)).collect())
        });
        Some(Affine { scale: scale?, shift: shift? })
    }
}

/// A raised normalization at the size hints, priced on a machine.
struct Priced<'m> {
    machine: &'m Arc<Machine>,
    norm: Norm,
    image: [u64; 4],
}

impl<'m> Priced<'m> {
    fn recognize(machine: &'m Arc<Machine>, query: &NodeQuery<'_>) -> Option<Priced<'m>> {
        let norm = Norm::recognize(query.graph, query.node)?;
        let image = image(query, norm.x)?;
        Some(Priced { machine, norm, image })
    }

    fn elements(&self) -> u64 {
        self.image.into_iter().fold(1, u64::saturating_mul)
    }

    /// A form of whole blocks of channels, if it is the cheaper one of both, which run in the same layouts.
    fn offers(&self, query: &NodeQuery<'_>, form: &'static str) -> Vec<Offer> {
        let costs = [(rows::FORM, rows::cost(self)), (channels::FORM, channels::cost(self, query))];
        let cheapest = costs.into_iter().filter_map(|(form, cost)| Some((form, cost?))).min_by_key(|(_, cost)| *cost);
        let cost = cheapest.filter(|(cheapest, _)| *cheapest == form).map(|(_, cost)| cost);
        let whole = self.image[1].is_multiple_of(self.machine.block.channels());
        let blocked = || Some(self.machine.blocked());
        let offer = |cost: Cost| Offer {
            form,
            layouts: KernelLayouts { ins: vec![blocked(), None, None], outs: vec![blocked()] },
            cost,
            becomes: None,
            adds_zeros: false,
        };
        let possible = whole && self.norm.pixels.is_some() && self.elements() > 0;
        cost.filter(|_| possible).map(offer).into_iter().collect()
    }

    /// What it costs as ONNX has it.
    fn plain(&self) -> Cost {
        let [_, c, h, w] = self.image;
        let pass = |op: &str, spread| Cost::new(self.machine.costs.elementwise_ns(op, self.elements(), spread));
        let pixels = h.saturating_mul(w);
        if self.norm.op.by_body {
            // Two means, the squares, and what takes the mean away, divides, scales and shifts, each over the whole image.
            let along = Spread::Channel { pixels: pixels.saturating_mul(c / self.groups()) };
            let passes = ["Sub", "Div", "Mul", "Add"].map(|op| pass(op, along)).into_iter().sum::<Cost>();
            return self.row().times(2) + pass("Mul", Spread::Same) + passes;
        }
        let own = Spread::Channel { pixels };
        let affine = if self.norm.per_group { Cost::ZERO } else { pass("Mul", own) + pass("Add", own) };
        self.row().times(ROW_PASSES) + affine
    }

    fn groups(&self) -> u64 {
        self.norm.op.groups.unsigned_abs()
    }

    /// The mean of each group.
    fn row(&self) -> Cost {
        let [n, c, h, w] = self.image;
        let length = (c / self.groups()).saturating_mul(h).saturating_mul(w);
        let shape = AxisShape { outer: n.saturating_mul(self.groups()), length, inner: 1 };
        Cost::new(self.machine.costs.reduce_ns(&shape))
    }

    /// A convolution of one tap of each channel.
    fn one_tap(&self) -> Option<Cost> {
        let [n, c, h, w] = self.image;
        let one_tap = ConvShape { n, h, w, ..ConvShape::same(c, c, [h, w], 1, 1).grouped(c) };
        self.machine.costs.conv_ns(&one_tap, ConvKernel::Blocked).map(Cost::new)
    }
}
