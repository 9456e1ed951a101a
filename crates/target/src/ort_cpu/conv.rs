//! Convolutions.

use super::{OrtCpu, extents, image_of, image_or_signal, op, operand};
use crate::measured::{ConvShape, Form};
use crate::{Cost, Kernel, NodeQuery, Rewrite};
use relayout_ir::attr::Attr;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::Node;
use relayout_ir::layout::Layout;
use relayout_ir::storage::ImageAxes;

/// A convolution of images or signals with constant weights, and where their axes stand.
fn conv_of(query: &NodeQuery<'_>) -> Option<(ImageAxes, ConvShape)> {
    let node = query.graph.node(query.node);
    let (x, w) = (operand(node, 0)?, operand(node, 1)?);
    let y = node.outputs.first().copied().flatten()?;
    let constant = |slot| operand(node, slot).is_none_or(|v| (query.is_constant)(v));
    let pads = node.ints("pads").unwrap_or_default();
    let filters = extents(query.graph, w)?;
    let typed = query.graph.value(w).ty.dtype() == Some(DType::F32);
    if !typed || !constant(1) || !constant(2) || pads.iter().any(|&p| p < 0) {
        return None;
    }
    let (axes, [n, c, h, w]) = image_or_signal(query, x)?;
    let [_, _, oh, ow] = image_of(query, y, axes)?;
    let [m, _, kh, kw] = axes.extents(&filters)?;
    let group = u64::try_from(node.int("group").unwrap_or(1)).ok();
    let group = group.filter(|&g| g > 0 && m % g == 0 && c % g == 0)?;
    let (stride, dilation) = (pair(node, "strides"), pair(node, "dilations"));
    Some((axes, ConvShape { n, c, h, w, m, oh, ow, kh, kw, stride, dilation, group, activation: None }))
}

/// An attribute of two numbers, both 1 unless said; of signals it is one, for columns.
pub(super) fn pair(node: &Node, name: &str) -> [u64; 2] {
    let list = match node.ints(name) {
        Some(&[h, w]) => [h, w],
        Some(&[w]) => [1, w],
        _ => [1, 1],
    };
    list.map(|n| n.max(1) as u64)
}

impl OrtCpu {
    pub(super) fn plain_conv(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let (axes, conv) = conv_of(query)?;
        // One of images stays plain only if its bias is computed, which is a node.
        let shield = if axes.h.is_some() { self.small_node() } else { Cost::ZERO };
        Some(Cost::new(self.costs.conv_ns(&conv, Form::Plain)?) + shield)
    }

    pub(super) fn conv_kernels(&self, query: &NodeQuery<'_>) -> Vec<Kernel> {
        let Some((axes, conv)) = conv_of(query) else { return Vec::new() };
        let block = self.block.channels();
        let blocked = Some(self.blocked_in(axes));
        let of_images = || [self.block.dense_weights(), self.block.filter_weights()];
        let of_signals = || self.block.signal_weights();
        let [dense, filters] = if axes.h.is_some() { of_images() } else { of_signals() }.map(Some);
        let whole = |channels: u64| (channels / conv.group).is_multiple_of(block);
        let mut kernels = Vec::new();
        if conv.group == 1 && conv.c < block {
            // Reads ordinary NCHW, of any number of channels.
            kernels.extend(self.conv(query, (axes, &conv), Form::BlockedFromNchw, None, filters.clone()));
        }
        if conv.is_depthwise() {
            kernels.extend(self.conv(query, (axes, &conv), Form::Blocked, blocked, filters));
        } else if conv.group == 1 || (whole(conv.c) && whole(conv.m)) {
            kernels.extend(self.conv(query, (axes, &conv), Form::Blocked, blocked, dense));
        } else {
            kernels.extend(self.wider(query, (axes, &conv)));
        }
        kernels
    }

    /// Several groups as one, whose channels are whole blocks. Weights are read as they are: legalization adds the zeros.
    fn wider(&self, query: &NodeQuery<'_>, (axes, conv): (ImageAxes, &ConvShape)) -> Option<Kernel> {
        let joined = self.block.joined_groups(conv.group, conv.c, conv.m)?;
        let wide = ConvShape { group: conv.group / joined, ..*conv };
        let ordinary = wide.group == 1 && wide.c < self.block.channels();
        let blocked = || Some(self.blocked_in(axes));
        let (form, x) = if ordinary { (Form::BlockedFromNchw, None) } else { (Form::Blocked, blocked()) };
        Some(Kernel { rewrite: None, adds_zeros: true, ..self.conv(query, (axes, &wide), form, x, None)? })
    }

    fn conv(
        &self,
        query: &NodeQuery<'_>,
        (axes, conv): (ImageAxes, &ConvShape),
        form: Form,
        x: Option<Layout>,
        w: Option<Layout>,
    ) -> Option<Kernel> {
        let node = query.graph.node(query.node);
        let bias = operand(node, 2).map(|_| self.per_channel(conv.m));
        let group = conv.is_depthwise().then(|| ("group".to_owned(), Attr::Int(self.round(conv.c) as i64)));
        Some(Kernel {
            layouts: KernelLayouts { ins: vec![x, w, bias], outs: vec![Some(self.blocked_in(axes))] },
            cost: Cost::new(self.costs.conv_ns(conv, form)?),
            rewrite: Some(Rewrite {
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
