//! What is reported of a graph, taken from what the passes know.

pub use crate::decide::PricedMove;
use crate::decide::{Standing, Way};
use crate::reasons::{why_made, why_wanted};
use relayout_ir::graph::{Graph, NodeId, Op};
use relayout_target_api::hints::Hints;
use relayout_target_api::moves::{Moved, moved};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Record of one graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GraphRecord {
    /// Where it is: empty for the main graph, the node that holds it and the attribute for a body.
    pub path: String,
    /// How often it is taken to run for each run of the model; bytes are multiplied by it.
    pub weight: u64,
    /// Transposes of the input, of constants included.
    pub before: Traffic,
    /// Moves that are left.
    pub moves: Vec<MoveRecord>,
    /// Constants that were stored in another layout or took in a view.
    pub folded: usize,
    /// Nodes that rewrites took away, or tensors that they wrote in another form, by the rewrite's name.
    pub rewrites: BTreeMap<String, usize>,
    /// Ops through which no layout passes.
    pub opaque: Vec<OpaqueRecord>,
}

/// Nodes that move, and what they write at the size hints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Traffic {
    /// Nodes.
    pub nodes: usize,
    /// Bytes written.
    pub bytes: u64,
}

/// One move that is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MoveRecord {
    /// The value that is moved.
    pub value: String,
    /// Its producer.
    pub producer: String,
    /// Layout that the producer leaves.
    pub from: String,
    /// Layout that is wanted.
    pub to: String,
    /// Bytes written for each run of the model at the size hints.
    pub bytes: u64,
    /// Readers of the moved value.
    pub readers: Vec<String>,
    /// Why the two sides differ.
    pub why: String,
    /// What it costs for each run of the model, where that was asked for and the move is one that was decided about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_ns: Option<u64>,
    /// What it would take for it to go, where that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<Way>,
}

/// An op through which no layout passes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpaqueRecord {
    /// The node.
    pub node: String,
    /// The reason.
    pub why: String,
}

impl Traffic {
    /// One node for each of these numbers of bytes.
    pub fn of(bytes: impl IntoIterator<Item = u64>) -> Traffic {
        let one = |bytes| Traffic { nodes: 1, bytes };
        bytes.into_iter().map(one).fold(Traffic::default(), Traffic::plus)
    }

    /// Both together; bytes beyond what 64 bits hold are 2^64 - 1.
    #[must_use]
    pub fn plus(self, other: Traffic) -> Traffic {
        Traffic { nodes: self.nodes + other.nodes, bytes: self.bytes.saturating_add(other.bytes) }
    }
}

impl GraphRecord {
    /// Moves that are left, summed.
    pub fn after(&self) -> Traffic {
        Traffic::of(self.moves.iter().map(|m| m.bytes))
    }
}

/// Transposes of a graph as it was read.
pub(crate) fn transposes(graph: &Graph, hints: &Hints, weight: u64) -> Traffic {
    let mut traffic = Traffic::default();
    for n in graph.nodes().filter(|&n| graph.node(n).onnx() == Some("Transpose")) {
        traffic.nodes += 1;
        let result = graph.node(n).result(0);
        traffic.bytes = traffic.bytes.saturating_add(result.map_or(0, |v| hints.bytes(graph, v)));
    }
    traffic.bytes = traffic.bytes.saturating_mul(weight);
    traffic
}

/// Nodes that are opaque, with their reasons.
pub(crate) fn opaque_nodes(graph: &Graph) -> Vec<OpaqueRecord> {
    let of = |n: NodeId| {
        let node = graph.node(n);
        let why = node.form.opaque_reason().filter(|_| matches!(node.op, Op::Onnx(_)))?;
        Some(OpaqueRecord { node: node.describe(graph), why: why.to_owned() })
    };
    graph.nodes().filter_map(of).collect()
}

/// Every move that is left in a graph, in its order.
pub fn describe_moves(graph: &Graph, hints: &Hints, weight: u64) -> Vec<(NodeId, MoveRecord)> {
    let of = |n| Some((n, describe_move(graph, hints, weight, n)?));
    graph.order().unwrap_or_default().into_iter().filter_map(of).collect()
}

/// A record of a move that no node of the graph stands for: of a value between two layouts.
pub fn describe_standing(graph: &Graph, m: &Standing) -> MoveRecord {
    let value = graph.value(m.value);
    let (maker, slot) = value.producer();
    MoveRecord {
        value: value.name.clone(),
        producer: graph.node(maker).describe(graph),
        from: m.from.to_string(),
        to: m.to.to_string(),
        bytes: m.bytes,
        readers: graph.uses(m.value).iter().map(|u| graph.node(u.node).describe(graph)).collect(),
        why: format!("{}; {}", why_made(graph, maker, slot), why_wanted(graph, m.value)),
        cost_ns: m.price_ns(),
        ways: Vec::new(),
    }
}

/// The same, with what was priced of the graph of a scope.
pub(crate) fn describe_priced_moves(
    graph: &Graph,
    hints: &Hints,
    weight: u64,
    scope: usize,
    priced: &[PricedMove],
) -> Vec<MoveRecord> {
    let with = |(n, mut record): (NodeId, MoveRecord)| {
        let node = graph.node(n);
        let value = if matches!(node.op, Op::Relayout) { node.inputs.first() } else { node.outputs.first() };
        let to = node.result(0).map(|y| &graph.value(y).layout);
        let is_it = |p: &&PricedMove| {
            p.standing.scope == scope && value == Some(&Some(p.standing.value)) && to == Some(&p.standing.to)
        };
        if let Some(p) = priced.iter().find(is_it) {
            record.cost_ns = p.standing.price_ns();
            record.ways.clone_from(&p.ways);
        }
        record
    };
    describe_moves(graph, hints, weight).into_iter().map(with).collect()
}

fn describe_move(graph: &Graph, hints: &Hints, weight: u64, n: NodeId) -> Option<MoveRecord> {
    let Moved { source: x, result: y, left } = moved(graph, n)?;
    let (source, target) = (graph.value(x), graph.value(y));
    let readers: Vec<String> = graph.uses(y).iter().map(|u| graph.node(u.node).describe(graph)).collect();
    let (maker, slot) = source.producer();
    Some(MoveRecord {
        value: source.name.clone(),
        producer: graph.node(maker).describe(graph),
        from: left.to_string(),
        to: target.layout.to_string(),
        bytes: hints.bytes(graph, y).saturating_mul(weight),
        readers,
        why: format!("{}; {}", why_made(graph, maker, slot), why_wanted(graph, y)),
        cost_ns: None,
        ways: Vec::new(),
    })
}
