//! `part_units`: for devices that run an op between `DequantizeLinear` and `QuantizeLinear` as one of integers, and have no op that is
//! both at once.
//!
//! ```text
//! QLinearConv(x, W) = Q(Conv(D(x), D(W)))          D is DequantizeLinear, Q is QuantizeLinear
//! MaxPool(x) = Q(MaxPool(D(x)))                    for what only moves or picks the integers of one scale
//! ```
//!
//! The left sides are what quantizers of operators write. ONNX Runtime gives such a device few of them, each with moves around it, and
//! the rest runs on the host. It takes the right sides whole.

use super::providers::Provider;
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{DuplicateName, Graph, Handover, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::op::MICROSOFT;
use relayout_ir::patch::remove_dead;
use relayout_ir::types::{TensorType, Type};
use relayout_target_api::{Context, Counted, Declared, Numerics, Pass, Rule, Slot};
use rustc_hash::FxHashMap;

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "part_units",
    equation: "QLinearConv(x, W) = Q(Conv(D(x), D(W)))",
    condition: "D is DequantizeLinear and Q is QuantizeLinear; likewise the other QLinear ops, and MaxPool, Resize and moves of what Q \
                made; scales are known, and one for each operand but weights; the device runs the right side as one op of integers",
    buys: "nodes on the host, and moves around each node of the device",
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// The version from which a `DequantizeLinear` may have a scale for each row.
const BY_AXIS_SINCE: i64 = 13;
/// The version from which a pool of integers is one in floats too.
const SINCE: i64 = 10;

/// The pass; for a device that is not given such units it does nothing.
pub(super) fn pass(provider: &Provider) -> Pass {
    let wanted = provider.device.parts_units;
    let is =
        Declared::new(RULE.name, Slot::Prepare, "forms stand for ops of floats, and what is around them is decided")
            .before(&["fold_copies"])
            .rules(&[&RULE]);
    Pass::on_each_graph(is, move |graph, cx: &mut Context<'_>| {
        let opset = cx.settings.opset;
        if !wanted || cx.settings.numerics < Numerics::Reassociate || opset < SINCE {
            return Ok(());
        }
        let mut known: FxHashMap<ValueId, Scale> = FxHashMap::default();
        let (mut dead, mut parted) = (Vec::new(), 0);
        for n in graph.order().unwrap_or_default() {
            if let Some(scale) = made_by_quantization(graph, n) {
                known.extend(graph.node(n).only_result().map(|y| (y, scale)));
            } else if let Some(unit) = Unit::recognize(graph, n, &known, opset) {
                known.extend(unit.write(graph, n, opset)?);
                dead.push(n);
                parted += 1;
            }
        }
        remove_dead(graph, dead);
        if parted > 0 {
            cx.count(&RULE, parted);
        }
        Ok(())
    })
}

/// Scale and zero point.
type Scale = (ValueId, Option<ValueId>);

/// The scale of what a `QuantizeLinear` makes, if it has one.
fn made_by_quantization(graph: &Graph, n: NodeId) -> Option<Scale> {
    let node = graph.node(n);
    let scale = node.operand(1).filter(|_| node.onnx() == Some("QuantizeLinear"))?;
    is_single(graph, scale).then_some((scale, node.operand(2)))
}

/// Whether a value is one known number of float32.
fn is_single(graph: &Graph, v: ValueId) -> bool {
    graph.constant(v).is_some_and(|c| c.elems() == Some(1) && c.dtype == DType::F32)
}

/// Integers, their scale, and the axis along which there is one for each row.
struct Operand {
    x: ValueId,
    scale: Scale,
    axis: Option<i64>,
}

/// A unit of integers, or what moves integers of one scale.
struct Unit {
    op: String,
    operands: Vec<Operand>,
    /// Sums that are added, and their scale.
    bias: Option<(ValueId, Constant)>,
    /// Operands that are no integers, behind the others.
    rest: Vec<Option<ValueId>>,
    result: Scale,
}

