//! `reorder_weights`: a move right before a Flatten whose result is multiplied with constant weights goes into the weights.
//!
//! ```text
//! Gemm(Flatten(Relayout(x)), W) = Gemm(Flatten(x), P W)
//! ```
//!
//! The move may be a Transpose of the model. A sum may be taken in any order, so the rows of `W` are put in the order in which `x` lies. This reassociates.
//!
//! Invariant: the new Flatten has a name of its own, since what it makes are the old numbers in another order.
//!
//! Absent: moves into blocks or out of them, operands that more than one node reads, and weights that a node makes.

use crate::state::Step;
use relayout_ir::build::{Builder, bind_again};
use relayout_ir::constant::{Constant, Repack};
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::patch::{NewOperand, Patch};
use relayout_ir::perm::inverse;
use relayout_target_api::{Context, Counted, Declared, Fact, Numerics, PassError, Rule, Slot};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    name: "move_into_weights",
    equation: "Gemm(Flatten(Relayout(x)), W) = Gemm(Flatten(x), P W)",
    condition: "W is constant, nobody else reads it or what is moved; the batch lies outermost on both sides of the move",
    buys: "the move",
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new(
        "reorder_weights",
        Slot::Finish,
        "takes moves that the decision left, before those of constants are folded",
    )
    .needs(&[Fact::Written])
    .rules(&[&RULE]),
    &reorder_weights,
);

/// Takes such moves away.
pub fn reorder_weights(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    for n in cx.reassociable(graph) {
        if let Some(found) = FlattenedProduct::recognize(graph, n) {
            found.apply(graph, n)?;
            cx.count(&RULE, 1);
        }
    }
    Ok(())
}

/// A product whose left operand is moved and flattened.
struct FlattenedProduct {
    /// What is moved.
    x: ValueId,
    /// The order in which its axes lie, the batch outermost: those of `moved`.
    perm: Vec<usize>,
    /// Whether that is the order in which its axes are named: the move is a Transpose of the model.
    named_so: bool,
    /// What is flattened, and its result.
    moved: ValueId,
    flat: ValueId,
    weights: ValueId,
    reordered: Constant,
}

/// The only reader's operand, in ONNX's order: nobody else sees the value.
fn seen_once(graph: &Graph, v: ValueId) -> bool {
    graph.value(v).layout.is_row_major() && graph.only_use(v).is_some()
}

impl FlattenedProduct {
    fn recognize(graph: &Graph, n: NodeId) -> Option<FlattenedProduct> {
        let node = graph.node(n);
        let by_columns = match node.onnx()? {
            "MatMul" => false,
            "Gemm" if !node.flag("transA") => node.flag("transB"),
            _ => return None,
        };
        let (flat, weights) = (node.operand(0)?, node.operand(1)?);
        let flatten = graph.node(graph.value(flat).producer().0);
        let moved = flatten.operand(0)?;
        let relayout = graph.node(graph.value(moved).producer().0);
        let x = relayout.operand(0)?;
        let found = matches!(node.form, Form::Axes(_)) && matches!(flatten.form, Form::View(View::Reshape));
        if !found || !seen_once(graph, flat) || !seen_once(graph, moved) {
            return None;
        }
        let (perm, named_so) = match (&relayout.op, &relayout.form) {
            (Op::Relayout, _) => (graph.value(x).layout.as_permutation()?, false),
            (_, Form::View(View::Transpose(perm))) if graph.value(x).layout.is_row_major() => (inverse(perm), true),
            _ => return None,
        };
        let shape = graph.value(moved).ty.shape()?;
        let ([images, depth], [first, rest @ ..]) = (graph.value(flat).ty.shape()?, shape) else { return None };
        let rest: Vec<i64> = rest.iter().map(Dim::as_const).collect::<Option<_>>()?;
        let whole = depth.as_const() == rest.iter().try_fold(1i64, |n, &d| n.checked_mul(d));
        if perm.first() != Some(&0) || images != first || !whole {
            return None;
        }
        let reordered = reordered(graph, weights, &rest, &perm, by_columns)?;
        Some(FlattenedProduct { x, perm, named_so, moved, flat, weights, reordered })
    }

    fn apply(self, graph: &mut Graph, n: NodeId) -> Result<(), PassError> {
        let turned = if self.named_so { self.x } else { self.turned(graph)? };
        let flat = graph.value(self.flat);
        let (rank, name) = (graph.node(flat.producer().0).rank, format!("{}.reordered", flat.name));
        let shape = flat.ty.shape().unwrap_or_default().to_vec();
        let flat = Builder::new(graph, rank).reshape(turned, &name, shape)?;
        let mut patch = Patch::new();
        patch.connect(n, 0, flat);
        patch.set_operand(NewOperand {
            node: n,
            slot: 1,
            constant: self.reordered,
            name: format!("{}.reordered", graph.value(self.weights).name),
            takes_name_of: None,
        });
        patch.apply(graph)?;
        bind_again(graph, n);
        Ok(())
    }

    /// What is moved with its axes named in the order in which they lie: a view.
    fn turned(&self, graph: &mut Graph) -> Result<ValueId, PassError> {
        let moved = graph.value(self.moved);
        let (rank, name) = (graph.node(moved.producer().0).rank, format!("{}.turned", moved.name));
        Ok(Builder::new(graph, rank).transpose(self.x, &name, &self.perm)?)
    }
}

/// Weights that nobody else reads, whose rows are those of a flattened image of these extents (beside the batch), in the order
/// in which its axes lie.
fn reordered(graph: &Graph, w: ValueId, extents: &[i64], perm: &[usize], by_columns: bool) -> Option<Constant> {
    let constant = graph.constant(w).filter(|c| c.pending.is_none() && graph.use_count(w) == 1)?;
    let [rows, columns] = constant.dims[..] else { return None };
    let whole = constant.dtype.bits().is_some_and(|bits| bits >= 8) && graph.value(w).layout.is_row_major();
    let inner = perm.iter().skip(1).filter_map(|axis| axis.checked_sub(1));
    // Axes of the image follow the results, or come before them.
    let (extents, order): (Vec<i64>, Vec<usize>) = if by_columns {
        ([&[rows], extents].concat(), std::iter::once(0).chain(inner.map(|axis| axis + 1)).collect())
    } else {
        ([extents, &[columns]].concat(), inner.chain([extents.len()]).collect())
    };
    let to = Layout::permutation(&order).ok()?;
    whole.then(|| Constant { pending: Some(Box::new(Repack { extents, to })), ..constant.clone() })
}
