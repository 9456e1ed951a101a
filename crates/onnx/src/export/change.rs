//! What a view or a move comes to in a file: nothing, a Reshape, axes of extent 1 that go or come, a Transpose, or a call.

use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::View;
use relayout_ir::graph::{Graph, InPlace, NodeId, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::storage::{Restated, StorageRule, TargetExtent, blocked_image, image_in_runs, restated};

/// The first version of Reshape that takes its target as an operand, and any type. Before that it is an attribute, and types are floats.
pub(super) const RESHAPE_SINCE: i64 = 5;

/// What is left of a view or a move once both sides have their storage shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Same bytes, same shape.
    Nothing { x: ValueId, y: ValueId },
    /// Same bytes, another shape.
    Reshape { x: ValueId, y: ValueId, target: Vec<i64> },
    /// Same bytes, a shape that is made of the operand's when the model runs.
    Computed { x: ValueId, y: ValueId, target: Vec<TargetExtent> },
    /// Same bytes without these axes, each of extent 1.
    Squeeze { x: ValueId, y: ValueId, axes: Vec<i64> },
    /// Same bytes with these axes of the result, each of extent 1.
    Unsqueeze { x: ValueId, y: ValueId, axes: Vec<i64> },
    /// Bytes move: place `i` of the result is place `perm[i]` of the operand.
    Transpose { x: ValueId, y: ValueId, perm: Vec<usize> },
    /// A whole image into blocks of channels.
    Pack { x: ValueId, y: ValueId, from: Image },
    /// Out of blocks of channels, so many of which are kept.
    Unpack { x: ValueId, y: ValueId, to: Image, channels: i64 },
    /// A move that only the dialect's functions can say: the result's axes lie so in the operand.
    Move { x: ValueId, y: ValueId, left: Box<Layout> },
}

/// How an image lies that is in no blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Image {
    ChannelsFirst,
    ChannelsLast,
}

impl Image {
    /// How an image lies whose blocked form has its axes in this order.
    fn with_axes(layout: &Layout, blocked: [usize; 4]) -> Option<Image> {
        let [n, c, h, w] = blocked;
        let order = layout.as_permutation()?;
        [(Image::ChannelsFirst, [n, c, h, w]), (Image::ChannelsLast, [n, h, w, c])]
            .into_iter()
            .find_map(|(image, axes)| (order == axes).then_some(image))
    }
}

/// The move between an image and blocks of its channels, which declarations per axis don't show.
fn reorder(graph: &Graph, x: ValueId, y: ValueId, left: &Layout, shape: &[Dim]) -> Option<Change> {
    let to = &graph.value(y).layout;
    if graph.storage != StorageRule::PerAxis {
        return None;
    }
    // Channels that have pad slots between them are put in order with these.
    if let Some((axes, _)) = image_in_runs(left)
        && let Some(map) = left.slot_map(axes[1])
    {
        let padded = Layout::permutation(&axes).ok()?.with_slot_map(axes[1], map).ok()?;
        let slots = i64::try_from(map.iter().map(|run| run.slots).sum::<u64>()).ok()?;
        return (padded == *to).then_some(Change::Unpack { x, y, to: Image::ChannelsFirst, channels: slots });
    }
    match (blocked_image(left), blocked_image(to)) {
        (None, Some((axes, _))) => Some(Change::Pack { x, y, from: Image::with_axes(left, axes)? }),
        (Some((axes, _)), None) => {
            Some(Change::Unpack { x, y, to: Image::with_axes(to, axes)?, channels: shape.get(axes[1])?.as_const()? })
        }
        _ => None,
    }
}

/// How many producers are looked at for a loop.
const MOST_BEHIND: usize = 16;

/// Whether a value is, or is made of, what a loop collected: a loop of no rounds leaves nothing, and of nothing no extent can be found.
fn may_be_of_no_rounds(graph: &Graph, v: ValueId) -> bool {
    let mut next = Some(v);
    for _ in 0..MOST_BEHIND {
        let Some(v) = next else { return false };
        let node = graph.node(graph.value(v).producer().0);
        if matches!(node.onnx(), Some("Loop" | "Scan")) {
            return true;
        }
        next = node.inputs.first().copied().flatten();
    }
    false
}

/// What a node comes to in a file of an operator set; `None` for nodes that are neither view nor move, and for views that are as they were
/// read.
pub(super) fn change(graph: &Graph, n: NodeId, opset: i64) -> Option<Change> {
    let node = graph.node(n);
    let view = node.view()?;
    let x = node.inputs.first().copied().flatten()?;
    let y = node.outputs.first().copied().flatten()?;
    let (from, to) = (graph.value(x), graph.value(y));
    let plain = from.layout.is_row_major() && to.layout.is_row_major() && node.origin.is_some();
    if plain && !matches!(view, View::Transpose(_)) {
        return None;
    }
    let (from_shape, to_shape) = (from.ty.shape()?, to.ty.shape()?);
    graph.storage_shape(x, &from.layout).zip(graph.storage_shape(y, &to.layout))?;
    match graph.in_place(&view, (x, &from.layout), (y, &to.layout)).free() {
        Some(InPlace::Alias) => return Some(Change::Nothing { x, y }),
        Some(InPlace::Reshape { from, to }) => {
            let float = matches!(graph.value(x).ty.dtype(), Some(DType::F16 | DType::F32 | DType::F64));
            let said = opset >= RESHAPE_SINCE || float || matches!(view, View::Reshape);
            // Where it was a Reshape, the model has said so itself.
            let open = |target: &Vec<i64>| target.contains(&-1) && !matches!(view, View::Reshape);
            let sure = |target: &Vec<i64>| said && !(open(target) && may_be_of_no_rounds(graph, x));
            match restated(&from, &to) {
                Some(Restated::Reshape(target)) if sure(&target) => return Some(Change::Reshape { x, y, target }),
                Some(Restated::Computed(target)) if opset >= RESHAPE_SINCE && !may_be_of_no_rounds(graph, x) => {
                    return Some(Change::Computed { x, y, target });
                }
                Some(Restated::Squeeze(axes)) => return Some(Change::Squeeze { x, y, axes }),
                Some(Restated::Unsqueeze(axes)) => return Some(Change::Unsqueeze { x, y, axes }),
                _ => {}
            }
        }
        None => {}
    }
    if plain {
        return None;
    }
    let left = view.forward(&from.layout, from_shape, to_shape);
    if let Some(reorder) = left.as_ref().ok().and_then(|left| reorder(graph, x, y, left, to_shape)) {
        return Some(reorder);
    }
    let whole = [&from.layout, &to.layout].into_iter().all(|l| l.as_permutation().is_some());
    if !whole && graph.storage == StorageRule::PerDigit {
        return left.ok().map(|left| Change::Move { x, y, left: Box::new(left) });
    }
    let perm = match &view {
        View::Reshape => return None,
        View::Same => (0..from_shape.len()).collect(),
        View::Transpose(perm) => perm.clone(),
    };
    let place = from.layout.as_permutation()?;
    let perm = to
        .layout
        .as_permutation()?
        .iter()
        .map(|&axis| place.iter().position(|a| Some(a) == perm.get(axis)))
        .collect::<Option<_>>()?;
    Some(Change::Transpose { x, y, perm })
}
