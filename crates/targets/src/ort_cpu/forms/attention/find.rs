//! Attention as exporters write it: `Softmax(s * MatMul(Q, K))` of the last axis, and the product of that with the values.
//!
//! Queries, keys and values are `[batch, heads, positions, units]`, or without an axis of heads. Where heads have been merged into
//! the batch, `[batch * heads, positions, units]` by Reshapes on all sides, what stands before these is taken. A sum of the scores
//! with zeros, which exporters write for a bias that is not there, goes too, and so does a Cast to the type that is there.

use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout_ir::op::{normalize_axis, read};

/// The operator set from which on Softmax normalizes one axis, the last unless told otherwise.
const SOFTMAX_OF_ONE_AXIS: i64 = 13;

/// An attention of a graph.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// The node that leaves the result.
    pub(super) last: NodeId,
    /// Nodes that go.
    pub(super) nodes: usize,
    /// Queries, keys and values.
    pub(super) operands: [ValueId; 3],
    /// Keys are `[.., positions, units]`, else `[.., units, positions]`.
    pub(super) keys_by_rows: bool,
    /// What the products of queries and keys are multiplied with.
    pub(super) scale: f32,
    /// Sums of the scores with zeros.
    pub(super) sums: usize,
    /// Heads of the operands; `None` where they have no axis for them.
    pub(super) heads: Option<i64>,
}

/// Extents of an attention whose heads stand before its positions, if they have an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extents {
    pub(super) batch: Vec<Dim>,
    pub(super) queries: Dim,
    pub(super) keys: Dim,
    pub(super) width: i64,
    pub(super) value_width: i64,
}

/// The attention whose Softmax is this node.
pub(super) fn find(graph: &Graph, softmax: NodeId) -> Option<Found> {
    if !normalizes_last(graph, graph.node(softmax)) {
        return None;
    }
    let (mut shares, mut casts) = (graph.node(softmax).only_result()?, 0);
    let reader = loop {
        let reader = graph.only_use(shares).filter(|u| u.slot == 0)?.node;
        let Some(y) = cast(graph, reader) else { break reader };
        (shares, casts) = (y, casts + 1);
    };
    let [_, values] = product(graph, reader)?;
    let scaled = scaled(graph, graph.node(softmax).operand(0)?)?;
    let [queries, keys] = product(graph, scaled.product)?;
    let operands = [queries, keys, values];
    let usable = |v: ValueId| graph.constant(v).is_none() && is_float(graph, v) && !is_dequantized(graph, v);
    if !operands.into_iter().all(usable) {
        return None;
    }
    let nodes = 3 + casts + scaled.between;
    let Scaled { scale, sums, .. } = scaled;
    let own = Found { last: reader, nodes, operands, keys_by_rows: false, scale, sums, heads: None };
    let extents = extents(graph, &own)?;
    match &extents.batch[..] {
        [_, heads] => Some(Found { heads: Some(heads.as_const()?), ..own }),
        [_] => Some(apart(graph, &own).unwrap_or(own)),
        _ => None,
    }
}

/// The extents of an attention, if they are those of one without broadcasting, and none is known to be empty.
pub(super) fn extents(graph: &Graph, found: &Found) -> Option<Extents> {
    let [q, k, v] = found.operands.map(|v| graph.value(v).ty.shape());
    let (q, k, v) = (q?.split_last_chunk::<2>()?, k?.split_last_chunk::<2>()?, v?.split_last_chunk::<2>()?);
    let ((batch, [queries, width]), (of_keys, keys), (of_values, [rows, value_width])) = (q, k, v);
    let [keys, units] = if found.keys_by_rows { keys.each_ref() } else { [&keys[1], &keys[0]] };
    if of_keys != batch || of_values != batch || rows != keys || units != width {
        return None;
    }
    let (width, value_width) = (width.as_const()?, value_width.as_const()?);
    let dims = batch.iter().chain([queries, keys]);
    let some = |d: &Dim| d.as_const().is_none_or(|n| n > 0);
    (width > 0 && value_width > 0 && dims.into_iter().all(some)).then(|| Extents {
        batch: batch.to_vec(),
        queries: queries.clone(),
        keys: keys.clone(),
        width,
        value_width,
    })
}

/// The same attention before heads were merged into the batch and behind where they are split again.
fn apart(graph: &Graph, own: &Found) -> Option<Found> {
    let [queries, keys, values] = own.operands;
    let last = graph.only_use(graph.node(own.last).only_result()?)?.node;
    let view = graph.node(last);
    let result = graph.node(last).only_result().filter(|_| matches!(view.form, Form::View(View::Reshape)))?;
    let (keys, keys_by_rows) = match before_turn(graph, keys) {
        Some(turned) => (merged(graph, turned)?, true),
        None => (merged(graph, keys)?, false),
    };
    let operands = [merged(graph, queries)?, keys, merged(graph, values)?];
    let found = Found { last, nodes: own.nodes, operands, keys_by_rows, ..own.clone() };
    let Extents { batch, queries, value_width, .. } = extents(graph, &found)?;
    let [_, heads] = &batch[..] else { return None };
    let heads = Some(heads.as_const()?);
    let expected: Vec<Dim> = batch.iter().cloned().chain([queries, Dim::from(value_width)]).collect();
    (graph.value(result).ty.shape()? == expected).then_some(Found { heads, ..found })
}

