//! What pad slots may hold, value by value: whether a value may be stored with padding at all.
//!
//! A value is padded either because a reorder or a packed weight put zeros there, or because its producer ran on padded
//! operands; the lane is the join of both. What may become infinite or NaN must not be padded: a zero column of weights times an
//! infinity poisons a whole convolution.
//!
//! Kernels pad channels, axis 1 of what they leave. From there the padded axis is followed through ops and Transposes; of pad slots
//! along any other axis nothing is known. What no op made has zeros along every axis.

use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, Slot, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout_ir::layout::pad::{BinaryFn, Lane, LaneFormat, UnaryFn};
use relayout_ir::op::read::number;
use relayout_ir::perm::place;
use relayout_ir::storage::StorageRule;

/// The axis along which a value may have pad slots of the lane that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Along {
    /// Any: only moves have padded it.
    #[default]
    Every,
    One(usize),
    /// None: padded operands met that are padded otherwise.
    None,
}

/// What pad slots hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes {
    held: Vec<Lane>,
    along: Vec<Along>,
    rule: StorageRule,
}

impl Lanes {
    /// The lane of each value of a graph.
    pub(super) fn of(graph: &Graph) -> Lanes {
        let bound = graph.value_bound();
        let mut own = Lanes { held: vec![Lane::ZERO; bound], along: vec![Along::Every; bound], rule: graph.storage };
        for n in graph.order().unwrap_or_default() {
            let along = along(graph, n, &own);
            let lane = image(graph, n, along, &own);
            for &y in graph.node(n).outputs.iter().flatten() {
                own.along[y.index()] = along;
                own.held[y.index()] = lane.map_or(Lane::ZERO, |lane| lane.join(Lane::ZERO));
            }
        }
        own
    }

    /// Whether pad slots along this axis, and no other, hold nothing infinite.
    pub(super) fn is_finite(&self, v: ValueId, axis: usize) -> bool {
        let along = self.along.get(v.index()).copied().unwrap_or(Along::None);
        let known = matches!(along, Along::Every) || along == Along::One(axis);
        // Declared per axis, all pad slots are in images, of their channels.
        (known || self.rule == StorageRule::PerAxis) && self.lane(v).is_finite()
    }

    fn lane(&self, v: ValueId) -> Lane {
        self.held.get(v.index()).copied().unwrap_or(Lane::Any)
    }
}

/// Along which axis a node leaves pad slots, if its operands have such.
fn along(graph: &Graph, n: NodeId, known: &Lanes) -> Along {
    let node = graph.node(n);
    if !matches!(node.op, Op::Onnx(_)) {
        return Along::Every;
    }
    let of = |slot: usize| {
        let v = node.operand(slot);
        v.and_then(|v| known.along.get(v.index()).copied()).unwrap_or_default()
    };
    match (node.onnx(), &node.form) {
        (Some(op), _) if op.contains("Conv") => Along::One(1),
        (_, Form::View(View::Same)) => of(0),
        (_, Form::View(View::Transpose(perm))) => match of(0) {
            Along::One(axis) => place(perm, axis).map_or(Along::None, Along::One),
            along => along,
        },
        (_, Form::View(View::Reshape)) => Along::None,
        (_, Form::Axes(bound)) => {
            let result = bound.axes(Slot::Out(0)).unwrap_or_default();
            let padded = |slot: usize| match of(slot) {
                Along::One(axis) => {
                    let atom = bound.axes(Slot::In(slot)).and_then(|axes| axes.get(axis));
                    atom.and_then(|atom| result.iter().position(|a| a == atom)).map_or(Along::None, Along::One)
                }
                along => along,
            };
            let axes = (0..node.inputs.len()).filter(|&slot| bound.axes(Slot::In(slot)).is_some()).map(padded);
            axes.fold(Along::Every, |all, one| match (all, one) {
                (Along::Every, other) | (other, Along::Every) => other,
                (a, b) if a == b => a,
                _ => Along::None,
            })
        }
        // Never run on padded operands.
        _ => Along::Every,
    }
}

