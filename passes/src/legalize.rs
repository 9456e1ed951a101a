//! `legalize`: what the dialect needs said explicitly. In standard ONNX that is one thing: an operand of lower rank is aligned
//! at its end, so where its axes no longer lie there it is raised to full rank first.

use crate::pipeline::{Context, PassError};
use relayout_ir::dim::Dim;
use relayout_ir::form::{AtomId, Form, Slot, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, Use, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::bind;
use relayout_ir::patch::{Insert, Patch};
use relayout_ir::types::{TensorType, Type};

/// Raises broadcast operands.
pub fn legalize(graph: &mut Graph, _cx: &mut Context<'_>) -> Result<(), PassError> {
    let mut patch = Patch::new();
    let mut touched = Vec::new();
    let nodes: Vec<NodeId> = graph.nodes().collect();
    for n in nodes {
        for (slot, v) in raised_operands(graph, n) {
            if let Some(insert) = raise(graph, n, slot, v) {
                patch.insert(insert);
                touched.push(n);
            }
        }
    }
    patch.apply(graph).map_err(PassError::Name)?;
    for n in touched {
        let form = bind(graph, n);
        graph.set_form(n, form);
    }
    Ok(())
}

/// Operands of a node that broadcast, and whose axes no longer lie at the end of the result's.
fn raised_operands(graph: &Graph, n: NodeId) -> Vec<(usize, ValueId)> {
    let node = graph.node(n);
    let Form::Axes(bound) = &node.form else { return Vec::new() };
    let Some(y) = node.outputs.first().copied().flatten() else { return Vec::new() };
    let Some(full) = stored_atoms(graph, y, bound.axes(Slot::Out(0))) else { return Vec::new() };
    let misplaced = |&(slot, v): &(usize, ValueId)| {
        bound.aligned.get(slot).copied().unwrap_or(false)
            && stored_atoms(graph, v, bound.axes(Slot::In(slot))).is_some_and(|own| !full.ends_with(&own))
    };
    node.inputs.iter().enumerate().filter_map(|(slot, v)| v.map(|v| (slot, v))).filter(misplaced).collect()
}

fn stored_atoms(graph: &Graph, v: ValueId, axes: Option<&[AtomId]>) -> Option<Vec<AtomId>> {
    let axes = axes?;
    graph.value(v).layout.as_permutation()?.iter().map(|&a| axes.get(a).copied()).collect()
}

/// The operand with leading axes of extent 1, stored in the order of the result's axes.
fn raise(graph: &Graph, n: NodeId, slot: usize, v: ValueId) -> Option<Insert> {
    let node = graph.node(n);
    let y = node.outputs.first().copied().flatten()?;
    let value = graph.value(v);
    let shape = value.ty.shape()?;
    let rank = graph.value(y).ty.rank()?;
    let layout: Layout = graph.value(y).layout.clone();
    let missing = rank.checked_sub(shape.len())?;
    let mut raised = vec![Dim::from(1); missing];
    raised.extend(shape.iter().cloned());
    let op = OpName { domain: String::new(), name: "Reshape".to_owned(), overload: String::new() };
    let mut view = Node::new(Op::Onnx(op), vec![Some(v)]);
    view.opset = node.opset;
    view.rank = node.rank.min(graph.node(value.producer().0).rank);
    view.form = Form::View(View::Reshape);
    Some(Insert {
        node: view,
        name: format!("{}.{rank}d", value.name),
        ty: Type::Tensor(TensorType { dtype: value.ty.dtype(), shape: Some(raised) }),
        layout,
        uses: vec![Use { node: n, slot }],
        outputs: vec![],
        takes_name_of: None,
    })
}
