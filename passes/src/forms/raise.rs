//! `raise_pieces`: a piece of several nodes that a form of the target stands in for is one op while layouts are decided.
//! `restore_pieces` puts back what no form was chosen for, node by node as it was read.

use super::{of_forms, recognized};
use crate::pipeline::{State, Step, each_scope};
use relayout_ir::form::Form as Bound;
use relayout_ir::graph::{Builder, DuplicateName, Graph, Node, NodeId, Op, ValueId};
use relayout_ir::patch::{remove_alone, remove_dead};
use relayout_ir::types::Type;
use relayout_target::{Declared, Fact, PassError, Raise, RaisedOperand, Recognized, Slot};
use rustc_hash::FxHashMap;

/// A node that was raised, and what it stood for.
#[derive(Clone, Debug)]
pub(crate) struct Raised {
    node: NodeId,
    /// The node as it was.
    own: Node,
    /// What the raised op read when it was made.
    operands: Vec<ValueId>,
    /// Nodes before it that are gone, in topological order, each with its result.
    before: Vec<(Node, ValueId, String, Type)>,
}

/// The pass.
pub(crate) const RAISE: Step<'static> = Step::engine(
    Declared::new(
        "raise_pieces",
        Slot::Forms,
        "the target offers forms for one op, and a piece may be several; what scales could take in is gone",
    ),
    raise_pieces,
);

/// Raises what the target may have forms for.
pub(crate) fn raise_pieces(graph: &mut Graph, state: &mut State<'_>) -> Result<(), PassError> {
    let forms = state.settings.target.forms();
    let wanted = of_forms(state.settings.target);
    each_scope(graph, &mut |graph, scope| {
        for piece in state.context(scope, |cx| recognized(graph, cx, &wanted))? {
            // One that another piece has taken is gone.
            let there = piece.nodes.iter().all(|&n| graph.contains(n)) && graph.has(piece.result);
            let raise = || forms.iter().find_map(|form| form.raises(graph, &piece));
            let Some(raise) = there.then(raise).flatten() else { continue };
            let raised = raised(graph, &piece, raise)?;
            state.raised.entry(scope).or_default().push(raised);
        }
        Ok(())
    })
}

/// The pass.
pub(crate) const RESTORE: Step<'static> = Step::engine(
    Declared::new(
        "restore_pieces",
        Slot::Write,
        "what no form was chosen for is written as it was, which may need views",
    )
    .needs(&[Fact::Layouts]),
    restore_pieces,
);

/// Puts back what no form was chosen for.
pub(crate) fn restore_pieces(graph: &mut Graph, state: &mut State<'_>) -> Result<(), PassError> {
    each_scope(graph, &mut |graph, scope| {
        for raised in state.raised.remove(&scope).unwrap_or_default() {
            if state.plan.offer(scope, raised.node).is_none() {
                restore(graph, raised)?;
            }
        }
        Ok(())
    })
}

fn raised(graph: &mut Graph, piece: &Recognized, raise: Raise) -> Result<Raised, DuplicateName> {
    let n = piece.last(graph);
    let own = graph.node(n).clone();
    let kept = |&m: &NodeId| {
        let node = graph.node(m);
        let v = node.only_result().filter(|_| m != n)?;
        Some((node.clone(), v, graph.value(v).name.clone(), graph.value(v).ty.clone()))
    };
    let before: Vec<_> = piece.nodes.iter().filter_map(kept).collect();
    let name = graph.value(piece.result).name.clone();
    let mut operands = Vec::with_capacity(raise.operands.len());
    for operand in raise.operands {
        operands.push(match operand {
            RaisedOperand::Value(v) => v,
            RaisedOperand::New(c) => Builder::at(graph, n).named(name.clone()).constant("raised", c)?,
        });
    }
    graph.set_inputs(n, operands.iter().copied().map(Some).collect());
    graph.set_op(n, raise.op, 1);
    *graph.attrs_mut(n) = raise.attrs;
    // As ONNX has it: row-major throughout.
    graph.set_form(n, Bound::Kernel(Box::default()));
    for &m in piece.nodes.iter().rev().filter(|&&m| m != n) {
        remove_alone(graph, m);
    }
    Ok(Raised { node: n, own, operands, before })
}

fn restore(graph: &mut Graph, raised: Raised) -> Result<(), PassError> {
    let Raised { node: n, own, operands, before } = raised;
    let now = graph.node(n).inputs.clone();
    let mut values: FxHashMap<ValueId, ValueId> =
        operands.iter().zip(&now).filter_map(|(read, now)| Some((*read, (*now)?))).collect();
    let read = |node: &mut Node, values: &FxHashMap<ValueId, ValueId>| {
        for v in node.inputs.iter_mut().flatten() {
            *v = values.get(v).copied().unwrap_or(*v);
        }
    };
    for (mut node, v, name, ty) in before {
        read(&mut node, &values);
        let name = graph.fresh_name(&name);
        values.insert(v, graph.add_single(node, name, ty)?);
    }
    let mut own = own;
    read(&mut own, &values);
    graph.set_inputs(n, own.inputs);
    if let Op::Onnx(op) = own.op {
        graph.set_op(n, op, own.opset);
    }
    *graph.attrs_mut(n) = own.attrs;
    graph.set_form(n, own.form);
    // Constants that only the raised op had.
    remove_dead(graph, now.iter().flatten().map(|&v| graph.value(v).producer().0).collect::<Vec<_>>());
    Ok(())
}
