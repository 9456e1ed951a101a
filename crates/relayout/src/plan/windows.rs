//! Slices, splits and concatenations that need no copy: their parts are windows of one storage.

use relayout_ir::graph::{Graph, Node, ValueId};
use relayout_ir::layout::storage::{StorageId, StorageView};
use relayout_ir::op::read::elements_taken;
use relayout_ir::op::{cuts, int_or_default};
use serde::{Deserialize, Serialize};

/// A tensor that can lie in the storage of another one: a result of a Slice or Split in that of operand 0, an operand of a Concat
/// in that of its result.
///
/// Whether it may is the embedder's to say: a window is written by nobody else while it is read, and a caller may want an output
/// to be a storage of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WindowPlan {
    /// Which of the results, of a Slice or Split; which of the operands, of a Concat.
    pub slot: usize,
    /// Elements from the start of the storage to the tensor's first.
    pub offset: i64,
    /// Elements from one to the next, for each dim of the tensor's stored shape; negative where a slice runs backwards.
    pub strides: Vec<i64>,
}

/// The windows of a node in the layouts that its operands and results have; none of other ops, of extents that are not known, and
/// of tensors that have pad slots or begin within a block.
pub(super) fn windows(graph: &Graph, node: &Node) -> Vec<WindowPlan> {
    let found = match node.onnx() {
        Some("Slice") => sliced(graph, node).map(|view| vec![(view, node.result(0))]),
        Some("Split") => parts(graph, node, node.operand(0), &node.outputs),
        Some("Concat") => parts(graph, node, node.result(0), &node.inputs),
        _ => None,
    };
    let window = |(slot, (view, member)): (usize, (StorageView, Option<ValueId>))| {
        let strides = view.strides_as(&graph.value(member?).layout)?;
        Some(WindowPlan { slot, offset: view.offset(), strides: strides.to_vec() })
    };
    found.into_iter().flatten().enumerate().filter_map(window).collect()
}

/// A value as it lies, all of its storage.
fn whole(graph: &Graph, v: ValueId) -> Option<StorageView> {
    let value = graph.value(v);
    StorageView::new(StorageId(v.index() as u64), &value.layout, &value.ty.const_shape()?).ok()
}

fn sliced(graph: &Graph, node: &Node) -> Option<StorageView> {
    let mut view = whole(graph, node.operand(0)?)?;
    for cut in cuts(graph, node)? {
        let (start, count) = elements_taken(*view.shape().get(cut.axis)?, cut.start, cut.end, cut.step);
        view = view.slice(cut.axis, start, count, cut.step).ok()?;
    }
    Some(view)
}

/// The members along the axis of a node, each a part of the tensor that all of them make.
fn parts(
    graph: &Graph,
    node: &Node,
    all: Option<ValueId>,
    members: &[Option<ValueId>],
) -> Option<Vec<(StorageView, Option<ValueId>)>> {
    let all = whole(graph, all?)?;
    let rank = i64::try_from(all.shape().len()).ok()?;
    let axis = usize::try_from(int_or_default(node, "axis").unwrap_or(0).checked_rem_euclid(rank)?).ok()?;
    let size = |v: &Option<ValueId>| graph.value((*v)?).ty.const_shape()?.get(axis).copied();
    let sizes: Vec<i64> = members.iter().map(size).collect::<Option<_>>()?;
    Some(all.split(axis, &sizes).ok()?.into_iter().zip(members.iter().copied()).collect())
}
