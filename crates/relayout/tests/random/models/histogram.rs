//! What random models had in them, counted over those that ONNX Runtime ran.
//!
//! A row is an entry of the table of ops, a spelling of an op, or a feature of a model or of what was decided about it. Another
//! feature is a line in [`features`] (what the model has) or [`decided`] (what the optimizer chose), and one in [`required`] if it has
//! to be there.

use crate::common::Outcome;
use crate::models::cards::OLDEST;
use crate::models::sketch::Sample;
use relayout::ir::graph::OpName;
use relayout::ir::op::{OpDef, WRITTEN_OPSET, lookup};
use relayout_onnx::proto::{GraphProto, ModelProto, NodeProto};
use std::collections::BTreeMap;
use std::fmt;

/// Counts by row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    rows: BTreeMap<String, usize>,
}

impl Histogram {
    pub(crate) fn count(&self, row: &str) -> usize {
        self.rows.get(row).copied().unwrap_or(0)
    }

    /// Counts what a model has.
    pub(crate) fn add(&mut self, sample: &Sample) {
        self.count_all(ops(&sample.proto).into_iter().chain(features(sample)));
    }

    /// Counts what was decided about a model.
    pub(crate) fn add_decision(&mut self, outcome: &Outcome) {
        self.count_all(decided(outcome));
    }

    fn count_all(&mut self, rows: impl IntoIterator<Item = String>) {
        for row in rows {
            *self.rows.entry(row).or_default() += 1;
        }
    }

    pub(crate) fn merge(&mut self, other: &Histogram) {
        for (row, count) in &other.rows {
            *self.rows.entry(row.clone()).or_default() += count;
        }
    }

    /// A row that is there even if nothing of it was counted.
    pub(crate) fn mention(&mut self, row: &str) {
        self.rows.entry(row.to_owned()).or_default();
    }

    /// Rows that were counted less often than this.
    pub(crate) fn below(&self, least: usize) -> Vec<String> {
        self.rows.iter().filter(|(_, count)| **count < least).map(|(row, count)| format!("{row}: {count}")).collect()
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.keys().map(String::len).max().unwrap_or(0);
        writeln!(f, "{:width$}  count", "op or feature")?;
        self.rows.iter().try_for_each(|(row, count)| writeln!(f, "{row:width$}  {count:5}"))
    }
}

/// The row of an entry of the table.
pub(crate) fn entry_row(def: &OpDef) -> String {
    let dot = if def.domain.is_empty() { "" } else { "." };
    let (first, last) = def.opsets;
    format!("{}{dot}{} {first}-{last}", def.domain, def.name)
}

/// The row of an operator set.
pub(crate) fn opset_row(version: i64) -> String {
    format!("~ opset {version:02}")
}

/// An op that says something in an attribute in old operator sets and in an operand in new ones.
pub(crate) struct Spelling {
    pub(crate) op: &'static str,
    pub(crate) attr: &'static str,
    pub(crate) slot: usize,
}

const fn spelling(op: &'static str, attr: &'static str, slot: usize) -> Spelling {
    Spelling { op, attr, slot }
}

/// Ops of two spellings.
pub(crate) const SPELLINGS: &[Spelling] = &[
    spelling("ReduceL1", "axes", 1),
    spelling("ReduceL2", "axes", 1),
    spelling("ReduceLogSum", "axes", 1),
    spelling("ReduceLogSumExp", "axes", 1),
    spelling("ReduceMax", "axes", 1),
    spelling("ReduceMean", "axes", 1),
    spelling("ReduceMin", "axes", 1),
    spelling("ReduceProd", "axes", 1),
    spelling("ReduceSum", "axes", 1),
    spelling("ReduceSumSquare", "axes", 1),
    spelling("Squeeze", "axes", 1),
    spelling("Unsqueeze", "axes", 1),
    spelling("Slice", "axes", 3),
    spelling("Slice", "starts", 1),
    spelling("Split", "split", 1),
    spelling("Pad", "pads", 1),
    spelling("TopK", "k", 1),
    spelling("Clip", "min", 1),
    spelling("Dropout", "ratio", 1),
    spelling("Upsample", "scales", 1),
];

pub(crate) fn spelling_row(s: &Spelling, old: bool) -> String {
    let place = if old { "an attribute" } else { "an operand" };
    format!("~ spelling: `{}` of {} as {place}", s.attr, s.op)
}

/// Ops behind which channels lie in segments that fill no block.
pub(crate) const SEGMENTS: &[&str] = &["Concat", "Split", "Pad"];

pub(crate) fn segment_row(op: &str) -> String {
    format!("~ padded segment: {op} of odd channels before a convolution")
}

/// Every rank that a value has to have.
const RANKS: std::ops::RangeInclusive<usize> = 0..=6;

/// Rows of features that have to be there, beside those that are dealt for.
pub(crate) fn required() -> Vec<String> {
    let ranks = RANKS.map(|rank| format!("~ rank {rank} of a value"));
    let opsets = (OLDEST..=WRITTEN_OPSET).map(opset_row);
    let bodies = ["If", "Loop", "Scan"].map(|op| format!("~ body of {op}"));
    let others = ["~ symbolic dim", "~ fan-out of 3 and more", "~ Pad"].map(str::to_owned);
    ranks.chain(opsets).chain(bodies).chain(others).collect()
}

/// Features of what was decided about a model.
fn decided(outcome: &Outcome) -> Vec<String> {
    let changed = outcome.report.changed.then(|| "~ changed by the optimizer".to_owned());
    changed.into_iter().collect()
}

