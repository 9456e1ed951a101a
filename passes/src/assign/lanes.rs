//! What pad slots may hold, value by value: whether a value may be stored with padding at all.
//!
//! A value is padded either because a reorder or a packed weight put zeros there, or because its producer ran on padded
//! operands; the lane is the join of both. What may become infinite or NaN must not be padded: a zero column of weights times an
//! infinity poisons a whole convolution.

use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::layout::pad::{BinaryFn, Lane, LaneFormat, UnaryFn};

/// The lane of each value of a graph, by its number.
pub(super) fn lanes(graph: &Graph) -> Vec<Lane> {
    let mut lanes = vec![Lane::ZERO; graph.value_bound()];
    for n in graph.order().unwrap_or_default() {
        let Some(lane) = image(graph, n, &lanes) else { continue };
        for &y in graph.node(n).outputs.iter().flatten() {
            lanes[y.index()] = lane.join(Lane::ZERO);
        }
    }
    lanes
}

/// What a node makes of the pad slots of its operands; `None` where it never runs on padded ones.
fn image(graph: &Graph, n: NodeId, lanes: &[Lane]) -> Option<Lane> {
    let node = graph.node(n);
    if matches!(node.form, Form::View(_)) {
        let x = node.inputs.first().copied().flatten()?;
        return Some(lanes[x.index()]);
    }
    let name = node.onnx()?;
    let y = node.outputs.first().copied().flatten()?;
    let format = format(graph.value(y).ty.dtype()?)?;
    let operand = |slot: usize| -> Option<Lane> {
        let v = node.inputs.get(slot).copied().flatten()?;
        Some(if same_extents(graph, v, y) { lanes[v.index()] } else { scalar(graph, v).unwrap_or(Lane::Any) })
    };
    let number = |name: &str, default: f64| match node.attrs.get(name) {
        Some(relayout_ir::attr::Attr::Float(x)) => f64::from(*x),
        _ => default,
    };
    let unary = match name {
        "Relu" => UnaryFn::Relu,
        "LeakyRelu" => UnaryFn::LeakyRelu(number("alpha", 0.01)),
        "Elu" => UnaryFn::Elu(number("alpha", 1.0)),
        "HardSigmoid" => UnaryFn::HardSigmoid(number("alpha", 0.2), number("beta", 0.5)),
        "Abs" => UnaryFn::Abs,
        "Neg" => UnaryFn::Neg,
        "Sqrt" => UnaryFn::Sqrt,
        "Reciprocal" => UnaryFn::Reciprocal,
        "Exp" => UnaryFn::Exp,
        "Log" => UnaryFn::Log,
        "Sigmoid" => UnaryFn::Sigmoid,
        "Tanh" => UnaryFn::Tanh,
        "Erf" => UnaryFn::Erf,
        "Softsign" => UnaryFn::Softsign,
        "Softplus" => UnaryFn::Softplus,
        "Gelu" => UnaryFn::Gelu,
        "HardSwish" => UnaryFn::HardSwish,
        "Mish" => UnaryFn::Mish,
        "Sin" => UnaryFn::Sin,
        "Cos" => UnaryFn::Cos,
        "Floor" => UnaryFn::Floor,
        "Ceil" => UnaryFn::Ceil,
        "Round" => UnaryFn::Round,
        "Sign" => UnaryFn::Sign,
        "Identity" | "Dropout" => UnaryFn::Identity,
        "Clip" => {
            let bound = |slot: usize, attr: &str, default: f64| match node.inputs.get(slot).copied().flatten() {
                Some(v) => scalar(graph, v).and_then(|lane| lane.as_const()),
                None => Some(number(attr, default)),
            };
            match (bound(1, "min", format.min), bound(2, "max", format.max)) {
                (Some(lo), Some(hi)) => UnaryFn::Clip(lo, hi),
                _ => return Some(Lane::Any),
            }
        }
        // Between the pad slots and the zeros beside the image.
        "MaxPool" | "AveragePool" | "GlobalAveragePool" | "GlobalMaxPool" | "Resize" | "Upsample" => {
            let x = node.inputs.first().copied().flatten()?;
            return Some(lanes[x.index()]);
        }
        "Add" | "Sub" | "Mul" | "Div" | "Min" | "Max" | "Pow" | "Sum" => {
            return Some(folded(name, node.inputs.len(), &operand, format));
        }
        "Conv" => return None,
        _ => return Some(Lane::Any),
    };
    Some(operand(0)?.unary(unary, format))
}

/// A function of two operands, over any number of them.
fn folded(name: &str, operands: usize, operand: &dyn Fn(usize) -> Option<Lane>, format: LaneFormat) -> Lane {
    let function = match name {
        "Sub" => BinaryFn::Sub,
        "Mul" => BinaryFn::Mul,
        "Div" => BinaryFn::Div,
        "Min" => BinaryFn::Min,
        "Max" => BinaryFn::Max,
        "Pow" => BinaryFn::Pow,
        _ => BinaryFn::Add,
    };
    let mut lanes = (0..operands).map(|slot| operand(slot).unwrap_or(Lane::Any));
    let Some(first) = lanes.next() else { return Lane::Any };
    lanes.fold(first, |a, b| a.binary(function, b, format))
}

fn same_extents(graph: &Graph, a: ValueId, b: ValueId) -> bool {
    graph.value(a).ty.shape() == graph.value(b).ty.shape()
}

/// The lane that a constant of one element gives wherever it is repeated.
fn scalar(graph: &Graph, v: ValueId) -> Option<Lane> {
    let Op::Constant(Constant { dtype: DType::F32, source, pending: None, .. }) =
        &graph.node(graph.value(v).producer().0).op
    else {
        return None;
    };
    (graph.constant(v)?.elems() == Some(1)).then_some(())?;
    let bytes: [u8; 4] = source.bytes().ok()?.get(..4)?.try_into().ok()?;
    Some(Lane::constant(f64::from(f32::from_le_bytes(bytes))))
}

fn format(dtype: DType) -> Option<LaneFormat> {
    Some(match dtype {
        DType::F16 => LaneFormat::F16,
        DType::BF16 => LaneFormat::BF16,
        DType::F32 => LaneFormat::F32,
        DType::F64 => LaneFormat::F64,
        DType::I8 => LaneFormat::integer(8, true),
        DType::U8 => LaneFormat::integer(8, false),
        DType::I32 => LaneFormat::integer(32, true),
        _ => return None,
    })
}
