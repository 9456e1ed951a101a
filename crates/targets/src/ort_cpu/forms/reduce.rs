//! Means and maxima over all of an image, as global pools.

use crate::ort_cpu::costs::{AxisShape, Pool, PoolShape};
use crate::ort_cpu::machine::{Machine, image_of, op};
use crate::ort_cpu::runs::{Runs, slots_of};
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::Node;
use relayout_ir::storage::ImageAxes;
use relayout_target::{Become, Candidates, Cost, Form, NodeQuery, Offer};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "blocked_reduction";

/// Means and maxima over all of a blocked image.
pub(super) struct Reductions(pub(super) Arc<Machine>);

impl Form for Reductions {
    fn name(&self) -> &'static str {
        FORM
    }

    fn of(&self) -> &'static [&'static str] {
        &["ReduceMean", "ReduceMax"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        self.0.reduce_kernels(q)
    }

    fn offers_among(&self, q: &NodeQuery<'_>, candidates: Candidates<'_, '_>) -> Vec<Offer> {
        self.0.among_runs(q, candidates, |axes, map| self.0.reduce_kernel(q, axes, Some(map)))
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        self.0.plain_reduce(q)
    }
}

/// The pool that a reduction is.
fn pool_of(node: &Node) -> Option<(Pool, &'static str)> {
    match node.onnx()? {
        "ReduceMean" => Some((Pool::GlobalAverage, "GlobalAveragePool")),
        "ReduceMax" => Some((Pool::GlobalMax, "GlobalMaxPool")),
        _ => None,
    }
}

impl Machine {
    /// The kernels of a reduction over rows and columns.
    pub(super) fn reduce_kernels(&self, query: &NodeQuery<'_>) -> Vec<Offer> {
        ImageAxes::ORIGINS.into_iter().filter_map(|axes| self.reduce_kernel(query, axes, None)).collect()
    }

    /// What such a reduction costs as ONNX has it.
    pub(super) fn plain_reduce(&self, query: &NodeQuery<'_>) -> Option<Cost> {
        let axes = ImageAxes::ORIGINS.into_iter().find(|&axes| self.reduce_kernel(query, axes, None).is_some())?;
        let node = query.graph.node(query.node);
        let [n, c, h, w] = image_of(query, node.inputs.first().copied().flatten()?, axes)?;
        let length = h.saturating_mul(w);
        let shape = match axes.c {
            1 => AxisShape { outer: n.saturating_mul(c), length, inner: 1 },
            _ => AxisShape { outer: n, length, inner: c },
        };
        Some(Cost::new(self.costs.reduce_ns(&shape)))
    }

    /// The kernel of a reduction of an image whose axes stand there, and the pad slots of its channels.
    pub(super) fn reduce_kernel(&self, query: &NodeQuery<'_>, axes: ImageAxes, runs: Runs<'_>) -> Option<Offer> {
        let node = query.graph.node(query.node);
        let (pool, name) = pool_of(node)?;
        let [n, c, h, w] = image_of(query, node.inputs.first().copied().flatten()?, axes)?;
        let mut reduced = reduced_axes(query, node)?;
        reduced.sort_unstable();
        let mut spatial = axes.spatial();
        spatial.sort_unstable();
        if reduced != spatial {
            return None;
        }
        let blocked = self.blocked_runs(axes, runs)?;
        let blocked = || vec![Some(blocked.clone())];
        let shape = PoolShape { n, c: slots_of(c, runs), h, w, oh: 1, ow: 1, kernel: [h, w], stride: [1, 1] };
        let cost = Cost::new(self.costs.pool_ns(pool, &shape, true));
        if node.int("keepdims").unwrap_or(1) != 0 {
            let remove = ["axes", "keepdims", "noop_with_empty_axes"].map(str::to_owned).to_vec();
            let becomes = Become { op: op(name), opset: 1, operands: Some(vec![0]), set: Vec::new(), remove };
            let layouts = KernelLayouts { ins: blocked(), outs: blocked() };
            return Some(Offer { form: FORM, layouts, cost, becomes: Some(becomes), adds_zeros: false });
        }
        // What is left is a number per channel: a Reshape drops the axes, after a node that drops what fills blocks.
        let views = 1 + u64::from(runs.is_some() || !c.is_multiple_of(self.block.channels()));
        let layouts = KernelLayouts { ins: blocked(), outs: vec![None] };
        let cost = cost + self.small_node().times(views);
        Some(Offer { form: FORM, layouts, cost, becomes: None, adds_zeros: false })
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
