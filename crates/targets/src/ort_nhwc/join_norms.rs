//! `join_norms`: a normalization of `com.microsoft` takes in what exporters write behind it, a scale and a shift for each channel and
//! `SiLU`, and the sum before it.
//!
//! ```text
//! s GroupNorm(x, 1, 0) + t = GroupNorm(x, s, t)        y Sigmoid(y) = GroupNorm with activation=1, where y is one without
//! GroupNorm(x + r, s, t) = SkipGroupNorm(x, s, t, r)
//! ```
//!
//! The op has one scale and one shift. So one that it has already stays, and what would have to be multiplied with it is a node behind it.
//! What is added may be an image or a number for each channel of each image, and the sum is a second result for those who read it too
//! (`contrib_ops/cuda/diffusion/group_norm.cc`). So a residual sum and a time step are no kernels of their own.

use super::contributed_norm::{OP, SKIPPING};
use super::wrapped::channels_last;
use relayout_eval::floats;
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, NodeId, Op, OpName, ValueId};
use relayout_ir::op::MICROSOFT;
use relayout_ir::patch::{NewOperand, Patch, remove_dead, replace_value};
use relayout_target_api::{Context, Declared, Fact, Pass, PassError, Slot};

/// The pass. `skips`: the provider has the op that takes in a sum.
pub(super) fn pass(skips: bool) -> Pass {
    let is = Declared::new("join_norms", Slot::Finish, "normalizations of com.microsoft are written")
        .needs(&[Fact::Packed])
        .before(&["join_scales"]);
    Pass::on_each_graph(is, move |graph, cx: &mut Context<'_>| {
        for n in cx.reassociable(graph) {
            if graph.contains(n) && is_open(graph, n) {
                join(graph, n)?;
                if let Some(sum) = Sum::before(graph, n).filter(|_| skips) {
                    sum.take_in(graph, n)?;
                }
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

/// The sum that a normalization reads.
struct Sum {
    x: ValueId,
    /// What is added to each pixel or to each image.
    skip: ValueId,
    /// What the normalization reads: the sum, perhaps multiplied with or divided by one.
    read: ValueId,
    nodes: Vec<NodeId>,
}

impl Sum {
    fn before(graph: &Graph, n: NodeId) -> Option<Sum> {
        let read = graph.node(n).operand(0)?;
        let (mut sum, mut nodes) = (read, vec![graph.value(read).producer().0]);
        if let Some(inner) = times_one(graph, nodes[0]).filter(|&inner| graph.only_use(inner).is_some()) {
            sum = inner;
            nodes.push(graph.value(inner).producer().0);
        }
        let add = graph.node(graph.value(sum).producer().0);
        let of = add.onnx() == Some("Add") && matches!(add.form, Form::Axes(_));
        let [Some(a), Some(b)] = add.inputs[..] else { return None };
        let (image, same) = (graph.value(read), |v: ValueId| {
            let (value, image) = (graph.value(v), graph.value(read));
            graph.constant(v).is_none() && value.ty == image.ty && value.layout == image.layout
        });
        let [Some(images), Some(channels)] = [0, 1].map(|axis| image.ty.shape()?.get(axis)) else { return None };
        let spreads = |v: ValueId| {
            let value = graph.value(v);
            let fits = matches!(value.ty.shape(), Some([n, c, h, w]) if n == images && c == channels && h.is_one() && w.is_one());
            graph.constant(v).is_none() && fits && value.ty.dtype() == image.ty.dtype() && value.layout == image.layout
        };
        let (x, skip) = if same(a) { (a, b) } else { (b, a) };
        let fits = of && same(x) && (same(skip) || spreads(skip)) && same(sum);
        (fits && !is_captured(graph, read)).then_some(Sum { x, skip, read, nodes })
    }

    fn take_in(self, graph: &mut Graph, n: NodeId) -> Result<(), PassError> {
        let norm = graph.node(n);
        let (Some(y), Some(scale), Some(bias)) = (norm.only_result(), norm.operand(1), norm.operand(2)) else {
            return Ok(());
        };
        let (ty, attrs) = (graph.value(y).ty.clone(), norm.attrs.clone());
        let again = graph.is_output(self.read) || graph.only_use(self.read).is_none();
        let last = channels_last(4);
        let base = graph.value(y).name.clone();
        let mut make = Builder::at(graph, n).named(base);
        let op = make.op_of(OpName::new(MICROSOFT, SKIPPING), 1, [self.x, scale, bias, self.skip]);
        let op = op.attrs(attrs).kernel_in(vec![last.clone(), None, None, last.clone()], vec![last.clone(), last]);
        let named = ["normalized", "sum"].into_iter().take(if again { 2 } else { 1 });
        let results = op.results(named.map(|what| (what, ty.clone())))?;
        let mut patch = Patch::new();
        for (&by, of) in results.iter().zip([y, self.read]) {
            patch.replace(of, by);
        }
        patch.apply(graph)?;
        remove_dead(graph, self.nodes.into_iter().chain([n]));
        Ok(())
    }
}

/// What a node multiplies with one or divides by it, which is what the runtime leaves out.
fn times_one(graph: &Graph, n: NodeId) -> Option<ValueId> {
    let node = graph.node(n);
    let (x, by) = (node.operand(0)?, node.operand(1)?);
    let one = floats(graph.constant(by)?)?.iter().all(|number| number.to_bits() == 1f64.to_bits());
    let alike = graph.value(x).ty == graph.value(node.only_result()?).ty;
    (one && alike && matches!(node.onnx(), Some("Mul" | "Div"))).then_some(x)
}

/// Whether bodies read a value.
fn is_captured(graph: &Graph, v: ValueId) -> bool {
    graph.uses(v).iter().any(|u| graph.node(u.node).captures.contains(&v))
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
