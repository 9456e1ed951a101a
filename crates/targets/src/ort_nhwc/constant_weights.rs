//! `constant_weights`: where a device has no ops of quantized values, dequantized weights of convolutions are constants once the file is
//! loaded.
//!
//! ```text
//! DequantizeLinear(w, s, z) = Mul(Sub(Cast(w), z), s)
//! ```
//!
//! ONNX Runtime folds the ops of constants when it loads a file, but no `DequantizeLinear`. Such a device dequantizes weights in each
//! run. And since its convolutions read weights in another order, each turns them in each run: what is no constant can't be turned once.
//! In the file the weights stay as small as they were.
//!
//! A convolution between quantized values whose weights and bias are constant floats gets weights quantized once more by ONNX Runtime
//! (`WeightBiasQuantization`), with one scale for all of them. It does not if the bias is dequantized; so the bias stays as it is.

use super::providers::Provider;
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{DuplicateName, Graph, Node, NodeId, ValueId};
use relayout_ir::op::{int_or_default, normalize_axis};
use relayout_target_api::{Context, Cost, Counted, Declared, Fact, Numerics, Pass, Rule, Slot};

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "constant_weights",
    equation: "DequantizeLinear(w, s, z) = (Cast(w) - z) * s",
    condition: "w is constant, of 8 bits, and the weights of convolutions alone, whose bias is dequantized too if values are quantized; \
                the device has no ops of quantized values",
    buys: "moves of the weights in each run: the runtime folds the right side when it loads the file",
    numerics: Numerics::Exact,
    counted: Counted::Tensors,
};

/// The pass; for a device with ops of quantized values it does nothing.
pub(super) fn pass(quantized_units: bool) -> Pass {
    let is = Declared::new(RULE.name, Slot::Finish, "writes convolutions and their weights as they are in the file")
        .needs(&[Fact::Packed])
        .after(&["pick_channels"])
        .before(&["join_views"])
        .rules(&[&RULE]);
    Pass::on_each_graph(is, move |graph, cx: &mut Context<'_>| {
        if quantized_units {
            return Ok(());
        }
        for n in graph.order().unwrap_or_default() {
            if let Some(weights) = Weights::recognize(graph, n) {
                weights.write(graph, n)?;
                cx.count(&RULE, 1);
            }
        }
        Ok(())
    })
}

/// What it costs that weights are turned in each run, though they could be constant.
pub(super) fn turned(graph: &Graph, provider: &Provider) -> Cost {
    if provider.device.quantized_units {
        return Cost::ZERO;
    }
    let elements = |n: NodeId| {
        let weights = Weights::recognize(graph, n)?;
        let wraps = |u: NodeId| graph.node(u).onnx().is_some_and(|op| provider.wraps(op));
        let readers = graph.uses(weights.result).iter().filter(|u| wraps(u.node)).count();
        Some(Cost::new(provider.transpose_ns(graph.constant(weights.integers)?.elems()?)).times(readers as u64))
    };
    graph.nodes().filter_map(elements).sum()
}

/// Constant weights of convolutions that a `DequantizeLinear` makes floats of.
struct Weights {
    /// What it reads.
    integers: ValueId,
    scales: Vec<f64>,
    /// Zero points, unless all are zero.
    zeros: Option<Vec<f64>>,
    /// What it leaves.
    result: ValueId,
    /// The shape in which scales and zero points stand beside the weights.
    beside: Vec<i64>,
}

impl Weights {
    fn recognize(graph: &Graph, n: NodeId) -> Option<Weights> {
        let node = graph.node(n);
        let whole = node.onnx() == Some("DequantizeLinear") && !node.flag("block_size");
        let result = node.only_result().filter(|&v| whole && !graph.is_read_by_name(v))?;
        let (integers, scale) = (node.operand(0)?, node.operand(1)?);
        let (w, s) = (graph.constant(integers)?, graph.constant(scale)?);
        let plain = [integers, result].iter().all(|&v| graph.value(v).layout.is_row_major());
        let known = matches!(w.dtype, DType::I8 | DType::U8) && s.dtype == DType::F32;
        if !plain || !known || graph.value(result).ty.dtype() != Some(DType::F32) {
            return None;
        }
        let uses = graph.uses(result);
        if uses.is_empty() || !uses.iter().all(|u| u.slot == 1 && stays_float(graph, graph.node(u.node))) {
            return None;
        }
        let scales = s.to_floats(usize::try_from(s.elems()?).ok()?)?;
        let zeros = match node.operand(2) {
            Some(z) => graph.constant(z)?.to_ints(scales.len())?,
            None => vec![0; scales.len()],
        };
        if zeros.len() != scales.len() {
            return None;
        }
        let zeros = zeros.iter().any(|&z| z != 0).then(|| zeros.iter().map(|&z| z as f64).collect());
        let mut beside = Vec::new();
        if scales.len() != 1 {
            let axis = normalize_axis(int_or_default(node, "axis")?, w.dims.len())?;
            beside = vec![1; w.dims.len()];
            beside[axis] = *s.dims.first().filter(|_| s.dims == [w.dims[axis]])?;
        }
        Some(Weights { integers, scales, zeros, result, beside })
    }

    fn write(self, graph: &mut Graph, n: NodeId) -> Result<(), DuplicateName> {
        let Weights { integers, scales, zeros, result, beside } = self;
        let floats = graph.value(result).ty.clone();
        let name = graph.value(result).name.clone();
        let mut make = Builder::at(graph, n).named(name);
        let cast = make.op("Cast", [integers]).attr("to", Attr::Int(DType::F32.to_onnx().into()));
        let mut x = cast.result("float", floats.clone())?;
        if let Some(zeros) = zeros {
            let zeros = make.floats("zeros", &zeros, &beside)?;
            x = make.op("Sub", [x, zeros]).result("centred", floats)?;
        }
        let scales = make.floats("scales", &scales, &beside)?;
        make.op("Mul", [x, scales]).in_place_of(n);
        Ok(())
    }
}

/// Whether a node is a convolution whose weights stay floats when they are constant.
fn stays_float(graph: &Graph, node: &Node) -> bool {
    let is = |n: NodeId, op: &str| graph.node(n).onnx() == Some(op);
    let bias = node.operand(2).is_some_and(|v| is(graph.value(v).producer().0, "DequantizeLinear"));
    matches!(node.onnx(), Some("Conv" | "ConvTranspose")) && (bias || !graph.nodes().any(|n| is(n, "QuantizeLinear")))
}
