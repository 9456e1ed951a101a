//! Projections: products with constant weights, perhaps into heads, in forms whose operand or result lies otherwise.
//!
//! - *Apart.* `[rows, inputs]` times `[heads, inputs, width]` is `[heads, rows, width]`, which the products of attention read without a
//!   move. It is the same arithmetic in more and narrower products, and libraries prepare constant weights ahead of time only
//!   where they are one matrix.
//! - *Pixels.* A convolution of one tap reads and leaves `[N, channels, pixels]`.
//! - *Turned.* A library of matrix products reads either operand turned: `W' x'` is the result turned, and `(x')' W` is of the operand
//!   turned. What is constant is then not what libraries prepare, or what they prepare meets rows that have to be gathered.
//!   Where both are turned, `W' x'` is a product of matrices as they lie, whatever stands before them.

mod find;
mod write;

pub(crate) use find::by_columns;
pub(crate) use write::write;

use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, KernelLayouts, View};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::raised::{Projection, ProjectionForm};
use relayout_ir::storage::reshape_target;
use relayout_target_api::{Become, Cost, Counted, NodeQuery, Numerics, Offer, Raised, Rule};

/// The name of the forms.
pub(crate) const FORM: &str = "projection";

/// The rule.
pub(crate) const APART: Rule = Rule {
    name: "project_heads_apart",
    equation: "Transpose(Reshape(MatMul(x, W) + b)) = MatMul(x, W') + b', W' with a matrix per head",
    condition: "W and b are constant, nobody else reads W or what is between; the columns are split into heads, whose number and \
                width are known; it is cheaper together with the moves around it",
    buys: "cost: moves against what narrower products take longer",
    numerics: Numerics::Reassociate,
    counted: Counted::Tensors,
};

/// The rule.
pub(crate) const TURNED: Rule = Rule {
    name: "turn_products",
    equation: "Transpose(MatMul(x, W) + b) = Gemm(W', x') + b = Conv(Transpose(x), W', b) = MatMul(W', Transpose(x)) + b, \
               MatMul(Transpose(x), W) = Gemm(x', W)",
    condition: "W and b are constant, nobody else reads W; float32, with Gemm float64 too; it is cheaper together with \
                the moves around it",
    buys: "cost: moves against what products take longer that read or leave columns before rows",
    numerics: Numerics::Reassociate,
    counted: Counted::Tensors,
};

/// Whether anything is transposed: else nothing is gained by what reads or leaves columns before rows.
pub(crate) fn turns(graph: &Graph) -> bool {
    graph.nodes().any(|n| matches!(graph.node(n).form, Form::View(View::Transpose(_))))
}

/// The projections into heads of a graph; with `turned` also its products with constant weights, if something is transposed.
pub(crate) fn pieces(graph: &Graph, nodes: &[NodeId], turned: bool) -> Vec<Raised> {
    find::find_all(graph, nodes, turned && turns(graph)).iter().filter_map(|found| found.raised(graph)).collect()
}

/// The rule by which an offer for a raised projection is written.
pub(crate) fn rule(offer: &Offer) -> Option<&'static Rule> {
    let form = ProjectionForm::of(&offer.becomes.as_ref()?.set)?;
    Some(if form == ProjectionForm::Apart { &APART } else { &TURNED })
}

/// The images that a result `[N, pixels.., columns]` is read as.
pub(crate) struct Images {
    pub(crate) extents: Vec<Dim>,
    /// `[N, columns, extents..]`, where it is the only one that is made of the result.
    pub(crate) made: Option<ValueId>,
}

/// Images of several pixel axes, or of those that one axis is split into behind a Transpose to `[N, columns, pixels]`, for its only reader.
pub(crate) fn images(graph: &Graph, y: ValueId, rows: usize) -> Option<Images> {
    let shape = |v: ValueId| graph.value(v).ty.shape();
    let of = shape(y)?;
    if rows > 2 {
        return Some(Images { extents: of.get(1..rows)?.to_vec(), made: None });
    }
    let reader = |v: ValueId| graph.only_use(v).map(|place| graph.node(place.node));
    let turned =
        reader(y).filter(|node| matches!(&node.form, Form::View(View::Transpose(to)) if to[..] == [0, 2, 1]))?;
    let split = reader(turned.only_result()?).filter(|node| matches!(node.form, Form::View(View::Reshape)))?;
    let made = split.only_result()?;
    let to = shape(made)?;
    let [count, columns, extents @ ..] = to else { return None };
    let same = extents.len() > 1 && of[..] == [count.clone(), Dim::product(extents)?, columns.clone()];
    // The operand is split likewise, which a Reshape has to be able to say.
    reshape_target(shape(turned.only_result()?)?, to)?;
    same.then(|| Images { extents: extents.to_vec(), made: Some(made) })
}

/// Ops that are looked through for images.
const NEAR: usize = 8;