/// What a node makes of the pad slots of its operands, where it leaves them along this axis; `None` where it never runs on
/// padded ones.
fn image(graph: &Graph, n: NodeId, along: Along, known: &Lanes) -> Option<Lane> {
    let node = graph.node(n);
    let name = node.onnx()?;
    let y = node.result(0)?;
    let Some(format) = graph.value(y).ty.dtype().and_then(format) else { return Some(Lane::Any) };
    let operand = |slot: usize| -> Option<Lane> {
        let v = node.operand(slot)?;
        let own = same_extents(graph, v, y) || same_along(graph, v, y, along);
        Some(if own { known.lane(v) } else { scalar(graph, v).unwrap_or(Lane::Any) })
    };
    let data = || node.operand(0).map_or(Lane::Any, |x| known.lane(x));
    if matches!(node.form, Form::View(_)) {
        return Some(data());
    }
    if let Some(f) = unary(graph, node, name, format) {
        return Some(operand(0)?.unary(f, format));
    }
    Some(match name {
        // Between the pad slots and the zeros beside the image; elements of the operand, of other channels or none.
        "MaxPool" | "AveragePool" | "GlobalAveragePool" | "GlobalMaxPool" | "Resize" | "Upsample" | "Slice"
        | "Split" | "Expand" | "Tile" | "ReduceMean" | "ReduceMax" | "ReduceMin" => data(),
        "Concat" => {
            let all = (0..node.inputs.len()).map(|slot| node.inputs[slot].map_or(Lane::Any, |v| known.lane(v)));
            all.fold(Lane::ZERO, Lane::join)
        }
        "Pad" => {
            let filled = match node.operand(2) {
                Some(v) => scalar(graph, v).unwrap_or(Lane::Any),
                None => Lane::constant(parameter(node, "value", 0.0)),
            };
            data().join(filled)
        }
        "Cast" if graph.value(y).ty.dtype().is_some_and(DType::is_float) => {
            let lane = data();
            if lane.is_zero() { lane } else { lane.unary(UnaryFn::Identity, format) }
        }
        // Scales of pad channels are zero, and so are the shifts.
        "BatchNormalization" | "InstanceNormalization" => {
            if data().is_finite() {
                Lane::ZERO
            } else {
                Lane::Any
            }
        }
        "GridSample" | "ReduceSum" => {
            if data().is_zero() {
                Lane::ZERO
            } else {
                Lane::Any
            }
        }
        "QLinearConv" | "QuantizeLinear" => Lane::interval(format.min, format.max),
        "DequantizeLinear" => dequantized(graph, node, data()),
        "Add" | "Sub" | "Mul" | "Div" | "Min" | "Max" | "Pow" | "Sum" => {
            folded(name, node.inputs.len(), &operand, format)
        }
        "Conv" | "ConvTranspose" | "ConvInteger" => return None,
        _ => Lane::Any,
    })
}

/// Functions of one operand that have no parameters.
static UNARY: &[(&str, UnaryFn)] = &[
    ("Relu", UnaryFn::Relu),
    ("Abs", UnaryFn::Abs),
    ("Neg", UnaryFn::Neg),
    ("Sqrt", UnaryFn::Sqrt),
    ("Reciprocal", UnaryFn::Reciprocal),
    ("Exp", UnaryFn::Exp),
    ("Log", UnaryFn::Log),
    ("Sigmoid", UnaryFn::Sigmoid),
    ("Tanh", UnaryFn::Tanh),
    ("Erf", UnaryFn::Erf),
    ("Softsign", UnaryFn::Softsign),
    ("Softplus", UnaryFn::Softplus),
    ("Gelu", UnaryFn::Gelu),
    ("HardSwish", UnaryFn::HardSwish),
    ("Mish", UnaryFn::Mish),
    ("Sin", UnaryFn::Sin),
    ("Cos", UnaryFn::Cos),
    ("Floor", UnaryFn::Floor),
    ("Ceil", UnaryFn::Ceil),
    ("Round", UnaryFn::Round),
    ("Sign", UnaryFn::Sign),
    ("Identity", UnaryFn::Identity),
    ("Dropout", UnaryFn::Identity),
];

/// The function of its first operand that a node is, bounds of a Clip being known.
fn unary(graph: &Graph, node: &Node, name: &str, format: LaneFormat) -> Option<UnaryFn> {
    Some(match name {
        "LeakyRelu" => UnaryFn::LeakyRelu(parameter(node, "alpha", 0.01)),
        "Elu" => UnaryFn::Elu(parameter(node, "alpha", 1.0)),
        "HardSigmoid" => UnaryFn::HardSigmoid(parameter(node, "alpha", 0.2), parameter(node, "beta", 0.5)),
        "Clip" => {
            let bound = |slot: usize, attr: &str, default: f64| match node.operand(slot) {
                Some(v) => scalar(graph, v).and_then(|lane| lane.as_const()),
                None => Some(parameter(node, attr, default)),
            };
            UnaryFn::Clip(bound(1, "min", format.min)?, bound(2, "max", format.max)?)
        }
        _ => UNARY.iter().find(|(op, _)| *op == name)?.1,
    })
}

/// The number in an attribute.
fn parameter(node: &Node, name: &str, default: f64) -> f64 {
    node.float(name).map_or(default, f64::from)
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

/// Whether an operand that is broadcast, its axes at the end of the result's, has the padded axis too.
fn same_along(graph: &Graph, v: ValueId, y: ValueId, along: Along) -> bool {
    let (Some(own), Some(all), Along::One(padded)) = (graph.value(v).ty.shape(), graph.value(y).ty.shape(), along)
    else {
        return false;
    };
    let axis = (own.len() + padded).checked_sub(all.len());
    let extent = axis.and_then(|axis| own.get(axis));
    extent.is_some_and(|d| !d.is_one() && all.get(padded) == Some(d))
}

/// What integers between these are as floats. Scales of pad channels are zero.
fn dequantized(graph: &Graph, node: &Node, data: Lane) -> Lane {
    let scale = node.operand(1).and_then(|v| largest(graph, v));
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
    graph.constant(v).filter(|c| c.dtype == DType::F32)?;
    number(graph, v).map(Lane::constant)
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
