//! Projections: `MatMul(x, W) + b`, perhaps with a Reshape to `[rows.., heads.., width]` behind it.

use crate::shared::forms::product::BROADCASTS_SINCE;
use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::op::read::is_constant;
use relayout_ir::raised::{Projection, ProjectionForm};
use relayout_ir::storage::reshape_target;
use relayout_target_api::{Raise, Raised, RaisedOperand};
use rustc_hash::FxHashSet;

/// A projection of a graph.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProjectionParts {
    /// The node that leaves the result: a Reshape, or the last of the others.
    last: NodeId,
    /// Reshapes before the last node.
    views: Vec<NodeId>,
    /// The last but for Reshapes.
    ends: NodeId,
    product: NodeId,
    x: ValueId,
    weights: ValueId,
    /// The weights have a row per column of the result.
    by_columns: bool,
    bias: Option<ValueId>,
    heads: i64,
    raised: Projection,
}

/// The projections among these nodes; without heads only where the target has forms for them.
pub(super) fn find_all(graph: &Graph, nodes: &[NodeId], without_heads: bool) -> Vec<ProjectionParts> {
    let mut found: Vec<ProjectionParts> = nodes.iter().filter_map(|&n| with_heads(graph, n)).collect();
    if !without_heads {
        return found;
    }
    let mut taken: FxHashSet<NodeId> = found.iter().map(|found| found.product).collect();
    // Sums first: a product may be part of one.
    let is_sum = |&n: &NodeId| graph.node(n).onnx() == Some("Add");
    let (sums, others): (Vec<NodeId>, Vec<NodeId>) = nodes.iter().copied().partition(is_sum);
    for n in sums.into_iter().chain(others) {
        found
            .extend(graph.node(n).only_result().and_then(|y| of_rows(graph, n, y)).filter(|f| taken.insert(f.product)));
    }
    found
}

/// The projection whose last Reshape is this node.
fn with_heads(graph: &Graph, last: NodeId) -> Option<ProjectionParts> {
    let reshapes =
        |n: NodeId| graph.node(n).onnx().is_some() && matches!(graph.node(n).form, Form::View(View::Reshape));
    // A node whose result this one alone reads.
    let before = |n: NodeId| {
        let v = graph.node(n).operand(0)?;
        graph.only_use(v).map(|_| graph.value(v).producer().0)
    };
    let mut ends = Some(last).filter(|&n| reshapes(n)).and_then(before)?;
    let mut views = Vec::new();
    while reshapes(ends) {
        views.push(ends);
        ends = before(ends)?;
    }
    let found = find(graph, last, graph.node(last).only_result()?, ends)?;
    (found.heads > 1 && found.raised.flat).then_some(ProjectionParts { views, ..found })
}

/// The projection without heads that ends with this node.
fn of_rows(graph: &Graph, last: NodeId, y: ValueId) -> Option<ProjectionParts> {
    let same_rows =
        |found: &ProjectionParts| found.heads == 1 && found.raised.rows + 1 == graph.value(y).ty.rank().unwrap_or(0);
    find(graph, last, y, last).filter(same_rows)
}

/// The projection of result `y` whose last node but for Reshapes is `ends`; none where a summand can't broadcast.
fn find(graph: &Graph, last: NodeId, y: ValueId, ends: NodeId) -> Option<ProjectionParts> {
    let shape = graph.value(y).ty.shape()?;
    let (product, added) = sum(graph, ends);
    let node = graph.node(product);
    (node.opset >= BROADCASTS_SINCE).then_some(())?;
    let (x, weights) = (node.operand(0)?, node.operand(1)?);
    let (by_columns, own) = reads(node)?;
    let bias = match (added, own) {
        (Some(_), Some(_)) => return None,
        (added, own) => added.or(own),
    };
    let known = is_constant(graph, weights) && bias.is_none_or(|b| is_constant(graph, b));
    let float = matches!(graph.value(x).ty.dtype()?, DType::F32 | DType::F64 | DType::F16 | DType::BF16);
    if !known || !float || is_constant(graph, x) || graph.only_use(weights).is_none() {
        return None;
    }
    let [a, b] = graph.value(weights).ty.const_shape()?[..] else { return None };
    let (inputs, columns) = if by_columns { (b, a) } else { (a, b) };
    if let Some(bias) = bias {
        let dims = graph.value(bias).ty.const_shape()?;
        let vector = dims.split_last().is_some_and(|(last, rest)| *last == columns && rest.iter().all(|&d| d == 1));
        // More axes than the product has would raise its rank.
        vector.then_some(()).filter(|()| dims.len() <= graph.value(x).ty.rank().unwrap_or(0))?;
    }
    let width = shape.last()?.as_const().filter(|&w| w > 0)?;
    let rows = if width == columns { shape.len() - 1 } else { rows(shape, columns)? };
    let some = |d: &Dim| d.as_const().is_none_or(|n| n > 0);
    let from = graph.value(x).ty.shape()?;
    let alike = Dim::product(&shape[..rows])? == Dim::product(from.split_last()?.1)?;
    let flat = alike && is_flat(from, shape, rows, columns / width);
    // Where only the weights say how many columns are read, views of both could not be shown to have as many elements.
    let read = inputs > 0 && from.last()?.as_const() == Some(inputs);
    (alike && read && shape.iter().all(some)).then_some(ProjectionParts {
        last,
        views: Vec::new(),
        ends,
        product,
        x,
        weights,
        by_columns,
        bias,
        heads: columns / width,
        raised: Projection { rows, flat },
    })
}

