//! What quantized integers stand for.

use super::number::number;
use crate::dtype::DType;
use crate::graph::{Graph, Node, Use, ValueId};

/// Scales for which no product with a difference of integers is denormal or infinite.
const SCALES: std::ops::Range<f64> = 1e-30..1e30;

/// What the integers of a `QuantizeLinear` or a `DequantizeLinear` stand for, all in the same units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Units {
    /// The distance between two integers.
    pub scale: f64,
    /// The integer that stands for zero.
    pub zero: i64,
    /// The type of the integers.
    pub dtype: DType,
}

/// The units of a `QuantizeLinear` or a `DequantizeLinear`, where what was made from such integers becomes these integers again: one
/// scale and one zero point, both known; 32-bit floats, and integers of 8 or 16 bits.
///
/// A difference of such integers is exact in 32-bit floats, and a product and a quotient by the same number are off by less than a
/// hundredth of a step, which rounding takes away.
pub fn units(graph: &Graph, node: &Node) -> Option<Units> {
    let (floats, integers) = match node.onnx()? {
        "QuantizeLinear" => (node.operand(0)?, node.result(0)?),
        "DequantizeLinear" => (node.result(0)?, node.operand(0)?),
        _ => return None,
    };
    let dtype = graph.value(integers).ty.dtype()?;
    let by = node.operand(1)?;
    let scale = number(graph, by).filter(|scale| SCALES.contains(scale))?;
    let zero = match node.operand(2) {
        Some(v) => *graph.constant(v)?.to_ints(1)?.first()?,
        None => 0,
    };
    let few = matches!(dtype, DType::U8 | DType::I8 | DType::U16 | DType::I16);
    let single = [floats, by].iter().all(|&v| graph.value(v).ty.dtype() == Some(DType::F32));
    (few && single && !node.flag("block_size")).then_some(Units { scale, zero, dtype })
}

/// Whether a value is signed bytes that a `QuantizeLinear` makes and that nobody reads but `DequantizeLinear`: ONNX Runtime makes them unsigned
/// where both are neighbours, and runs the convolution before a pair that is parted on floats
/// (`findings/transpose_between_the_halves_of_a_pair.sh`).
pub fn between_units(graph: &Graph, v: ValueId) -> bool {
    let value = graph.value(v);
    let is = |n, op| graph.node(n).onnx() == Some(op);
    let read = |u: &Use| u.slot == 0 && is(u.node, "DequantizeLinear");
    value.ty.dtype() == Some(DType::I8)
        && is(value.producer().0, "QuantizeLinear")
        && !graph.is_read_by_name(v)
        && graph.uses(v).iter().all(read)
}
