//! Scales and shifts per channel: a depthwise convolution of one tap.

use super::{OrtCpu, image};
use crate::{Cost, Kernel, NodeQuery};
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::ValueId;

impl OrtCpu {
    /// Kernels of element-wise ops between an image and a number per channel, or per image and channel.
    pub(super) fn scale_kernels(&self, query: &NodeQuery<'_>) -> Vec<Kernel> {
        self.scale_kernel(query).into_iter().collect()
    }

    fn scale_kernel(&self, query: &NodeQuery<'_>) -> Option<Kernel> {
        let node = query.graph.node(query.node);
        let y = node.outputs.first().copied().flatten()?;
        let [n, c, h, w] = image(query, y)?;
        let operands: Vec<ValueId> = node.inputs.iter().map(|v| *v).collect::<Option<_>>()?;
        let shape = |v: ValueId| query.graph.value(v).ty.shape();
        let full = operands.iter().position(|&v| !(query.is_constant)(v) && shape(v) == shape(y))?;
        let blocked = Some(self.blocked());
        let mut ins = vec![None; operands.len()];
        ins[full] = blocked.clone();
        let others = || operands.iter().enumerate().filter(|(slot, _)| *slot != full);
        let constant = others().all(|(_, &v)| (query.is_constant)(v));
        match node.onnx()? {
            "BatchNormalization" if full == 0 && constant && node.outputs.len() == 1 => {}
            "Add" | "Sub" | "Mul" | "Div" if constant && others().all(|(_, &v)| self.is_per_channel(query, v, c)) => {}
            // Squeeze and excitation: the numbers are computed, and in blocks themselves.
            "Mul" if query.graph.value(y).ty.shape()?.first()?.is_const() => {
                let (slot, &scale) = others().next()?;
                if image(query, scale)? != [n, c, 1, 1] || h * w < 2 || (query.is_constant)(scale) {
                    return None;
                }
                ins[slot] = blocked.clone();
            }
            _ => return None,
        }
        let bytes = n * self.round(c) * h * w * 4;
        Some(Kernel {
            layouts: KernelLayouts { ins, outs: vec![blocked] },
            cost: Cost::new(1000 + bytes / 16),
            rewrite: None,
        })
    }

    /// Whether a value has one entry per channel of an image, and nothing else.
    fn is_per_channel(&self, query: &NodeQuery<'_>, v: ValueId, channels: u64) -> bool {
        let Some(shape) = query.sizes.shape(query.graph, v) else { return false };
        let axis = (shape.len() + 1).checked_sub(4);
        shape.len() <= 4
            && shape.iter().enumerate().all(|(i, &d)| d == 1 || (Some(i) == axis && d == channels))
            && shape.iter().product::<u64>() == channels
            && channels > 1
    }
}
