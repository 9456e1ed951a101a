//! Convolutions.

use super::{OrtCpu, extents, image, op, operand};
use crate::measured::{ConvShape, Form};
use crate::{Cost, Kernel, NodeQuery, Rewrite};
use relayout_ir::attr::Attr;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::Node;
use relayout_ir::layout::Layout;

/// A convolution with constant weights.
fn conv_of(query: &NodeQuery<'_>) -> Option<ConvShape> {
    let node = query.graph.node(query.node);
    let (x, w) = (operand(node, 0)?, operand(node, 1)?);
    let y = node.outputs.first().copied().flatten()?;
    let constant = |slot| operand(node, slot).is_none_or(|v| (query.is_constant)(v));
    let pads = node.ints("pads").unwrap_or_default();
    let typed = query.graph.value(w).ty.dtype() == Some(DType::F32);
    if !typed || !constant(1) || !constant(2) || pads.iter().any(|&p| p < 0) {
        return None;
    }
    let [m, _, kh, kw] = extents(query.graph, w)?.try_into().ok()?;
    let ([n, c, h, w], [_, _, oh, ow]) = (image(query, x)?, image(query, y)?);
    let group = u64::try_from(node.int("group").unwrap_or(1)).ok();
    let group = group.filter(|&g| g > 0 && m % g == 0 && c % g == 0)?;
    let (stride, dilation) = (pair(node, "strides"), pair(node, "dilations"));
    Some(ConvShape { n, c, h, w, m, oh, ow, kh, kw, stride, dilation, group, activation: None })
}

/// An attribute of two numbers, both 1 unless said.
pub(super) fn pair(node: &Node, name: &str) -> [u64; 2] {
    let list: Option<[i64; 2]> = node.ints(name).and_then(|list| list.try_into().ok());
    list.unwrap_or([1, 1]).map(|n| n.max(1) as u64)
}

impl OrtCpu {
    pub(super) fn plain_conv(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        // It stays plain only if its bias is computed, which is a node.
        Some(Cost::new(self.costs.conv_ns(&conv_of(query)?, Form::Plain)?) + self.small_node())
    }

    pub(super) fn conv_kernels(&self, query: &NodeQuery<'_>) -> Vec<Kernel> {
        let Some(conv) = conv_of(query) else { return Vec::new() };
        let block = self.block.channels();
        let blocked = Some(self.blocked());
        let dense = Some(self.block.dense_weights());
        let filters = Some(self.block.filter_weights());
        let whole = |channels: u64| (channels / conv.group).is_multiple_of(block);
        let mut kernels = Vec::new();
        if conv.group == 1 && conv.c < block {
            // Reads ordinary NCHW, of any number of channels.
            kernels.extend(self.conv(query, &conv, Form::BlockedFromNchw, None, filters.clone()));
        }
        if conv.is_depthwise() {
            kernels.extend(self.conv(query, &conv, Form::Blocked, blocked, filters));
        } else if conv.group == 1 || (whole(conv.c) && whole(conv.m)) {
            kernels.extend(self.conv(query, &conv, Form::Blocked, blocked, dense));
        } else {
            kernels.extend(self.wider(query, &conv));
        }
        kernels
    }

    /// Several groups as one, whose channels are whole blocks. Weights are read as they are: legalization adds the zeros.
    fn wider(&self, query: &NodeQuery<'_>, conv: &ConvShape) -> Option<Kernel> {
        let joined = self.block.joined_groups(conv.group, conv.c, conv.m)?;
        let wide = ConvShape { group: conv.group / joined, ..*conv };
        let ordinary = wide.group == 1 && wide.c < self.block.channels();
        let (form, x) = if ordinary { (Form::BlockedFromNchw, None) } else { (Form::Blocked, Some(self.blocked())) };
        Some(Kernel { rewrite: None, adds_zeros: true, ..self.conv(query, &wide, form, x, None)? })
    }

    fn conv(
        &self,
        query: &NodeQuery<'_>,
        conv: &ConvShape,
        form: Form,
        x: Option<Layout>,
        w: Option<Layout>,
    ) -> Option<Kernel> {
        let node = query.graph.node(query.node);
        let bias = operand(node, 2).map(|_| self.per_channel(conv.m));
        let group = conv.is_depthwise().then(|| ("group".to_owned(), Attr::Int(self.round(conv.c) as i64)));
        Some(Kernel {
            layouts: KernelLayouts { ins: vec![x, w, bias], outs: vec![Some(self.blocked())] },
            cost: Cost::new(self.costs.conv_ns(conv, form)?),
            rewrite: Some(Rewrite {
                op: op("Conv"),
                opset: 1,
                operands: None,
                set: group.into_iter().collect(),
                remove: Vec::new(),
            }),
            adds_zeros: false,
        })
    }
}
