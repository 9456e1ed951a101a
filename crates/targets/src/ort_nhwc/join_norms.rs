//! `join_norms`: a normalization of `com.microsoft` takes in what exporters write behind it: a scale and a shift for each channel, and
//! `SiLU`.
//!
//! ```text
//! s GroupNorm(x, 1, 0) + t = GroupNorm(x, s, t)        y Sigmoid(y) = GroupNorm with activation=1, where y is one without
//! ```
//!
//! The op has one scale and one shift. So one that it has already stays, and what would have to be multiplied with it is a node behind it.

use super::contributed_norm::OP;
use super::wrapped::channels_last;
use relayout_eval::floats;
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::op::MICROSOFT;
use relayout_ir::patch::{NewOperand, Patch, remove_dead, replace_value};
use relayout_target_api::{Context, Declared, Fact, Pass, PassError, Slot};

/// The pass.
pub(super) fn pass() -> Pass {
    let is = Declared::new("join_norms", Slot::Finish, "normalizations of com.microsoft are written")
        .needs(&[Fact::Packed])
        .before(&["join_scales"]);
    Pass::on_each_graph(is, |graph, cx: &mut Context<'_>| {
        for n in cx.reassociable(graph) {
            if graph.contains(n) && is_open(graph, n) {
                join(graph, n)?;
            }
        }
        Ok(())
    })
}

/// Whether a node is a normalization without activation that was written here: of images whose channels are the second axis, and lie last.
/// In a file that had the op before they are the last axis.
fn is_open(graph: &Graph, n: NodeId) -> bool {
    let node = graph.node(n);
    let is = matches!(&node.op, Op::Onnx(op) if op.domain == MICROSOFT && op.name == OP);
    let layout = node.only_result().map(|y| &graph.value(y).layout);
    let written = matches!(node.form, Form::Kernel(_)) && layout == channels_last(4).as_ref();
    is && written && node.int("activation") == Some(0)
}

/// Takes in what follows, as long as it can be.
fn join(graph: &mut Graph, n: NodeId) -> Result<(), PassError> {
    while let Some(next) = affine(graph, n) {
        next.take_in(graph, n)?;
    }
    let Some(gated) = silu(graph, n) else { return Ok(()) };
    graph.attrs_mut(n).insert("activation".to_owned(), Attr::Int(1));
    replace_value(graph, gated.result, gated.of, [gated.product, gated.gate])?;
    Ok(())
}

/// A product or a sum with numbers by channel that the normalization's own operand can be.
struct Affine {
    node: NodeId,
    /// The operand.
    slot: usize,
    numbers: Vec<f64>,
}

fn affine(graph: &Graph, n: NodeId) -> Option<Affine> {
    let norm = graph.node(n);
    let y = norm.only_result()?;
    let node = graph.only_use(y)?.node;
    let next = graph.node(node);
    let result = next.only_result().filter(|_| next.inputs.len() == 2 && matches!(next.form, Form::Axes(_)))?;
    let by = next.inputs.iter().flatten().copied().find(|&v| v != y)?;
    let (left, image) = (graph.value(result), graph.value(y));
    if left.ty != image.ty || left.layout != image.layout {
        return None;
    }
    let [scale, bias] = [1, 2].map(|slot| floats(graph.constant(norm.operand(slot)?)?));
    let (scale, bias) = (scale?, bias?);
    let all = |list: &[f64], number: f64| list.iter().all(|x| x.to_bits() == number.to_bits());
    let slot = match next.onnx()? {
        "Mul" if all(&scale, 1.0) && all(&bias, 0.0) => 1,
        "Add" if all(&bias, 0.0) => 2,
        _ => return None,
    };
    let numbers = by_channel(graph, by, scale.len())?;
    Some(Affine { node, slot, numbers })
}

/// Numbers of a constant that has one for each channel of images, or one for all.
fn by_channel(graph: &Graph, v: ValueId, channels: usize) -> Option<Vec<f64>> {
    let numbers = floats(graph.constant(v)?)?;
    let shape: Vec<i64> = graph.value(v).ty.shape()?.iter().map(Dim::as_const).collect::<Option<_>>()?;
    if numbers.len() == 1 && shape.len() <= 4 {
        return Some(vec![numbers[0]; channels]);
    }
    // Channels are the third axis from the end.
    let at = shape.len().checked_sub(3)?;
    let others = shape.iter().enumerate().filter(|&(axis, _)| axis != at).all(|(_, &extent)| extent == 1);
    let fits = shape.len() <= 4 && others && i64::try_from(channels).is_ok_and(|channels| shape[at] == channels);
    (fits && numbers.len() == channels).then_some(numbers)
}

impl Affine {
    fn take_in(self, graph: &mut Graph, n: NodeId) -> Result<(), PassError> {
        let (held, y, result) =
            (graph.node(n).operand(self.slot), graph.node(n).only_result(), graph.node(self.node).only_result());
        let (Some(held), Some(y), Some(result)) = (held, y, result) else { return Ok(()) };
        let dims = [i64::try_from(self.numbers.len()).unwrap_or(0)];
        let (name, constant) = (graph.value(held).name.clone(), Constant::floats(self.numbers, &dims));
        let mut patch = Patch::new();
        patch.set_operand(NewOperand { node: n, slot: self.slot, constant, name, takes_name_of: Some(held) });
        patch.replace(result, y);
        patch.apply(graph)?;
        let unread = graph.value(held).producer().0;
        remove_dead(graph, [self.node, unread]);
        Ok(())
    }
}

/// `SiLU` of a value.
struct Gated {
    of: ValueId,
    gate: NodeId,
    product: NodeId,
    result: ValueId,
}

/// The Sigmoid of the result and the product with it, if nothing else reads either.
fn silu(graph: &Graph, n: NodeId) -> Option<Gated> {
    let of = graph.node(n).only_result().filter(|&y| !graph.is_read_by_name(y))?;
    let readers: Vec<NodeId> = graph.uses(of).iter().map(|u| u.node).collect();
    let [one, other] = readers[..] else { return None };
    let is = |node: NodeId, op: &str| graph.node(node).onnx() == Some(op);
    let (gate, product) = if is(one, "Sigmoid") { (one, other) } else { (other, one) };
    let gated = graph.node(gate).only_result().filter(|_| is(gate, "Sigmoid") && is(product, "Mul"))?;
    let alone = graph.only_use(gated).is_some_and(|u| u.node == product);
    let result = graph.node(product).only_result()?;
    let (image, left) = (graph.value(of), graph.value(result));
    let alike = image.ty == left.ty && image.layout == left.layout;
    (alone && alike).then_some(Gated { of, gate, product, result })
}
