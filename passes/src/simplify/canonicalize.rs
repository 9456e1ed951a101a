//! `canonicalize`: binds every node to its signature.
//!
//! After it, opset history is gone: axes are atoms, whether the file gives them as attributes or operands, negative or by
//! default; Transpose, Reshape, Squeeze, Unsqueeze, Flatten and Identity are views. No node is removed: a view is a fact about
//! a node, and a node that nothing changes is written as it was read.

use crate::state::Step;
use relayout_ir::build::bind_again;
use relayout_ir::graph::{Graph, NodeId, Op};
use relayout_target_api::{Context, Declared, Fact, PassError, Slot};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new(
        "canonicalize",
        Slot::Simplify,
        "binds nodes to signatures, for which ranks and constant axes must be known",
    )
    .needs(&[Fact::Types])
    .gives(&[Fact::Bound])
    .keeps_nodes(),
    &canonicalize,
);

/// Binds forms.
pub fn canonicalize(graph: &mut Graph, _cx: &mut Context<'_>) -> Result<(), PassError> {
    let nodes: Vec<NodeId> = graph.nodes().filter(|&n| matches!(graph.node(n).op, Op::Onnx(_))).collect();
    for n in nodes {
        bind_again(graph, n);
    }
    Ok(())
}
