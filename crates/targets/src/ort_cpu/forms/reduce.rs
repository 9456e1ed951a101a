//! Means and maxima over all of an image, as global pools.
//!
//! Where the reduced axes go, a Reshape leaves a number per image and channel, behind a move that drops what fills blocks.

use crate::ort_cpu::costs::{AxisShape, Pool, PoolShape};
use crate::ort_cpu::machine::{Machine, image_of, op};
use crate::ort_cpu::runs::{Runs, slots_of};
use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::KernelLayouts;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::NCHWC;
use relayout_ir::op::read::{keeps_axes, reduced};
use relayout_ir::storage::{ImageAxes, axes_in_runs};
use relayout_ir::types::Type;
use relayout_target_api::{
    Become, Candidates, Cost, Fragment, Left, Made, NodeQuery, Offer, Operand, Piece, Refused, TargetForm,
};
use std::sync::Arc;

/// The form's name.
const FORM: &str = "blocked_reduction";

/// The most places of an image that one pool adds in place of a mean. Pools add one after another, and the runtime's `ReduceMean` adds the places
/// of a row eight apart: up to here a pool's rounding is at most four times the mean's, two bits, and in large images eight times
/// (docs/ort-cpu.md, "Long sums"). So the mean of a larger image is the mean of means of tiles.
const MOST_ADDED: i64 = 128;

/// Means and maxima over all of a blocked image.
pub(super) struct Reductions(pub(super) Arc<Machine>);

impl TargetForm for Reductions {
    fn name(&self) -> &'static str {
        FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["ReduceMean", "ReduceMax"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        ImageAxes::ORIGINS.into_iter().filter_map(|axes| self.offer(q, axes, None)).collect()
    }

    fn offers_among(&self, q: &NodeQuery<'_>, candidates: Candidates<'_, '_>) -> Vec<Offer> {
        self.0.among_runs(q, candidates, |axes, map| self.offer(q, axes, Some(map)))
    }

    fn plain(&self, q: &NodeQuery<'_>) -> Option<Cost> {
        let axes = ImageAxes::ORIGINS.into_iter().find(|&axes| self.offer(q, axes, None).is_some())?;
        let [n, c, h, w] = image_of(q, q.graph.node(q.node).operand(0)?, axes)?;
        let length = h.saturating_mul(w);
        let shape = match axes.c {
            1 => AxisShape { outer: n.saturating_mul(c), length, inner: 1 },
            _ => AxisShape { outer: n, length, inner: c },
        };
        Some(Cost::new(self.0.costs.reduce_ns(&shape)))
    }

    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        let blocked = piece.layouts.ins.first().cloned().flatten();
        let pooled = blocked.and_then(|blocked| Pooled::recognize(piece.graph, piece.node, blocked));
        let pooled = pooled.ok_or_else(|| Refused::new(piece, "can't be a global pool"))?;
        Ok(pooled.write(piece))
    }
}

impl Reductions {
    /// Whether a node is one pool of an image whose axes stand there, with no tiles before it.
    pub(super) fn is_whole(&self, query: &NodeQuery<'_>, axes: ImageAxes) -> Option<bool> {
        let blocked = self.0.blocked_runs(axes, None)?;
        Some(Pooled::recognize(query.graph, query.node, blocked)?.tiled == Tiled::No)
    }

    /// The offer for an image whose axes stand there, and the pad slots of its channels.
    pub(super) fn offer(&self, query: &NodeQuery<'_>, axes: ImageAxes, runs: Runs<'_>) -> Option<Offer> {
        let (machine, node) = (&self.0, query.graph.node(query.node));
        let pooled = Pooled::recognize(query.graph, query.node, machine.blocked_runs(axes, runs)?)?;
        let [n, c, h, w] = image_of(query, pooled.x, axes)?;
        let mut spatial = axes.spatial();
        spatial.sort_unstable();
        if reduced(query.graph, node)? != spatial {
            return None;
        }
        let shape = PoolShape { n, c: slots_of(c, runs), h, w, oh: 1, ow: 1, kernel: [h, w], stride: [1, 1] };
        let cost = pooled.cost(machine, &shape);
        let blocked = || vec![Some(pooled.blocked.clone())];
        let layouts = KernelLayouts { ins: blocked(), outs: blocked() };
        if keeps_axes(node) && pooled.tiled != Tiled::No {
            return Some(Offer { form: FORM, layouts, cost, becomes: None, adds_zeros: false });
        }
        if keeps_axes(node) {
            let remove = ["axes", "keepdims", "noop_with_empty_axes"].map(str::to_owned).to_vec();
            let becomes = Become { op: op(pooled.name), opset: 1, operands: Some(vec![0]), set: Vec::new(), remove };
            return Some(Offer { form: FORM, layouts, cost, becomes: Some(becomes), adds_zeros: false });
        }
        let layouts = KernelLayouts { ins: blocked(), outs: vec![None] };
        let views = 1 + u64::from(pooled.has_pad_slots());
        let cost = cost + machine.small_node().times(views);
        Some(Offer { form: FORM, layouts, cost, becomes: None, adds_zeros: false })
    }
}

/// The pool that a reduction is.
struct Pooled {
    pool: Pool,
    name: &'static str,
    x: ValueId,
    blocked: Layout,
    axes: ImageAxes,
    block: u64,
    tiled: Tiled,
    images: Dim,
    channels: i64,
}

