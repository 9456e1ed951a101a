//! Where the standard does not say what a node computes, or ONNX Runtime computes something else: which reading a verdict rests on.
//!
//! Most such nodes are ops by themselves, so that no reading is taken of them (`docs/proof.md`, limits). These rows are the others. They
//! say nothing of whether a verdict holds.

use crate::files::model::{Attr, DeclaredDim, Graph, Model, Node, Tensor};
use serde::Serialize;
use std::fmt;

/// A reading that a verdict rests on, and the nodes for which it was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AssumedReading {
    /// Whose reading it is.
    pub of: &'static str,
    /// What is read how.
    pub what: &'static str,
    /// The first node in which it is, by its first result.
    pub at: String,
    /// How many nodes of both models have it.
    pub nodes: usize,
}

impl fmt::Display for AssumedReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AssumedReading { of, what, at, nodes } = self;
        match nodes {
            1 => write!(f, "as {of} reads it: {what} (the node that makes `{at}`)"),
            _ => write!(f, "as {of} reads it: {what} ({nodes} nodes, the first makes `{at}`)"),
        }
    }
}

/// A row of the table: what is read how, and whether a node has it.
type Row = (&'static str, fn(&Seen<'_>) -> bool);

/// A node, and what is known around it.
struct Seen<'m> {
    node: &'m Node,
    opset: i64,
    graphs: &'m [&'m Graph],
}

/// Every row is a reading of ONNX Runtime.
const ROWS: [Row; 4] = [
    ("a count or a condition of a Loop that is a list of one number is this number", is_listed_loop),
    ("before operator set 11 the nearest place of a larger image is the place below", is_old_nearest),
    ("before operator set 11 a place that lies between others is counted from the first one", is_old_linear),
    ("a scale that is no whole number times an extent is a product of floats of 32 bits, rounded down", is_fraction),
];

/// The readings that a verdict about both models rests on.
pub(crate) fn of(a: &Model, b: &Model) -> Vec<AssumedReading> {
    let mut found: Vec<AssumedReading> = Vec::new();
    for model in [a, b] {
        let opset = model.opsets.get("").copied().unwrap_or(1);
        walk(&[&model.graph], opset, &mut found);
        for function in &model.functions {
            let nodes = function.nodes.clone();
            walk(&[&Graph { nodes, ..Graph::default() }], opset, &mut found);
        }
    }
    found
}

fn walk(graphs: &[&Graph], opset: i64, found: &mut Vec<AssumedReading>) {
    let Some(graph) = graphs.last() else { return };
    for node in &graph.nodes {
        let seen = Seen { node, opset, graphs };
        for (what, _) in ROWS.iter().filter(|(_, has)| node.domain.is_empty() && has(&seen)) {
            if let Some(known) = found.iter_mut().find(|known| known.what == *what) {
                known.nodes += 1;
            } else {
                let at = node.outputs.first().cloned().unwrap_or_default();
                found.push(AssumedReading { of: "ONNX Runtime", what, at, nodes: 1 });
            }
        }
        for (_, attr) in &node.attrs {
            if let Attr::Graph(body) = attr {
                walk(&[graphs, &[body.as_ref()]].concat(), opset, found);
            }
        }
    }
}

fn is_listed_loop(seen: &Seen<'_>) -> bool {
    let is_list = |dims: &Option<Vec<DeclaredDim>>| dims.as_ref().is_some_and(|dims| dims.len() == 1);
    let body =
        seen.node.attrs.iter().find_map(|(_, attr)| if let Attr::Graph(body) = attr { Some(body) } else { None });
    seen.node.op == "Loop" && body.is_some_and(|body| body.inputs.iter().take(2).any(|input| is_list(&input.dims)))
}

fn is_resize(seen: &Seen<'_>) -> bool {
    matches!(seen.node.op.as_str(), "Resize" | "Upsample")
}

fn is_nearest(seen: &Seen<'_>) -> bool {
    let mode = seen.node.attrs.iter().find(|(name, _)| name == "mode");
    mode.is_none_or(|(_, mode)| matches!(mode, Attr::Text(text) if text == b"nearest"))
}

fn is_old_linear(seen: &Seen<'_>) -> bool {
    is_resize(seen) && seen.opset < 11 && !is_nearest(seen)
}

fn is_old_nearest(seen: &Seen<'_>) -> bool {
    is_resize(seen)
        && seen.opset < 11
        && is_nearest(seen)
        && seen.scales().is_none_or(|scales| scales.iter().any(|s| *s > 1.0))
}

fn is_fraction(seen: &Seen<'_>) -> bool {
    is_resize(seen) && seen.scales().is_some_and(|scales| scales.iter().any(|scale| scale.fract() != 0.0))
}

impl Seen<'_> {
    /// The scales of a Resize, if they are constants.
    fn scales(&self) -> Option<Vec<f32>> {
        if let Some((_, Attr::Floats(scales))) = self.node.attrs.iter().find(|(name, _)| name == "scales") {
            return Some(scales.clone());
        }
        let name = self.node.inputs.get(if self.opset < 11 { 1 } else { 2 })?;
        let floats = |bytes: &[u8]| {
            bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap_or_default())).collect()
        };
        self.constant(name).filter(|tensor| tensor.dtype == 1).map(|tensor| floats(&tensor.data))
    }

    fn constant(&self, name: &str) -> Option<&Tensor> {
        let of_node = |node: &&Node| node.op == "Constant" && node.outputs.iter().any(|output| output == name);
        self.graphs.iter().rev().find_map(|graph| {
            let kept = graph.initializers.iter().find(|(known, _)| known == name).map(|(_, tensor)| tensor);
            let attrs = || graph.nodes.iter().find(of_node).map(|node| &node.attrs);
            kept.or_else(|| attrs()?.iter().find_map(|(_, attr)| tensor_of(attr)))
        })
    }
}

fn tensor_of(attr: &Attr) -> Option<&Tensor> {
    if let Attr::Tensor(tensor) = attr { Some(tensor) } else { None }
}
