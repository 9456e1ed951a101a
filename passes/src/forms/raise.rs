//! Pieces of several nodes that one raised op may stand for.
//!
//! They are found before the decision and stay in the graph as the file spells them. The decision sees the offers for the raised op as
//! states of the piece's last node, priced in a copy of the graph in which the piece is raised. Where such an offer is chosen, the
//! piece is raised when the decision is written; then forms write the op.

use super::recognized;
use relayout_ir::build::Builder;
use relayout_ir::form::Form;
use relayout_ir::graph::{DuplicateName, Graph, NodeId, Op};
use relayout_ir::patch::remove_dead;
use relayout_ir::raised;
use relayout_target_api::{Numerics, PassError, Raised, RaisedOperand, Target, reassociable};

/// The pieces of a graph that a target has raised ops for, in topological order of their last nodes. `inside`: as of [`reassociable`].
pub(crate) fn pieces(
    graph: &Graph,
    target: &dyn Target,
    numerics: Numerics,
    inside: bool,
) -> Result<Vec<Raised>, PassError> {
    let nodes = reassociable(graph, numerics, inside);
    if nodes.is_empty() {
        return Ok(Vec::new());
    }
    let recognized = recognized(graph, target, &nodes, numerics)?;
    let mut found: Vec<Raised> = Vec::new();
    for form in target.forms() {
        for piece in form.pieces(graph, &nodes, &recognized) {
            let same = |other: &Raised| other.result == piece.result && other.raise.op == piece.raise.op;
            if !found.iter().any(same) {
                found.push(piece);
            }
        }
    }
    found.sort_by_key(|piece| nodes.iter().position(|n| Some(n) == piece.nodes.last()));
    Ok(found)
}

/// Makes a piece one raised op in the place of its last node.
pub(crate) fn raise(graph: &mut Graph, piece: &Raised) -> Result<(), DuplicateName> {
    let Some((&n, inner)) = piece.nodes.split_last() else { return Ok(()) };
    let name = graph.value(piece.result).name.clone();
    let mut operands = Vec::with_capacity(piece.raise.operands.len());
    for operand in &piece.raise.operands {
        operands.push(match operand {
            RaisedOperand::Value(v) => *v,
            RaisedOperand::New(c) => Builder::at(graph, n).named(name.clone()).constant("raised", c.clone())?,
        });
    }
    graph.set_inputs(n, operands.into_iter().map(Some).collect());
    graph.set_op(n, piece.raise.op.clone(), 1);
    graph.attrs_mut(n).clone_from(&piece.raise.attrs);
    // Offers say how operands and result lie.
    graph.set_form(n, Form::Kernel(Box::default()));
    remove_dead(graph, inner.iter().copied());
    Ok(())
}

/// Whether a node is a raised op.
pub(crate) fn is_raised(graph: &Graph, n: NodeId) -> bool {
    matches!(&graph.node(n).op, Op::Onnx(op) if op.domain == raised::DOMAIN)
}