/// What a Reshape has made `v`, `[batch * heads, a, b]`, of: `[batch, heads, a, b]`.
fn merged(graph: &Graph, v: ValueId) -> Option<ValueId> {
    let node = graph.node(graph.value(v).producer().0);
    let x = node.operand(0).filter(|_| matches!(node.form, Form::View(View::Reshape)))?;
    let (from, to) = (graph.value(x).ty.shape()?, graph.value(v).ty.shape()?);
    let ([batch, heads, inner @ ..], [_, rest @ ..]) = (from, to) else { return None };
    (inner == rest && inner.len() == 2 && batch.checked_mul(heads)? == to[0]).then_some(x)
}

/// What a Transpose of the last two of three axes has made `v` of.
fn before_turn(graph: &Graph, v: ValueId) -> Option<ValueId> {
    let node = graph.node(graph.value(v).producer().0);
    let turns = matches!(&node.form, Form::View(View::Transpose(perm)) if perm[..] == [0, 2, 1]);
    node.operand(0).filter(|_| turns)
}

/// A product, what it is multiplied with, and the nodes behind it that say so or nothing.
struct Scaled {
    product: NodeId,
    scale: f32,
    sums: usize,
    between: usize,
}

/// The product that a value is, times one constant number after the other, plus zeros. Nobody else reads what is between.
fn scaled(graph: &Graph, mut v: ValueId) -> Option<Scaled> {
    let (mut scale, mut sums, mut between) = (1.0_f64, 0, 0);
    loop {
        graph.only_use(v)?;
        let (n, _) = graph.value(v).producer();
        let node = graph.node(n);
        let numbers = (node.operand(0), node.operand(1));
        v = match (node.onnx(), numbers) {
            (Some("MatMul"), _) => {
                let scale = scale as f32;
                // Of zero the op takes the default instead.
                return (scale.is_finite() && scale != 0.0).then_some(Scaled { product: n, scale, sums, between });
            }
            (Some("Mul"), (Some(x), Some(y))) => match (number(graph, y, x), number(graph, x, y)) {
                (Some(by), _) => {
                    scale *= by;
                    x
                }
                (None, by) => {
                    scale *= by?;
                    y
                }
            },
            (Some("Div"), (Some(x), Some(y))) => {
                scale /= number(graph, y, x)?;
                x
            }
            (Some("Add"), (Some(x), Some(y))) => {
                sums += 1;
                [(x, y), (y, x)].into_iter().find_map(|(x, zero)| is_zeros(graph, zero, x, v).then_some(x))?
            }
            (Some("Cast"), (Some(x), _)) => cast(graph, n).map(|_| x)?,
            _ => return None,
        };
        between += 1;
    }
}

/// The one number of a constant that does not raise the rank of what it meets.
fn number(graph: &Graph, v: ValueId, meets: ValueId) -> Option<f64> {
    let rank = |v: ValueId| graph.value(v).ty.rank();
    (rank(v)? <= rank(meets)?).then(|| read::number(graph, v))?
}

/// Whether a constant is zeros, and adding it to `x` gives a value of the same shape.
fn is_zeros(graph: &Graph, v: ValueId, x: ValueId, sum: ValueId) -> bool {
    let shape = |v: ValueId| graph.value(v).ty.shape();
    let zeros = graph.constant(v).is_some_and(|c| c.dtype == DType::F32 && c.is_zero());
    zeros && shape(x).is_some() && shape(x) == shape(sum)
}

/// The result of a Cast from float32 to float32.
fn cast(graph: &Graph, n: NodeId) -> Option<ValueId> {
    let node = graph.node(n);
    let same = |v: ValueId| graph.value(v).ty.dtype() == Some(DType::F32);
    let y = graph.node(n).only_result().filter(|_| node.onnx() == Some("Cast"))?;
    (same(node.operand(0)?) && same(y)).then_some(y)
}

/// Whether a Softmax normalizes the last axis alone.
fn normalizes_last(graph: &Graph, node: &Node) -> bool {
    let Some(rank) = node.operand(0).and_then(|v| graph.value(v).ty.rank()) else { return false };
    let default = if node.opset < SOFTMAX_OF_ONE_AXIS { 1 } else { -1 };
    let axis = normalize_axis(node.int("axis").unwrap_or(default), rank);
    // Before, it normalized that axis and all behind it together.
    node.onnx() == Some("Softmax") && axis.is_some_and(|axis| axis + 1 == rank)
}

/// The operands of a product of float32 matrices.
fn product(graph: &Graph, n: NodeId) -> Option<[ValueId; 2]> {
    let node = graph.node(n);
    let operands = [node.operand(0)?, node.operand(1)?];
    (node.onnx() == Some("MatMul") && matches!(node.form, Form::Axes(_))).then_some(operands)
}

fn is_float(graph: &Graph, v: ValueId) -> bool {
    graph.value(v).ty.dtype() == Some(DType::F32)
}

/// Whether a value is dequantized numbers, through views.
fn is_dequantized(graph: &Graph, mut v: ValueId) -> bool {
    loop {
        let node = graph.node(graph.value(v).producer().0);
        match (&node.op, &node.form, node.operand(0)) {
            (Op::Onnx(_), Form::View(_), Some(x)) => v = x,
            _ => return node.op.is_named("DequantizeLinear"),
        }
    }
}
