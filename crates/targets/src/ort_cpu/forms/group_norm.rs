//! Normalizations over groups of channels, of images in blocks.
//!
//! ONNX Runtime has no blocked kernel for them. Two forms are written with what it has, each a multiple of some times that were
//! measured; the ratios were taken interleaved, on images of 16,000 to 600,000 elements.
//!
//! - *Rows.* Groups of whole blocks are rows of bytes, which `InstanceNormalization` reads as they lie.
//! - *Channels.* A global pool, a one-tap convolution that takes the mean away, a convolution of the image with itself for the sums
//!   of squares, and a one-tap convolution that scales; between them small ops on a number per channel.

use super::raise_norm;
use crate::ort_cpu::costs::{AxisShape, ConvShape, Form as Kernel, Pool, PoolShape, Spread};
use crate::ort_cpu::machine::{Machine, image};
use relayout_ir::dim::Dim;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::raised::{GroupNorm, Written};
use relayout_target::{Become, Cost, Form, NodeQuery, Offer, Raise};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "blocked_group_norm";

/// Normalizations over groups of channels of blocked images.
pub(super) struct Norms(pub(super) Arc<Machine>);

impl Form for Norms {
    fn name(&self) -> &'static str {
        FORM
    }

    fn of(&self) -> &'static [&'static str] {
        &["GroupNormalization"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.0.norm_kernels(q)
    }

    fn raises(&self, graph: &Graph, n: NodeId) -> Option<Raise> {
        raise_norm::raise(graph, n, self.0.block.channels())
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        self.0.plain_norm(q)
    }
}

/// Passes of `InstanceNormalization` over a row, each as long as a mean of it: the mean, the squares, the result.
const ROW_PASSES: u64 = 3;
/// Small ops of the form by channels, in element-wise ops of one operand on a number per channel, those more that means over several
/// channels take, and those of several images. In a chain, where neither their code nor their operands are at hand, they take two
/// to three times what one of them does by itself; with that the form is as fast as the original at the sizes at which it was measured
/// to be, some 30,000 elements.
const SMALL_OPS: u64 = 28;
const SMALL_OPS_OF_GROUPS: u64 = 12;
const SMALL_OPS_OF_BATCHES: u64 = 10;
/// Most pixels whose squares one float32 sums up one after another: beyond them a sum begins to lose terms.
const MOST_PIXELS: u64 = 1 << 18;
/// Pool and convolution with itself, in percent of the pool.
const SUMS_PERCENT: u64 = 250;

/// A raised normalization at the size hints.
struct Norm {
    image: [u64; 4],
    groups: u64,
    /// Whether the runtime has no kernel for the original, and runs the body that defines it.
    by_body: bool,
    /// Whether each channel has a scale of its own.
    per_channel: bool,
    x: ValueId,
    y: ValueId,
}

impl Norm {
    fn of(query: &NodeQuery<'_>) -> Option<Norm> {
        let node = query.graph.node(query.node);
        let raised = GroupNorm::of(node)?;
        let groups = u64::try_from(raised.groups).ok()?;
        let (x, scale) = (node.operand(0)?, node.operand(1)?);
        let y = node.outputs.first().copied().flatten()?;
        let image = image(query, x)?;
        let entries = query.graph.value(scale).ty.const_shape()?.iter().product::<i64>();
        let whole = image[1].is_multiple_of(groups);
        let per_channel = u64::try_from(entries).ok()? != groups;
        whole.then_some(Norm { image, groups, by_body: raised.by_body, per_channel, x, y })
    }

    fn elements(&self) -> u64 {
        self.image.into_iter().fold(1, u64::saturating_mul)
    }
}

impl Machine {
    /// What such a normalization costs as ONNX has it.
    pub(super) fn plain_norm(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let norm = Norm::of(query)?;
        let [_, _, h, w] = norm.image;
        let pass = |op: &str, spread| Cost::new(self.costs.elementwise_ns(op, norm.elements(), spread));
        let pixels = h.saturating_mul(w);
        if norm.by_body {
            // Two means, the squares, and what takes the mean away, divides, scales and shifts, each over the whole image.
            let along = Spread::Channel { pixels: pixels.saturating_mul(norm.image[1] / norm.groups) };
            let passes = ["Sub", "Div", "Mul", "Add"].map(|op| pass(op, along)).into_iter().sum::<Cost>();
            return Some(self.row(&norm).times(2) + pass("Mul", Spread::Same) + passes);
        }
        let own = Spread::Channel { pixels };
        let affine = if norm.per_channel { pass("Mul", own) + pass("Add", own) } else { Cost::ZERO };
        Some(self.rows(&norm) + affine)
    }

