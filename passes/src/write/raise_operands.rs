//! An operand of lower rank is aligned at its end, so where its axes no longer lie there it is raised to full rank first.

use crate::operands::needs_raise;
use crate::state::Step;
use relayout_ir::build::bind_again;
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, Use, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::patch::{Insert, Patch};
use relayout_ir::types::{TensorType, Type};
use relayout_target_api::{Declared, Fact, PassError};
use rustc_hash::FxHashMap;

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new(
        "raise_operands",
        relayout_target_api::Slot::Write,
        "adds views that the dialect needs, some of them of constants",
    )
    .needs(&[Fact::Layouts])
    .keeps_nodes(),
    &|graph, _| raise_operands(graph),
);

/// Raises broadcast operands.
pub fn raise_operands(graph: &mut Graph) -> Result<(), PassError> {
    // One raised value for all who read it alike.
    let mut raised: Vec<Insert> = Vec::new();
    let mut raised_of: FxHashMap<ValueId, Vec<usize>> = FxHashMap::default();
    let mut touched = Vec::new();
    for n in graph.nodes() {
        let digits = super::raise_digits::has_digits(graph, n);
        for (slot, v) in raised_operands(graph, n) {
            let Some(insert) = raise(graph, n, slot, v).filter(|_| !digits) else { continue };
            touched.push(n);
            let known = raised_of.entry(v).or_default();
            let alike = |&at: &usize| raised[at].layout == insert.layout && raised[at].ty == insert.ty;
            if let Some(at) = known.iter().copied().find(alike) {
                raised[at].uses.extend(insert.uses);
            } else {
                known.push(raised.len());
                raised.push(insert);
            }
        }
    }
    let mut patch = Patch::new();
    for insert in raised {
        patch.insert(insert);
    }
    patch.apply(graph)?;
    for n in touched {
        bind_again(graph, n);
    }
    Ok(())
}

/// Operands of a node that have to be raised.
fn raised_operands(graph: &Graph, n: NodeId) -> Vec<(usize, ValueId)> {
    let node = graph.node(n);
    let Form::Axes(bound) = &node.form else { return Vec::new() };
    let full = node.result(0).map(|y| &graph.value(y).layout);
    let raised = |&(slot, v): &(usize, ValueId)| needs_raise(graph, bound, slot, v, &graph.value(v).layout, full);
    node.inputs.iter().enumerate().filter_map(|(slot, v)| v.map(|v| (slot, v))).filter(raised).collect()
}

/// The operand with leading axes of extent 1, stored in the order of the result's axes.
fn raise(graph: &Graph, n: NodeId, slot: usize, v: ValueId) -> Option<Insert> {
    let node = graph.node(n);
    let y = node.result(0)?;
    let value = graph.value(v);
    let shape = value.ty.shape()?;
    let rank = graph.value(y).ty.rank()?;
    let layout: Layout = graph.value(y).layout.clone();
    let missing = rank.checked_sub(shape.len())?;
    let mut raised = vec![Dim::from(1); missing];
    raised.extend(shape.iter().cloned());
    let mut view = Node::new(Op::Onnx(OpName::onnx("Reshape")), vec![Some(v)]);
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
