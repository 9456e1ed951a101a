//! What a graph moves.

use onnx_runtime_ir::{Graph, Node};

/// Moves of bytes in a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Transposes of what is no constant.
    pub nodes: usize,
    /// Bytes that their readers gather: a Transpose is a view, and each of its readers goes through it element by element. Open
    /// extents count as 1.
    pub bytes: u64,
}

/// Moves of a graph.
pub fn moves_of(graph: &Graph) -> Moves {
    let is_move =
        |node: &&Node| node.is_default_domain() && node.op_type == "Transpose" && reads_no_constant(graph, node);
    let moves = graph.nodes.values().filter(is_move);
    moves.fold(Moves::default(), |sum, node| Moves { nodes: sum.nodes + 1, bytes: sum.bytes + gathered(graph, node) })
}

fn reads_no_constant(graph: &Graph, node: &Node) -> bool {
    !node.input_values().any(|id| graph.initializers.contains_key(&id))
}

fn gathered(graph: &Graph, node: &Node) -> u64 {
    let bytes = |id: &onnx_runtime_ir::ValueId| {
        let value = graph.value(*id);
        let extents = value.shape.iter().map(|dim| dim.as_static().unwrap_or(1) as u64);
        let readers = graph.consumers(*id).len() + usize::from(value.is_graph_output);
        extents.product::<u64>() * value.dtype.byte_size() as u64 * readers as u64
    };
    node.outputs.iter().map(bytes).sum()
}
