//! Products with constant weights beside attention, of values whose heads stand before positions.
//!
//! Attention computes `[heads, positions, width]`. A projection from rows or to rows has the heads behind the positions, so each has a
//! Transpose beside it. Two forms need none:
//!
//! - *Apart.* `[positions, inputs]` times `[heads, inputs, width]` is `[heads, positions, width]`.
//! - *Over heads.* Channels last, `[heads, positions, width]` is an image: heads are its rows, positions its columns, and `width` its
//!   channels. What reads all heads of a position is a convolution whose window has all rows and one column.
//!
//! ```text
//! MatMul(Reshape(Transpose(x)), W) + b = Conv(x, W', b)
//! ```
//!
//! The forms are for providers whose data asks for them: how fast a device runs such a product or convolution is its own matter. A sum
//! with a bias is a node of its own behind products apart, so where there is one they are offered only if another node goes for that
//! ([`join_scales`](super::join_scales)).

use super::wrapped::{to_first, to_last};
use super::{Rates, VIEW_NS, is_half, join_scales};
use crate::shared::forms::projection::{self, Projected};
use relayout_ir::attr::Attr;
use relayout_ir::constant::{Constant, Repack};
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, KernelLayouts, View};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::{Factor, Layout};
use relayout_ir::raised::{Projection, ProjectionForm};
use relayout_ir::storage::reshape_target;
use relayout_ir::types::Type;
use relayout_target_api::{
    Cost, Counted, Fragment, Left, Made, NodeQuery, Numerics, Offer, Operand, PassError, Piece, Raised, Recognized,
    Refused, Rule, TargetForm,
};
use std::sync::Arc;

/// The rule.
const OVER_HEADS: Rule = Rule {
    name: "convolve_over_heads",
    equation: "MatMul(Reshape(Transpose(x)), W) + b = Conv(x, W', b)",
    condition: "W and b are constant, nobody else reads W; float32 or float16; the columns are heads whose number and width are known; it \
                is cheaper together with the moves around it",
    buys: "cost: the Transpose that puts heads behind positions",
    numerics: Numerics::Reassociate,
    counted: Counted::Tensors,
};

/// Most values behind a projection at which scales are looked for.
const LOOKED_AT: usize = 32;

/// Projections from heads and to heads.
pub(super) struct Heads(pub(super) Arc<Rates>);

impl Heads {
    fn is_wanted(&self) -> bool {
        self.0.provider.device.heads_first && self.0.provider.wraps("Conv")
    }
}

impl TargetForm for Heads {
    fn name(&self) -> &'static str {
        projection::FORM
    }

    fn ops(&self) -> &'static [&'static str] {
        &["Projection"]
    }

    fn offers(&self, q: &NodeQuery<'_>) -> Vec<Offer> {
        if !self.is_wanted() || q.in_body {
            return Vec::new();
        }
        let operands = q.graph.node(q.node).inputs.len();
        let view = Cost::new(VIEW_NS);
        let apart = || {
            let of = Projected::of(q)?;
            let sum = if of.bias { view + self.0.sum(of.bytes(of.columns()), is_half(Some(of.dtype))) } else { view };
            let nodes = || self.0.provider.device.sums_are_nodes;
            let paid = !of.bias || nodes() || is_scaled_twice(q.graph, q.graph.node(q.node).only_result()?);
            of.kernel(ProjectionForm::Apart, operands, view + sum).filter(|_| paid)
        };
        let over = Gathered::recognize(q.graph, q.node).map(|found| found.offers(q.graph, operands, view.times(2)));
        apart().into_iter().chain(over.into_iter().flatten()).collect()
    }

    fn pieces(&self, graph: &Graph, nodes: &[NodeId], _: &[Recognized]) -> Vec<Raised> {
        if self.is_wanted() { projection::pieces(graph, nodes, true) } else { Vec::new() }
    }

    fn rules(&self) -> &'static [&'static Rule] {
        &[&projection::APART, &OVER_HEADS]
    }

    fn rule(&self, offer: &Offer) -> Option<&'static Rule> {
        if offer.becomes.is_some() { projection::rule(offer) } else { Some(&OVER_HEADS) }
    }

    fn spell(&self, graph: &mut Graph, node: NodeId, opset: i64) -> Result<Option<ValueId>, PassError> {
        projection::write(graph, node, opset)
    }

    fn write(&self, piece: &Piece<'_>, _offer: &Offer) -> Result<Fragment, Refused> {
        let made = Gathered::recognize(piece.graph, piece.node).and_then(|found| found.write(piece));
        made.ok_or_else(|| Refused::new(piece, "can't be a convolution over heads"))
    }
}

