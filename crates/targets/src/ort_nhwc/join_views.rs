//! Views that follow each other, as one Reshape, where a value between them has more axes than devices take. With the Transpose that a
//! device knows to run with fewer axes such a value went into it; without, nothing on the device reads it.

use super::digits::FEW;
use crate::shared::nodes::become_reshape;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::patch::remove_dead;
use relayout_ir::storage::reshape_target;
use relayout_target_api::moves::moved;
use relayout_target_api::{Declared, Fact, Pass, PassError, Slot};

/// The pass.
pub(super) fn pass() -> Pass {
    let is = Declared::new("join_views", Slot::Finish, "looks at views where no move is left between them")
        .needs(&[Fact::Packed])
        .after(&["write_digit_moves"]);
    Pass::on_each_graph(is, |graph, _| {
        for n in graph.order().unwrap_or_default() {
            if graph.contains(n) {
                shorten(graph, n, true)?;
            }
        }
        Ok(())
    })
}

/// Whether a node says the same bytes in other dims.
pub(super) fn is_view(graph: &Graph, n: NodeId) -> bool {
    let node = graph.node(n);
    let kernel = node.onnx() == Some("Reshape") && matches!(node.form, Form::Kernel(_));
    (kernel || matches!(node.form, Form::View(_))) && moved(graph, n).is_none()
}

/// Has a view read what the first of the views before it reads, which only it needs; where `only_wide`, if a value between them has more axes
/// than devices take.
pub(super) fn shorten(graph: &mut Graph, n: NodeId, only_wide: bool) -> Result<(), PassError> {
    let Some(y) = graph.node(n).result(0).filter(|_| is_view(graph, n)) else { return Ok(()) };
    // What a view leaves to one other view goes.
    let goes = |v: ValueId| graph.only_use(v).is_some() && is_view(graph, graph.value(v).producer().0);
    let (mut x, mut wide, mut last) = (graph.node(n).operand(0), false, None);
    while let Some(v) = x.filter(|&v| goes(v)) {
        wide |= graph.storage_shape(v, &graph.value(v).layout).is_some_and(|dims| dims.len() > FEW);
        last = Some(graph.value(v).producer().0);
        x = last.and_then(|n| graph.node(n).operand(0));
    }
    let stored = |v: ValueId| graph.storage_shape(v, &graph.value(v).layout);
    let target = x.and_then(stored).zip(stored(y)).and_then(|(from, to)| reshape_target(&from, &to));
    let (Some(x), Some(target), Some(before)) =
        (x, target, graph.node(n).operand(0).filter(|_| (wide || !only_wide) && last.is_some()))
    else {
        return Ok(());
    };
    let to = Some(graph.value(y).layout.clone()).filter(|l| !l.is_row_major());
    let before = graph.value(before).producer().0;
    become_reshape(graph, n, x, &target, to)?;
    remove_dead(graph, [before]);
    Ok(())
}
