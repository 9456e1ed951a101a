//! Numbers beside values whose last extent is 1.
//!
//! ONNX Runtime's CPU provider runs an op of two operands over spans of the innermost axes in which the operands are alike. A number of
//! fewer than two axes beside a value whose last extent is 1 leaves spans of one element: 38 times as long, 12 ns for each element
//! (1.31.1, `findings/numbers_beside_a_last_extent_of_one.sh`). With two axes it is the number that runs over all.

use relayout_ir::build::{Builder, bind_again};
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::patch::{Patch, remove_dead};
use relayout_target_api::{Context, Counted, Declared, Fact, Numerics, Pass, PassError, Rule, Slot};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    name: "give_numbers_two_axes",
    equation: "x + c = x + Reshape(c, [1, 1])",
    condition: "c is a constant of one element and fewer than two axes; x has two axes or more, many elements, and a last extent of 1 as \
                it is stored; no op stands beside it that the runtime fuses with such numbers",
    buys: "a loop over single elements in ONNX Runtime's CPU provider",
    numerics: Numerics::Exact,
    counted: Counted::Tensors,
};

/// Ops of two operands that align them at their ends.
const OF_TWO: &[&str] = &[
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Mod",
    "Pow",
    "Max",
    "Min",
    "PRelu",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "And",
    "Or",
    "Xor",
];

/// Ops that ONNX Runtime fuses with the arithmetic around them, if its numbers have fewer than two axes: normalizations, activations,
/// products with a factor, quantized units.
const FUSED: &[&str] = &[
    "ReduceMean",
    "ReduceSum",
    "ReduceSumSquare",
    "ReduceL2",
    "Sqrt",
    "Reciprocal",
    "Pow",
    "Erf",
    "Tanh",
    "Sigmoid",
    "HardSigmoid",
    "Clip",
    "Relu",
    "Softmax",
    "MatMul",
    "Gemm",
    "Conv",
    "ConvTranspose",
    "QuantizeLinear",
    "DequantizeLinear",
];

/// From this operator set on operands are aligned at their ends.
const ALIGNED: i64 = 7;

/// Elements from which on it shows: 12 ns each.
const MANY: u64 = 1 << 10;

/// The pass.
pub(crate) fn pass() -> Pass {
    let is = Declared::new(
        "give_numbers_two_axes",
        Slot::Clean,
        "layouts are written, and equal numbers are not shared yet",
    )
    .needs(&[Fact::Packed])
    .after(&["cleanup"])
    .before(&["share_constants"])
    .rules(&[&RULE]);
    Pass::on_each_graph(is, give_numbers_two_axes)
}

/// Gives such numbers two axes, for the nodes that gain by it.
fn give_numbers_two_axes(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let found: Vec<(NodeId, usize, ValueId)> =
        graph.nodes().filter_map(|n| number(graph, cx, n).map(|(slot, v)| (n, slot, v))).collect();
    let mut gone = Vec::new();
    for (n, slot, v) in found {
        let Some(c) = graph.constant(v).cloned() else { continue };
        let name = graph.value(v).name.clone();
        let number = Builder::at(graph, n).named(name).constant("number", Constant { dims: vec![1, 1], ..c })?;
        let mut patch = Patch::new();
        patch.connect(n, slot, number);
        patch.apply(graph)?;
        bind_again(graph, n);
        gone.push(graph.value(v).producer().0);
        cx.count(&RULE, 1);
    }
    remove_dead(graph, gone);
    Ok(())
}

/// The operand of a node that is such a number.
fn number(graph: &Graph, cx: &Context<'_>, n: NodeId) -> Option<(usize, ValueId)> {
    let node = graph.node(n);
    let of_two = |op: &str| OF_TWO.contains(&op) && node.inputs.len() == 2 && matches!(node.form, Form::Axes(_));
    if node.opset < ALIGNED || !node.onnx().is_some_and(of_two) || is_fused(graph, n) {
        return None;
    }
    (0..2).find_map(|slot| {
        let (v, x) = (node.operand(slot)?, node.operand(1 - slot)?);
        let c = graph.constant(v)?;
        let short = c.dims.len() < 2 && c.elems() == Some(1) && c.pending.is_none();
        (short && is_slow(graph, cx, x)).then_some((slot, v))
    })
}

/// Whether spans are of one element beside a number of fewer than two axes.
fn is_slow(graph: &Graph, cx: &Context<'_>, x: ValueId) -> bool {
    let stored = graph.storage_shape(x, &graph.value(x).layout);
    let bits = graph.value(x).ty.dtype().and_then(DType::bits).unwrap_or(32);
    let elements = cx.settings.hints.bytes(graph, x).saturating_mul(8) / u64::from(bits);
    stored.is_some_and(|dims| dims.len() > 1 && dims.last().is_some_and(Dim::is_one)) && elements >= MANY
}

/// Whether an op stands beside a node that the runtime may fuse with it.
fn is_fused(graph: &Graph, n: NodeId) -> bool {
    let node = graph.node(n);
    let before = node.inputs.iter().flatten().map(|&v| graph.value(v).producer().0);
    let behind = node.outputs.iter().flatten().flat_map(|&v| graph.uses(v)).map(|u| u.node);
    before.chain(behind).any(|at| graph.node(at).onnx().is_some_and(|op| FUSED.contains(&op)))
}
