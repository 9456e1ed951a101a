//! Weights that are stored in 8 bits or fewer and made wider by a node.
//!
//! A node that makes them wider could be evaluated, and what follows it, a scale or a normalization, with it. But the file would then hold
//! the wide numbers: up to eight times as many bytes, for nodes that a runtime evaluates when it loads the file.

use super::fold_constants::{SMALL, is_in_quantized_unit};
use relayout_ir::constant::Constant;
use relayout_ir::graph::{Graph, Node, Op};

/// By how many percent such weights may make the constants of a graph larger.
const GROWTH: u64 = 3;

/// What they may add whatever they come from, in bytes.
const FEW: u64 = 16 << 10;

/// Where fewer bytes are at stake it does not matter what a node reads.
const LEAST: u64 = 1 << 10;

/// Whether a node makes weights wider that are stored in 8 bits or fewer, and more than a few.
pub(super) fn widens(graph: &Graph, node: &Node) -> bool {
    growth(graph, node).is_some()
}

/// By how many bytes the result of such a node is larger than its weights. Those that a runtime fuses with what reads them are others'.
fn growth(graph: &Graph, node: &Node) -> Option<u64> {
    let weights = node.operand(0).and_then(|x| graph.constant(x))?;
    let narrow = weights.dtype.bits().is_some_and(|bits| bits <= 8);
    if !narrow || !matches!(node.onnx(), Some("Cast" | "CastLike" | "DequantizeLinear")) {
        return None;
    }
    let y = node.result(0)?;
    if node.onnx() == Some("DequantizeLinear") && is_in_quantized_unit(graph, y) {
        return None;
    }
    let wide = graph.value(y).ty.dtype().filter(|dtype| dtype.is_float())?;
    let wide = Constant::missing(wide, weights.dims.clone(), String::new()).size_bytes()?;
    wide.checked_sub(weights.size_bytes()?).filter(|&growth| growth >= LEAST)
}

/// Whether the constants of a graph would grow by too much if the small ones among such weights were stored as what they are made.
pub(super) fn stay_narrow(graph: &Graph) -> bool {
    let (mut stored, mut more) = (0u64, 0u64);
    for node in graph.nodes().map(|n| graph.node(n)) {
        if let Op::Constant(c) = &node.op {
            stored = stored.saturating_add(c.size_bytes().unwrap_or(0));
        } else if let Some(growth) = growth(graph, node).filter(|&growth| growth <= SMALL) {
            more = more.saturating_add(growth);
        }
    }
    more > FEW && more.saturating_mul(100) > stored.saturating_mul(GROWTH)
}
