//! What ONNX Runtime does with convolutions when it loads a file: it computes weights that depend on constants only, and blocks
//! those convolutions whose weights it knows then, one by one.

use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, Node, Op, ValueId};
use relayout_ir::op::read::Groups;
use std::collections::BTreeSet;

/// Whether ONNX Runtime would block a convolution of images with weights that it knows: one of float32 whose channels its reorders and
/// packings take.
pub(super) fn takes(graph: &Graph, node: &Node, block: u64) -> bool {
    let Some(w) = node.operand(1) else { return false };
    let float = graph.value(w).ty.dtype() == Some(DType::F32);
    let weights = graph.value(w).ty.const_shape().filter(|dims| float && dims.len() == 4);
    let Some(groups) = weights.and_then(|dims| Groups::read(node, &dims)) else { return false };
    let Groups { group, outer: filters, inner: depth } = groups;
    let block = block as i64;
    if group > 1 {
        let whole = depth % block == 0 && filters % group == 0 && (filters / group) % block == 0;
        filters % 4 == 0 && (groups.is_depthwise() || whole)
    } else {
        depth < block || depth % 4 == 0
    }
}

/// Whether ONNX Runtime may know a value when it loads the file: a constant, what it computes from constants then, and what a body
/// reads from outside, where that may be a constant. Its constant folding leaves reorders alone, and `DequantizeLinear`, which it
/// looks for in quantized units.
pub(super) fn knows(graph: &Graph, v: ValueId) -> bool {
    knows_all(graph, vec![v], usize::MAX, true)
}

/// Whether ONNX Runtime computes a node when it loads the file, so that it costs nothing when the model runs, and whatever takes that
/// from it costs something. What needs more than [`FEW`] values, or one from outside
/// of a body, is not taken for such.
pub(super) fn computes(graph: &Graph, node: &Node) -> bool {
    let is_plain = matches!(&node.op, Op::Onnx(op) if op.domain.is_empty()) && node.bodies().next().is_none();
    let operands = || node.inputs.iter().flatten().copied();
    is_plain
        && node.captures.is_empty()
        && operands().next().is_some()
        && knows_all(graph, operands().collect(), FEW, false)
}

/// Values that are looked at before something is taken for one that no constants make.
const FEW: usize = 64;

fn knows_all(graph: &Graph, mut left: Vec<ValueId>, most: usize, outside: bool) -> bool {
    let mut seen = BTreeSet::new();
    while let Some(v) = left.pop() {
        if !seen.insert(v) || graph.constant(v).is_some() {
            continue;
        }
        if seen.len() > most {
            return false;
        }
        let node = graph.node(graph.value(v).producer().0);
        let operands = node.inputs.iter().copied().flatten();
        match &node.op {
            Op::Outer if outside => {}
            Op::Onnx(_) if matches!(node.onnx(), Some("Shape" | "Size")) => {}
            Op::Relayout => left.extend(operands),
            Op::Onnx(_) if node.onnx() == Some("DequantizeLinear") => return false,
            Op::Onnx(op) if op.domain.is_empty() && !node.inputs.is_empty() && node.captures.is_empty() => {
                left.extend(operands);
            }
            _ => return false,
        }
    }
    true
}

/// Whether weights stand in the file, moved at most, or outside of a body: what an op has to compute first is nothing that was decided
/// about.
pub(super) fn stand(graph: &Graph, mut v: ValueId) -> bool {
    loop {
        let node = graph.node(graph.value(v).producer().0);
        v = match (&node.op, &node.form, node.operand(0)) {
            (Op::Constant(_) | Op::Outer, ..) => return true,
            (Op::Relayout, _, Some(x)) | (Op::Onnx(_), Form::View(_), Some(x)) => x,
            _ => return false,
        }
    }
}
