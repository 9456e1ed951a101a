//! Blocked convolutions of domain `com.microsoft.nchwc` take in what stands behind them: `activation(Conv(x) + sum)` is one op.

use crate::ort_cpu::nodes::is_convolution;
use crate::ort_cpu::release::Release;
use crate::ort_cpu::taken_in::{Activated, activation_of, is_read_by, is_sum};
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Handover, NodeId, Op, ValueId};
use relayout_ir::patch::{Patch, remove_dead, replace_value};
use relayout_ir::perm;
use relayout_target_api::{Declared, Fact, Pass, PassError, Slot};
use std::collections::BTreeMap;

/// The operand of a convolution that is added to its result.
const SUM: usize = 3;

/// The pass.
pub(super) fn pass(release: Option<Release>) -> Pass {
    let is = Declared::new("fuse_sums_and_activations", Slot::Write, "every blocked convolution is there")
        .needs(&[Fact::Written])
        .after(&["join_reshapes"]);
    Pass::on_each_graph(is, move |graph, _| fuse(graph, release))
}

/// Fuses sums, then activations.
fn fuse(graph: &mut Graph, release: Option<Release>) -> Result<(), PassError> {
    if !graph.nodes().any(|n| is_convolution(graph.node(n))) {
        return Ok(());
    }
    put_before_moves(graph, release)?;
    let order = graph.order().unwrap_or_default();
    let place: BTreeMap<NodeId, usize> = order.iter().enumerate().map(|(i, &n)| (n, i)).collect();
    for &n in &order {
        if let Some((open, other)) = sum(graph, n, &place) {
            take_sum(graph, n, &open, other)?;
        }
    }
    for n in graph.order().unwrap_or_default() {
        // A node of the order may have gone with the activation that it was part of.
        if !graph.contains(n) {
            continue;
        }
        let Some(activated) = activation_of(graph, n, release) else { continue };
        if let Some(open) = open_conv(graph, activated.of, activated.reads) {
            take_activation(graph, n, &open, activated)?;
        }
    }
    Ok(())
}

/// Activations that ONNX Runtime takes into convolutions which are in no blocks, when it loads a file.
const OF_PLAIN: &[&str] = &["Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip"];

/// Lets an activation stand between its convolution and the move behind that, where the one takes in the other. The decision prices both
/// places alike.
fn put_before_moves(graph: &mut Graph, release: Option<Release>) -> Result<(), PassError> {
    for n in graph.order().unwrap_or_default() {
        let Some((moved, x)) = moved_between(graph, n, release) else { continue };
        let Some(y) = graph.node(n).only_result() else { continue };
        let (to, ty, what) = {
            let value = graph.value(y);
            (value.layout.clone(), value.ty.clone(), value.name.clone())
        };
        let readers = Handover::everything(graph, y);
        let rest = graph.node(n).inputs.iter().skip(1).copied();
        let inputs = std::iter::once(Some(x)).chain(rest).collect();
        graph.set_inputs(n, inputs);
        *graph.value_mut(y).layout = graph.value(x).layout.clone();
        Builder::at(graph, n).move_of(y, to).result_for(&what, ty, readers)?;
        remove_dead(graph, [moved]);
    }
    Ok(())
}

