//! A normalization over groups of channels is one op while layouts are decided, however the file says it.
//!
//! | in the file | groups |
//! |---|---|
//! | `Reshape([N, C, H, W] -> [N, G, ...])`, `InstanceNormalization`, `Reshape(-> [N, C, H, W])` | G |
//! | `GroupNormalization` | `num_groups` |
//! | `InstanceNormalization` of `[N, C, H, W]` | C |
//!
//! A Reshape keeps elements in their order, so with N and G first a row of the three-dimensional value is what C / G neighbouring
//! channels of an image have: the shapes alone say what the pattern is. What scales it afterwards stays a node of its own.
//!
//! The forms of the op round otherwise, so nothing is raised with `--numerics exact` or before a quantization.

use relayout_eval::floats;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::op::read::epsilon;
use relayout_ir::raised::GroupNorm;
use relayout_target::Raise;

/// A normalization of a graph: the node that leaves the result, the others that it takes, and its operands.
struct Found {
    before: Vec<NodeId>,
    norm: GroupNorm,
    operands: [ValueId; 3],
}

/// The normalization that ends with a node, if its channels fill blocks of this many.
pub(super) fn raise(graph: &Graph, n: NodeId, block: u64) -> Option<Raise> {
    let Found { before, norm, operands } = find(graph, n)?;
    let whole = channels(graph, operands[0]) % block as i64 == 0;
    whole.then(|| Raise { before, op: GroupNorm::op(), attrs: norm.attrs(), operands: operands.to_vec() })
}

/// The normalization of the three nodes that exporters write, whose last one this is.
pub(crate) fn raise_exported(graph: &Graph, n: NodeId) -> Option<Raise> {
    let reshapes = graph.node(n).onnx() == Some("Reshape");
    let Found { before, norm, operands } = if reshapes { exported(graph, n)? } else { return None };
    Some(Raise { before, op: GroupNorm::op(), attrs: norm.attrs(), operands: operands.to_vec() })
}

fn find(graph: &Graph, n: NodeId) -> Option<Found> {
    match graph.node(n).onnx()? {
        "Reshape" => exported(graph, n),
        "GroupNormalization" => single(graph, n, graph.node(n).int("num_groups")?),
        "InstanceNormalization" => {
            let channels = channels(graph, graph.node(n).operand(0)?);
            single(graph, n, channels)
        }
        _ => None,
    }
}

/// The three nodes that exporters write, from the last one.
fn exported(graph: &Graph, n: NodeId) -> Option<Found> {
    let (middle, inner) = viewed(graph, n)?;
    let rows = graph.node(inner).operand(0)?;
    let first = graph.value(rows).producer().0;
    let (x, _) = viewed(graph, first)?;
    let y = graph.node(n).outputs.first().copied().flatten()?;
    let shape = |v: ValueId| graph.value(v).ty.shape();
    let (image, apart) = (shape(x)?, shape(rows)?);
    let only = is_only_read_by(graph, rows, inner) && is_only_read_by(graph, middle, n);
    if !only || graph.node(inner).onnx() != Some("InstanceNormalization") || shape(y)? != image {
        return None;
    }
    let groups = apart.get(1).filter(|_| apart.len() >= 3 && apart.first() == image.first())?.as_const()?;
    let operands = [x, graph.node(inner).operand(1)?, graph.node(inner).operand(2)?];
    let norm = describe(graph, graph.node(inner), groups, operands)?;
    Some(Found { before: vec![first, inner], norm, operands })
}

/// A node that is the op by itself.
fn single(graph: &Graph, n: NodeId, groups: i64) -> Option<Found> {
    let operands = [graph.node(n).operand(0)?, graph.node(n).operand(1)?, graph.node(n).operand(2)?];
    let norm = describe(graph, graph.node(n), groups, operands)?;
    Some(Found { before: Vec::new(), norm, operands })
}

/// What a normalization says, if it is one that can be raised.
fn describe(graph: &Graph, node: &Node, groups: i64, operands: [ValueId; 3]) -> Option<GroupNorm> {
    let [x, scale, bias] = operands;
    let channels = channels(graph, x);
    let float = |v: ValueId| graph.value(v).ty.dtype() == Some(DType::F32);
    // Before operator set 7 the ops that it is written with have no kernels in the runtime; and others sum in another type.
    let known = node.opset >= 7 && node.int("stash_type").unwrap_or(1) == 1;
    let numbers = |v: ValueId| floats(graph.constant(v).filter(|c| c.pending.is_none())?);
    let entries = numbers(scale)?.len() as i64;
    let alike = numbers(bias)?.len() as i64 == entries && (entries == groups || entries == channels);
    let divides = groups > 0 && channels > 0 && channels % groups == 0;
    let epsilon = epsilon(node)?;
    (known && alike && divides && operands.into_iter().all(float)).then(|| GroupNorm {
        groups,
        epsilon,
        by_body: node.onnx() == Some("GroupNormalization"),
    })
}

/// Channels of an image; 0 if it is none, or they are not known.
fn channels(graph: &Graph, x: ValueId) -> i64 {
    match graph.value(x).ty.shape() {
        Some([_, channels, _, _]) => channels.as_const().unwrap_or(0),
        _ => 0,
    }
}

/// The operand of a Reshape and what made it.
fn viewed(graph: &Graph, n: NodeId) -> Option<(ValueId, NodeId)> {
    let node = graph.node(n);
    let x = graph.node(n).operand(0)?;
    let reshapes = node.onnx() == Some("Reshape") && matches!(node.form, Form::View(View::Reshape));
    reshapes.then(|| (x, graph.value(x).producer().0))
}

fn is_only_read_by(graph: &Graph, v: ValueId, n: NodeId) -> bool {
    graph.only_use(v).is_some_and(|only| only.node == n)
}
