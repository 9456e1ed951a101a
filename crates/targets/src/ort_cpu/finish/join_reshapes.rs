//! Reshapes that follow each other, as one: what runs on the digits of a signal has its own around it.

use crate::shared::nodes::become_reshape;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, Node, ValueId};
use relayout_ir::patch::remove_dead;
use relayout_ir::storage::reshape_target;
use relayout_target_api::{Declared, Fact, Pass, PassError, Slot};

/// The pass.
pub(super) fn pass() -> Pass {
    let is = Declared::new("join_reshapes", Slot::Write, "forms and images of signals have added Reshapes")
        .needs(&[Fact::Written])
        .after(&["join_taps"]);
    Pass::on_each_graph(is, |graph, _| join_reshapes(graph))
}

/// Makes one Reshape of two.
fn join_reshapes(graph: &mut Graph) -> Result<(), PassError> {
    let is_reshape = |node: &Node| node.onnx() == Some("Reshape") && matches!(node.form, Form::Kernel(_));
    for n in graph.order().unwrap_or_default() {
        let node = graph.node(n);
        let sides = node.operand(0).zip(node.result(0));
        let Some((x, y)) = sides.filter(|_| is_reshape(node)) else { continue };
        let (before, _) = graph.value(x).producer();
        let first = Some(graph.node(before)).filter(|node| is_reshape(node));
        let Some(v) = first.and_then(|node| node.operand(0)) else { continue };
        let stored = |v: ValueId| graph.storage_shape(v, &graph.value(v).layout);
        let target = stored(v).zip(stored(y)).and_then(|(from, to)| reshape_target(&from, &to));
        let Some(target) = target else { continue };
        let to = Some(graph.value(y).layout.clone()).filter(|l| !l.is_row_major());
        become_reshape(graph, n, v, &target, to)?;
        remove_dead(graph, [before]);
    }
    Ok(())
}
