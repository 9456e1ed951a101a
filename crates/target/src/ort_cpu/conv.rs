//! Convolutions.

use super::{OrtCpu, extents, image, op, operand};
use crate::{Cost, Kernel, NodeQuery, Rewrite};
use relayout_ir::attr::Attr;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::layout::Layout;

/// A convolution with constant weights.
struct Conv {
    channels: u64,
    /// Extents of the result: `[N, M, H, W]`.
    out: [u64; 4],
    /// Input channels of a filter.
    depth: u64,
    /// Elements of a filter's window.
    window: u64,
    group: u64,
}

impl Conv {
    fn of(query: &NodeQuery<'_>) -> Option<Conv> {
        let node = query.graph.node(query.node);
        let (x, w) = (operand(node, 0)?, operand(node, 1)?);
        let y = node.outputs.first().copied().flatten()?;
        let constant = |slot| operand(node, slot).is_none_or(|v| (query.is_constant)(v));
        let pads = node.ints("pads").unwrap_or_default();
        let typed = query.graph.value(w).ty.dtype() == Some(DType::F32);
        if !typed || !constant(1) || !constant(2) || pads.iter().any(|&p| p < 0) {
            return None;
        }
        let [_, depth, kh, kw] = extents(query.graph, w)?.try_into().ok()?;
        Some(Conv {
            channels: image(query, x)?[1],
            out: image(query, y)?,
            depth,
            window: kh.checked_mul(kw)?,
            group: u64::try_from(node.int("group").unwrap_or(1)).ok().filter(|&g| g > 0)?,
        })
    }

    fn filters(&self) -> u64 {
        self.out[1]
    }

    fn is_depthwise(&self) -> bool {
        self.group == self.channels && self.group == self.filters() && self.depth == 1
    }

    /// Multiply-adds for this many filters of this depth.
    fn work(&self, filters: u64, depth: u64) -> u64 {
        let [n, _, h, w] = self.out;
        [n, h, w, filters, depth, self.window].iter().fold(1, |a, b| a.saturating_mul(*b))
    }
}

impl OrtCpu {
    pub(super) fn plain_conv(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let conv = Conv::of(query)?;
        let work = conv.work(conv.filters(), conv.depth);
        Some(Cost::new(2000 + work / 20))
    }

    pub(super) fn conv_kernels(&self, query: &NodeQuery<'_>) -> Vec<Kernel> {
        let Some(conv) = Conv::of(query) else { return Vec::new() };
        let block = self.block.channels();
        let per_group = conv.filters() / conv.group;
        let blocked = Some(self.blocked());
        let dense = Some(self.dense_weights());
        let filters = Some(self.filter_weights());
        let wide = self.round(conv.filters());
        let mut kernels = Vec::new();
        if conv.group == 1 && conv.channels < block {
            // Reads ordinary NCHW, of any number of channels.
            kernels.push(self.conv(query, &conv, None, filters.clone(), conv.work(wide, conv.depth)));
        }
        if conv.group == 1 {
            let work = conv.work(wide, self.round(conv.channels));
            kernels.push(self.conv(query, &conv, blocked, dense, work));
        } else if conv.is_depthwise() {
            kernels.push(self.conv(query, &conv, blocked, filters, conv.work(wide, 1)));
        } else if conv.depth.is_multiple_of(block) && per_group.is_multiple_of(block) {
            kernels.push(self.conv(query, &conv, blocked, dense, conv.work(wide, conv.depth)));
        }
        kernels
    }

    fn conv(&self, query: &NodeQuery<'_>, conv: &Conv, x: Option<Layout>, w: Option<Layout>, work: u64) -> Kernel {
        let node = query.graph.node(query.node);
        let bias = operand(node, 2).map(|_| self.per_channel(conv.filters()));
        let mut set = Vec::new();
        if conv.is_depthwise() {
            set.push(("group".to_owned(), Attr::Int(self.round(conv.channels) as i64)));
        }
        Kernel {
            layouts: KernelLayouts { ins: vec![x, w, bias], outs: vec![Some(self.blocked())] },
            cost: Cost::new(2000 + work / 40),
            rewrite: Some(Rewrite { op: op("Conv"), opset: 1, operands: None, set, remove: Vec::new() }),
        }
    }
}
