//! Blocked convolutions of domain `com.microsoft.nchwc` take in what stands behind them: `activation(Conv(x) + sum)` is one op.

use crate::ort_cpu::nodes::is_convolution;
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::patch::{Insert, Patch, remove_dead};
use relayout_ir::types::{TensorType, Type};
use relayout_target::PassError;
use std::collections::BTreeMap;

/// The operand of a convolution that is added to its result.
const SUM: usize = 3;

/// Fuses sums, then activations.
pub(super) fn fuse(graph: &mut Graph) -> Result<(), PassError> {
    if !graph.nodes().any(|n| is_convolution(graph.node(n))) {
        return Ok(());
    }
    let order = graph.order().unwrap_or_default();
    let place: BTreeMap<NodeId, usize> = order.iter().enumerate().map(|(i, &n)| (n, i)).collect();
    for &n in &order {
        if let Some((open, other)) = sum(graph, n, &place) {
            take_sum(graph, n, &open, other)?;
        }
    }
    for n in graph.order().unwrap_or_default() {
        if let Some((open, activation)) = activation(graph, n) {
            take_activation(graph, n, &open, activation)?;
        }
    }
    Ok(())
}

/// A convolution that can take in what reads it, and how that reader sees it.
#[derive(Clone)]
struct Open {
    conv: NodeId,
    /// The result as the reader sees it: that of the convolution or a view of it.
    seen: ValueId,
    /// The permutation of that view.
    view: Option<Vec<usize>>,
}

/// The convolution that makes a value which only one node reads, seen as it is or transposed, if it has no activation yet.
fn open_conv(graph: &Graph, seen: ValueId) -> Option<Open> {
    let alone = |v: ValueId| graph.only_use(v).is_some();
    let (maker, _) = graph.value(seen).producer();
    let (conv, made, view) = match &graph.node(maker).form {
        Form::View(View::Transpose(perm)) => {
            let x = graph.node(maker).inputs.first().copied().flatten()?;
            let left = graph.value(x).layout.transpose(perm).ok()?;
            // One that moves is no view.
            (left == graph.value(seen).layout).then_some(())?;
            (graph.value(x).producer().0, x, Some(perm.clone()))
        }
        _ => (maker, seen, None),
    };
    let node = graph.node(conv);
    let open = alone(seen) && alone(made) && is_convolution(node) && !node.attrs.contains_key("activation");
    open.then_some(Open { conv, seen, view })
}

/// The convolution that takes in a sum, and what it adds: of two, the later one, which the other operand can't wait for.
fn sum(graph: &Graph, n: NodeId, place: &BTreeMap<NodeId, usize>) -> Option<(Open, ValueId)> {
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
        .filter(|(open, _)| graph.node(open.conv).inputs.get(SUM).copied().flatten().is_none())
        .max_by_key(|(open, _)| place.get(&open.conv).copied())
}

fn take_sum(graph: &mut Graph, n: NodeId, open: &Open, other: ValueId) -> Result<(), PassError> {
    let conv = open.conv;
    let other = match &open.view {
        Some(perm) => viewed_back(graph, n, other, perm)?,
        None => other,
    };
    let layout = graph.value(other).layout.clone();
    let mut patch = Patch::new();
    patch.connect(conv, SUM, other);
    replace(graph, n, open, &mut patch);
    patch.apply(graph)?;
    remove_dead(graph, [n]);
    if let Form::Kernel(layouts) = graph.node(conv).form.clone() {
        let mut layouts = layouts;
        layouts.ins.resize(SUM, None);
        layouts.ins.push(Some(layout));
        graph.set_form(conv, Form::Kernel(layouts));
    }
    Ok(())
}

/// The value whose view under this permutation `v` is: another convolution's result, or a view back.
fn viewed_back(graph: &mut Graph, n: NodeId, v: ValueId, perm: &[usize]) -> Result<ValueId, PassError> {
    let maker = graph.node(graph.value(v).producer().0);
    let source = maker.inputs.first().copied().flatten();
    if let (Form::View(View::Transpose(own)), Some(x)) = (&maker.form, source)
        && own == perm
        && graph.value(x).layout.transpose(perm).is_ok_and(|left| left == graph.value(v).layout)
    {
        return Ok(x);
    }
    let mut back = vec![0; perm.len()];
    for (i, &p) in perm.iter().enumerate() {
        back[p] = i;
    }
    let value = graph.value(v);
    let (Ok(layout), Some(shape)) = (value.layout.transpose(&back), value.ty.shape()) else { return Ok(v) };
    let shape: Vec<Dim> = back.iter().filter_map(|&axis| shape.get(axis).cloned()).collect();
    let ty = Type::Tensor(TensorType { dtype: value.ty.dtype(), shape: Some(shape) });
    let op = OpName { domain: String::new(), name: "Transpose".to_owned(), overload: String::new() };
    let mut node = Node::new(Op::Onnx(op), vec![Some(v)]);
    (node.rank, node.opset) = (graph.node(n).rank, graph.node(n).opset);
    node.attrs.insert("perm".to_owned(), Attr::Ints(back.iter().map(|&p| p as i64).collect()));
    node.form = Form::View(View::Transpose(back));
    let name = format!("{}.viewed", value.name);
    let mut patch = Patch::new();
    patch.insert(Insert { node, name, ty, layout, uses: vec![], outputs: vec![], takes_name_of: None });
    let made = patch.apply(graph)?;
    Ok(made.first().and_then(|&m| graph.node(m).outputs.first().copied().flatten()).unwrap_or(v))
}

/// What the reader sees of the convolution takes the place of its result.
fn replace(graph: &Graph, n: NodeId, open: &Open, patch: &mut Patch) {
    if let Some(y) = graph.node(n).outputs.first().copied().flatten() {
        patch.replace(y, open.seen);
    }
}

/// Name and parameters of an activation that the kernel has.
type Activation = (&'static str, Vec<f32>);

fn activation(graph: &Graph, n: NodeId) -> Option<(Open, Activation)> {
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
        // A slope for all channels.
        "PRelu" => ("LeakyRelu", vec![node.inputs.get(1).copied().flatten().and_then(|v| scalar(graph, v))?]),
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
    let constant = graph.constant(v).filter(|c| c.elems() == Some(1))?;
    let Constant { dtype: DType::F32, source, pending: None, .. } = constant else { return None };
    Some(f32::from_le_bytes(source.bytes().ok()?.get(..4)?.try_into().ok()?))
}

fn take_activation(graph: &mut Graph, n: NodeId, open: &Open, (name, params): Activation) -> Result<(), PassError> {
    let attrs = graph.attrs_mut(open.conv);
    attrs.insert("activation".to_owned(), Attr::String(name.into()));
    if !params.is_empty() {
        attrs.insert("activation_params".to_owned(), Attr::Floats(params));
    }
    let mut patch = Patch::new();
    replace(graph, n, open, &mut patch);
    patch.apply(graph)?;
    remove_dead(graph, [n]);
    Ok(())
}
