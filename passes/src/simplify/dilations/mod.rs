//! `join_dilations`: a convolution of the places of blocks is one convolution whose windows are dilated.
//!
//! Exporters of TensorFlow write a dilated convolution as `SpaceToBatchND`, a convolution and `BatchToSpaceND`. These are no ops of ONNX:
//! they come as Transposes, `SpaceToDepth` and `DepthToSpace`, or as Reshapes, with a Pad before and a Slice after whose numbers are
//! computed where sizes are not known. Whatever the spelling, it is read as digits of axes ([`blocks`]).

mod around;
mod blocks;

use crate::state::Step;
use around::PadOrSlice;
use blocks::Blocks;
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, NodeId, Use, ValueId};
use relayout_ir::op::read::{self, AutoPad, Window};
use relayout_ir::patch::replace_value;
use relayout_ir::perm::{inverse, is_identity};
use relayout_ir::types::{TensorType, Type};
use relayout_target_api::{Context, Counted, Declared, Numerics, PassError, Rule, Slot};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    name: "blocks_into_dilation",
    equation: "Crop(Join(Conv(Blocks(Pad(x, p), b), W, dilations = d), b), c) = Conv(x, W, dilations = b d, pads = p - c)",
    condition: "blocks of b places along an axis are cut, the places are part of the batch, and go back to where they came from; the \
                strides are 1; nobody else reads what is between. What the Pad adds less what the Slice takes is a known number that \
                is not negative, whatever the sizes are; else both stay",
    buys: "what cuts blocks and joins them: four passes over the image, the Pad and the Slice",
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new(
        "join_dilations",
        Slot::Simplify,
        "extents behind such convolutions are known only once they are one; needs views and contents of shape arithmetic",
    )
    .rules(&[&RULE]),
    &join_dilations,
);

/// Most nodes on either side of a convolution that cut and join.
const MOST: usize = 8;

/// Joins what it finds around every convolution.
fn join_dilations(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    for n in cx.reassociable(graph) {
        if !graph.contains(n) || graph.node(n).onnx() != Some("Conv") {
            continue;
        }
        let Some(dilated) = Dilated::around(graph, n) else { continue };
        let (conv, result) = dilated.write(graph, n)?;
        if let Some(cropped) = Cropped::recognize(graph, conv, result, &dilated.blocks) {
            cropped.write(graph, conv)?;
        }
        cx.count(&RULE, 1);
    }
    Ok(())
}

/// A convolution of the places of blocks.
struct Dilated {
    /// What is cut.
    image: ValueId,
    /// Which of its axes each axis is that the convolution reads.
    order: Vec<usize>,
    /// Places of a block along each spatial axis.
    blocks: Vec<i64>,
    windows: Vec<Window>,
    /// What is joined again.
    result: ValueId,
    /// Which axis of the convolution each of its axes is, and then the one that the image does not have.
    axes: Vec<usize>,
    /// The convolution reads a signal as an image of one row.
    one_row: bool,
}

impl Dilated {
    fn around(graph: &Graph, n: NodeId) -> Option<Dilated> {
        let windows = read::windows(graph, graph.node(n)).ok()?;
        let (image, cut, order) = cut_before(graph, n)?;
        let blocks: Vec<i64> =
            order.get(2..)?.iter().map(|&axis| cut.cut[axis].as_ref().map_or(1, |cut| cut.0)).collect();
        let fits =
            |(window, block): (&Window, &i64)| window.auto != AutoPad::Same && (window.stride == 1 || *block == 1);
        if windows.len() != blocks.len() || !windows.iter().zip(&blocks).all(fits) {
            return None;
        }
        let (result, joined) = joined_after(graph, n, &cut, &order)?;
        let axes = joined.iter().map(|axis| order.iter().position(|at| at == axis)).collect::<Option<_>>()?;
        let one_row = cut.unit.is_some();
        Some(Dilated { image, order, blocks, windows, result, axes, one_row })
    }

    /// Writes the convolution of the whole image; it and what takes the place of its result.
    fn write(&self, graph: &mut Graph, n: NodeId) -> Result<(NodeId, ValueId), PassError> {
        let times = |of: &dyn Fn(&Window) -> i64| -> Vec<i64> {
            self.windows.iter().zip(&self.blocks).map(|(window, block)| of(window).saturating_mul(*block)).collect()
        };
        let pads = |w: &Window| w.padding().unwrap_or_default();
        let pads = [times(&|w| pads(w).0), times(&|w| pads(w).1)].concat();
        let dilations = times(&|w| w.dilation);
        let mut inputs = graph.node(n).inputs.clone();
        let name = graph.value(self.result).name.clone();
        let has_rule = graph.node(n).attrs.contains_key("auto_pad");
        let opset = graph.node(n).opset;
        let mut make = Builder::at(graph, n).opset(opset).named(name);
        let image = if self.one_row { with_row(&mut make, self.image)? } else { self.image };
        let image = permuted(&mut make, image, "image", &self.order)?;
        inputs[0] = Some(image);
        let mut attrs = vec![("pads", Attr::Ints(pads)), ("dilations", Attr::Ints(dilations))];
        if has_rule {
            attrs.push(("auto_pad", Attr::String("NOTSET".into())));
        }
        let shape = self.shape(make.graph);
        let ty = Type::Tensor(TensorType { dtype: make.graph.value(self.result).ty.dtype(), shape });
        let y = make.same_op(n, inputs).attrs(attrs).result("dilated", ty)?;
        let joined = permuted(&mut make, y, "joined", &self.axes)?;
        let joined = if self.one_row { without_row(&mut make, joined)? } else { joined };
        let last = graph.value(self.result).producer().0;
        replace_value(graph, self.result, joined, [last])?;
        Ok((graph.value(y).producer().0, y))
    }

