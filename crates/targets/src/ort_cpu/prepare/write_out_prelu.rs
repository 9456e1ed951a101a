//! `write_out_prelu`: `PRelu` of constant slopes as ops that ONNX Runtime is fast at.
//!
//! Its CPU provider computes `PRelu` element by element: 1.6 MB of both signs take 2.4 ms, and a product and a maximum of as many
//! 0.16 ms (1.31, one thread, AVX-512). Written out, it also stays in blocks between convolutions: the product is a depthwise convolution of one tap.

use relayout_ir::attr::Attr;
use relayout_ir::build::{Builder, bind_again};
use relayout_ir::dtype::DType;
use relayout_ir::graph::{DuplicateName, Graph, NodeId, OpName, ValueId};
use relayout_target_api::{Context, Counted, Numerics, PassError, Rule, Sizes};

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "write_out_prelu",
    equation: "PRelu(x, a) = Max(x, x a) where no a is 0 or above 1, else Relu(x) + Min(x, 0) a; LeakyRelu(x) where all a are one",
    condition: "x is of float32, and a is constant and finite; x has at least 4096 elements, or all a are one",
    buys: "time: the runtime of the target computes PRelu element by element, and only in ONNX's own order",
    numerics: Numerics::Exact,
    counted: Counted::Tensors,
};

/// Opset from which operands of `PRelu` and Mul broadcast as today, and from which those of Min do.
const SINCE: (i64, i64) = (7, 8);
/// Elements below which the nodes cost as much as what they compute.
const FEW: u64 = 4096;
/// Most slopes that are read.
const MOST: usize = 1 << 20;

/// Writes out those of a graph.
pub(super) fn write_out_prelu(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let mut count = 0;
    for n in graph.order().unwrap_or_default() {
        let Some(slopes) = slopes(graph, n) else { continue };
        count += usize::from(write(graph, n, &slopes, &cx.settings.hints)?);
    }
    if count > 0 {
        cx.count(&RULE, count);
    }
    Ok(())
}

/// The constant slopes of a `PRelu` of floats.
fn slopes(graph: &Graph, n: NodeId) -> Option<Vec<f32>> {
    let node = graph.node(n);
    (node.onnx() == Some("PRelu") && node.opset >= SINCE.0).then_some(())?;
    let (x, slopes, y) = (node.operand(0)?, node.operand(1)?, node.only_result()?);
    let is_float = |v: ValueId| graph.value(v).ty.dtype() == Some(DType::F32) && graph.value(v).ty.rank().is_some();
    [x, slopes, y].into_iter().all(is_float).then_some(())?;
    // By the standard slopes have no more extents than the numbers. A runtime may take others, and makes more numbers of them.
    let [numbers, each] = [x, slopes].map(|v| graph.value(v).ty.shape().unwrap_or_default());
    let mut pairs = each.iter().rev().zip(numbers.iter().rev());
    (each.len() <= numbers.len() && pairs.all(|(each, of)| each.is_one() || each == of)).then_some(())?;
    let slopes: Vec<f32> = graph.constant(slopes)?.to_floats(MOST)?.into_iter().map(|slope| slope as f32).collect();
    // Infinity times zero is none of them.
    (!slopes.is_empty() && slopes.iter().all(|slope| slope.is_finite())).then_some(slopes)
}

/// Whether it was written.
fn write(graph: &mut Graph, n: NodeId, slopes: &[f32], sizes: &dyn Sizes) -> Result<bool, DuplicateName> {
    let node = graph.node(n);
    let opset = node.opset;
    let (Some(x), Some(a), Some(y)) = (node.operand(0), node.operand(1), node.only_result()) else { return Ok(false) };
    if slopes.iter().all(|slope| slope.to_bits() == slopes[0].to_bits()) {
        become_op(graph, n, "LeakyRelu", vec![x]);
        graph.attrs_mut(n).insert("alpha".to_owned(), Attr::Float(slopes[0]));
        bind_again(graph, n);
        return Ok(true);
    }
    let elements = sizes.shape(graph, y).map_or(0, |shape| shape.into_iter().fold(1_u64, u64::saturating_mul));
    let below = slopes.iter().all(|&slope| slope <= 1.0 && slope != 0.0);
    if elements < FEW || !below && opset < SINCE.1 {
        return Ok(false);
    }
    let (name, ty) = (graph.value(y).name.clone(), graph.value(y).ty.clone());
    let mut make = Builder::at(graph, n).opset(opset).named(name);
    if below {
        let product = make.op("Mul", [x, a]).result("product", ty)?;
        become_op(graph, n, "Max", vec![x, product]);
    } else {
        let zero = make.filled("zero", DType::F32, &[], 0.0)?;
        let above = make.op("Relu", [x]).result("above", ty.clone())?;
        let least = make.op("Min", [x, zero]).result("below", ty.clone())?;
        let product = make.op("Mul", [least, a]).result("product", ty)?;
        become_op(graph, n, "Add", vec![above, product]);
    }
    bind_again(graph, n);
    Ok(true)
}

fn become_op(graph: &mut Graph, n: NodeId, op: &str, operands: Vec<ValueId>) {
    let opset = graph.node(n).opset;
    graph.set_op(n, OpName::onnx(op), opset);
    graph.set_inputs(n, operands.into_iter().map(Some).collect());
}
