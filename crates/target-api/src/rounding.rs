//! Finds the nodes before a quantization. A sum in another order may round to another step there, so rules that round differently
//! are not applied to them.

use petgraph::visit::{Dfs, Reversed, Visitable};
use relayout_ir::graph::{Graph, Node, NodeId, Op};
use relayout_ir::op::is_described;
use rustc_hash::FxHashSet;

/// Nodes of which a result reaches an op that rounds to steps, that op included.
pub(crate) fn before_rounding(graph: &Graph) -> FxHashSet<NodeId> {
    let rounding = graph.nodes().filter(|&n| rounds(graph.node(n))).collect();
    let mut before = Dfs::from_parts(rounding, graph.visit_map());
    while before.next(Reversed(graph)).is_some() {}
    before.discovered
}

/// Whether the op, or one in its bodies, rounds to steps. A call of a function may.
fn rounds(node: &Node) -> bool {
    let Op::Onnx(op) = &node.op else { return false };
    let inside = || node.bodies().any(|b| b.nodes().any(|n| rounds(b.node(n))));
    let name = op.name.as_str();
    !is_described(&op.domain) || (name.contains("Quantize") && !name.starts_with("Dequantize")) || inside()
}