    /// The shape of the result in the order of the convolution's axes.
    fn shape(&self, graph: &Graph) -> Option<Vec<Dim>> {
        let mut shape = graph.value(self.result).ty.shape()?.to_vec();
        shape.extend(self.one_row.then_some(Dim::ONE));
        inverse(&self.axes).into_iter().map(|axis| shape.get(axis).cloned()).collect()
    }
}

/// The value with its axes in another order. The node is of a version, so that types are inferred through it.
fn permuted(make: &mut Builder<'_>, v: ValueId, what: &str, perm: &[usize]) -> Result<ValueId, PassError> {
    if is_identity(perm) {
        return Ok(v);
    }
    let from = make.graph.value(v).ty.shape().unwrap_or_default();
    let shape: Vec<Dim> = perm.iter().filter_map(|&axis| from.get(axis).cloned()).collect();
    Ok(make.op("Transpose", [v]).attr("perm", Attr::axes(perm)).shaped(what, &shape)?)
}

/// A signal with an axis of one row behind it.
fn with_row(make: &mut Builder<'_>, v: ValueId) -> Result<ValueId, PassError> {
    let (shape, opset) = (make.graph.value(v).ty.shape().unwrap_or_default().to_vec(), make.opset);
    let draft = make.op("Unsqueeze", [v]).told("axes", "rows", &[shape.len() as i64], opset)?;
    Ok(draft.shaped("row", &[shape.as_slice(), &[Dim::ONE]].concat())?)
}

/// The same without it.
fn without_row(make: &mut Builder<'_>, v: ValueId) -> Result<ValueId, PassError> {
    let (mut shape, opset) = (make.graph.value(v).ty.shape().unwrap_or_default().to_vec(), make.opset);
    shape.pop();
    let draft = make.op("Squeeze", [v]).told("axes", "rows", &[shape.len() as i64], opset)?;
    Ok(draft.shaped("signal", &shape)?)
}

/// The image of which a convolution reads the places of blocks as a batch, how, and which of its axes each axis is.
fn cut_before(graph: &Graph, n: NodeId) -> Option<(ValueId, Blocks, Vec<usize>)> {
    let mut v = graph.node(n).operand(0)?;
    let mut between = Vec::new();
    while between.len() < MOST {
        let (maker, _) = graph.value(v).producer();
        v = graph.node(maker).operand(0)?;
        between.push(maker);
        let shape = graph.value(v).ty.shape()?;
        for image in [Blocks::whole(shape), Blocks::of_one_row(shape)] {
            let read = between.iter().rev().try_fold(image, |blocks, &node| blocks.after(graph, node));
            if let Some((blocks, order)) = read.and_then(|blocks| blocks.batched().map(|order| (blocks, order))) {
                return Some((v, blocks, order));
            }
        }
    }
    None
}

/// Where the places of blocks that a convolution makes stand in their blocks again, and which axis of the image each axis is then.
fn joined_after(graph: &Graph, n: NodeId, cut: &Blocks, order: &[usize]) -> Option<(ValueId, Vec<usize>)> {
    let mut v = graph.node(n).result(0)?;
    let mut blocks = cut.clone();
    let shape = graph.value(v).ty.shape()?;
    for (&axis, extent) in order.iter().zip(shape).skip(1) {
        let places = blocks.cut[axis].as_ref().map_or(1, |cut| cut.0);
        blocks.image[axis] = extent.checked_mul(&Dim::from(places))?;
        if let Some(cut) = &mut blocks.cut[axis] {
            cut.1 = extent.clone();
        }
    }
    let (mut chain, mut extents) = (vec![n], Vec::new());
    while chain.len() <= MOST {
        let next = moved_by(graph, v, &mut extents)?;
        blocks = blocks.after(graph, next)?;
        chain.push(next);
        v = graph.node(next).result(0)?;
        if let Some(order) = blocks.joined() {
            let goes = extents.iter().all(|&n| leads_only_to(graph, n, &chain, MOST));
            return goes.then_some((v, order));
        }
    }
    None
}