/// Features of a model.
fn features(sample: &Sample) -> Vec<String> {
    let mut rows: Vec<String> =
        sample.shapes.values().map(|shape| format!("~ rank {} of a value", shape.len())).collect();
    rows.push(opset_row(version(&sample.proto, "").unwrap_or(0)));
    if !sample.dims.is_empty() {
        rows.push("~ symbolic dim".to_owned());
    }
    let nodes = nodes(&sample.proto);
    for node in &nodes {
        let op = node.op_type.as_deref().unwrap_or_default();
        let bodies = node.attribute.iter().filter(|a| a.g.is_some()).count();
        if ["If", "Loop", "Scan"].contains(&op) {
            rows.extend((0..bodies).map(|_| format!("~ body of {op}")));
        }
        if op == "Pad" {
            rows.push("~ Pad".to_owned());
        }
        rows.extend(spelled(node));
    }
    let graph = sample.proto.graph.as_ref();
    rows.extend(graph.iter().flat_map(|g| forks(g, sample)));
    rows.extend(graph.iter().flat_map(|g| segments(g, sample)));
    rows
}

/// Values of the main graph that three or more operands read.
fn forks(graph: &GraphProto, sample: &Sample) -> Vec<String> {
    let mut readers: BTreeMap<&str, usize> = BTreeMap::new();
    for name in graph.node.iter().flat_map(|n| &n.input) {
        *readers.entry(name).or_default() += 1;
    }
    let wide = readers.iter().filter(|(name, count)| **count >= 3 && sample.shapes.contains_key(**name));
    wide.map(|_| "~ fan-out of 3 and more".to_owned()).collect()
}

fn spelled(node: &NodeProto) -> Vec<String> {
    let of =
        |s: &&Spelling| node.op_type.as_deref() == Some(s.op) && node.domain.as_deref().unwrap_or_default().is_empty();
    let spellings = SPELLINGS.iter().filter(of).filter_map(|s| {
        let attr = node.attribute.iter().any(|a| a.name.as_deref() == Some(s.attr));
        let operand = node.input.get(s.slot).is_some_and(|name| !name.is_empty());
        (attr || operand).then(|| spelling_row(s, attr))
    });
    spellings.collect()
}

/// Convolutions whose operand is made of segments of channels that fill no block of 4, or has channels of padding.
fn segments(graph: &GraphProto, sample: &Sample) -> Vec<String> {
    let producers: BTreeMap<&str, &NodeProto> =
        graph.node.iter().flat_map(|n| n.output.iter().map(move |y| (y.as_str(), n))).collect();
    let channels = |name: &str| sample.shapes.get(name).and_then(|shape| shape.get(1)).copied();
    let odd = |name: &String| channels(name).is_some_and(|c| c % 4 != 0);
    let along_channels = |n: &NodeProto| {
        let axis = n.attribute.iter().find(|a| a.name.as_deref() == Some("axis")).and_then(|a| a.i).unwrap_or(0);
        let rank = n.output.first().and_then(|y| sample.shapes.get(y)).map_or(0, Vec::len) as i64;
        axis == 1 || axis == 1 - rank
    };
    let mut rows = Vec::new();
    for conv in graph.node.iter().filter(|n| n.op_type.as_deref() == Some("Conv")) {
        let Some(mut at) = conv.input.first().and_then(|x| producers.get(x.as_str())).copied() else { continue };
        if at.op_type.as_deref() == Some("Relu") {
            let Some(before) = at.input.first().and_then(|x| producers.get(x.as_str())) else { continue };
            at = before;
        }
        let op = at.op_type.as_deref().unwrap_or_default();
        let segmented = match op {
            "Concat" => along_channels(at) && at.input.iter().any(odd),
            "Split" => along_channels(at) && at.output.iter().any(odd),
            "Pad" => match (at.input.first().and_then(|x| channels(x)), at.output.first().and_then(|y| channels(y))) {
                (Some(before), Some(after)) => before != after && before % 4 != 0,
                _ => false,
            },
            _ => false,
        };
        if segmented {
            rows.push(segment_row(op));
        }
    }
    rows
}

fn version(model: &ModelProto, domain: &str) -> Option<i64> {
    let set = model.opset_import.iter().find(|set| set.domain.as_deref().unwrap_or_default() == domain)?;
    set.version
}

/// Every node, those of bodies included.
pub(crate) fn nodes(model: &ModelProto) -> Vec<&NodeProto> {
    fn walk<'m>(graph: &'m GraphProto, found: &mut Vec<&'m NodeProto>) {
        for node in &graph.node {
            found.push(node);
            node.attribute.iter().filter_map(|a| a.g.as_deref()).for_each(|body| walk(body, found));
        }
    }
    let mut found = Vec::new();
    model.graph.iter().for_each(|graph| walk(graph, &mut found));
    found
}

/// The entry of the table that a node of this model has.
pub(crate) fn entry(model: &ModelProto, node: &NodeProto) -> Option<&'static OpDef> {
    let domain = node.domain.clone().unwrap_or_default();
    let version = version(model, &domain)?;
    lookup(&OpName { domain, name: node.op_type.clone()?, overload: String::new() }, version)
}

/// The row of each node.
fn ops(model: &ModelProto) -> Vec<String> {
    nodes(model).into_iter().filter_map(|node| entry(model, node)).map(entry_row).collect()
}
