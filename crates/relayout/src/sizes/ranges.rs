//! What whole numbers among the inputs may be: indices into an axis, and lengths of one.

use super::equations::place;
use relayout_ir::dim::Dim;
use relayout_ir::graph::{Graph, Node, Op, ValueId};

/// Views and casts, and what takes or repeats entries: what comes out are numbers that went in.
const PASSES_ON: [&str; 12] = [
    "Identity",
    "Cast",
    "CastLike",
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Transpose",
    "Expand",
    "Tile",
    "Slice",
    "Split",
];

/// A use of an input as indices or lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) input: String,
    /// 0 for indices, 1 for lengths.
    pub(super) low: i64,
    /// Numbers are below this extent for indices, and at most this for lengths.
    pub(super) extent: Dim,
}

/// All such uses in a graph whose types are inferred, and in its bodies.
pub(super) fn reaches(graph: &Graph) -> Vec<Reach> {
    let mut found = Vec::new();
    of_graph(&Scope { graph, outer: None }, &mut found);
    found
}

/// A graph and those around it.
struct Scope<'g> {
    graph: &'g Graph,
    outer: Option<&'g Scope<'g>>,
}

fn of_graph(scope: &Scope<'_>, found: &mut Vec<Reach>) {
    let graph = scope.graph;
    for node in graph.nodes().map(|n| graph.node(n)) {
        for (slot, low, extent) in uses(graph, node) {
            if let Some(input) = node.operand(slot).and_then(|v| input_behind(scope, v)) {
                found.push(Reach { input, low, extent });
            }
        }
        node.bodies().for_each(|body| of_graph(&Scope { graph: body, outer: Some(scope) }, found));
    }
}

/// Operands of a node that are indices (from 0) or lengths (from 1), and the extents that bound them.
fn uses(graph: &Graph, node: &Node) -> Vec<(usize, i64, Dim)> {
    let Op::Onnx(op) = &node.op else { return Vec::new() };
    let shape = |slot: usize| graph.value(node.operand(slot)?).ty.shape();
    let extent = |slot: usize, axis: i64| shape(slot).and_then(|shape| shape.get(place(axis, shape.len())?)).cloned();
    let axis = |name: &str, otherwise: i64| node.int(name).unwrap_or(otherwise);
    let one =
        |slot: usize, low: i64, extent: Option<Dim>| extent.map(|extent| (slot, low, extent)).into_iter().collect();
    match (op.domain.as_str(), op.name.as_str()) {
        ("", "Gather" | "GatherElements" | "ScatterElements" | "Scatter") => one(1, 0, extent(0, axis("axis", 0))),
        ("com.microsoft", "GatherBlockQuantized") => one(1, 0, extent(0, axis("gather_axis", 0))),
        ("ai.onnx.ml", "ArrayFeatureExtractor") => one(1, 0, extent(0, -1)),
        ("", "GatherND" | "ScatterND") => {
            let first = axis("batch_dims", 0);
            let count = extent(1, -1).and_then(|dim| dim.as_const()).filter(|count| (0..=64).contains(count));
            let axes = (0..count.unwrap_or(0)).filter_map(|i| extent(0, first + i));
            axes.map(|extent| (1, 0, extent)).collect()
        }
        ("", "LSTM" | "GRU" | "RNN") => one(4, 1, extent(0, i64::from(node.flag("layout")))),
        ("", "ReverseSequence") => one(1, 1, extent(0, axis("time_axis", 0))),
        ("", "TopK") => one(1, 1, extent(0, axis("axis", -1))),
        ("com.microsoft", "EmbedLayerNormalization") => {
            [(0, 2), (1, 4)].into_iter().filter_map(|(ids, table)| Some((ids, 0, extent(table, 0)?))).collect()
        }
        _ => Vec::new(),
    }
}

/// The input of the model whose numbers a value consists of.
fn input_behind(scope: &Scope<'_>, v: ValueId) -> Option<String> {
    let graph = scope.graph;
    let node = graph.node(graph.value(v).producer().0);
    match &node.op {
        Op::Input { .. } if scope.outer.is_none() => Some(graph.value(v).name.clone()),
        Op::Outer => {
            let outer = scope.outer?;
            input_behind(outer, outer.graph.by_name(&graph.value(v).name)?)
        }
        Op::Onnx(_) if node.onnx().is_some_and(|name| PASSES_ON.contains(&name)) => {
            input_behind(scope, node.operand(0)?)
        }
        _ => None,
    }
}
