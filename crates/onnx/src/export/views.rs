//! Views and moves: nothing, a Reshape, axes of extent 1 that go or come, or a Transpose.

use super::{ExportError, Exporter, GraphOut};
use crate::proto::make::{int_attribute, ints_attribute};
use crate::proto::{AttributeProto, NodeProto};
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, InPlace, View};
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::NCHWC;
use relayout_ir::storage::{Restated, StorageRule, TargetExtent, blocked_image, image_in_runs, restated};

/// The first version of Reshape that takes its target as an operand, and any type. Before that it is an attribute, and types are floats.
const RESHAPE_SINCE: i64 = 5;

/// The first version of Squeeze and Unsqueeze that take axes as an operand. Before that they are an attribute.
const AXES_SINCE: i64 = 13;

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
    fn of(layout: &Layout, blocked: [usize; 4]) -> Option<Image> {
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
        (None, Some((axes, _))) => Some(Change::Pack { x, y, from: Image::of(left, axes)? }),
        (Some((axes, _)), None) => {
            Some(Change::Unpack { x, y, to: Image::of(to, axes)?, channels: shape.get(axes[1])?.as_const()? })
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

impl Exporter {
    /// Writes a view as what is left of it; says whether it did.
    pub(super) fn view(
        &mut self,
        out: &mut GraphOut<'_>,
        n: NodeId,
        origin: Option<&NodeProto>,
    ) -> Result<bool, ExportError> {
        let node = out.graph.node(n);
        let Some(change) = change(out.graph, n, self.functions.opset()) else {
            let view = matches!(node.form, Form::View(_));
            let sides = [node.inputs.first(), node.outputs.first()];
            let moved = sides.into_iter().flatten().flatten().any(|&v| !out.graph.value(v).layout.is_row_major());
            if view && moved {
                let node = node.describe(out.graph);
                return Err(ExportError::Unsayable { node, why: "its view has no storage shape".to_owned() });
            }
            return Ok(false);
        };
        self.write_change(out, n, change, origin)?;
        Ok(true)
    }

    /// Writes a Relayout.
    pub(super) fn relayout(&mut self, out: &mut GraphOut<'_>, n: NodeId) -> Result<(), ExportError> {
        let Some(change) = change(out.graph, n, self.functions.opset()) else {
            let node = out.graph.node(n).describe(out.graph);
            return Err(ExportError::Unsayable {
                node,
                why: "it moves between layouts that are no orders of axes".into(),
            });
        };
        self.write_change(out, n, change, None)
    }

    /// The call that a change is, where the target's moves are calls.
    fn called(&mut self, out: &GraphOut<'_>, n: NodeId, change: &Change) -> Result<Option<NodeProto>, ExportError> {
        // Libraries of the op move whole bytes, and bodies are written in no older operator set. Anything else has a Transpose, which
        // runs whether one is loaded or not.
        let bytes = |v: ValueId| out.graph.value(v).ty.dtype().and_then(DType::bits).is_some_and(|bits| bits % 8 == 0);
        let moved =
            matches!(out.graph.node(n).op, Op::Relayout) && self.calls_functions && self.functions.have_bodies();
        let (y, left) = match change {
            Change::Move { y, left, .. } => (*y, left.as_ref()),
            Change::Transpose { x, y, .. } if moved && bytes(*y) => (*y, &out.graph.value(*x).layout),
            _ => return Ok(None),
        };
        let value = out.graph.value(y);
        let Some(shape) = value.ty.shape() else { return Ok(None) };
        self.move_call(out, y, left, &value.layout, shape).map(Some)
    }

    /// Axes as the operator set has them: an operand, or an attribute.
    fn axes(&mut self, out: &mut GraphOut<'_>, y: ValueId, axes: Vec<i64>) -> (Vec<String>, Vec<AttributeProto>) {
        if self.functions.opset() < AXES_SINCE {
            return (vec![], vec![ints_attribute("axes", axes)]);
        }
        (vec![self.ints(out, &format!("{}.axes", out.names.of(y)), &axes)], vec![])
    }

    /// Writes the nodes that make the target of a Reshape of `x` to `y`; the name of what they make.
    fn computed(&mut self, out: &mut GraphOut<'_>, x: ValueId, y: ValueId, target: &[TargetExtent]) -> String {
        let base = format!("{}.shape", out.names.of(y));
        let rank = out.graph.storage_shape(x, &out.graph.value(x).layout).map_or(0, |shape| shape.len());
        let mut numbers = Vec::new();
        let place = |extent: &TargetExtent| match *extent {
            TargetExtent::Of(axis) => axis as i64,
            TargetExtent::Number(n) => number(&mut numbers, rank, n),
            TargetExtent::Rest => number(&mut numbers, rank, -1),
        };
        let places: Vec<i64> = target.iter().map(place).collect();
        let mut extents = self.small(out, &format!("{base}.of"), "Shape", vec![out.names.of(x).to_owned()], vec![]);
        if !numbers.is_empty() {
            let numbers = self.ints(out, &format!("{base}.numbers"), &numbers);
            let axis = vec![int_attribute("axis", 0)];
            extents = self.small(out, &format!("{base}.all"), "Concat", vec![extents, numbers], axis);
        }
        let places = self.ints(out, &format!("{base}.places"), &places);
        self.small(out, &base, "Gather", vec![extents, places], vec![])
    }

    /// Writes a node of a few numbers; the name of its result.
    fn small(
        &mut self,
        out: &mut GraphOut<'_>,
        base: &str,
        op: &str,
        input: Vec<String>,
        attribute: Vec<AttributeProto>,
    ) -> String {
        let name = self.taken.fresh(base);
        let (said, op_type, output) = (Some(name.clone()), Some(op.to_owned()), vec![name.clone()]);
        out.nodes.push(NodeProto { name: said, op_type, input, output, attribute, ..NodeProto::default() });
        name
    }

    fn write_change(
        &mut self,
        out: &mut GraphOut<'_>,
        n: NodeId,
        change: Change,
        origin: Option<&NodeProto>,
    ) -> Result<(), ExportError> {
        let call = self.called(out, n, &change)?;
        let last = |image| if image == Image::ChannelsLast { vec![int_attribute("channels_last", 1)] } else { vec![] };
        let mut domain = None;
        let (op, x, y, inputs, attribute) = match change {
            Change::Nothing { y, .. } if out.names.is_alias(y) => return Ok(()),
            Change::Nothing { x, y } => ("Identity", x, y, vec![], vec![]),
            Change::Reshape { x, y, target } if self.functions.opset() < RESHAPE_SINCE => {
                ("Reshape", x, y, vec![], vec![ints_attribute("shape", target)])
            }
            Change::Reshape { x, y, target } => {
                let shape = self.ints(out, &format!("{}.shape", out.names.of(y)), &target);
                ("Reshape", x, y, vec![shape], vec![])
            }
            Change::Computed { x, y, target } => ("Reshape", x, y, vec![self.computed(out, x, y, &target)], vec![]),
            Change::Squeeze { x, y, axes } => {
                let (inputs, attributes) = self.axes(out, y, axes);
                ("Squeeze", x, y, inputs, attributes)
            }
            Change::Unsqueeze { x, y, axes } => {
                let (inputs, attributes) = self.axes(out, y, axes);
                ("Unsqueeze", x, y, inputs, attributes)
            }
            Change::Transpose { x, y, perm } => {
                ("Transpose", x, y, vec![], vec![ints_attribute("perm", perm.iter().map(|&p| p as i64).collect())])
            }
            Change::Pack { x, y, from } => {
                domain = Some(NCHWC.to_owned());
                ("ReorderInput", x, y, vec![], last(from))
            }
            Change::Unpack { x, y, to, channels } => {
                domain = Some(NCHWC.to_owned());
                ("ReorderOutput", x, y, vec![], [vec![int_attribute("channels", channels)], last(to)].concat())
            }
            Change::Move { x, y, .. } => ("", x, y, vec![], vec![]),
        };
        let said = || NodeProto { op_type: Some(op.to_owned()), domain, attribute, ..NodeProto::default() };
        let name = out.names.of(y).to_owned();
        let mut node = NodeProto {
            // The node that this one stands for gives it its name and what else it says of itself.
            name: Some(origin.and_then(|o| o.name.clone()).unwrap_or_else(|| name.clone())),
            doc_string: origin.and_then(|o| o.doc_string.clone()),
            metadata_props: origin.map(|o| o.metadata_props.clone()).unwrap_or_default(),
            ..call.unwrap_or_else(said)
        };
        node.input = std::iter::once(out.names.of(x).to_owned()).chain(inputs).collect();
        node.output = vec![name];
        out.nodes.push(node);
        Ok(())
    }
}

/// Where a number stands behind a shape of this rank, with the numbers there; it is put there if it is not yet.
fn number(numbers: &mut Vec<i64>, rank: usize, n: i64) -> i64 {
    let at = numbers.iter().position(|&other| other == n).unwrap_or_else(|| {
        numbers.push(n);
        numbers.len() - 1
    });
    (rank + at) as i64
}

/// A message with nothing but the op.
pub(super) fn bare_node(op: &Op) -> NodeProto {
    match op {
        Op::Onnx(name) => NodeProto {
            op_type: Some(name.name.clone()),
            domain: (!name.domain.is_empty()).then(|| name.domain.clone()),
            overload: (!name.overload.is_empty()).then(|| name.overload.clone()),
            ..NodeProto::default()
        },
        _ => NodeProto::default(),
    }
}