/// Whether two parts of a value are multiplied by a number each, and then with each other: [`join_scales`] takes one of these nodes away.
fn is_scaled_twice(graph: &Graph, y: ValueId) -> bool {
    let (mut todo, mut seen, mut products) = (vec![(y, false)], 0, Vec::new());
    while let Some((v, scaled)) = todo.pop().filter(|_| seen < LOOKED_AT) {
        seen += 1;
        for u in graph.uses(v) {
            let node = graph.node(u.node);
            let takes = matches!(node.onnx(), Some("Split" | "Gather" | "Slice")) && u.slot == 0;
            if scaled && join_scales::is_product(graph, u.node) {
                products.push((u.node, u.slot));
            } else if matches!(node.form, Form::View(_)) || takes && !scaled {
                todo.extend(node.outputs.iter().flatten().map(|&w| (w, scaled)));
            } else if !scaled && join_scales::is_scale(graph, u.node) && graph.only_use(v).is_some() {
                todo.extend(node.only_result().filter(|&w| graph.only_use(w).is_some()).map(|w| (w, true)));
            }
        }
    }
    products.iter().any(|(n, slot)| products.iter().any(|(m, other)| n == m && slot != other))
}

/// A projection of rows whose inputs are heads.
struct Gathered {
    x: ValueId,
    y: ValueId,
    weights: Constant,
    /// The weights have a row per column of the result.
    by_columns: bool,
    bias: Option<Constant>,
    inputs: i64,
    columns: i64,
}

impl Gathered {
    fn recognize(graph: &Graph, n: NodeId) -> Option<Gathered> {
        let node = graph.node(n);
        let (raised, by_columns) = (Projection::of(node)?, projection::by_columns(node));
        let (x, y) = (node.operand(0)?, node.only_result()?);
        let plain = |v: ValueId| graph.constant(v).filter(|c| c.pending.is_none()).cloned();
        let weights = plain(node.operand(1)?)?;
        let [a, b] = weights.dims[..] else { return None };
        let (inputs, columns) = if by_columns { (b, a) } else { (a, b) };
        let bias = match node.operand(2) {
            Some(bias) => Some(plain(bias).filter(|bias| bias.elems() == u64::try_from(columns).ok())?),
            None => None,
        };
        let (from, to) = (graph.value(x).ty.shape()?, graph.value(y).ty.shape()?);
        let rows = from.len().checked_sub(1)?;
        let same = raised.rows == rows && to.len() == from.len() && from[..rows] == to[..rows];
        let known = from.get(1..)?.iter().all(Dim::is_const) && rows > 0;
        let float = matches!(graph.value(x).ty.dtype()?, DType::F32 | DType::F16);
        (same && known && float).then_some(Gathered { x, y, weights, by_columns, bias, inputs, columns })
    }

    /// What its rows are made of, `[images, positions, heads, width]`: a Reshape made one axis of heads and their columns, behind a Transpose.
    fn read(&self, graph: &Graph) -> Option<Rows> {
        let maker = graph.node(graph.value(self.x).producer().0);
        let apart = maker.operand(0).filter(|_| matches!(maker.form, Form::View(View::Reshape)))?;
        let turned = matches!(graph.node(graph.value(apart).producer().0).form, Form::View(View::Transpose(_)));
        let [rows @ .., heads, width] = graph.value(apart).ty.shape()? else { return None };
        let (heads, width) = (heads.as_const()?, width.as_const()?);
        let own = graph.value(self.x).ty.shape()?;
        let images = if own.len() > 2 { own.first() } else { rows.split_last().and_then(|(_, before)| before.first()) };
        let positions = rows.get(1..).and_then(Dim::product).and_then(|d| d.as_const());
        let whole = turned && heads > 1 && width > 1 && heads.checked_mul(width) == Some(self.inputs);
        whole.then_some(Rows {
            width: u64::try_from(width).ok()?,
            images: images.cloned().unwrap_or(Dim::ONE),
            positions,
        })
    }

    fn offers(&self, graph: &Graph, operands: usize, cost: Cost) -> Vec<Offer> {
        let Some((rows, rank)) = self.read(graph).zip(graph.value(self.x).ty.rank()) else { return Vec::new() };
        let offer = |layout: Layout| {
            let mut ins = vec![None; operands.max(1)];
            ins[0] = Some(layout);
            let layouts = KernelLayouts { ins, outs: vec![None] };
            Offer { form: projection::FORM, layouts, cost, becomes: None, adds_zeros: false }
        };
        let several = !rows.images.is_one();
        let inside = if rank > 2 { Some(Images::Axis) } else { rows.inside().filter(|_| several) };
        let ways = [inside, Some(Images::None).filter(|_| rank == 2 || several)];
        ways.into_iter().flatten().filter_map(|images| heads_first(rank, rows.width, images)).map(offer).collect()
    }

