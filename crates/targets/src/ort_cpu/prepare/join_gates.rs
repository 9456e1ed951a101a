//! `join_gates`: a `HardSigmoid` that is written out, by itself or as the gate of a product, becomes one again.
//!
//! Exporters write `HardSwish` as Add, Clip, Mul and Div. ONNX Runtime takes a product of a value with its own `HardSigmoid` into its
//! convolutions, and a `HardSigmoid` too; of the four nodes it takes none.

use relayout_ir::attr::Attr;
use relayout_ir::build::{Builder, bind_again};
use relayout_ir::dtype::DType;
use relayout_ir::graph::{DuplicateName, Graph, NodeId, OpName, ValueId};
use relayout_ir::op::read::{number, number_told};
use relayout_ir::patch::remove_dead;
use relayout_target_api::{Context, Counted, Numerics, PassError, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "join_gates",
    equation: "c Clip(x + b, 0, m) = HardSigmoid(x), and y times either, with slope c and b c at zero",
    condition: "c m is 1, and x of float32; nobody else reads what is between",
    buys: "time: convolutions take HardSigmoid in, and x HardSigmoid(x), which is HardSwish",
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// Opset from which the ops broadcast and `HardSigmoid` infers as today.
const SINCE: i64 = 7;
/// How far `c m` may be from 1: what a sixth is rounded by in files.
const NEAR: f64 = 1e-6;

/// Writes those of a graph.
pub(super) fn join_gates(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    for n in cx.reassociable(graph) {
        // A node of the order may have gone with one behind it.
        if !graph.contains(n) {
            continue;
        }
        let Some(found) = found(graph, n) else { continue };
        let removed = write(graph, n, &found)?;
        cx.count(&RULE, removed);
    }
    Ok(())
}

/// A gate, and what it is multiplied by.
struct ScaledGate {
    gate: Gate,
    by: Option<ValueId>,
}

/// `Clip(x + add, 0, most)`.
struct Gate {
    x: ValueId,
    add: f64,
    most: f64,
}

/// A value times a number.
struct Scaled {
    x: ValueId,
    by: f64,
}

fn found(graph: &Graph, n: NodeId) -> Option<ScaledGate> {
    let y = graph.node(n).only_result().filter(|_| graph.node(n).opset >= SINCE)?;
    (graph.value(y).ty.dtype() == Some(DType::F32)).then_some(())?;
    let scale = scale(graph, n).map(|scale| through(graph, scale));
    let gated = |t: ValueId, by: f64| gate(graph, t).filter(|gate| (by * gate.most - 1.0).abs() < NEAR);
    let Some(Scaled { x, by }) = scale else { return product(graph, n, &gated, 1.0) };
    if let Some(gate) = gated(x, by) {
        return Some(ScaledGate { gate, by: None });
    }
    graph.only_use(x)?;
    product(graph, graph.value(x).producer().0, &gated, by)
}

/// A product of which one factor is a gate; `by` is what it is multiplied by behind it.
fn product(graph: &Graph, n: NodeId, gated: &dyn Fn(ValueId, f64) -> Option<Gate>, by: f64) -> Option<ScaledGate> {
    let (a, b) = pair(graph, n, "Mul")?;
    [(a, b), (b, a)].into_iter().find_map(|(t, other)| {
        let [t, other] = [t, other].map(|x| through(graph, Scaled { x, by: 1.0 }));
        Some(ScaledGate { gate: gated(t.x, by * t.by * other.by)?, by: Some(other.x) })
    })
}

/// The operands of an op of two.
fn pair(graph: &Graph, n: NodeId, op: &str) -> Option<(ValueId, ValueId)> {
    let node = graph.node(n);
    let binary = node.onnx() == Some(op) && node.inputs.len() == 2;
    node.operand(0).zip(node.operand(1)).filter(|_| binary)
}

/// What an op computes of a value and a number, if the result is of the value's type; the number in either place.
fn with_number(graph: &Graph, n: NodeId, op: &str) -> Option<(ValueId, f64)> {
    let (a, b) = pair(graph, n, op)?;
    let y = graph.node(n).only_result()?;
    let of = |(x, c): (ValueId, ValueId)| {
        let number = number(graph, c).filter(|number| number.is_finite())?;
        let (x_ty, y_ty) = (&graph.value(x).ty, &graph.value(y).ty);
        let same = x_ty.shape().is_some() && x_ty.shape() == y_ty.shape() && x_ty.dtype() == Some(DType::F32);
        same.then_some((x, number))
    };
    of((a, b)).or_else(|| of((b, a)).filter(|_| op != "Div"))
}

/// What a node multiplies by a number, or divides by one.
fn scale(graph: &Graph, n: NodeId) -> Option<Scaled> {
    let divided = || with_number(graph, n, "Div").filter(|(_, by)| *by != 0.0).map(|(x, by)| (x, by.recip()));
    with_number(graph, n, "Mul").or_else(divided).map(|(x, by)| Scaled { x, by })
}

/// A value through all products with numbers that only this one reads.
fn through(graph: &Graph, mut scaled: Scaled) -> Scaled {
    while let Some(next) = made_by(graph, scaled.x).and_then(|n| scale(graph, n)) {
        scaled = Scaled { x: next.x, by: scaled.by * next.by };
    }
    scaled
}

/// The node that makes a value which only one place reads.
fn made_by(graph: &Graph, v: ValueId) -> Option<NodeId> {
    graph.only_use(v).map(|_| graph.value(v).producer().0)
}

/// The gate whose result a value is, if nobody else reads that or what is between.
fn gate(graph: &Graph, v: ValueId) -> Option<Gate> {
    let (sum, most) = clipped(graph, made_by(graph, v)?)?;
    let (x, add) = with_number(graph, made_by(graph, sum)?, "Add")?;
    (most > 0.0 && most.is_finite()).then_some(Gate { x, add, most })
}

/// What is cut off at zero and at a number, by one node or two.
fn clipped(graph: &Graph, n: NodeId) -> Option<(ValueId, f64)> {
    let node = graph.node(n);
    if node.onnx() == Some("Clip") {
        let [least, most] = [("min", f32::MIN), ("max", f32::MAX)]
            .map(|(name, default)| number_told(graph, node, name, default.into()));
        return node.operand(0).filter(|_| least == Some(0.0)).zip(most);
    }
    let (v, most) = with_number(graph, n, "Min")?;
    let inner = made_by(graph, v)?;
    let node = graph.node(inner);
    let above = with_number(graph, inner, "Max").filter(|(_, least)| *least == 0.0).map(|(x, _)| x);
    above.or_else(|| node.operand(0).filter(|_| node.onnx() == Some("Relu"))).map(|x| (x, most))
}

/// How many nodes fewer there are.
fn write(graph: &mut Graph, n: NodeId, found: &ScaledGate) -> Result<usize, DuplicateName> {
    let Gate { x, add, most } = found.gate;
    let numbers = [("alpha", Attr::Float((1.0 / most) as f32)), ("beta", Attr::Float((add / most) as f32))];
    let (opset, count) = (graph.node(n).opset, graph.nodes().count());
    let before: Vec<NodeId> = graph.node(n).inputs.iter().flatten().map(|&v| graph.value(v).producer().0).collect();
    let (op, operands) = match found.by {
        None => {
            graph.attrs_mut(n).extend(numbers.map(|(name, attr)| (name.to_owned(), attr)));
            ("HardSigmoid", vec![x])
        }
        Some(by) => {
            let ty = graph.value(x).ty.clone();
            let name = graph.node(n).only_result().map(|y| graph.value(y).name.clone()).unwrap_or_default();
            let mut make = Builder::at(graph, n).opset(opset).named(name);
            ("Mul", vec![by, make.op("HardSigmoid", [x]).attrs(numbers).result("gate", ty)?])
        }
    };
    graph.set_op(n, OpName::onnx(op), opset);
    graph.set_inputs(n, operands.into_iter().map(Some).collect());
    bind_again(graph, n);
    remove_dead(graph, before);
    Ok(count.saturating_sub(graph.nodes().count()))
}
