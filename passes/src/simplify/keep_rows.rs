//! `keep_rows`: dense layers of each step compute on rows of several axes, as what is around them has them.
//!
//! Keras writes a dense layer of each step as a Reshape that makes the axes of steps one, products, and a Reshape back. No move goes through
//! that: where steps are not outermost, rows of several axes are no axis. A product with constant weights takes any number of them.

use crate::state::Step;
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::form::{AtomId, Bound, Form, Role, Slot, View};
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::op::read::is_constant;
use relayout_ir::patch::replace_value;
use relayout_ir::storage::reshape_target;
use relayout_ir::types::{TensorType, Type};
use relayout_target_api::{Context, Counted, Declared, Numerics, PassError, Rule, Slot as When};
use rustc_hash::FxHashSet;

/// The rule.
pub(crate) const RULE: Rule = Rule {
    name: "rows_apart",
    equation: "Reshape(f(Reshape(x, [r, c])), [s.., k]) = f(Reshape(x, [s.., c]))",
    condition: "r is the product of s, and rows of x; f is products with constant weights, Gemms as product and sum, sums with vectors, \
                activations and normalizations of the last axis; nobody else reads what is between; a Transpose that puts columns elsewhere is near; nodes do not get more",
    buys: "Reshapes, and moves may go through products",
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new("keep_rows", When::Prepare, "scales fold into what it writes; needs views and all that is constant")
        .rules(&[&RULE]),
    &keep_rows,
);

/// The most ops between two Reshapes.
const MOST: usize = 16;

/// The most values among which a Transpose is looked for, before and behind.
const NEAR: usize = 16;

/// The first operator set whose sums broadcast without an attribute.
const BROADCASTS_SINCE: i64 = 7;

/// Writes every chain that it finds on rows of several axes.
fn keep_rows(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let order = cx.reassociable(graph);
    let free: FxHashSet<NodeId> = order.iter().copied().collect();
    for end in order {
        if !graph.contains(end) {
            continue;
        }
        let Some(chain) = Chain::before(graph, end, &free).filter(|chain| chain.pays(graph)) else { continue };
        chain.write(graph)?;
        cx.count(&RULE, 1);
    }
    Ok(())
}

/// Ops between a Reshape that makes rows one axis and one that has them apart again.
struct Chain {
    /// What the first Reshape reads.
    x: ValueId,
    /// Others read what it makes.
    shared: bool,
    /// Outermost extents of the result.
    rows: Vec<Dim>,
    /// In the order in which they run.
    links: Vec<Link>,
    /// The last Reshape, and what it makes.
    end: NodeId,
    y: ValueId,
}

/// An op of a chain.
struct Link {
    node: NodeId,
    /// The operand that has the rows.
    slot: usize,
    kind: Kind,
}

enum Kind {
    /// A product, or an op that computes each element for itself: it is the same whatever the axes of rows are.
    Same,
    /// A normalization of the last axis.
    Normalization,
    /// A Gemm, with the weights by columns or not.
    Gemm { by_columns: bool },
}

impl Chain {
    /// The chain that ends with this node.
    fn before(graph: &Graph, end: NodeId, free: &FxHashSet<NodeId>) -> Option<Chain> {
        is_reshape(graph, end).then_some(())?;
        let (mut v, y) = (graph.node(end).operand(0)?, graph.node(end).only_result()?);
        let (columns, rows) = graph.value(y).ty.shape()?.split_last()?;
        let [all, last] = graph.value(v).ty.shape()? else { return None };
        if rows.len() < 2 || columns != last || Dim::product(rows)? != *all {
            return None;
        }
        let mut links = Vec::new();
        while links.len() <= MOST {
            let shared = graph.only_use(v).is_none();
            let (maker, _) = graph.value(v).producer();
            if is_reshape(graph, maker) {
                let x = graph.node(maker).operand(0)?;
                let (inputs, of_x) = graph.value(x).ty.shape()?.split_last()?;
                let [_, last] = graph.value(v).ty.shape()? else { return None };
                if inputs != last || of_x.is_empty() || Dim::product(of_x)? != *all {
                    return None;
                }
                links.reverse();
                return Some(Chain { x, shared, rows: rows.to_vec(), links, end, y });
            }
            let link = Link::recognize(graph, maker).filter(|_| !shared && free.contains(&maker))?;
            v = graph.node(maker).operand(link.slot)?;
            links.push(link);
        }
        None
    }

