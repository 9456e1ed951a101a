//! Finds the nodes that move bytes, in a graph whose layouts are written.

use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::storage::same_bytes;

/// The move that a node makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Its operand.
    pub source: ValueId,
    /// Its result.
    pub result: ValueId,
    /// The layout in which the result would lie if no byte moved, over the result's axes. Where the rank is not known it is that
    /// of the operand.
    pub left: Layout,
}

/// The move that a node makes; `None` if it moves nothing. The graph must have gone through the passes.
pub fn moved(graph: &Graph, n: NodeId) -> Option<Moved> {
    let node = graph.node(n);
    let x = node.operand(0)?;
    let y = node.result(0)?;
    let (from, to) = (graph.value(x), graph.value(y));
    let (Some(from_shape), Some(shape)) = (from.ty.shape(), to.ty.shape()) else {
        // A Transpose of unknown rank moves; nothing more is known of it.
        let left = from.layout.clone();
        return (node.onnx() == Some("Transpose")).then_some(Moved { source: x, result: y, left });
    };
    let left = match (&node.op, &node.form) {
        (Op::Relayout, _) => from.layout.clone(),
        (_, Form::View(view @ View::Transpose(_))) => view.forward(&from.layout, from_shape, shape).ok()?,
        (_, Form::Opaque(_)) if node.onnx() == Some("Transpose") => from.layout.clone(),
        _ => return None,
    };
    let stays = same_bytes(&left, &to.layout, shape)
        && node.form.opaque_reason().is_none_or(|_| matches!(node.op, Op::Relayout));
    (!stays).then_some(Moved { source: x, result: y, left })
}