/// The move between a convolution and an activation of its result, and that result.
fn moved_between(graph: &Graph, n: NodeId, release: Option<Release>) -> Option<(NodeId, ValueId)> {
    let Activated { name, of, reads, .. } = activation_of(graph, n, release).filter(|it| it.reads == 1)?;
    let (moved, y) = (graph.value(of).producer().0, graph.node(n).only_result()?);
    let x = graph.node(moved).operand(0).filter(|_| matches!(graph.node(moved).op, Op::Relayout))?;
    let conv = graph.node(graph.value(x).producer().0);
    let plain = conv.onnx() == Some("Conv") && OF_PLAIN.contains(&name);
    let takes = plain || (is_convolution(conv) && !conv.attrs.contains_key("activation"));
    let alone = is_read_by(graph, of, reads) && is_read_by(graph, x, 1);
    let alike = graph.value(of).layout == graph.value(y).layout && !matches!(graph.node(n).form, Form::Kernel(_));
    (takes && alone && alike).then_some((moved, x))
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

/// The convolution that makes a value which is so many operands and nothing else, seen as it is or transposed, if it has no activation
/// yet.
fn open_conv(graph: &Graph, seen: ValueId, reads: usize) -> Option<Open> {
    let (maker, _) = graph.value(seen).producer();
    let (conv, made, view) = match &graph.node(maker).form {
        Form::View(View::Transpose(perm)) => {
            let x = graph.node(maker).operand(0)?;
            let left = graph.value(x).layout.transpose(perm).ok()?;
            // One that moves is no view.
            (left == graph.value(seen).layout).then_some(())?;
            (graph.value(x).producer().0, x, Some(perm.clone()))
        }
        _ => (maker, seen, None),
    };
    let node = graph.node(conv);
    let alone = is_read_by(graph, seen, reads) && (made == seen || is_read_by(graph, made, 1));
    let open = alone && is_convolution(node) && !node.attrs.contains_key("activation");
    open.then_some(Open { conv, seen, view })
}

/// The convolution that takes in a sum, and what it adds: of two, the later one, which the other operand can't wait for. A sum that
/// nobody reads stays: without it nobody would read the convolution.
fn sum(graph: &Graph, n: NodeId, place: &BTreeMap<NodeId, usize>) -> Option<(Open, ValueId)> {
    let node = graph.node(n);
    let (a, b) = node.operand(0).zip(node.operand(1)).filter(|_| is_sum(node))?;
    let y = node.result(0).filter(|&y| graph.use_count(y) > 0 || graph.is_output(y))?;
    let alike = |v: ValueId| {
        let (v, y) = (graph.value(v), graph.value(y));
        v.ty.shape() == y.ty.shape() && v.layout == y.layout
    };
    if a == b || !alike(a) || !alike(b) {
        return None;
    }
    [(a, b), (b, a)]
        .into_iter()
        .filter_map(|(v, other)| Some((open_conv(graph, v, 1)?, other)))
        .filter(|(open, _)| graph.node(open.conv).operand(SUM).is_none())
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
    // What the reader sees of the convolution takes the place of its own result.
    if let Some(y) = graph.node(n).result(0) {
        patch.replace(y, open.seen);
    }
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
    let source = maker.operand(0);
    if let (Form::View(View::Transpose(own)), Some(x)) = (&maker.form, source)
        && own == perm
        && graph.value(x).layout.transpose(perm).is_ok_and(|left| left == graph.value(v).layout)
    {
        return Ok(x);
    }
    let back = perm::inverse(perm);
    let value = graph.value(v);
    let (Ok(layout), Some(shape)) = (value.layout.transpose(&back), value.ty.shape()) else { return Ok(v) };
    let shape: Vec<Dim> = back.iter().filter_map(|&axis| shape.get(axis).cloned()).collect();
    let (name, opset) = (format!("{}.viewed", value.name), graph.node(n).opset);
    let mut make = Builder::at(graph, n).opset(opset);
    let view = make.op("Transpose", [v]).attr("perm", Attr::axes(&back)).form(Form::View(View::Transpose(back)));
    Ok(view.layout(layout).shaped(&name, &shape)?)
}

fn take_activation(graph: &mut Graph, n: NodeId, open: &Open, activated: Activated) -> Result<(), PassError> {
    let attrs = graph.attrs_mut(open.conv);
    attrs.insert("activation".to_owned(), Attr::String(activated.name.into()));
    if !activated.params.is_empty() {
        attrs.insert("activation_params".to_owned(), Attr::Floats(activated.params));
    }
    if let Some(y) = graph.node(n).result(0) {
        replace_value(graph, y, open.seen, [n])?;
    }
    Ok(())
}