    /// Whether there is a product in it and a Transpose near, and nodes do not get more.
    fn pays(&self, graph: &Graph) -> bool {
        let is_product = |link: &Link| matches!(graph.node(link.node).onnx(), Some("MatMul" | "Gemm"));
        let sums = self.links.iter().filter(|link| matches!(link.kind, Kind::Gemm { .. }));
        let sums = sums.filter(|link| graph.node(link.node).operand(2).is_some()).count();
        let respelled = self.respelled(graph);
        let writable = match (respelled, graph.value(self.x).ty.shape()) {
            (false, _) => true,
            (true, Some(from)) => reshape_target(from, &self.shape(from.last())).is_some(),
            (true, None) => false,
        };
        let few = usize::from(respelled) + sums <= 1 + usize::from(!self.shared);
        let moved = || leads_to_move(graph, self.x, Towards::Makers) || leads_to_move(graph, self.y, Towards::Readers);
        writable && few && self.links.iter().any(is_product) && moved()
    }

    /// Whether rows of the operand are others than those of the result.
    fn respelled(&self, graph: &Graph) -> bool {
        let of_x = graph.value(self.x).ty.shape().and_then(<[Dim]>::split_last);
        of_x.is_none_or(|(_, rows)| rows != self.rows)
    }

    /// The shape with so many columns.
    fn shape(&self, columns: Option<&Dim>) -> Vec<Dim> {
        self.rows.iter().chain(columns).cloned().collect()
    }

    fn write(self, graph: &mut Graph) -> Result<(), PassError> {
        let mut v = self.x;
        if self.respelled(graph) {
            let shape = self.shape(graph.value(v).ty.shape().and_then(<[Dim]>::last));
            let name = graph.value(self.y).name.clone();
            v = Builder::at(graph, self.end).named(name).reshape(v, "rows", shape)?;
        }
        for link in &self.links {
            let Some(made) = graph.node(link.node).only_result() else { return Ok(()) };
            let ty = &graph.value(made).ty;
            let shape = self.shape(ty.shape().and_then(<[Dim]>::last));
            let ty = Type::Tensor(TensorType { dtype: ty.dtype(), shape: Some(shape) });
            v = link.write(graph, v, ty)?;
        }
        Ok(replace_value(graph, self.y, v, [self.end])?)
    }
}

impl Link {
    /// The node as an op of a chain.
    fn recognize(graph: &Graph, n: NodeId) -> Option<Link> {
        let node = graph.node(n);
        let y = node.only_result()?;
        let float = graph.value(y).ty.dtype()?.is_float();
        let (Form::Axes(bound), true, true) = (&node.form, float, node.opset >= BROADCASTS_SINCE) else { return None };
        let vectors = |from: usize| node.inputs.iter().skip(from).flatten().all(|&v| is_vector(graph, v));
        let weights = || node.operand(1).filter(|&v| is_constant(graph, v) && graph.value(v).ty.rank() == Some(2));
        let link = |kind| Some(Link { node: n, slot: 0, kind });
        match node.onnx()? {
            "MatMul" => weights().and_then(|_| link(Kind::Same)),
            "Gemm" => {
                let one = |name: &str| node.float(name).is_none_or(|x| (x - 1.0).abs() < f32::EPSILON);
                let plain = !node.flag("transA") && one("alpha") && one("beta") && vectors(2);
                weights().filter(|_| plain).and_then(|_| link(Kind::Gemm { by_columns: node.flag("transB") }))
            }
            "Softmax" | "LogSoftmax" | "Hardmax" | "LayerNormalization" => {
                // Of two axes it is the last one whatever an older version means by its default.
                let last = matches!(node.int("axis"), None | Some(-1 | 1));
                if last && vectors(1) { link(Kind::Normalization) } else { None }
            }
            "QuantizeLinear" | "DequantizeLinear" => None,
            _ => of_each(graph, node, bound).map(|slot| Link { node: n, slot, kind: Kind::Same }),
        }
    }

