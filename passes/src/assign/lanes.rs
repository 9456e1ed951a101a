//! What pad slots may hold, value by value: whether a value may be stored with padding at all.
//!
//! A value is padded either because a reorder or a packed weight put zeros there, or because its producer ran on padded
//! operands; the lane is the join of both. What may become infinite or NaN must not be padded: a zero column of weights times an
//! infinity poisons a whole convolution.
//!
//! Only channels are padded: axis 1 of a value, axis 0 of one that has no other. A value of lower rank has its axes at the end of
//! the result's, as broadcasting has it.

use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, NodeId, Op, ValueId};
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
    let name = node.onnx()?;
    let y = node.outputs.first().copied().flatten()?;
    let Some(format) = graph.value(y).ty.dtype().and_then(format) else { return Some(Lane::Any) };
    let operand = |slot: usize| -> Option<Lane> {
        let v = node.inputs.get(slot).copied().flatten()?;
        let own = same_extents(graph, v, y) || same_channels(graph, v, y);
        Some(if own { lanes[v.index()] } else { scalar(graph, v).unwrap_or(Lane::Any) })
    };
    let data = || node.inputs.first().copied().flatten().map_or(Lane::Any, |x| lanes[x.index()]);
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
        // Elements of the operand, of other channels or none.
        "Slice" | "Split" | "Expand" | "Tile" | "ReduceMean" | "ReduceMax" | "ReduceMin" => return Some(data()),
        "Concat" => {
            let all = (0..node.inputs.len()).map(|slot| node.inputs[slot].map_or(Lane::Any, |v| lanes[v.index()]));
            return Some(all.fold(Lane::ZERO, Lane::join));
        }
        "Pad" => {
            let filled = match node.inputs.get(2).copied().flatten() {
                Some(v) => scalar(graph, v).unwrap_or(Lane::Any),
                None => Lane::constant(number("value", 0.0)),
            };
            return Some(data().join(filled));
        }
        "Cast" if graph.value(y).ty.dtype().is_some_and(DType::is_float) => {
            return Some(match data() {
                lane if lane.is_zero() => lane,
                lane => lane.unary(UnaryFn::Identity, format),
            });
        }
        // Scales of pad channels are zero, and so are the shifts.
        "BatchNormalization" | "InstanceNormalization" => {
            return Some(if data().is_finite() { Lane::ZERO } else { Lane::Any });
        }
        "GridSample" | "ReduceSum" => return Some(if data().is_zero() { Lane::ZERO } else { Lane::Any }),
        "QLinearConv" | "QuantizeLinear" => return Some(Lane::interval(format.min, format.max)),
        "DequantizeLinear" => return Some(dequantized(graph, node, data())),
        "Add" | "Sub" | "Mul" | "Div" | "Min" | "Max" | "Pow" | "Sum" => return Some(folded(name, node.inputs.len(), &operand, format)),
        "Conv" | "ConvTranspose" | "ConvInteger" => return None,
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

/// Whether an operand that is broadcast has the channels of the result, so that its pad slots meet theirs.
fn same_channels(graph: &Graph, v: ValueId, y: ValueId) -> bool {
    let (Some(own), Some(all)) = (graph.value(v).ty.shape(), graph.value(y).ty.shape()) else { return false };
    let channels = usize::from(all.len() > 1);
    let axis = own.len().checked_add(channels).and_then(|n| n.checked_sub(all.len()));
    let extent = axis.and_then(|axis| own.get(axis));
    extent.is_some_and(|d| !d.is_one() && all.get(channels) == Some(d))
}

/// What integers between these are as floats. Scales of pad channels are zero.
fn dequantized(graph: &Graph, node: &Node, data: Lane) -> Lane {
    let scale = node.inputs.get(1).copied().flatten().and_then(|v| largest(graph, v));
    match (data.bounds(), scale) {
        (Some((lo, hi)), Some(scale)) => {
            // A zero point is a number of the same type: it at most doubles the largest.
            let reach = (hi.abs().max(lo.abs()) + 256.0) * 2.0 * scale;
            Lane::interval(-reach, reach)
        }
        _ => Lane::Any,
    }
}

/// The largest magnitude in a float32 constant.
fn largest(graph: &Graph, v: ValueId) -> Option<f64> {
    let constant = graph.constant(v).filter(|c| c.dtype == DType::F32 && c.source.is_available())?;
    let bytes = constant.source.bytes().ok()?;
    let (numbers, _) = bytes.as_chunks::<4>();
    let numbers = numbers.iter().map(|b| f64::from(f32::from_le_bytes(*b)).abs());
    let largest = numbers.fold(0.0, |a: f64, b| if b.is_nan() || a.is_nan() { f64::NAN } else { a.max(b) });
    largest.is_finite().then_some(largest)
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
        DType::I4 => LaneFormat::integer(4, true),
        DType::U4 => LaneFormat::integer(4, false),
        _ => return None,
    })
}
