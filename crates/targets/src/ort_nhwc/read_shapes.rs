//! Shapes are read where ONNX Runtime leaves features channels first when it has loaded the file.
//!
//! ```text
//! Shape(Transpose(c, to N S C))                                    reads c
//! Shape(v), beside Conv(Transpose(v, to N C S)), v made of those   reads Transpose(v, to N C S)
//! ```
//!
//! The runtime moves a Transpose through a Shape that reads its result, and puts a Gather behind the Shape, which runs on the host. Our
//! Transposes would leave one there, and the runtime's own ones, which undo them, a second one.

use super::wrapped::{is_last, is_wrapper};
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::op::read::is_constant;
use relayout_ir::patch::Patch;
use relayout_target_api::{Declared, Fact, Pass, Slot};
use rustc_hash::FxHashSet;

/// The pass.
pub(super) fn pass() -> Pass {
    let is = Declared::new("read_shapes", Slot::Finish, "looks at the Transposes around convolutions")
        .needs(&[Fact::Written])
        .keeps_nodes();
    Pass::on_each_graph(is, |graph, _| {
        let turned = turned(graph);
        let mut patch = Patch::new();
        for n in graph.nodes().filter(|&n| graph.node(n).onnx() == Some("Shape")) {
            if let Some(first) = graph.node(n).operand(0).and_then(|v| channels_first(graph, v, &turned)) {
                patch.connect(n, 0, first);
            }
        }
        patch.apply(graph)?;
        Ok(())
    })
}

/// Values that the runtime makes channels first on load: the Transposes before them move behind them.
fn turned(graph: &Graph) -> FxHashSet<ValueId> {
    let mut turned = FxHashSet::default();
    for n in graph.order().unwrap_or_default() {
        let node = graph.node(n);
        if is_wrapper(graph, node) || follows(graph, node, &turned) {
            turned.extend(node.outputs.iter().flatten().copied().filter(|&v| is_last(graph, v)));
        }
    }
    turned
}

/// Whether a node has channels last because all that it computes with has.
fn follows(graph: &Graph, node: &Node, turned: &FxHashSet<ValueId>) -> bool {
    let mut operands = node.inputs.iter().flatten().copied().filter(|&v| !is_constant(graph, v)).peekable();
    matches!(node.form, Form::Axes(_)) && operands.peek().is_some() && operands.all(|v| turned.contains(&v))
}

/// The same features channels first, as the runtime will have them.
fn channels_first(graph: &Graph, v: ValueId, turned: &FxHashSet<ValueId>) -> Option<ValueId> {
    let wrapper = |n: NodeId| Some(graph.node(n)).filter(|node| is_wrapper(graph, node));
    if let Some(before) = wrapper(graph.value(v).producer().0) {
        return before.operand(0);
    }
    let mut readers = graph.uses(v).into_iter().filter_map(|u| wrapper(u.node));
    if turned.contains(&v) { readers.next()?.result(0) } else { None }
}