impl Unit {
    fn recognize(graph: &Graph, n: NodeId, known: &FxHashMap<ValueId, Scale>, opset: i64) -> Option<Unit> {
        let node = graph.node(n);
        let typed = |v: &ValueId| {
            let ty = &graph.value(*v).ty;
            matches!(ty.dtype(), Some(DType::U8 | DType::I8)) && ty.shape().is_some()
        };
        let read = node.outputs.iter().flatten().next().is_some() && node.outputs.iter().flatten().all(typed);
        let Op::Onnx(name) = &node.op else { return None };
        if !read || node.flag("channels_last") {
            return None;
        }
        moved(graph, node, known).or_else(|| quantized(graph, node, name)).filter(|unit| unit.fits(graph, opset))
    }

    /// Whether its scales are known, and a `DequantizeLinear` may have them.
    fn fits(&self, graph: &Graph, opset: i64) -> bool {
        let result = is_single(graph, self.result.0);
        result
            && self.operands.iter().all(|operand| {
                let (scale, zero) = operand.scale;
                let dims = |v: ValueId| graph.constant(v).map(|c| c.dims.clone());
                let rows = || opset >= BY_AXIS_SINCE && zero.is_none_or(|zero| dims(zero) == dims(scale));
                let float = graph.constant(scale).is_some_and(|c| c.dtype == DType::F32);
                float && if operand.axis.is_some() { rows() } else { is_single(graph, scale) }
            })
    }

    /// Writes it, and gives the scales of its results.
    fn write(self, graph: &mut Graph, n: NodeId, opset: i64) -> Result<Vec<(ValueId, Scale)>, DuplicateName> {
        let results: Vec<ValueId> = graph.node(n).outputs.iter().copied().flatten().collect();
        let first = results.first().map(|&y| graph.value(y).name.clone()).unwrap_or_default();
        let readers: Vec<Handover> = results.iter().map(|&y| Handover::everything(graph, y)).collect();
        let types: Vec<Type> = results.iter().map(|&y| graph.value(y).ty.clone()).collect();
        let mut attrs = graph.node(n).attrs.clone();
        attrs.shift_remove("channels_last");
        let mut floats: Vec<Option<ValueId>> = Vec::new();
        let bias = self.bias.map(|(x, scale)| {
            let axis = (scale.elems() != Some(1)).then_some(0);
            Builder::at(graph, n).named(&first).constant("bias_scale", scale).map(|s| Operand {
                x,
                scale: (s, None),
                axis,
            })
        });
        for Operand { x, scale: (scale, zero), axis } in self.operands.into_iter().chain(bias.transpose()?) {
            let ty = in_floats(&graph.value(x).ty);
            let mut make = Builder::at(graph, n).opset(opset).named(&first);
            let mut made = make.op("DequantizeLinear", [Some(x), Some(scale)]).operands(zero);
            if let Some(axis) = axis {
                made = made.attr("axis", Attr::Int(axis));
            }
            floats.push(Some(made.result("float", ty)?));
        }
        let mut make = Builder::at(graph, n).opset(opset).named(&first);
        let made = make.op(&self.op, floats.into_iter().chain(self.rest)).attrs(attrs);
        // Of a Split there are several.
        let name = |at: usize| if at == 0 { "exact".to_owned() } else { format!("exact.{at}") };
        let made = made.results(types.iter().enumerate().map(|(at, ty)| (name(at), in_floats(ty))))?;
        let (scale, zero) = self.result;
        let mut known = Vec::new();
        for ((x, ty), readers) in made.into_iter().zip(types).zip(readers) {
            let draft = make.op("QuantizeLinear", [Some(x), Some(scale)]).operands(zero);
            known.push((draft.result_for("quantized", ty, readers)?, self.result));
        }
        Ok(known)
    }
}

fn in_floats(ty: &Type) -> Type {
    Type::Tensor(TensorType { dtype: Some(DType::F32), shape: ty.shape().map(<[_]>::to_vec) })
}

