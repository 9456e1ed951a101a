//! `raise_pieces`: a piece of several nodes that a form of the target stands in for is one op while layouts are decided.
//! `restore_pieces` puts back what no form was chosen for, node by node as it was read.

use crate::pipeline::{State, Step, each_scope};
use relayout_ir::form::Form as Bound;
use relayout_ir::graph::{Graph, Node, NodeId, Op};
use relayout_ir::patch::remove_alone;
use relayout_ir::types::Type;
use relayout_target::{Declared, Fact, PassError, Raise, Slot};

/// A node that was raised, and what it stood for.
#[derive(Clone, Debug)]
pub(crate) struct Raised {
    node: NodeId,
    /// The node as it was.
    own: Node,
    /// Nodes before it that are gone, each reading the one before by operand 0.
    before: Vec<(Node, String, Type)>,
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
    each_scope(graph, &mut |graph, scope| {
        let nodes = state.context(scope, |cx| cx.reassociable(graph));
        for n in nodes {
            let raise = |n| state.settings.target.forms().iter().find_map(|form| form.raises(graph, n));
            let Some(found) = graph.contains(n).then(|| raise(n)).flatten() else { continue };
            let raised = raised(graph, n, found);
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

fn raised(graph: &mut Graph, n: NodeId, raise: Raise) -> Raised {
    let own = graph.node(n).clone();
    let kept = |&m: &NodeId| {
        let node = graph.node(m);
        let result = graph.value(node.result(0)?);
        Some((node.clone(), result.name.clone(), result.ty.clone()))
    };
    let before = raise.before.iter().filter_map(kept).collect();
    graph.set_inputs(n, raise.operands.into_iter().map(Some).collect());
    graph.set_op(n, raise.op, 1);
    *graph.attrs_mut(n) = raise.attrs;
    // As ONNX has it: row-major throughout.
    graph.set_form(n, Bound::Kernel(Box::default()));
    for &m in raise.before.iter().rev() {
        remove_alone(graph, m);
    }
    Raised { node: n, own, before }
}

fn restore(graph: &mut Graph, raised: Raised) -> Result<(), PassError> {
    let Raised { node: n, own, before } = raised;
    let mut x = graph.node(n).operand(0);
    for (mut node, name, ty) in before {
        if let Some(first) = node.inputs.first_mut() {
            *first = x;
        }
        let name = graph.fresh_name(&name);
        x = Some(graph.add_single(node, name, ty)?);
    }
    let mut inputs = own.inputs;
    if let Some(first) = inputs.first_mut() {
        *first = x;
    }
    graph.set_inputs(n, inputs);
    if let Op::Onnx(op) = own.op {
        graph.set_op(n, op, own.opset);
    }
    *graph.attrs_mut(n) = own.attrs;
    graph.set_form(n, own.form);
    Ok(())
}
