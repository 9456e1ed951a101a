//! Element-wise ops whose operands meet in short spans.
//!
//! Where one operand has a number for each channel and channels lie innermost, runtimes compute row by row: a call for each pixel, over as
//! many elements as there are channels. In ONNX Runtime a Mul of an image of three channels takes 35 times as long so as channels first (1.31.1,
//! one thread of an AMD EPYC of family 25, 150,000 elements). Exports of Keras scale images before they turn them.

use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, ValueId};
use relayout_target_api::OpQuery;

/// Elements of spans that are not short.
pub(crate) const SHORT: u64 = 16;

/// Ops that repeat an operand along the axes that it lacks.
pub(crate) const REPEATING: &[&str] = &["Add", "Div", "Max", "Min", "Mul", "PRelu", "Pow", "Sub"];

/// In how many short spans the operands of an op meet whose result is in an order of whole axes. `None` if they meet in longer ones.
pub(crate) fn short_spans(query: &OpQuery<'_>) -> Option<u64> {
    let (graph, node) = (query.graph, query.graph.node(query.node));
    let [Some(a), Some(b)] = node.inputs[..] else { return None };
    let y = node.result(0).filter(|_| node.onnx().is_some_and(|op| REPEATING.contains(&op)))?;
    let (shape, order) = (graph.value(y).ty.shape()?, query.outs.first()?.as_permutation()?);
    let alike = |axis: usize| [a, b].map(|v| is_whole(graph, v, axis, shape));
    let mut inner = order.into_iter().rev().filter(|&axis| !shape[axis].is_one());
    let first = inner.next()?;
    let (pattern, mut span) = (alike(first), extent(&shape[first])?);
    loop {
        match inner.next() {
            // All are alike: it is one span.
            None => return None,
            Some(axis) if alike(axis) != pattern => break,
            Some(axis) => span = span.saturating_mul(extent(&shape[axis])?),
        }
    }
    let elements = shape.iter().fold(1, |all: u64, d| all.saturating_mul(extent(d).unwrap_or(1)));
    // Where extents are open, the operand's bytes at the sizes that are priced say more.
    let width = graph.value(a).ty.dtype().and_then(|dtype| dtype.bytes(1)).unwrap_or(1).max(1);
    (span < SHORT).then(|| elements.max(query.bytes / width) / span)
}

/// A known extent.
fn extent(dim: &Dim) -> Option<u64> {
    dim.as_const().and_then(|d| u64::try_from(d).ok())
}

/// Whether an operand has all of an axis of the result, and is not repeated along it.
fn is_whole(graph: &Graph, v: ValueId, axis: usize, result: &[Dim]) -> bool {
    let Some(shape) = graph.value(v).ty.shape() else { return true };
    let own = (axis + shape.len()).checked_sub(result.len()).and_then(|own| shape.get(own));
    own.is_some_and(|d| !d.is_one())
}