/// What moves integers whose scale is known, or picks some of them.
fn moved(graph: &Graph, node: &Node, known: &FxHashMap<ValueId, Scale>) -> Option<Unit> {
    let op = node.onnx()?;
    let moves = matches!(op, "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Transpose" | "Slice" | "Split");
    let nearest = op == "Resize" && node.str("mode").is_none_or(|mode| mode == "nearest");
    let pools = op == "MaxPool" && node.outputs.len() == 1;
    let x = node.operand(0).filter(|v| (moves || nearest || pools) && graph.constant(*v).is_none())?;
    let scale = *known.get(&x)?;
    let rest = node.inputs.iter().skip(1).copied().collect();
    let operands = vec![Operand { x, scale, axis: None }];
    Some(Unit { op: op.to_owned(), operands, bias: None, rest, result: scale })
}

/// A unit of integers: its op on floats, where its operands, its result's scale and zero point, and its bias are.
fn quantized(graph: &Graph, node: &Node, name: &OpName) -> Option<Unit> {
    const PAIR: &[usize] = &[0, 3];
    let own = name.domain == MICROSOFT;
    let (op, at, result, bias): (&str, &[usize], usize, Option<usize>) = match name.name.as_str() {
        "QLinearConv" => ("Conv", PAIR, 6, Some(8)),
        "QLinearMatMul" if !own => ("MatMul", PAIR, 6, None),
        "QGemm" if own && node.float("alpha").is_none_or(|alpha| alpha.to_bits() == 1f32.to_bits()) => {
            ("Gemm", PAIR, 7, Some(6))
        }
        "QLinearAdd" if own => ("Add", PAIR, 6, None),
        "QLinearMul" if own => ("Mul", PAIR, 6, None),
        "QLinearSigmoid" if own => ("Sigmoid", &[0], 3, None),
        "QLinearLeakyRelu" if own => ("LeakyRelu", &[0], 3, None),
        "QLinearAveragePool" if own => ("AveragePool", &[0], 3, None),
        "QLinearGlobalAveragePool" if own => ("GlobalAveragePool", &[0], 3, None),
        "QLinearConcat" if own => ("Concat", &[], 0, None),
        _ => return None,
    };
    let each: Vec<usize> = if op == "Concat" { (2..node.inputs.len()).step_by(3).collect() } else { at.to_vec() };
    let operand = |(slot, &at): (usize, &usize)| {
        let (x, scale) = (node.operand(at)?, node.operand(at + 1)?);
        let many = slot == 1 && !is_single(graph, scale);
        let axis = match op {
            "Conv" => Some(0),
            "Gemm" => Some(1 - node.int("transB").unwrap_or(0).clamp(0, 1)),
            // Scales of columns: the last axis.
            "MatMul" => Some(-1),
            _ => None,
        };
        Some(Operand { x, scale: (scale, node.operand(at + 2)), axis: axis.filter(|_| many) })
    };
    let operands: Vec<Operand> = each.iter().enumerate().map(operand).collect::<Option<_>>()?;
    let bias = match bias.and_then(|at| node.operand(at)) {
        Some(x) => Some((x, scale_of_sums(graph, &operands)?)),
        None => None,
    };
    let result = (node.operand(result)?, node.operand(result + 1));
    Some(Unit { op: op.to_owned(), operands, bias, rest: Vec::new(), result })
}

/// The scale of sums of products of two operands.
fn scale_of_sums(graph: &Graph, operands: &[Operand]) -> Option<Constant> {
    let [a, b] = [operands.first()?, operands.get(1)?].map(|operand| graph.constant(operand.scale.0));
    let (a, b) = (a?, b?);
    let ([a], many) = (a.to_floats(1)?[..].try_into().ok()?, b.to_floats(usize::try_from(b.elems()?).ok()?)?);
    let a: f64 = a;
    // Both are float32, and so is what a runtime multiplies.
    let product = |b: f64| f64::from(a as f32 * b as f32);
    Some(Constant::floats(many.into_iter().map(product), &b.dims))
}
