//! Ops that compute, other than convolutions.

use super::case::{AxisShape, Case, Pool, PoolShape, ResizeShape, Scaling, Spread};
use super::products::{Attention, AttentionShape, GemmShape, Projection, ProjectionShape};
use super::specs::{ATTENTIONS, ELEMENTWISE, GEMMS, POOLS, PROJECTED_HEADS, PROJECTIONS, RESIZES, elementwise_name};
use super::table::MeasuredCosts;

impl MeasuredCosts {
    /// What an element-wise op of this ONNX name costs on so many elements. An op that was not measured counts as the cheapest
    /// one, Relu for one operand: what two forms of it have in common cancels out, and nothing is gained by guessing.
    #[must_use]
    pub fn elementwise_ns(&self, op: &str, elements: u64, spread: Spread) -> u64 {
        let grids = || self.elementwise_by_grids(op, elements, spread);
        match ELEMENTWISE.iter().find(|(name, _)| *name == op) {
            Some((name, _)) => self.timed_or(|| Case::Elementwise(name, elements, spread), grids),
            None => grids(),
        }
    }

    fn elementwise_by_grids(&self, op: &str, elements: u64, spread: Spread) -> u64 {
        let count = elements as f64;
        let same = |op: &str| self.rate(&elementwise_name(op), &[count]) * count;
        let known = ELEMENTWISE.iter().any(|(name, _)| *name == op);
        let alone = same(if known { op } else { "Relu" });
        let per = |inner: u64| count / inner.max(1) as f64;
        let (grid, place) = match spread {
            Spread::Same => return self.node(&elementwise_name(if known { op } else { "Relu" }), alone),
            Spread::Scalar => ("spread-scalar", [count, 1.0]),
            Spread::Channel { pixels } => ("spread-channel", [per(pixels), pixels as f64]),
            Spread::Last { channels } => ("spread-last", [channels as f64, per(channels)]),
            Spread::Blocked { pixels } => ("spread-blocked", [per(pixels) / self.block() as f64, pixels as f64]),
        };
        let mul = self.rate(grid, &place);
        // How operands meet was measured with Mul; what another op computes costs more or less by as much as on equal shapes.
        self.node(grid, (mul * count + alone - same("Mul")).max(mul * count / 2.0))
    }

    /// What a pool costs, plain or blocked.
    #[must_use]
    pub fn pool_ns(&self, kind: Pool, shape: &PoolShape, blocked: bool) -> u64 {
        self.timed_or(|| Case::Pool(kind, *shape, blocked), || self.pool_by_grids(kind, shape, blocked))
    }

    fn pool_by_grids(&self, kind: Pool, shape: &PoolShape, blocked: bool) -> u64 {
        let block = self.block();
        let grid = POOLS.iter().find(|(_, k, b)| (*k, *b) == (kind, blocked)).map_or("", |(name, ..)| name);
        let side = |[a, b]: [u64; 2]| (a as f64 * b as f64).sqrt();
        let work = Case::Pool(kind, *shape, blocked).work(block);
        if matches!(kind, Pool::GlobalMax | Pool::GlobalAverage) {
            return self.at(grid, &[shape.c.div_ceil(self.machine().block) as f64, side([shape.h, shape.w])], work);
        }
        let stride = shape.stride.into_iter().max().unwrap_or(1) as f64;
        self.at(grid, &[side(shape.kernel), stride, shape.ow as f64], work)
    }

    /// What a scaled image costs: Resize where it is plain, Upsample where it is blocked.
    #[must_use]
    pub fn resize_ns(&self, mode: Scaling, shape: &ResizeShape, blocked: bool) -> u64 {
        self.timed_or(|| Case::Resize(mode, *shape, blocked), || self.resize_by_grids(mode, shape, blocked))
    }

