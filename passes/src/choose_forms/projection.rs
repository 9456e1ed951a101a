//! Projections into heads: `Reshape(MatMul(x, W) + b)` to `[rows.., heads.., width]`, or a product with a matrix per head.

use crate::pipeline::PassError;
use crate::views::{Views, inverse, is_constant, standard};
use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Atom, AtomId, Bound, Form, Role, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout_ir::op::bind;
use relayout_ir::patch::{Patch, remove_dead};
use relayout_ir::raised::Projection;
use relayout_ir::storage::reshape_target;
use relayout_ir::types::Type;

/// A projection of a graph.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// The Reshape that leaves the result.
    pub(super) last: NodeId,
    product: NodeId,
    x: ValueId,
    weights: ValueId,
    /// The weights have a row per column of the result.
    by_columns: bool,
    bias: Option<ValueId>,
    inputs: i64,
    heads: i64,
    width: i64,
    raised: Projection,
}

impl Found {
    /// The same with the operand in the place of another.
    pub(super) fn reading(&self, now: impl Fn(ValueId) -> ValueId) -> Found {
        Found { x: now(self.x), ..self.clone() }
    }
}

/// The projection whose Reshape is this node.
pub(super) fn find(graph: &Graph, last: NodeId) -> Option<Found> {
    let node = graph.node(last);
    let (v, y) = (node.operand(0)?, node.only_result()?);
    let reshapes = node.onnx().is_some() && matches!(node.form, Form::View(View::Reshape));
    let shape = graph.value(y).ty.shape().filter(|_| reshapes && graph.only_use(v).is_some())?;
    let (product, added) = sum(graph, graph.value(v).producer().0);
    let node = graph.node(product);
    let (x, weights) = (node.operand(0)?, node.operand(1)?);
    let (by_columns, own) = reads(node)?;
    let bias = match (added, own) {
        (Some(_), Some(_)) => return None,
        (added, own) => added.or(own),
    };
    let known = is_constant(graph, weights) && bias.is_none_or(|b| is_constant(graph, b));
    let float = matches!(graph.value(x).ty.dtype()?, DType::F32 | DType::F16 | DType::BF16);
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
    let rows = rows(shape, columns)?;
    let width = shape.last()?.as_const().filter(|&w| w > 0)?;
    let heads = columns / width;
    let some = |d: &Dim| d.as_const().is_none_or(|n| n > 0);
    let from = graph.value(x).ty.shape()?;
    let raised = Projection { rows };
    let product_of_rows = Dim::product(&shape[..rows])?;
    let alike = product_of_rows == Dim::product(from.split_last()?.1)?;
    // Export says views by numbers, and by one extent that is left open.
    let flat = [product_of_rows.clone(), Dim::from(inputs)];
    let apart = [Dim::from(heads), product_of_rows, Dim::from(width)];
    let stored: Vec<Dim> = raised.heads_outermost(shape).into_iter().map(|axis| shape[axis].clone()).collect();
    let sayable = reshape_target(from, &flat).is_some() && reshape_target(&apart, &stored).is_some();
    (alike && sayable && heads > 1 && inputs > 0 && shape.iter().all(some)).then_some(Found {
        last,
        product,
        x,
        weights,
        by_columns,
        bias,
        inputs,
        heads,
        width,
        raised,
    })
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
    let set = |name: &str| node.int(name).unwrap_or(0) != 0;
    let one = |name: &str| match node.attrs.get(name) {
        Some(Attr::Float(x)) => (*x - 1.0).abs() < f32::EPSILON,
        _ => true,
    };
    let whole = matches!(node.form, Form::Axes(_));
    match node.onnx()? {
        "MatMul" if whole => Some((false, None)),
        "Gemm" if whole && !set("transA") && one("alpha") && one("beta") => Some((set("transB"), node.operand(2))),
        _ => None,
    }
}

/// Makes a projection one raised op.
pub(super) fn raise(graph: &mut Graph, found: &Found) {
    let n = found.last;
    let before: Vec<NodeId> = graph.node(n).inputs.iter().flatten().map(|&v| graph.value(v).producer().0).collect();
    let operands = [Some(found.x), Some(found.weights), found.bias];
    graph.set_inputs(n, operands.into_iter().take(2 + usize::from(found.bias.is_some())).collect());
    graph.set_op(n, Projection::op(), 1);
    *graph.attrs_mut(n) = found.raised.attrs();
    let form = rows_carried(graph, found).map_or_else(|| Form::Kernel(Box::default()), |b| Form::Axes(Box::new(b)));
    graph.set_form(n, form);
    remove_dead(graph, before);
}