    /// The same of a value with more axes of rows.
    fn write(&self, graph: &mut Graph, v: ValueId, ty: Type) -> Result<ValueId, PassError> {
        let node = graph.node(self.node).clone();
        let name = node.only_result().map(|made| graph.value(made).name.clone()).unwrap_or_default();
        let mut inputs = node.inputs.clone();
        if let Some(operand) = inputs.get_mut(self.slot) {
            *operand = Some(v);
        }
        let last = ty.rank().and_then(|rank| i64::try_from(rank).ok()).map_or(-1, |rank| rank - 1);
        let mut make = Builder::at(graph, self.node).opset(node.opset).named(name);
        let by_columns = match self.kind {
            Kind::Same => return Ok(make.same_op(self.node, inputs).result("apart", ty)?),
            Kind::Normalization => {
                return Ok(make.same_op(self.node, inputs).attr("axis", Attr::Int(last)).result("apart", ty)?);
            }
            Kind::Gemm { by_columns } => by_columns,
        };
        let mut weights = node.operand(1);
        if let Some(of) = weights.filter(|_| by_columns) {
            weights = Some(make.transpose(of, "weights", &[1, 0])?);
        }
        let product = make.op("MatMul", [Some(v), weights]).result("apart", ty.clone())?;
        match node.operand(2) {
            Some(bias) => Ok(make.op("Add", [product, bias]).result("sum", ty)?),
            None => Ok(product),
        }
    }
}

/// The operand whose elements an op computes each for itself, if its others are constants that are the same for each row.
fn of_each(graph: &Graph, node: &Node, bound: &Bound) -> Option<usize> {
    let each = bound.atoms.iter().all(|atom| atom.role == Role::Carried && !atom.pinned);
    let plain = each && bound.renumber.is_empty() && bound.orders.is_none() && bound.substitute.is_none();
    let is_same = |&slot: &usize| {
        let others = node.inputs.iter().enumerate().filter(|(at, _)| *at != slot).filter_map(|(_, v)| *v);
        bound.operands.get(slot).is_some_and(|axes| axes.is_some() && Some(axes) == bound.results.first())
            && others.into_iter().all(|v| is_vector(graph, v))
    };
    (0..node.inputs.len()).find(is_same).filter(|_| plain && node.onnx().is_some())
}

/// A constant that is the same for each row.
fn is_vector(graph: &Graph, v: ValueId) -> bool {
    let shape = graph.value(v).ty.const_shape().unwrap_or_else(|| vec![0; 3]);
    is_constant(graph, v) && shape.len() <= 2 && shape.iter().rev().skip(1).all(|&extent| extent == 1)
}

fn is_reshape(graph: &Graph, n: NodeId) -> bool {
    graph.node(n).onnx().is_some() && matches!(graph.node(n).form, Form::View(View::Reshape))
}

#[derive(Clone, Copy)]
enum Towards {
    Makers,
    Readers,
}

/// Whether there is a Transpose before or behind a value that puts its columns elsewhere, through ops and views that keep rows and have
/// columns innermost.
fn leads_to_move(graph: &Graph, v: ValueId, towards: Towards) -> bool {
    let (mut found, mut at) = (vec![v], 0);
    while let Some(&v) = found.get(at).filter(|_| at < NEAR) {
        at += 1;
        let nodes: Vec<NodeId> = match towards {
            Towards::Makers => vec![graph.value(v).producer().0],
            Towards::Readers => graph.uses(v).into_iter().map(|u| u.node).collect(),
        };
        for node in nodes.into_iter().map(|n| graph.node(n)) {
            if let Form::View(View::Transpose(perm)) = &node.form
                && perm.last().is_some_and(|&axis| axis + 1 != perm.len())
            {
                return true;
            }
            for (slot, x) in node.inputs.iter().enumerate().filter_map(|(slot, x)| x.map(|x| (slot, x))) {
                let Some(y) = node.only_result().filter(|&y| keeps_columns(graph, node, slot, [x, y])) else {
                    continue;
                };
                match towards {
                    Towards::Makers => found.push(x),
                    Towards::Readers => found.extend((x == v).then_some(y)),
                }
            }
        }
    }
    false
}

/// Whether a node keeps the rows of an operand in its result, and the last axes of both are columns.
fn keeps_columns(graph: &Graph, node: &Node, slot: usize, [x, y]: [ValueId; 2]) -> bool {
    let last = |v: ValueId| graph.value(v).ty.shape().and_then(<[Dim]>::last);
    match &node.form {
        Form::View(View::Same) => true,
        Form::View(View::Reshape) => last(x).is_some() && last(x) == last(y),
        Form::Axes(bound) => {
            let rows = |axes: Option<&[AtomId]>| axes.and_then(<[AtomId]>::split_last).map(|(_, rows)| rows.to_vec());
            let (from, to) = (rows(bound.axes(Slot::In(slot))), rows(bound.axes(Slot::Out(0))));
            from == to && from.is_some_and(|rows| !rows.is_empty())
        }
        _ => false,
    }
}
