//! Pools.

use super::{OrtCpu, image, op, operand};
use crate::{Cost, Kernel, NodeQuery, Rewrite};
use relayout_ir::form::KernelLayouts;

/// Elements that a pool reads.
fn work(query: &NodeQuery<'_>) -> Option<u64> {
    let node = query.graph.node(query.node);
    let y = node.outputs.first().copied().flatten()?;
    // The kernels leave no indices.
    if node.outputs.len() > 1 && node.outputs[1].is_some() {
        return None;
    }
    let (x, y) = (image(query, operand(node, 0)?)?, image(query, y)?);
    let elems = |shape: [u64; 4]| shape.iter().fold(1u64, |a, b| a.saturating_mul(*b));
    let window = node.ints("kernel_shape").map_or(1, |k| k.iter().fold(1u64, |a, &b| a.saturating_mul(b.max(1) as u64)));
    Some(elems(x).max(elems(y).saturating_mul(window)))
}

impl OrtCpu {
    pub(super) fn plain_pool(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        Some(Cost::new(1000 + work(query)? / 2))
    }

    pub(super) fn pool_kernels(&self, query: &NodeQuery<'_>) -> Vec<Kernel> {
        let (Some(work), Some(name)) = (work(query), query.graph.node(query.node).onnx()) else { return Vec::new() };
        let blocked = || vec![Some(self.blocked())];
        vec![Kernel {
            layouts: KernelLayouts { ins: blocked(), outs: blocked() },
            cost: Cost::new(1000 + work / 4),
            rewrite: Rewrite {
                op: op(name),
                opset: 1,
                set: Vec::new(),
                remove: vec!["storage_order".to_owned()],
            },
        }]
    }
}