/// A projection as the file has it runs on rows in any order, as its product does; `None` where the result spells them otherwise.
fn rows_carried(graph: &Graph, found: &Found) -> Option<Bound> {
    let shape = |v: ValueId| graph.value(v).ty.shape();
    let (from, to) = (shape(found.x)?, shape(graph.node(found.last).only_result()?)?);
    let (rows, columns) = to.split_at_checked(found.raised.rows)?;
    if from.split_last()?.1 != rows {
        return None;
    }
    let atom = |name: String, role: Role| Atom { name, pinned: role != Role::Carried, role };
    let carried = (0..rows.len()).map(|i| atom(format!("r{i}"), Role::Carried));
    let summed = std::iter::once(atom("k".to_owned(), Role::Contracted));
    let made = (0..columns.len()).map(|i| atom(format!("h{i}"), Role::Produced));
    let atoms: Vec<Atom> = carried.chain(summed).chain(made).collect();
    let (inner, all) = (rows.len() as AtomId, atoms.len() as AtomId);
    let operands = std::iter::once(Some((0..=inner).collect())).chain([None, None]);
    let operands: Vec<_> = operands.take(2 + usize::from(found.bias.is_some())).collect();
    Some(Bound {
        aligned: vec![false; operands.len()],
        operands,
        results: vec![Some((0..inner).chain(inner + 1..all).collect())],
        atoms,
        substitute: None,
        orders: None,
        renumber: Vec::new(),
        text: "r* k, _, _ -> r* h*",
    })
}

/// Writes a projection with a matrix per head; its result, and what took the place of that.
pub(super) fn write(graph: &mut Graph, found: &Found) -> Result<Option<(ValueId, ValueId)>, PassError> {
    let &Found { last, product, inputs, heads, width, .. } = found;
    let Some(y) = graph.node(last).only_result() else { return Ok(None) };
    let shape = graph.value(y).ty.shape().unwrap_or_default().to_vec();
    let base = graph.value(y).name.clone();
    let (rank, opset) = (graph.node(last).rank, graph.node(product).opset);
    let Some(rows) = shape.get(..found.raised.rows).and_then(Dim::product) else { return Ok(None) };
    let dim = |n: i64| Dim::from(n);
    let mut views = Views { graph, rank };
    let x = source(views.graph, found.x);
    let x = match views.graph.value(x).ty.rank() {
        Some(2) => x,
        _ => views.reshape(x, &format!("{base}.rows"), vec![rows.clone(), dim(inputs)])?,
    };
    let (apart, turns) = if found.by_columns {
        (vec![dim(heads), dim(width), dim(inputs)], [0, 2, 1])
    } else {
        (vec![dim(inputs), dim(heads), dim(width)], [1, 0, 2])
    };
    let weights = format!("{}.heads", views.graph.value(found.weights).name);
    let apart = views.reshape(found.weights, &format!("{weights}.apart"), apart)?;
    let weights = views.transpose(apart, &weights, &turns)?;
    let result = vec![dim(heads), rows, dim(width)];
    let mut made = Made { graph: views.graph, rank, opset };
    let mut z = made.op("MatMul", [x, weights], &format!("{base}.product"), &result)?;
    if let Some(bias) = found.bias {
        let name = format!("{}.heads", made.graph.value(bias).name);
        let bias = Views { graph: made.graph, rank }.reshape(bias, &name, vec![dim(heads), dim(1), dim(width)])?;
        z = made.op("Add", [z, bias], &format!("{base}.sum"), &result)?;
    }
    let order = found.raised.heads_outermost(&shape);
    let stored = order.iter().filter_map(|&axis| shape.get(axis).cloned()).collect();
    let mut views = Views { graph, rank };
    let apart = views.reshape(z, &format!("{base}.apart"), stored)?;
    let result = views.transpose(apart, &format!("{base}.heads"), &inverse(&order))?;
    let mut patch = Patch::new();
    patch.replace(y, result);
    patch.apply(graph).map_err(PassError::Name)?;
    remove_dead(graph, [last]);
    Ok(Some((y, result)))
}

/// What a value is the Reshape of, if nothing else reads it; else itself.
fn source(graph: &Graph, v: ValueId) -> ValueId {
    let node = graph.node(graph.value(v).producer().0);
    let reshapes = node.onnx().is_some() && matches!(node.form, Form::View(View::Reshape));
    node.operand(0).filter(|_| reshapes && graph.only_use(v).is_some()).unwrap_or(v)
}

/// Makes standard ops of two operands in the place of a product.
struct Made<'g> {
    graph: &'g mut Graph,
    rank: u32,
    opset: i64,
}

impl Made<'_> {
    fn op(&mut self, op: &str, operands: [ValueId; 2], name: &str, shape: &[Dim]) -> Result<ValueId, PassError> {
        let mut node = Node::new(Op::Onnx(standard(op)), operands.into_iter().map(Some).collect());
        (node.rank, node.opset) = (self.rank, self.opset);
        let dtype = self.graph.value(operands[0]).ty.dtype().unwrap_or(DType::F32);
        let name = self.graph.fresh_name(name);
        let y = self.graph.add_single(node, name, Type::tensor(dtype, shape.to_vec())).map_err(PassError::Name)?;
        let (n, _) = self.graph.value(y).producer();
        let form = bind(self.graph, n);
        self.graph.set_form(n, form);
        Ok(y)
    }
}