    fn resize_by_grids(&self, mode: Scaling, shape: &ResizeShape, blocked: bool) -> u64 {
        let grid = RESIZES.iter().find(|(_, m, b)| (*m, *b) == (mode, blocked)).map_or("", |(name, ..)| name);
        let side = |[a, b]: [u64; 2]| (a as f64 * b as f64).sqrt();
        let scale = side(shape.to) / side(shape.from).max(1.0);
        self.at(grid, &[scale, side(shape.to)], Case::Resize(mode, *shape, blocked).work(self.block()))
    }

    /// What a matrix product costs.
    #[must_use]
    pub fn gemm_ns(&self, shape: &GemmShape) -> u64 {
        self.timed_or(|| Case::Gemm(*shape), || self.gemm_by_grids(shape))
    }

    fn gemm_by_grids(&self, shape: &GemmShape) -> u64 {
        let form = (shape.transposed_b, shape.constant_b);
        let grid = GEMMS.iter().find(|(_, t, c)| (*t, *c) == form).map_or("", |(name, ..)| name);
        self.at(grid, &[shape.m as f64, shape.k as f64, shape.n as f64], Case::Gemm(*shape).work(1))
    }

    /// What Softmax costs along an axis.
    #[must_use]
    pub fn softmax_ns(&self, shape: &AxisShape) -> u64 {
        self.timed_or(|| Case::Softmax(*shape), || self.softmax_by_grids(shape))
    }

    fn softmax_by_grids(&self, shape: &AxisShape) -> u64 {
        self.along(["softmax-last", "softmax-other"], shape)
    }

    /// What a reduction over an axis costs.
    #[must_use]
    pub fn reduce_ns(&self, shape: &AxisShape) -> u64 {
        self.timed_or(|| Case::Reduce(*shape), || self.reduce_by_grids(shape))
    }

    fn reduce_by_grids(&self, shape: &AxisShape) -> u64 {
        self.along(["reduce-last", "reduce-other"], shape)
    }

    /// What an attention costs, as one kernel or apart. Units of a head of queries and of values count by their mean.
    #[must_use]
    pub fn attention_ns(&self, shape: &AttentionShape, form: Attention) -> u64 {
        self.timed_or(|| Case::Attention(*shape, form), || self.attention_by_grids(shape, form))
    }

    fn attention_by_grids(&self, shape: &AttentionShape, form: Attention) -> u64 {
        let grid = ATTENTIONS.iter().find(|(_, f)| *f == form).map_or("", |(name, _)| name);
        let width = f64::midpoint(shape.width as f64, shape.value_width as f64);
        let work = Case::Attention(*shape, form).work(1);
        self.at(grid, &[shape.queries as f64, shape.keys as f64, width], work)
    }

    /// What a projection to heads costs, without what moves its result. Columns count as the runtime packs them. One matrix
    /// for all heads knows its columns only; of matrices for each head there are as many as heads, and each costs the same.
    #[must_use]
    pub fn projection_ns(&self, shape: &ProjectionShape, form: Projection) -> u64 {
        self.timed_or(|| Case::Projection(*shape, form), || self.projection_by_grids(shape, form))
    }

    fn projection_by_grids(&self, shape: &ProjectionShape, form: Projection) -> u64 {
        let grid = PROJECTIONS.iter().find(|(_, f, _)| *f == form).map_or("", |(name, ..)| name);
        let heads = match form {
            Projection::Together | Projection::TogetherBias => PROJECTED_HEADS,
            Projection::Apart | Projection::ApartBias => shape.heads,
        };
        let width = shape.packed_columns(form) / heads.max(1) as f64;
        let work = Case::Projection(*shape, form).work(1);
        self.at(grid, &[shape.rows as f64, shape.inputs as f64, width], work)
    }

    fn along(&self, [last, other]: [&str; 2], shape: &AxisShape) -> u64 {
        let work = Case::Reduce(*shape).work(1);
        if shape.inner <= 1 {
            return self.at(last, &[shape.length as f64, shape.outer as f64], work);
        }
        self.at(other, &[shape.length as f64, shape.inner as f64], work)
    }
}
