//! Moves of images whose channels have pad slots between their runs, `C[24:32,24:32]` in blocks, to images channels first: all slots
//! are put in order, and those that are channels are gathered.

use super::make::Maker;
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::form::{Form, KernelLayouts, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::layout::{Layout, Segment};
use relayout_ir::storage::image_in_runs;
use relayout_target::PassError;
use relayout_target::moves::{Moved, moved};

/// Lowers such a move, if the node is one; says whether it is.
pub(super) fn lower(graph: &mut Graph, n: NodeId) -> Result<bool, PassError> {
    let Some(Moved { source, result, left }) = moved(graph, n) else { return Ok(false) };
    let Some((axes, map)) = runs(&left) else { return Ok(false) };
    let to = graph.value(result).layout.clone();
    let (true, Some(padded)) = (to.as_permutation() == Some(axes.to_vec()), in_order(axes, &map)) else {
        let first = format!("{} can't be moved from {left} to {to}", graph.node(n).describe(graph));
        return Err(PassError::invalid("lower_moves", first));
    };
    let seen = seen(graph, n, source, &left)?;
    let slots = move_to(graph, n, seen, &padded)?;
    let rank = graph.node(n).rank;
    let name = format!("{}.channels", graph.value(result).name);
    let places = Maker { graph, rank }.constant(&name, Constant::ints(&places(&map)))?;
    graph.set_inputs(n, vec![Some(slots), Some(places)]);
    graph.set_op(n, OpName { domain: String::new(), name: "Gather".to_owned(), overload: String::new() }, 0);
    let attrs = graph.attrs_mut(n);
    attrs.clear();
    attrs.insert("axis".to_owned(), Attr::Int(1));
    let outs = vec![Some(to).filter(|to| !to.is_row_major())];
    graph.set_form(n, Form::Kernel(Box::new(KernelLayouts { ins: vec![Some(padded)], outs })));
    Ok(true)
}

/// The axes `[n, c, h, w]` of an image in blocks with pad slots between its runs, and its slot map.
fn runs(layout: &Layout) -> Option<([usize; 4], Vec<Segment>)> {
    let (axes, _) = image_in_runs(layout)?;
    Some((axes, layout.slot_map(axes[1])?.to_vec()))
}

/// The image with its axes in order, and the slots that it has in blocks.
fn in_order(axes: [usize; 4], map: &[Segment]) -> Option<Layout> {
    Layout::permutation(&axes).ok()?.with_slot_map(axes[1], map).ok()
}

/// Slots that hold channels.
fn places(map: &[Segment]) -> Vec<i64> {
    let mut places = Vec::new();
    let mut start = 0;
    for segment in map {
        places.extend((start..start + segment.len).map(|slot| slot as i64));
        start += segment.slots;
    }
    places
}

/// The operand as the result of the node has its axes: a Transpose that moves is a view, and a move.
fn seen(graph: &mut Graph, n: NodeId, source: ValueId, left: &Layout) -> Result<ValueId, PassError> {
    let node = graph.node(n);
    let (Form::View(view @ View::Transpose(_)), Some(result)) = (&node.form, node.outputs.first().copied().flatten())
    else {
        return Ok(source);
    };
    let mut made = Node::new(node.op.clone(), vec![Some(source)]);
    (made.rank, made.opset) = (node.rank, node.opset);
    made.attrs.clone_from(&node.attrs);
    made.form = Form::View(view.clone());
    let ty = graph.value(result).ty.clone();
    let name = graph.fresh_name(&format!("{}.viewed", graph.value(source).name));
    let v = graph.add_single(made, name, ty)?;
    *graph.value_mut(v).layout = left.clone();
    Ok(v)
}

/// A value moved to another layout.
fn move_to(graph: &mut Graph, n: NodeId, v: ValueId, to: &Layout) -> Result<ValueId, PassError> {
    let mut node = Node::new(Op::Relayout, vec![Some(v)]);
    node.rank = graph.node(n).rank;
    let (ty, name) = (graph.value(v).ty.clone(), graph.fresh_name(&format!("{}.{to}", graph.value(v).name)));
    let moved = graph.add_single(node, name, ty)?;
    *graph.value_mut(moved).layout = to.clone();
    Ok(moved)
}