/// Whether rows of the operand can be one axis and those of the result apart again, in the order of each form. Export writes
/// views in numbers, and with one extent that is left open.
fn is_flat(from: &[Dim], shape: &[Dim], rows: usize, heads: i64) -> bool {
    let Some((inputs, width)) = from.last().zip(shape.last()) else { return false };
    let Some((all, columns)) = Dim::product(&shape[..rows]).zip(width.checked_mul(&Dim::from(heads))) else {
        return false;
    };
    let stored = |shape: &[Dim], order: &[usize]| order.iter().map(|&axis| shape[axis].clone()).collect::<Vec<Dim>>();
    let writable = |form| {
        let Some([x, y]) = (Projection { rows, flat: true }).orders(form, from, shape) else { return true };
        let (x, y) = (stored(from, &x), stored(shape, &y));
        let (read, made) = match form {
            ProjectionForm::Apart => {
                (vec![all.clone(), inputs.clone()], vec![Dim::from(heads), all.clone(), width.clone()])
            }
            ProjectionForm::TurnedOperand => (vec![inputs.clone(), all.clone()], vec![all.clone(), columns.clone()]),
            _ => (vec![all.clone(), inputs.clone()], vec![columns.clone(), all.clone()]),
        };
        reshape_target(&x, &read).is_some() && reshape_target(&made, &y).is_some()
    };
    [ProjectionForm::Apart, ProjectionForm::TurnedOperand, ProjectionForm::TurnedResult].into_iter().all(writable)
}

/// How many axes of a result are rows, where the others are the columns, two axes at least.
fn rows(shape: &[Dim], columns: i64) -> Option<usize> {
    let (mut product, mut at) = (1_i64, shape.len());
    while product != columns {
        at = at.checked_sub(1)?;
        product = product.checked_mul(shape[at].as_const().filter(|&d| d > 0)?)?;
    }
    (shape.len() - at >= 2).then_some(at)
}

/// The product that a node is, or that alone it adds a constant to.
fn sum(graph: &Graph, n: NodeId) -> (NodeId, Option<ValueId>) {
    let node = graph.node(n);
    if node.onnx() != Some("Add") {
        return (n, None);
    }
    let sides = [(node.operand(0), node.operand(1)), (node.operand(1), node.operand(0))];
    let of = |(x, b): (Option<ValueId>, Option<ValueId>)| {
        let (x, b) = (x?, b.filter(|&b| is_constant(graph, b))?);
        graph.only_use(x).map(|_| (graph.value(x).producer().0, Some(b)))
    };
    sides.into_iter().find_map(of).unwrap_or((n, None))
}

/// Whether a product reads its weights by columns, and what it adds; `None` for others and for those that do more.
fn reads(node: &Node) -> Option<(bool, Option<ValueId>)> {
    let set = |name: &str| node.flag(name);
    let one = |name: &str| node.float(name).is_none_or(|x| (x - 1.0).abs() < f32::EPSILON);
    let whole = matches!(node.form, Form::Axes(_));
    match node.onnx()? {
        "MatMul" if whole => Some((false, None)),
        "Gemm" if whole && !set("transA") && one("alpha") && one("beta") => Some((set("transB"), node.operand(2))),
        _ => None,
    }
}

/// The attribute of a raised projection whose weights have a row per column of the result.
const BY_COLUMNS: &str = "by_columns";

/// Whether the weights of a raised projection have a row per column of the result.
pub(crate) fn by_columns(node: &Node) -> bool {
    node.flag(BY_COLUMNS)
}

impl ProjectionParts {
    /// As one raised op.
    pub(super) fn raised(&self, graph: &Graph) -> Option<Raised> {
        let mut nodes = vec![self.product, self.ends];
        nodes.extend(self.views.iter().rev());
        nodes.push(self.last);
        nodes.dedup();
        let mut attrs = self.raised.attrs();
        attrs.insert(BY_COLUMNS.to_owned(), Attr::Int(self.by_columns.into()));
        let operands = [Some(self.x), Some(self.weights), self.bias];
        let operands = operands.into_iter().flatten().map(RaisedOperand::Value).collect();
        let raise = Raise { op: Projection::op(), attrs, operands };
        Some(Raised { nodes, result: graph.node(self.last).only_result()?, raise })
    }
}

/// What is written of a raised projection.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) node: NodeId,
    pub(super) x: ValueId,
    pub(super) weights: ValueId,
    /// The weights have a row per column of the result.
    pub(super) by_columns: bool,
    pub(super) bias: Option<ValueId>,
    pub(super) inputs: i64,
    pub(super) heads: i64,
    pub(super) width: i64,
    pub(super) raised: Projection,
    /// What it is to be written with.
    pub(super) form: ProjectionForm,
}

impl Told {
    /// What a raised node says.
    pub(super) fn recognize(graph: &Graph, n: NodeId) -> Option<Told> {
        let node = graph.node(n);
        let (raised, by_columns) = (Projection::of(node)?, by_columns(node));
        let (x, weights) = (node.operand(0)?, node.operand(1)?);
        let [a, b] = graph.value(weights).ty.const_shape()?[..] else { return None };
        let (inputs, columns) = if by_columns { (b, a) } else { (a, b) };
        let width = graph.value(node.only_result()?).ty.shape()?.last()?.as_const().filter(|&w| w > 0)?;
        let set: Vec<(String, Attr)> = node.attrs.iter().map(|(name, attr)| (name.clone(), attr.clone())).collect();
        let form = ProjectionForm::of(&set)?;
        let bias = node.operand(2);
        Some(Told { node: n, x, weights, by_columns, bias, inputs, heads: columns / width, width, raised, form })
    }
}
