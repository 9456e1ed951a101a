//! Scales and shifts per channel, as depthwise convolutions of one tap, and means over the image, as global pools.

use super::{OrtCpu, image_of};
use crate::measured::{AxisShape, ConvShape, Form, Pool, PoolShape, Spread};
use crate::{Cost, Kernel, NodeQuery};
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Node, ValueId};

/// Where an image's axes `[n, c, h, w]` stand, in models of channels-first and of channels-last origin.
const ORIGINS: [[usize; 4]; 2] = [[0, 1, 2, 3], [0, 3, 1, 2]];

impl OrtCpu {
    /// Kernels of element-wise ops between an image and a number per channel, or per image and channel.
    pub(super) fn scale_kernels(&self, query: &NodeQuery<'_>) -> Vec<Kernel> {
        ORIGINS.into_iter().filter_map(|axes| self.scale_kernel(query, axes)).collect()
    }

    /// What such an op costs as ONNX has it.
    pub(super) fn plain_scale(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let axes = ORIGINS.into_iter().find(|&axes| self.scale_kernel(query, axes).is_some())?;
        let node = query.graph.node(query.node);
        let [n, c, h, w] = image_of(query, node.outputs.first().copied().flatten()?, axes)?;
        let last = Spread::Last { channels: c };
        let spread = if axes[1] == 1 { Spread::Channel { pixels: h.saturating_mul(w) } } else { last };
        let elements = n.saturating_mul(c).saturating_mul(h).saturating_mul(w);
        Some(Cost::new(self.costs.elementwise_ns("Mul", elements, spread)))
    }

    fn scale_kernel(&self, query: &NodeQuery<'_>, axes: [usize; 4]) -> Option<Kernel> {
        let node = query.graph.node(query.node);
        let y = node.outputs.first().copied().flatten()?;
        let [n, c, h, w] = image_of(query, y, axes)?;
        let operands: Vec<ValueId> = node.inputs.iter().copied().collect::<Option<_>>()?;
        let shape = |v: ValueId| query.graph.value(v).ty.shape();
        let full = operands.iter().position(|&v| !(query.is_constant)(v) && shape(v) == shape(y))?;
        let blocked = Some(self.blocked_in(axes));
        let mut ins = vec![None; operands.len()];
        ins[full].clone_from(&blocked);
        let others = || operands.iter().enumerate().filter(|(slot, _)| *slot != full);
        let constant = others().all(|(_, &v)| (query.is_constant)(v));
        match node.onnx()? {
            "BatchNormalization" if full == 0 && axes[1] == 1 && constant && node.outputs.len() == 1 => {}
            "Add" | "Sub" | "Mul" | "Div"
                if constant && others().all(|(_, &v)| is_per_channel(query, v, axes[1], c)) => {}
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
        let one_tap = ConvShape { n, h, w, ..ConvShape::same(c, c, [h, w], 1, 1).grouped(c) };
        let alone = Cost::new(self.costs.conv_ns(&one_tap, Form::Blocked)?);
        let computed = node.onnx() == Some("Add") && ins.iter().flatten().count() == 2;
        let in_bias = computed && n == 1 && self.has_room_in_bias(query, operands[full], c);
        let cost = if in_bias { self.small_node().times(2) } else { alone };
        Some(Kernel { layouts: KernelLayouts { ins, outs: vec![blocked] }, cost, rewrite: None })
    }

    /// Whether a value is that of a convolution which only one node reads, so that a shift per channel can go into its bias.
    fn has_room_in_bias(&self, query: &NodeQuery<'_>, x: ValueId, channels: u64) -> bool {
        let graph = query.graph;
        let conv = NodeQuery { node: graph.value(x).producer().0, ..*query };
        graph.node(conv.node).onnx() == Some("Conv")
            && graph.uses(x).len() == 1
            && !graph.is_output(x)
            && channels.is_multiple_of(self.block.channels())
            && !self.conv_kernels(&conv).is_empty()
    }

    /// The kernel of a mean over the whole image that keeps its rank.
    pub(super) fn mean_kernels(&self, query: &NodeQuery<'_>) -> Vec<Kernel> {
        ORIGINS.into_iter().filter_map(|axes| self.mean_kernel(query, axes)).collect()
    }

    /// What such a mean costs as ONNX has it.
    pub(super) fn plain_mean(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let axes = ORIGINS.into_iter().find(|&axes| self.mean_kernel(query, axes).is_some())?;
        let node = query.graph.node(query.node);
        let [n, c, h, w] = image_of(query, node.inputs.first().copied().flatten()?, axes)?;
        let length = h.saturating_mul(w);
        let shape = match axes[1] {
            1 => AxisShape { outer: n.saturating_mul(c), length, inner: 1 },
            _ => AxisShape { outer: n, length, inner: c },
        };
        Some(Cost::new(self.costs.reduce_ns(&shape)))
    }

    fn mean_kernel(&self, query: &NodeQuery<'_>, axes: [usize; 4]) -> Option<Kernel> {
        let node = query.graph.node(query.node);
        let x = node.inputs.first().copied().flatten()?;
        let [n, c, h, w] = image_of(query, x, axes)?;
        let mut reduced = reduced_axes(query, node)?;
        reduced.sort_unstable();
        let mut spatial = [axes[2], axes[3]];
        spatial.sort_unstable();
        if reduced != spatial || node.int("keepdims").unwrap_or(1) == 0 {
            return None;
        }
        let blocked = || vec![Some(self.blocked_in(axes))];
        let pool = PoolShape { n, c, h, w, oh: 1, ow: 1, kernel: [h, w], stride: [1, 1] };
        Some(Kernel {
            layouts: KernelLayouts { ins: blocked(), outs: blocked() },
            cost: Cost::new(self.costs.pool_ns(Pool::GlobalAverage, &pool, true)),
            rewrite: Some(super::global_average()),
        })
    }
}

/// Axes that a reduction names, as an attribute or as a constant operand.
fn reduced_axes(query: &NodeQuery<'_>, node: &Node) -> Option<Vec<usize>> {
    let rank = query.graph.value(node.inputs.first().copied().flatten()?).ty.rank()?;
    let listed: Vec<i64> = if let Some(axes) = node.ints("axes") {
        axes.to_vec()
    } else {
        let contents = query.graph.value(node.inputs.get(1).copied().flatten()?).contents.as_ref()?;
        contents.iter().map(relayout_ir::dim::Dim::as_const).collect::<Option<_>>()?
    };
    listed.into_iter().map(|axis| relayout_ir::op::normalize_axis(axis, rank)).collect()
}

/// Whether a value has one entry per channel of an image, whose channels are this axis, and nothing else.
fn is_per_channel(query: &NodeQuery<'_>, v: ValueId, channel_axis: usize, channels: u64) -> bool {
    let Some(shape) = query.sizes.shape(query.graph, v) else { return false };
    let axis = (shape.len() + channel_axis).checked_sub(4);
    let along = |(i, &d): (usize, &u64)| d == 1 || (Some(i) == axis && d == channels);
    shape.len() <= 4 && channels > 1 && shape.iter().enumerate().all(along) && shape.iter().product::<u64>() == channels
}
