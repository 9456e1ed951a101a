//! Moves of images whose channels have pad slots between their runs, `C[24:32,24:32]` in blocks, to images channels first: all slots
//! are put in order, and those that are channels are gathered.

use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::{Layout, Segment};
use relayout_ir::storage::image_in_runs;
use relayout_target_api::PassError;
use relayout_target_api::moves::{Moved, moved};

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
    let [of_slots, of_channels] = [(seen, format!(".{padded}")), (result, ".channels".to_owned())]
        .map(|(v, what)| format!("{}{what}", graph.value(v).name));
    let mut make = Builder::at(graph, n);
    let slots = make.moved(seen, &of_slots, padded.clone())?;
    let channels = make.ints(&of_channels, &places(&map))?;
    let gather = make.op("Gather", [slots, channels]).attr("axis", Attr::Int(1));
    gather.kernel_in(vec![Some(padded)], vec![to.declared()]).in_place_of(n);
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
    let (Form::View(view @ View::Transpose(_)), Some(result)) = (&node.form, node.result(0)) else {
        return Ok(source);
    };
    let (form, ty) = (Form::View(view.clone()), graph.value(result).ty.clone());
    let name = format!("{}.viewed", graph.value(source).name);
    Ok(Builder::at(graph, n).same_op(n, [source]).form(form).layout(left.clone()).result(&name, ty)?)
}