/// Whether an operand `[N, pixels, inputs]` is made of images: behind a Reshape of their pixels to one axis, a Transpose, and ops that leave
/// every axis where it is.
fn is_of_images(graph: &Graph, mut x: ValueId) -> bool {
    let maker = |v: ValueId| graph.node(graph.value(v).producer().0);
    for _ in 0..NEAR {
        let node = maker(x);
        match &node.form {
            Form::View(View::Transpose(to)) if to[..] == [0, 2, 1] => {
                let flat = node.operand(0).map(maker).filter(|n| matches!(n.form, Form::View(View::Reshape)));
                let rank = flat.and_then(|n| graph.value(n.operand(0)?).ty.rank());
                return rank.is_some_and(|rank| rank > 3);
            }
            Form::Axes(axes) => {
                let kept = |slot: &usize| axes.operands[*slot].is_some() && axes.operands[*slot] == axes.results[0];
                let slot = (0..axes.operands.len()).find(|slot| !axes.results.is_empty() && kept(slot));
                let Some(before) = slot.and_then(|slot| node.operand(slot)) else { return false };
                x = before;
            }
            _ => return false,
        }
    }
    false
}

/// A raised projection at the size hints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Projected {
    /// Rows of the operand.
    pub(crate) rows: u64,
    /// Of these, by the first axis: images.
    pub(crate) images: u64,
    /// And by the last one.
    pub(crate) row: u64,
    /// Axes of the operand.
    pub(crate) axes: usize,
    /// Columns of the operand.
    pub(crate) inputs: u64,
    /// Projected, all axes of them together.
    pub(crate) heads: u64,
    /// Columns of each.
    pub(crate) width: u64,
    /// A vector is added.
    pub(crate) bias: bool,
    pub(crate) dtype: DType,
    /// What it leaves is read as images.
    pub(crate) leaves_images: bool,
    /// What it reads is made of images, on one axis.
    pub(crate) reads_images: bool,
    /// How operand and result lie, by form.
    layouts: Vec<(ProjectionForm, [Layout; 2])>,
}

impl Projected {
    pub(crate) fn of(query: &NodeQuery<'_>) -> Option<Projected> {
        let node = query.graph.node(query.node);
        let raised = Projection::of(node)?;
        let (x, y) = (node.operand(0)?, node.result(0)?);
        let [x_ty, ty] = [x, y].map(|v| &query.graph.value(v).ty);
        let (from, to) = (query.sizes.shape(query.graph, x)?, query.sizes.shape(query.graph, y)?);
        let (inputs, rows) = from.split_last()?;
        let (width, before) = to.split_last()?;
        let product = |extents: &[u64]| extents.iter().copied().fold(1, u64::saturating_mul);
        let layouts = |form| {
            let [x, y] = raised.orders(form, x_ty.shape()?, ty.shape()?)?;
            Some((form, [Layout::permutation(&x).ok()?, Layout::permutation(&y).ok()?]))
        };
        Some(Projected {
            rows: product(rows),
            images: rows.first().copied().unwrap_or(1),
            row: rows.last().copied().unwrap_or(1),
            axes: from.len(),
            inputs: *inputs,
            heads: product(before.get(raised.rows..)?),
            width: *width,
            bias: node.operand(2).is_some(),
            dtype: ty.dtype()?,
            leaves_images: images(query.graph, y, raised.rows).is_some(),
            reads_images: is_of_images(query.graph, x),
            layouts: ProjectionForm::ALL.into_iter().filter_map(layouts).collect(),
        })
    }

    /// Elements of the weights.
    pub(crate) fn weights(&self) -> u64 {
        self.inputs.saturating_mul(self.columns())
    }

    /// Columns of the result.
    pub(crate) fn columns(&self) -> u64 {
        self.heads.saturating_mul(self.width)
    }

    /// Bytes of this many columns of all rows.
    pub(crate) fn bytes(&self, columns: u64) -> u64 {
        self.dtype.bytes(self.rows.saturating_mul(columns)).unwrap_or(u64::MAX)
    }

    /// The kernel of a form; none where the form is none for it, or where nothing lies otherwise.
    pub(crate) fn kernel(&self, form: ProjectionForm, operands: usize, cost: Cost) -> Option<Offer> {
        let (_, [x, y]) = self.layouts.iter().find(|(of, _)| *of == form)?;
        let other = |layout: &Layout| (!layout.is_row_major()).then(|| layout.clone());
        let (x, y) = (other(x), other(y));
        if x.is_none() && y.is_none() {
            return None;
        }
        let mut ins = vec![x];
        ins.resize(operands.max(1), None);
        Some(Offer {
            form: FORM,
            layouts: KernelLayouts { ins, outs: vec![y] },
            cost,
            becomes: Some(Become {
                op: Projection::op(),
                opset: 1,
                operands: None,
                set: vec![form.attr()],
                remove: Vec::new(),
            }),
            adds_zeros: false,
        })
    }
}
