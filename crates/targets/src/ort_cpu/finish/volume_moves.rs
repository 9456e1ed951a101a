//! Moves of volumes to, from and between blocks of their channels, as those of images and of runs of pixels. Reshapes stand
//! between the declarations, and move nothing.

use crate::shared::nodes::{become_reshape, insert_reshape, numbers};
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::layout::{Factor, Layout};
use relayout_ir::op::is_among_signals;
use relayout_ir::storage::{BlockedVolume, blocked_axes, blocked_volume, storage_shape};
use relayout_ir::types::Type;
use relayout_target_api::PassError;
use relayout_target_api::moves::{Moved, moved};

/// Lowers such a move, if the node is one; says whether it is.
pub(super) fn lower(graph: &mut Graph, n: NodeId) -> Result<bool, PassError> {
    let Some(Moved { source, result, left }) = moved(graph, n) else { return Ok(false) };
    let to = graph.value(result).layout.clone();
    let sides = (blocked_volume(&left), blocked_volume(&to));
    if sides == (None, None) {
        return Ok(false);
    }
    let refused = |graph: &Graph| {
        let first = format!("{} can't be moved from {left} to {to}", graph.node(n).describe(graph));
        PassError::invalid("lower_moves", first)
    };
    let steps = match sides {
        (Some(from), Some(to)) => between(graph, result, from, to),
        (None, Some(blocked)) => packed(graph, result, &left, blocked),
        (Some(blocked), None) => packed(graph, result, &to, blocked).map(|steps| {
            let turned = |Step { dims, from, to }| Step { dims, from: to, to: from };
            steps.into_iter().rev().map(turned).collect()
        }),
        (None, None) => None,
    };
    let stored = graph.storage_shape(result, &to);
    let (Some(steps), Some(stored)) = (steps, stored) else { return Err(refused(graph)) };
    let Some(target) = numbers(&stored) else { return Err(refused(graph)) };
    let mut at = source;
    for step in steps {
        let declared = storage_shape(&step.dims, &step.from, graph.storage).and_then(|d| numbers(&d));
        let Some(declared) = declared else { return Err(refused(graph)) };
        let ty = Type::tensor(DType::F32, step.dims);
        at = insert_reshape(graph, n, at, &declared, (ty, step.from), (vec![], vec![]), None)?;
        let name = format!("{}.{}", graph.value(result).name, step.to);
        at = Builder::at(graph, n).moved(at, &name, step.to)?;
    }
    become_reshape(graph, n, at, &target, Some(to).filter(|to| !to.is_row_major()))?;
    Ok(true)
}

/// Whether a value can be moved between these layouts: a move of a volume needs its extents in numbers, but for the batch. Moves of
/// signals are for what stands around convolutions of them; elsewhere they would stand for Transposes of sequences.
pub(crate) fn can_move(graph: &Graph, v: ValueId, from: &Layout, to: &Layout) -> bool {
    let is_signal = |l: &&Layout| blocked_axes(l).is_some_and(|(axes, _)| axes.h.is_none());
    if [from, to].iter().any(is_signal) && !is_among_signals(graph, graph.value(v).producer().0) {
        return false;
    }
    let fixed =
        |volume: BlockedVolume| extents(graph, v, volume).is_some_and(|[_, rest @ ..]| rest.iter().all(Dim::is_const));
    [from, to].into_iter().filter_map(blocked_volume).all(fixed)
}

/// A move of a value of these extents, whose bytes are those of the volume.
struct Step {
    dims: Vec<Dim>,
    from: Layout,
    to: Layout,
}

/// Extents `[n, c, d, h, w]` of a volume.
fn extents(graph: &Graph, v: ValueId, volume: BlockedVolume) -> Option<[Dim; 5]> {
    let shape = graph.value(v).ty.shape()?;
    let dims: Vec<Dim> = volume.axes.iter().map(|&axis| shape.get(axis).cloned()).collect::<Option<_>>()?;
    dims.try_into().ok()
}

/// `[a, b, c, d]` as `[a, c, b, d]`.
fn swapped() -> Option<Layout> {
    Layout::permutation(&[0, 2, 1, 3]).ok()
}

/// Frames of blocks as blocks of frames, or the other way round.
fn between(graph: &Graph, v: ValueId, from: BlockedVolume, to: BlockedVolume) -> Option<Vec<Step>> {
    let [n, c, d, h, w] = extents(graph, v, from)?;
    (from.axes == to.axes && from.by_frame != to.by_frame && from.block == to.block).then_some(())?;
    let block = i64::try_from(from.block).ok()?;
    let blocks = Dim::from(c.as_const()?.checked_add(block - 1)? / block);
    let run = Dim::product(&[h, w, Dim::from(block)])?;
    let [outer, inner] = if from.by_frame { [d, blocks] } else { [blocks, d] };
    Some(vec![Step { dims: vec![n, outer, inner, run], from: Layout::row_major(4), to: swapped()? }])
}

/// A volume in an order of its axes as blocks.
fn packed(graph: &Graph, v: ValueId, plain: &Layout, volume: BlockedVolume) -> Option<Vec<Step>> {
    let [n, c, d, h, w] = extents(graph, v, volume)?;
    let order: [usize; 5] = plain.as_permutation()?.try_into().ok()?;
    let [an, ac, ad, ah, aw] = volume.axes;
    let image = if volume.by_frame {
        vec![Dim::product(&[n.clone(), d.clone()])?, c.clone(), h.clone(), w.clone()]
    } else {
        vec![n.clone(), c.clone(), Dim::product(&[d.clone(), h.clone()])?, w.clone()]
    };
    let digits = [Factor::whole(0), Factor::outer(1, volume.block), Factor::whole(2), Factor::whole(3)];
    let blocked = Layout::new(4, digits.into_iter().chain([Factor::inner(1, 1, volume.block)]), []).ok()?;
    let from =
        if order == [an, ad, ah, aw, ac] { Layout::permutation(&[0, 2, 3, 1]).ok()? } else { Layout::row_major(4) };
    let pack = Step { dims: image, from, to: blocked };
    let (by_frame, by_block) = ([an, ad, ac, ah, aw], [an, ac, ad, ah, aw]);
    let lies = if volume.by_frame { by_frame } else { by_block };
    if order == lies || order == [an, ad, ah, aw, ac] {
        return Some(vec![pack]);
    }
    (volume.by_frame && order == by_block).then_some(())?;
    let run = Dim::product(&[h, w])?;
    Some(vec![Step { dims: vec![n, c, d, run], from: Layout::row_major(4), to: swapped()? }, pack])
}