/// The only node that reads the elements of a value, as its first operand; those that read its extents are noted.
fn moved_by(graph: &Graph, v: ValueId, extents: &mut Vec<NodeId>) -> Option<NodeId> {
    let (shapes, others): (Vec<Use>, Vec<Use>) =
        graph.uses(v).into_iter().partition(|u| graph.node(u.node).onnx() == Some("Shape"));
    extents.extend(shapes.iter().map(|u| u.node));
    match others.as_slice() {
        [Use { node, slot: 0 }] if !graph.is_output(v) => Some(*node),
        _ => None,
    }
}

/// Whether all that is made of a node is made for these nodes, so many steps behind it at most.
fn leads_only_to(graph: &Graph, n: NodeId, chain: &[NodeId], steps: usize) -> bool {
    let made = graph.node(n).outputs.iter().copied().flatten();
    made.into_iter().all(|v| {
        let goes = |u: Use| chain.contains(&u.node) || (steps > 0 && leads_only_to(graph, u.node, chain, steps - 1));
        !graph.is_output(v) && graph.uses(v).into_iter().all(goes)
    })
}

/// A convolution between a Pad and a Slice that becomes one with other padding.
struct Cropped {
    padded: Option<PadOrSlice>,
    sliced: Option<PadOrSlice>,
    pads: Vec<i64>,
}

impl Cropped {
    fn recognize(graph: &Graph, conv: NodeId, result: ValueId, blocks: &[i64]) -> Option<Cropped> {
        let node = graph.node(conv);
        let padded = around::padded(graph, node.operand(0)?);
        let sliced = around::sliced(graph, result);
        let windows = read::windows(graph, node).ok()?;
        let none = (Dim::ZERO, Dim::ZERO);
        let ends = |found: &Option<PadOrSlice>, axis: usize| match found {
            Some(found) => found.ends.get(axis).cloned(),
            None => Some(none.clone()),
        };
        if padded.is_none() && sliced.is_none() {
            return None;
        }
        for axis in [0, 1] {
            if ends(&padded, axis)? != none || ends(&sliced, axis)? != none {
                return None;
            }
        }
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (at, (window, &block)) in windows.iter().zip(blocks).enumerate() {
            let (more, less) = (ends(&padded, at + 2)?, ends(&sliced, at + 2)?);
            let (first, last) = window.padding()?;
            let sum = |own: i64, more: &Dim, less: &Dim| {
                let sum = Dim::from(own).checked_add(more)?.checked_sub(less)?.as_const();
                sum.filter(|pad| *pad >= 0)
            };
            let pads = (sum(first, &more.0, &less.0)?, sum(last, &more.1, &less.1)?);
            if (window.stride != 1 && less != none) || !leaves_some(window, block, pads, &less)? {
                return None;
            }
            before.push(pads.0);
            after.push(pads.1);
        }
        Some(Cropped { padded, sliced, pads: [before, after].concat() })
    }

    fn write(self, graph: &mut Graph, conv: NodeId) -> Result<(), PassError> {
        let node = graph.node(conv);
        let (mut inputs, Some(mut result)) = (node.inputs.clone(), node.result(0)) else { return Ok(()) };
        let name = graph.value(result).name.clone();
        let mut ty = graph.value(result).ty.clone();
        let opset = graph.node(conv).opset;
        let mut make = Builder::at(graph, conv).opset(opset).named(name);
        if let Some(padded) = self.padded {
            inputs[0] = Some(permuted(&mut make, padded.end, "unpadded", &padded.order)?);
        }
        let mut axes: Vec<usize> = (0..ty.rank().unwrap_or_default()).collect();
        if let Some(sliced) = self.sliced {
            result = sliced.end;
            axes = inverse(&sliced.order);
            let shape = make.graph.value(result).ty.shape().unwrap_or_default();
            let shape = sliced.order.iter().filter_map(|&axis| shape.get(axis).cloned()).collect();
            if let Type::Tensor(ty) = &mut ty {
                ty.shape = Some(shape);
            }
        }
        let y = make.same_op(conv, inputs).attr("pads", Attr::Ints(self.pads)).result("convolved", ty)?;
        let y = permuted(&mut make, y, "cropped", &axes)?;
        let last = graph.value(result).producer().0;
        replace_value(graph, result, y, [last, conv])?;
        Ok(())
    }
}

/// Whether the Slice leaves some of the result: what the convolution makes has a multiple of the block, which is more than is taken, or
/// it has as much as the image.
fn leaves_some(window: &Window, block: i64, pads: (i64, i64), less: &(Dim, Dim)) -> Option<bool> {
    let covered = pads.0.checked_add(pads.1)? >= window.span()? - 1;
    let both = less.0.checked_add(&less.1)?;
    let some = Dim::from(block - 1).checked_sub(&both)?.is_never_negative();
    Some(covered || some || both == Dim::ZERO)
}
