//! `delay_transposes`: an op that reads a list per axis which is computed stands before the Transpose of a convolution, not behind it.
//!
//! ```text
//! Pad(Transpose(c, to N S C), pads in that order) = Transpose(Pad(c, pads), to N S C)
//! ```
//!
//! Each time that ONNX Runtime moves a Transpose through such an op, it puts a Gather on the host that brings the list in order. With its
//! own Transposes it does so once, as in the model that it was; with ours it would do so twice more.

use super::wrapped::{is_last, is_wrapper};
use relayout_ir::form::Form;
use relayout_ir::graph::{DuplicateName, Graph, Node, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::read::is_constant;
use relayout_ir::op::{Said, renumbered};
use relayout_ir::patch::{Insert, Patch, remove_dead};
use relayout_target_api::{Declared, Fact, Pass, Slot};

/// The pass.
pub(super) fn pass() -> Pass {
    let is = Declared::new("delay_transposes", Slot::Finish, "looks at Transposes whose result no Shape reads")
        .needs(&[Fact::Written])
        .after(&["read_shapes"]);
    Pass::on_each_graph(is, |graph, _| {
        for n in graph.order().unwrap_or_default() {
            if let Some(sides) = Some(n).filter(|&n| graph.contains(n)).and_then(|n| Sides::recognize(graph, n)) {
                delay(graph, n, sides)?;
            }
        }
        Ok(())
    })
}

/// What stands around an op whose operand a Transpose brings from a convolution.
struct Sides {
    transpose: NodeId,
    x: ValueId,
    y: ValueId,
}

impl Sides {
    fn recognize(graph: &Graph, n: NodeId) -> Option<Sides> {
        let node = graph.node(n);
        let (x, y) = (node.operand(0)?, node.only_result()?);
        let transpose = graph.value(x).producer().0;
        let wrapped = is_wrapper(graph, graph.node(transpose)) && is_last(graph, x) && is_last(graph, y);
        let alone = graph.only_use(x).is_some() && !graph.is_read_by_name(y);
        (matches!(node.form, Form::Axes(_)) && wrapped && alone && computes_with_lists(graph, node)).then_some(Sides {
            transpose,
            x,
            y,
        })
    }
}

/// Whether a node reads nothing but its first operand and lists, one of which is put in order at run time.
fn computes_with_lists(graph: &Graph, node: &Node) -> bool {
    let is_list = |v: &ValueId| graph.value(*v).ty.rank().is_some_and(|rank| rank <= 1);
    let computed = |slot: usize| node.operand(slot).is_some_and(|v| !is_constant(graph, v));
    let ordered = |said: &Said| match said {
        Said::Picked { slot, .. } | Said::Woven { slot: Some(slot), .. } => computed(*slot),
        _ => false,
    };
    node.inputs.iter().skip(1).flatten().all(is_list)
        && renumbered(graph, node).is_ok_and(|said| said.iter().any(ordered))
}

fn delay(graph: &mut Graph, n: NodeId, Sides { transpose, x, y }: Sides) -> Result<(), DuplicateName> {
    let Some(first) = graph.node(transpose).operand(0) else { return Ok(()) };
    let value = graph.value(y);
    let again = Node {
        name: String::new(),
        inputs: vec![Some(y)],
        outputs: Vec::new(),
        origin: None,
        rank: graph.node(n).rank,
        ..graph.node(transpose).clone()
    };
    let mut patch = Patch::new();
    patch.connect(n, 0, first);
    patch.set_layout(y, Layout::row_major(value.layout.rank()));
    // A Shape lists what it reads however it lies. What brings the result back to channels first reads it as it is now.
    let back = |n: NodeId| {
        let back = graph.node(n).result(0).filter(|_| is_wrapper(graph, graph.node(n)));
        back.filter(|&v| !graph.is_read_by_name(v))
    };
    let (undone, others): (Vec<_>, Vec<_>) = graph.uses(y).into_iter().partition(|u| back(u.node).is_some());
    let others: Vec<_> = others.into_iter().filter(|u| graph.node(u.node).onnx() != Some("Shape")).collect();
    for v in undone.iter().filter_map(|u| back(u.node)) {
        patch.redirect(v, y);
    }
    if !others.is_empty() {
        patch.insert(Insert {
            node: again,
            name: format!("{}.channels_last", value.name),
            ty: value.ty.clone(),
            layout: graph.value(x).layout.clone(),
            uses: others,
            outputs: Vec::new(),
            takes_name_of: None,
        });
    }
    patch.apply(graph)?;
    remove_dead(graph, undone.iter().map(|u| u.node).chain([transpose]));
    Ok(())
}