impl Pooled {
    fn recognize(graph: &Graph, n: NodeId, blocked: Layout) -> Option<Pooled> {
        let node = graph.node(n);
        let (pool, name) = match node.onnx()? {
            "ReduceMean" => (Pool::GlobalAverage, "GlobalAveragePool"),
            "ReduceMax" => (Pool::GlobalMax, "GlobalMaxPool"),
            _ => return None,
        };
        let x = node.operand(0)?;
        let (axes, block) = axes_in_runs(&blocked)?;
        let shape = graph.value(x).ty.shape()?;
        let tiled = if pool == Pool::GlobalAverage { Tiled::cut(axes, shape)? } else { Tiled::No };
        let (images, channels) = (shape.get(axes.n)?.clone(), shape.get(axes.c)?.as_const()?);
        Some(Pooled { pool, name, x, blocked, axes, block, tiled, images, channels })
    }

    /// Whether more is stored than the channels.
    fn has_pad_slots(&self) -> bool {
        self.channels % self.block as i64 != 0 || self.blocked.slot_map(self.axes.c).is_some()
    }

    fn cost(&self, machine: &Machine, shape: &PoolShape) -> Cost {
        let Tiled::By(tile) = self.tiled else { return Cost::new(machine.costs.pool_ns(self.pool, shape, true)) };
        let tile = tile.map(i64::unsigned_abs);
        let (oh, ow) = (shape.h / tile[0], shape.w / tile[1]);
        let tiles = PoolShape { oh, ow, kernel: tile, stride: tile, ..*shape };
        let rest = PoolShape { h: oh, w: ow, kernel: [oh, ow], ..*shape };
        let ns = |pool, shape| Cost::new(machine.costs.pool_ns(pool, shape, true));
        ns(Pool::Average, &tiles) + ns(self.pool, &rest)
    }

    /// The means of tiles, if there are any.
    fn write_tiles(&self, piece: &Piece<'_>, made: &mut Fragment) -> Operand {
        let x = Operand::Outer(self.x);
        let shape = piece.graph.value(self.x).ty.shape();
        let (Tiled::By([height, width]), Some(shape), Some(h)) = (self.tiled, shape, self.axes.h) else { return x };
        let mut shape = shape.to_vec();
        for (axis, size) in [(h, height), (self.axes.w, width)] {
            if let Some(dim) = shape.get_mut(axis) {
                *dim = Dim::from(dim.as_const().map_or(1, |extent| extent / size));
            }
        }
        let blocked = || vec![Some(self.blocked.clone())];
        let tile = || Attr::Ints(vec![height, width]);
        let pool = Made::op(NCHWC, "AveragePool", 1, [x]).with("kernel_shape", tile()).with("strides", tile());
        let left = Left::row_major(made.named("tiles"), Type::tensor(DType::F32, shape));
        made.add(pool.in_layouts(blocked(), blocked()), left.stored(self.blocked.clone()))
    }

    /// The pool, the move that drops what fills blocks, if anything does, and the Reshape.
    fn write(&self, piece: &Piece<'_>) -> Fragment {
        let mut made = Fragment::new(piece, FORM);
        let x = self.write_tiles(piece, &mut made);
        let mut shape = vec![Dim::ONE; self.axes.rank()];
        shape[self.axes.n] = self.images.clone();
        shape[self.axes.c] = Dim::from(self.channels);
        let ty = Type::tensor(DType::F32, shape);
        let blocked = || vec![Some(self.blocked.clone())];
        let pool = Made::op(NCHWC, self.name, 1, [x]).in_layouts(blocked(), blocked());
        if keeps_axes(piece.graph.node(piece.node)) {
            made.become_op(pool);
            return made;
        }
        let left = Left::row_major(made.named("pooled"), ty.clone()).stored(self.blocked.clone());
        let mut numbers = made.add(pool, left);
        if self.has_pad_slots() {
            let left = Left::row_major(made.named("channels"), ty);
            let plain = Layout::permutation(&self.axes.first()).unwrap_or_else(|_| left.layout.clone());
            numbers = made.add(Made::relayout(numbers), left.stored(plain));
        }
        let reshape = made.reshape(piece.graph, numbers, &[0, self.channels], &Layout::row_major(2));
        made.become_op(reshape);
        made
    }
}

/// Whether the means of tiles are formed before that of an image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tiled {
    No,
    /// Of this height and width.
    By([i64; 2]),
}

impl Tiled {
    /// What rounds no worse than the runtime's mean by more than two bits; `None` if nothing does, or if the sizes are not in the file and so
    /// may be any.
    fn cut(axes: ImageAxes, shape: &[Dim]) -> Option<Tiled> {
        // Where channels stand last, the runtime adds place after place as well.
        if axes.c > axes.w {
            return Some(Tiled::No);
        }
        let extent = |axis: usize| shape.get(axis)?.as_const();
        let (height, width) = (axes.h.map_or(Some(1), extent)?, extent(axes.w)?);
        if height.checked_mul(width)? <= MOST_ADDED {
            return Some(Tiled::No);
        }
        axes.h?;
        let divisors = |n: i64| (1..=n.min(MOST_ADDED)).filter(move |d| n % d == 0);
        let tiles = divisors(height).flat_map(|h| divisors(width).map(move |w| [h, w]));
        let larger = |[h, w]: &[i64; 2]| (h * w).max((height / h) * (width / w));
        tiles.filter(|tile| larger(tile) <= MOST_ADDED).min_by_key(larger).map(Tiled::By)
    }
}
