//! `leave_blocks`: what was decided to lie in blocks is written channels first, and the runtime blocks it when it loads the file.
//!
//! A move into blocks from channels first, or out of them, goes. One from or to another order becomes a Transpose, which the runtime makes
//! one reorder of.

use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::patch::{Patch, remove_dead};
use relayout_ir::storage::blocked_axes;
use relayout_target_api::{Declared, Fact, Pass, PassError, Slot};
use std::collections::BTreeSet;

/// The pass.
pub(super) fn pass() -> Pass {
    let is = Declared::new("leave_blocks", Slot::Write, "what is written from here on stands in the file as it is")
        .needs(&[Fact::Layouts])
        .after(&["materialize"])
        .before(&["spell_forms"]);
    Pass::on_each_graph(is, |graph, _| leave_blocks(graph))
}

/// Declares every value of a graph that lies in blocks channels first.
fn leave_blocks(graph: &mut Graph) -> Result<(), PassError> {
    let mut patch = Patch::new();
    let mut blocked = BTreeSet::new();
    for v in graph.values() {
        if let Some(plain) = unblocked(&graph.value(v).layout) {
            patch.set_layout(v, plain);
            blocked.insert(v);
        }
    }
    if blocked.is_empty() {
        return Ok(());
    }
    patch.apply(graph)?;
    for n in graph.nodes().collect::<Vec<_>>() {
        let Form::Kernel(layouts) = &graph.node(n).form else { continue };
        let mut layouts = layouts.clone();
        for layout in layouts.ins.iter_mut().chain(&mut layouts.outs) {
            let plain = layout.as_ref().and_then(unblocked);
            if plain.is_some() {
                *layout = plain.filter(|l| !l.is_row_major());
            }
        }
        graph.set_form(n, Form::Kernel(layouts));
    }
    drop_idle_moves(graph, &blocked)
}

/// The layout channels first of an image that lies in blocks.
pub(super) fn unblocked(layout: &Layout) -> Option<Layout> {
    let (axes, _) = blocked_axes(layout)?;
    Layout::permutation(&axes.first()).ok()
}

/// Lets readers of moves between two values that lie alike now read what is moved. A copy of what lay in blocks has the name that the
/// file knows.
fn drop_idle_moves(graph: &mut Graph, blocked: &BTreeSet<ValueId>) -> Result<(), PassError> {
    let mut idle: Vec<NodeId> = Vec::new();
    for n in graph.order().unwrap_or_default() {
        let node = graph.node(n);
        let (Some(x), Some(y)) = (node.operand(0), node.result(0)) else { continue };
        if !matches!(node.op, Op::Relayout) || graph.value(x).layout != graph.value(y).layout {
            continue;
        }
        let mut patch = Patch::new();
        if blocked.contains(&x) && is_made(graph, x) && !graph.is_read_by_name(x) {
            patch.replace(y, x);
        } else if !graph.is_read_by_name(y) {
            patch.redirect(y, x);
        } else {
            continue;
        }
        patch.apply(graph)?;
        idle.push(n);
    }
    remove_dead(graph, idle);
    Ok(())
}

/// Whether a node makes a value, so that it may take over another name.
fn is_made(graph: &Graph, v: ValueId) -> bool {
    matches!(graph.node(graph.value(v).producer().0).op, Op::Onnx(_))
}
