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
    let window =
        node.ints("kernel_shape").map_or(1, |k| k.iter().fold(1u64, |a, &b| a.saturating_mul(b.max(1) as u64)));
    Some(elems(x).max(elems(y).saturating_mul(window)))
}

/// Channels of the largest block of any host: pools of a multiple of them are blocked on load.
const LARGEST_BLOCK: u64 = 16;

fn bytes(shape: [u64; 4]) -> u64 {
    shape.iter().fold(4u64, |a, b| a.saturating_mul(*b))
}

impl OrtCpu {
    pub(super) fn plain_pool(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let node = query.graph.node(query.node);
        let (x, y) = (image(query, operand(node, 0)?)?, image(query, node.outputs.first().copied().flatten()?)?);
        let work = work(query)?;
        if !x[1].is_multiple_of(LARGEST_BLOCK) {
            return Some(Cost::new(1000 + work / 2));
        }
        // ONNX Runtime blocks such a pool on load whatever is around it.
        Some(Cost::new(1000 + work / 4) + self.reorder(bytes(x)) + self.reorder(bytes(y)))
    }

    pub(super) fn pool_kernels(&self, query: &NodeQuery<'_>) -> Vec<Kernel> {
        let (Some(work), Some(name)) = (work(query), query.graph.node(query.node).onnx()) else { return Vec::new() };
        let blocked = || vec![Some(self.blocked())];
        vec![Kernel {
            layouts: KernelLayouts { ins: blocked(), outs: blocked() },
            cost: Cost::new(1000 + work / 4),
            rewrite: Some(Rewrite {
                op: op(name),
                opset: 1,
                operands: None,
                set: Vec::new(),
                remove: vec!["storage_order".to_owned()],
            }),
        }]
    }
}
