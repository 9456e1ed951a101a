//! Blocked convolutions of domain `com.microsoft.nchwc` take in what stands behind them: `activation(Conv(x) + sum)` is one op.

use crate::pipeline::PassError;
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::patch::{Patch, remove_dead};
use std::collections::BTreeMap;

/// Domain of ONNX Runtime's blocked ops.
pub(super) const DOMAIN: &str = "com.microsoft.nchwc";
/// The operand of a convolution that is added to its result.
const SUM: usize = 3;

/// Fuses sums, then activations.
pub(super) fn fuse(graph: &mut Graph) -> Result<(), PassError> {
    if !graph.nodes().any(|n| is_conv(graph.node(n))) {
        return Ok(());
    }
    let order = graph.order().unwrap_or_default();
    let place: BTreeMap<NodeId, usize> = order.iter().enumerate().map(|(i, &n)| (n, i)).collect();
    for &n in &order {
        if let Some((conv, other)) = sum(graph, n, &place) {
            take_sum(graph, n, conv, other)?;
        }
    }
    for n in graph.order().unwrap_or_default() {
        if let Some((conv, activation)) = activation(graph, n) {
            take_activation(graph, n, conv, activation)?;
        }
    }
    Ok(())
}

/// A blocked convolution.
pub(super) fn convolution() -> OpName {
    OpName { domain: DOMAIN.to_owned(), name: "Conv".to_owned(), overload: String::new() }
}

fn is_conv(node: &Node) -> bool {
    matches!(&node.op, Op::Onnx(op) if op.domain == DOMAIN && op.name == "Conv")
}

/// The convolution that makes a value which only this node reads, if it has no activation yet.
fn open_conv(graph: &Graph, v: ValueId) -> Option<NodeId> {
    let (conv, _) = graph.value(v).producer();
    let node = graph.node(conv);
    let alone = graph.uses(v).len() == 1 && !graph.is_output(v);
    (alone && is_conv(node) && !node.attrs.contains_key("activation")).then_some(conv)
}

/// The convolution that takes in a sum, and what it adds: of two, the later one, which the other operand can't wait for.
fn sum(graph: &Graph, n: NodeId, place: &BTreeMap<NodeId, usize>) -> Option<(NodeId, ValueId)> {
    let node = graph.node(n);
    if !matches!(node.onnx(), Some("Add" | "Sum")) {
        return None;
    }
    let [Some(a), Some(b)] = node.inputs[..] else { return None };
    let y = node.outputs.first().copied().flatten()?;
    let alike = |v: ValueId| {
        let (v, y) = (graph.value(v), graph.value(y));
        v.ty.shape() == y.ty.shape() && v.layout == y.layout
    };
    if a == b || !alike(a) || !alike(b) {
        return None;
    }
    [(a, b), (b, a)]
        .into_iter()
        .filter_map(|(v, other)| Some((open_conv(graph, v)?, other)))
        .filter(|(conv, _)| graph.node(*conv).inputs.get(SUM).copied().flatten().is_none())
        .max_by_key(|(conv, _)| place.get(conv).copied())
}

fn take_sum(graph: &mut Graph, n: NodeId, conv: NodeId, other: ValueId) -> Result<(), PassError> {
    let layout = graph.value(other).layout.clone();
    let mut patch = Patch::new();
    patch.connect(conv, SUM, other);
    replace(graph, n, conv, &mut patch);
    patch.apply(graph).map_err(PassError::Name)?;
    remove_dead(graph, [n]);
    if let Form::Kernel(layouts) = graph.node(conv).form.clone() {
        let mut layouts = layouts;
        layouts.ins.resize(SUM, None);
        layouts.ins.push(Some(layout));
        graph.set_form(conv, Form::Kernel(layouts));
    }
    Ok(())
}

/// The result of the convolution takes the place of the node's.
fn replace(graph: &Graph, n: NodeId, conv: NodeId, patch: &mut Patch) {
    let result = |n: NodeId| graph.node(n).outputs.first().copied().flatten();
    if let (Some(y), Some(by)) = (result(n), result(conv)) {
        patch.replace(y, by);
    }
}

/// Name and parameters of an activation that the kernel has.
type Activation = (&'static str, Vec<f32>);

fn activation(graph: &Graph, n: NodeId) -> Option<(NodeId, Activation)> {
    let node = graph.node(n);
    let x = node.inputs.first().copied().flatten()?;
    let number = |name: &str, default: f32| match node.attrs.get(name) {
        Some(Attr::Float(x)) => *x,
        _ => default,
    };
    let activation = match node.onnx()? {
        "Relu" => ("Relu", vec![]),
        "Sigmoid" => ("Sigmoid", vec![]),
        "Tanh" => ("Tanh", vec![]),
        "LeakyRelu" => ("LeakyRelu", vec![number("alpha", 0.01)]),
        "HardSigmoid" => ("HardSigmoid", vec![number("alpha", 0.2), number("beta", 0.5)]),
        "HardSwish" => ("HardSwish", vec![]),
        "Clip" => {
            let bound = |slot: usize, attr: &str, default: f32| match node.inputs.get(slot).copied().flatten() {
                Some(v) => scalar(graph, v),
                None => Some(number(attr, default)),
            };
            ("Clip", vec![bound(1, "min", f32::MIN)?, bound(2, "max", f32::MAX)?])
        }
        _ => return None,
    };
    Some((open_conv(graph, x)?, activation))
}

/// The value of a constant of one element.
fn scalar(graph: &Graph, v: ValueId) -> Option<f32> {
    let Constant { dtype: DType::F32, source, pending: None, .. } = graph.constant(v)? else { return None };
    Some(f32::from_le_bytes(source.bytes().ok()?.get(..4)?.try_into().ok()?))
}

fn take_activation(graph: &mut Graph, n: NodeId, conv: NodeId, (name, params): Activation) -> Result<(), PassError> {
    let attrs = graph.attrs_mut(conv);
    attrs.insert("activation".to_owned(), Attr::String(name.into()));
    if !params.is_empty() {
        attrs.insert("activation_params".to_owned(), Attr::Floats(params));
    }
    let mut patch = Patch::new();
    replace(graph, n, conv, &mut patch);
    patch.apply(graph).map_err(PassError::Name)?;
    remove_dead(graph, [n]);
    Ok(())
}
