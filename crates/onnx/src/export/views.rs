//! Writes views and moves as what is left of them.

use super::change::{Change, Image, RESHAPE_SINCE, change};
use super::error::ExportError;
use super::out::{Exporter, GraphOut};
use crate::proto::make::{int_attribute, ints_attribute};
use crate::proto::{AttributeProto, NodeProto};
use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{NodeId, Op, ValueId};
use relayout_ir::op::NCHWC;
use relayout_ir::storage::TargetExtent;

/// The first version of Squeeze and Unsqueeze that take axes as an operand. Before that they are an attribute.
const AXES_SINCE: i64 = 13;

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
                return Err(ExportError::CannotExpress { node, why: "its view has no storage shape".to_owned() });
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
            return Err(ExportError::CannotExpress {
                node,
                why: "it moves between layouts that are not orders of axes".into(),
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