    fn write(&self, piece: &Piece<'_>) -> Option<Fragment> {
        let graph = piece.graph;
        let read = &graph.value(self.x);
        let (dtype, factors) = (read.ty.dtype()?, read.layout.factors());
        let last = u8::try_from(read.ty.rank()?.checked_sub(1)?).ok()?;
        let width = i64::try_from(factors.last()?.modulo?).ok()?;
        let heads = self.inputs.checked_div(width).filter(|heads| heads * width == self.inputs)?;
        let stored = graph.storage_shape(self.x, &read.layout)?;
        // What lies before the heads are images, what lies behind them are positions.
        let at = factors.iter().position(|f| f.axis == last).filter(|at| *at < 2)?;
        let images = stored.get(..at).and_then(Dim::product)?;
        let positions = stored.get(at + 1..stored.len().checked_sub(1)?).and_then(Dim::product)?;
        let [heads_dim, width_dim, columns] = [heads, width, self.columns].map(Dim::from);
        let mut made = Fragment::new(piece, projection::FORM);
        let turn = |x: Operand, perm: Vec<i64>| Made::op("", "Transpose", 0, [x]).with("perm", Attr::Ints(perm));
        let image = vec![images.clone(), heads_dim.clone(), positions.clone(), width_dim.clone()];
        let first = if stored == image {
            turn(self.x.into(), to_first(4)).in_layouts(vec![Some(read.layout.clone())], Vec::new())
        } else {
            let target = reshape_target(&stored, &image)?;
            let node = made.reshape(graph, self.x.into(), &target, &Layout::row_major(4));
            let x = made.add(node, Left::row_major(made.named("heads"), Type::tensor(dtype, image)));
            turn(x, to_first(4))
        };
        let ty = Type::tensor(dtype, vec![images.clone(), width_dim, heads_dim, positions.clone()]);
        let x = made.add(first, Left::row_major(made.named("channels_first"), ty));
        let name = |slot: usize| graph.node(piece.node).operand(slot).map(|v| &graph.value(v).name);
        let filters = made.constant(format!("{}.heads", name(1)?), self.filters(heads, width)?);
        let bias = match &self.bias {
            Some(bias) => {
                let bias = Constant { dims: vec![self.columns], ..bias.clone() };
                Some(made.constant(format!("{}.channels", name(2)?), bias))
            }
            None => None,
        };
        let conv = Made::op("", "Conv", 0, [x, filters].into_iter().chain(bias));
        let conv = conv.with("kernel_shape", Attr::Ints(vec![heads, 1]));
        let ty = Type::tensor(dtype, vec![images.clone(), columns.clone(), Dim::ONE, positions.clone()]);
        let y = made.add(conv, Left::row_major(made.named("over_heads"), ty));
        let flat = vec![images, Dim::ONE, positions, columns];
        let ty = Type::tensor(dtype, flat.clone());
        let y = made.add(turn(y, to_last(4)), Left::row_major(made.named("channels_last"), ty));
        let target = reshape_target(&flat, graph.value(self.y).ty.shape()?)?;
        let extents = made.constant(made.named("shape"), Constant::ints(&target));
        made.become_op(Made::op("", "Reshape", 0, [y, extents]));
        Some(made)
    }

    /// The weights as `[columns, width, heads, 1]`.
    fn filters(&self, heads: i64, width: i64) -> Option<Constant> {
        let (extents, order) = if self.by_columns {
            (vec![self.columns, heads, width], [0, 2, 1])
        } else {
            (vec![heads, width, self.columns], [2, 1, 0])
        };
        let pending = Some(Box::new(Repack { extents, to: Layout::permutation(&order).ok()? }));
        Some(Constant { dims: vec![self.columns, width, heads, 1], pending, ..self.weights.clone() })
    }
}

/// What rows are made of.
struct Rows {
    /// Columns of a head.
    width: u64,
    images: Dim,
    /// Rows of an image, if they are known.
    positions: Option<i64>,
}

impl Rows {
    /// Images that are a part of the axis of rows.
    fn inside(&self) -> Option<Images> {
        let positions = u64::try_from(self.positions?).ok().filter(|positions| *positions > 1)?;
        self.images.is_const().then_some(Images::Part { positions })
    }
}

/// Which images lie before the heads.
#[derive(Clone, Copy, Debug)]
enum Images {
    /// None: all rows lie behind the heads.
    None,
    /// The first axis.
    Axis,
    /// The axis of rows but for so many positions.
    Part { positions: u64 },
}

/// Rows whose columns are heads of this width, with the heads before the positions.
fn heads_first(rank: usize, width: u64, images: Images) -> Option<Layout> {
    let last = u8::try_from(rank.checked_sub(1)?).ok()?;
    let (before, behind) = match images {
        Images::None => (Vec::new(), (0..last).map(Factor::whole).collect()),
        Images::Axis => (vec![Factor::whole(0)], (1..last).map(Factor::whole).collect()),
        Images::Part { positions } => (vec![Factor::outer(0, positions)], vec![Factor::inner(0, 1, positions)]),
    };
    let factors = [before, vec![Factor::outer(last, width)], behind, vec![Factor::inner(last, 1, width)]].concat();
    Layout::new(rank, factors, []).ok()
}
