//! Quantized units: an op, the `DequantizeLinear` of what it reads, the `QuantizeLinear` of what it leaves.

use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, NodeId, Op, ValueId};

/// Ops of which ONNX Runtime's CPU provider makes one on bytes if all that they read and leave is of one type.
const ALIKE: &[&str] = &[
    "Add",
    "AveragePool",
    "Concat",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "Gemm",
    "GlobalAveragePool",
    "LeakyRelu",
    "MaxPool",
    "Mul",
    "ReduceMax",
    "ReduceMin",
    "Reshape",
    "Resize",
    "Sigmoid",
    "Slice",
    "Softmax",
    "Split",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
    "Where",
];
/// Those for which that type has to be unsigned.
const PRODUCTS: &[&str] = &["Conv", "MatMul"];

/// A quantized unit that ONNX Runtime may make one op of.
pub(super) struct Unit {
    /// The bytes that it reads and leaves, weights not counted.
    pub(super) values: Vec<ValueId>,
    /// Whether they have to be unsigned.
    multiplies: bool,
}

impl Unit {
    /// The unit around a node, if there is one.
    pub(super) fn recognize(graph: &Graph, n: NodeId) -> Option<Unit> {
        let node = graph.node(n);
        let op = node.onnx()?;
        let multiplies = PRODUCTS.contains(&op);
        if !multiplies && !ALIKE.contains(&op) {
            return None;
        }
        let read = match op {
            "Add" | "Mul" | "Concat" | "MatMul" => 0..node.inputs.len(),
            "Where" => 1..node.inputs.len(),
            _ => 0..1,
        };
        let mut values = Vec::new();
        for x in node.inputs.get(read)? {
            let bytes = dequantized(graph, (*x)?)?;
            if !multiplies || graph.constant(bytes).is_none() {
                values.push(bytes);
            }
        }
        for y in node.outputs.iter().flatten() {
            values.push(quantized(graph, *y)?);
        }
        Some(Unit { values, multiplies })
    }

    /// Whether the runtime makes one op of it if its bytes are of these types.
    pub(super) fn is_fused(&self, of: &dyn Fn(ValueId) -> Option<DType>) -> bool {
        let mut types = self.values.iter().map(|&v| of(v));
        let Some(Some(first)) = types.next() else { return false };
        let accepted = first == DType::U8 || (first == DType::I8 && !self.multiplies);
        accepted && types.all(|other| other == Some(first))
    }
}

/// Whether a node is this one of `QuantizeLinear` and `DequantizeLinear`, of either domain.
pub(super) fn is_linear(node: &Node, name: &str) -> bool {
    let Op::Onnx(op) = &node.op else { return false };
    op.name == name && matches!(op.domain.as_str(), "" | "com.microsoft")
}

/// The bytes that a value is dequantized from.
fn dequantized(graph: &Graph, x: ValueId) -> Option<ValueId> {
    let maker = graph.node(graph.value(x).producer().0);
    maker.operand(0).filter(|_| is_linear(maker, "DequantizeLinear"))
}

/// The bytes to which a value that nothing else reads is quantized, through an activation that the range of bytes may stand for.
fn quantized(graph: &Graph, y: ValueId) -> Option<ValueId> {
    let only = |y: ValueId| graph.only_use(y).filter(|u| u.slot == 0 && !graph.is_output(y));
    let result = |n: NodeId| graph.node(n).result(0);
    let mut reader = only(y)?.node;
    if matches!(graph.node(reader).onnx(), Some("Relu" | "Clip")) {
        reader = only(result(reader)?)?.node;
    }
    result(reader).filter(|_| is_linear(graph.node(reader), "QuantizeLinear"))
}