    /// Kernels for it.
    pub(super) fn norm_kernels(&self, query: &NodeQuery<'_>) -> Vec<Offer> {
        let Some(norm) = Norm::of(query) else { return Vec::new() };
        let fixed = query.graph.value(norm.x).ty.shape().is_some_and(|shape| shape[2..].iter().all(Dim::is_const));
        if !fixed || norm.elements() == 0 || !norm.image[1].is_multiple_of(self.block.channels()) {
            return Vec::new();
        }
        let ways = [(Written::Rows, self.by_rows(&norm)), (Written::Channels, self.by_channels(query, &norm))];
        let cheapest = ways.into_iter().filter_map(|(way, cost)| Some((way, cost?))).min_by_key(|(_, cost)| *cost);
        let kernel = |(way, cost): (Written, Cost)| Offer {
            form: FORM,
            layouts: KernelLayouts { ins: vec![Some(self.blocked()), None, None], outs: vec![Some(self.blocked())] },
            cost,
            becomes: Some(Become {
                op: GroupNorm::op(),
                opset: 1,
                operands: None,
                set: vec![way.attr()],
                remove: Vec::new(),
            }),
            adds_zeros: false,
        };
        cheapest.map(kernel).into_iter().collect()
    }

    /// Rows normalized.
    fn rows(&self, norm: &Norm) -> Cost {
        self.row(norm).times(ROW_PASSES)
    }

    /// The mean of each group.
    fn row(&self, norm: &Norm) -> Cost {
        let [n, c, h, w] = norm.image;
        let length = (c / norm.groups).saturating_mul(h).saturating_mul(w);
        let shape = AxisShape { outer: n.saturating_mul(norm.groups), length, inner: 1 };
        Cost::new(self.costs.reduce_ns(&shape))
    }

    fn by_rows(&self, norm: &Norm) -> Option<Cost> {
        let whole = (norm.image[1] / norm.groups).is_multiple_of(self.block.channels());
        let affine = if norm.per_channel { self.one_tap(norm)? } else { Cost::ZERO };
        whole.then(|| self.rows(norm) + affine)
    }

    fn by_channels(&self, query: &NodeQuery<'_>, norm: &Norm) -> Option<Cost> {
        let [n, c, h, w] = norm.image;
        // Images of a batch become channels of one, and channels of a convolution are said in the file.
        if !query.graph.value(norm.x).ty.shape()?.first()?.is_const() || h.saturating_mul(w) > MOST_PIXELS {
            return None;
        }
        let pool = PoolShape { n, c, h, w, oh: 1, ow: 1, kernel: [h, w], stride: [1, 1] };
        let sums = self.costs.pool_ns(Pool::GlobalAverage, &pool, true).saturating_mul(SUMS_PERCENT) / 100;
        let several = |there: bool, ops: u64| if there { ops } else { 0 };
        let small = SMALL_OPS + several(norm.groups < c, SMALL_OPS_OF_GROUPS) + several(n > 1, SMALL_OPS_OF_BATCHES);
        let each = self.costs.elementwise_ns("Relu", n.saturating_mul(c), Spread::Same);
        // Constant scales behind it are taken into its own, and are priced as one convolution already.
        let taps = if self.is_scaled_next(query, norm.y) { 1 } else { 2 };
        Some(Cost::new(sums) + self.one_tap(norm)?.times(taps) + Cost::new(each).times(small))
    }

    fn one_tap(&self, norm: &Norm) -> Option<Cost> {
        let [n, c, h, w] = norm.image;
        let one_tap = ConvShape { n, h, w, ..ConvShape::same(c, c, [h, w], 1, 1).grouped(c) };
        self.costs.conv_ns(&one_tap, Kernel::Blocked).map(Cost::new)
    }

    /// Whether the only reader of a value is a constant scale or shift per channel that has a blocked kernel.
    fn is_scaled_next(&self, query: &NodeQuery<'_>, y: ValueId) -> bool {
        let uses = query.graph.uses(y);
        let [only] = uses[..] else { return false };
        let reader: &Node = query.graph.node(only.node);
        let one = NodeQuery { node: only.node, ..*query };
        let scales = matches!(reader.onnx(), Some("BatchNormalization" | "Add" | "Sub" | "Mul" | "Div"))
            && !query.graph.is_output(y);
        let constant = |kernel: &Offer| kernel.layouts.ins.iter().flatten().count() == 1;
        scales && self.scale_kernels(&one).iter().any(constant)
    }
}
