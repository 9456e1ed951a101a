//! What comes before a quantization. There a sum in another order may land on the other side of a step, so nothing that rounds
//! differently is done there.

use relayout_ir::graph::{Graph, Node, NodeId, Op};
use relayout_ir::op::is_described;

/// By node number: whether a result of the node reaches an op that rounds to steps, itself included. `beyond` says that of the
/// graph's outputs.
pub(crate) fn before_rounding(graph: &Graph, beyond: bool) -> Vec<bool> {
    let bound = graph.nodes().map(|n| n.index() + 1).max().unwrap_or(0);
    if beyond {
        return vec![true; bound];
    }
    let mut before = vec![false; bound];
    let mut todo: Vec<NodeId> = graph.nodes().filter(|&n| rounds(graph.node(n))).collect();
    while let Some(n) = todo.pop() {
        if std::mem::replace(&mut before[n.index()], true) {
            continue;
        }
        let node = graph.node(n);
        todo.extend(node.inputs.iter().flatten().chain(&node.captures).map(|&v| graph.value(v).producer().0));
    }
    before
}

/// Whether the op, or one in its bodies, rounds to steps. A call of a function may.
fn rounds(node: &Node) -> bool {
    let Op::Onnx(op) = &node.op else { return false };
    let inside = || node.bodies().any(|b| b.nodes().any(|n| rounds(b.node(n))));
    let name = op.name.as_str();
    !is_described(&op.domain) || (name.contains("Quantize") && !name.starts_with("Dequantize")) || inside()
}
