//! Pools.

use super::conv::along_image;
use crate::ort_cpu::costs::{Pool, PoolShape, Reorder, Side};
use crate::ort_cpu::machine::{Machine, image_of, image_or_signal, op};
use crate::ort_cpu::runs::{Runs, slots_of};
use relayout_ir::form::KernelLayouts;
use relayout_ir::op::read::windows;
use relayout_ir::storage::ImageAxes;
use relayout_target_api::{Become, Candidates, Cost, NodeQuery, Offer, TargetForm};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "blocked_pool";

/// Pools of images and signals in blocks.
pub(super) struct Pools(pub(super) Arc<Machine>);

impl TargetForm for Pools {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.0.pool_kernel(q, None).into_iter().collect()
    }

    fn offers_among(&self, q: &NodeQuery<'_>, candidates: Candidates<'_, '_>) -> Vec<Offer> {
        let first = |axes| axes == ImageAxes::ORIGINS[0];
        self.0.among_runs(q, candidates, |axes, map| self.0.pool_kernel(q, Some(map)).filter(|_| first(axes)))
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        self.0.plain_pool(q)
    }
}

/// A pool of images or signals, and where their axes stand.
fn pool_of(query: &NodeQuery<'_>) -> Option<(Pool, ImageAxes, PoolShape)> {
    let node = query.graph.node(query.node);
    let pool = match node.onnx()? {
        "MaxPool" => Pool::Max,
        "AveragePool" => Pool::Average,
        "GlobalMaxPool" => Pool::GlobalMax,
        "GlobalAveragePool" => Pool::GlobalAverage,
        _ => return None,
    };
    let y = node.result(0)?;
    // The kernels leave no indices, and where a window reaches beyond the padding they divide by all of it.
    let counts_beyond = pool == Pool::Average && node.flag("ceil_mode") && node.flag("count_include_pad");
    if node.outputs.iter().skip(1).any(Option::is_some) || counts_beyond {
        return None;
    }
    let (axes, [n, c, h, w]) = image_or_signal(query, node.operand(0)?)?;
    let [_, _, oh, ow] = image_of(query, y, axes)?;
    let (kernel, stride) = match pool {
        Pool::GlobalMax | Pool::GlobalAverage => ([1, 1], [1, 1]),
        Pool::Max | Pool::Average => {
            let windows = windows(query.graph, node).ok()?;
            (along_image(&windows, |w| w.kernel.unwrap_or(1))?, along_image(&windows, |w| w.stride)?)
        }
    };
    Some((pool, axes, PoolShape { n, c, h, w, oh, ow, kernel, stride }))
}

impl Machine {
    pub(super) fn plain_pool(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let (pool, axes, s) = pool_of(query)?;
        if axes.h.is_none() || !s.c.is_multiple_of(self.block.channels()) {
            return Some(Cost::new(self.costs.pool_ns(pool, &s, false)));
        }
        // ONNX Runtime blocks a pool of images of whole blocks on load, whatever is around it.
        let reorder = |kind, h, w| self.reorder(kind, Side::Nchw, [s.n, s.c, h, w]);
        let inner = Cost::new(self.costs.pool_ns(pool, &s, true));
        // What it does on load is said in the file even if nothing is gained by it.
        Some(inner + reorder(Reorder::Input, s.h, s.w) + reorder(Reorder::Output, s.oh, s.ow) + self.small_node())
    }

    /// The kernel of a pool of an image that has the pad slots of its channels there.
    pub(super) fn pool_kernel(&self, query: &NodeQuery<'_>, runs: Runs<'_>) -> Option<Offer> {
        let ((pool, axes, shape), name) = (pool_of(query)?, query.graph.node(query.node).onnx()?);
        let shape = PoolShape { c: slots_of(shape.c, runs), ..shape };
        let blocked = self.blocked_runs(axes, runs)?;
        let blocked = || vec![Some(blocked.clone())];
        Some(Offer {
            form: FORM,
            layouts: KernelLayouts { ins: blocked(), outs: blocked() },
            cost: Cost::new(self.costs.pool_ns(pool, &shape, true)),
            becomes: Some(Become {
                op: op(name),
                opset: 1,
                operands: None,
                set: Vec::new(),
                remove: vec!["storage_order".to_owned()],
            }),
            // Means of a signal are formed otherwise than by the runtime, which takes pools of images only on load.
            adds_zeros: axes.h.is_none() && matches!(pool, Pool::Average | Pool::GlobalAverage),
        })
    }
}
