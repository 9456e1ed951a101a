//! What was made of random networks, counted in the results that ran: nodes of the files, and layouts that were decided.

use prost::Message;
use relayout::ir::graph::Graph;
use relayout_onnx::proto::{GraphProto, ModelProto, NodeProto};
use relayout_targets::Block;
use std::collections::BTreeMap;
use std::fmt;

/// Domain of ONNX Runtime's blocked ops.
pub(crate) const DOMAIN: &str = "com.microsoft.nchwc";

/// Rows that have to be counted often.
pub(crate) const REQUIRED: &[&str] = &[
    "activation Clip",
    "activation HardSigmoid",
    "activation HardSwish",
    "activation LeakyRelu",
    "activation Relu",
    "activation Sigmoid",
    "activation Tanh",
    "body with blocked ops",
    "channels-last network",
    "convolution of an ordinary image",
    "convolution, dense",
    "convolution, depthwise",
    "convolution, dilated",
    "convolution, grouped",
    "convolution, groups joined",
    "convolution, pointwise",
    "file of another block that this host refuses",
    "guard",
    "pad slots in a value",
    "pad slots read by a standard op",
    "Pad of blocks",
    "Slice of blocks",
    "pool AveragePool",
    "pool GlobalAveragePool",
    "pool GlobalMaxPool",
    "pool MaxPool",
    "reduction without its axes",
    "reorder ReorderInput",
    "reorder ReorderInput, channels last",
    "reorder ReorderOutput",
    "reorder ReorderOutput, channels last",
    "scale as a convolution",
    "scale as a convolution, computed",
    "shield",
    "sum in a convolution",
    "symbolic batch",
    "resize Upsample",
    "transposed convolution as one of its phases",
    "Transpose of blocks",
];

/// Those that copy whole blocks: of 8 channels there are twice as many, each half as long, and fewer of them are worth it.
const RARER_BY_8: [&str; 2] = ["transposed convolution as one of its phases", "Transpose of blocks"];

/// Counts by row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    counts: BTreeMap<String, usize>,
}

impl Rows {
    pub(crate) fn add(&mut self, rows: impl IntoIterator<Item = String>) {
        for row in rows {
            *self.counts.entry(row).or_default() += 1;
        }
    }

    pub(crate) fn merge(&mut self, other: Rows) {
        for (row, count) in other.counts {
            *self.counts.entry(row).or_default() += count;
        }
    }

    /// What is required and was counted less often than this: half as often of what pays more rarely on hosts with blocks of 8.
    pub(crate) fn below(&self, block: Block, least: usize) -> Vec<String> {
        let count = |row: &str| self.counts.get(row).copied().unwrap_or(0);
        let least = |row: &str| if block == Block::B8 && RARER_BY_8.contains(&row) { least / 2 } else { least };
        REQUIRED.iter().filter(|row| count(row) < least(row)).map(|row| format!("{row}: {}", count(row))).collect()
    }
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.counts.keys().map(String::len).max().unwrap_or(0);
        writeln!(f, "{:width$}  count", "in results for ort-cpu")?;
        self.counts.iter().try_for_each(|(row, count)| writeln!(f, "{row:width$}  {count:5}"))
    }
}

/// Every graph of a model.
fn graphs(model: &ModelProto) -> Vec<&GraphProto> {
    let mut found: Vec<&GraphProto> = model.graph.iter().collect();
    let mut at = 0;
    while let Some(graph) = found.get(at).copied() {
        found.extend(graph.node.iter().flat_map(|n| &n.attribute).filter_map(|a| a.g.as_deref()));
        at += 1;
    }
    found
}

/// Nodes of these ops of the domain, in every graph.
pub(crate) fn blocked_nodes(model: &ModelProto, ops: &[&str]) -> usize {
    let is_it =
        |n: &&NodeProto| n.domain.as_deref() == Some(DOMAIN) && ops.contains(&n.op_type.as_deref().unwrap_or_default());
    graphs(model).into_iter().flat_map(|g| &g.node).filter(is_it).count()
}

/// Whether the main graph has a blocked op.
pub(crate) fn is_blocked(bytes: &[u8]) -> bool {
    let model = ModelProto::decode(bytes).unwrap_or_default();
    model.graph.iter().flat_map(|g| &g.node).any(|n| n.domain.as_deref() == Some(DOMAIN))
}

/// Whether a file has an average whose windows may reach beyond the padding, and which counts that: ONNX Runtime blocks it on load,
/// where it computes something else.
pub(crate) fn has_open_average(bytes: &[u8]) -> bool {
    let model = ModelProto::decode(bytes).unwrap_or_default();
    let is_set =
        |n: &NodeProto, name: &str| n.attribute.iter().any(|a| a.name.as_deref() == Some(name) && a.i == Some(1));
    let open = |n: &&NodeProto| {
        n.op_type.as_deref() == Some("AveragePool") && is_set(n, "ceil_mode") && is_set(n, "count_include_pad")
    };
    graphs(&model).into_iter().flat_map(|g| &g.node).any(|n| open(&n))
}

/// Rows of a result file.
pub(crate) fn of_file(bytes: &[u8], block: u64) -> Vec<String> {
    let model = ModelProto::decode(bytes).unwrap_or_default();
    let all = graphs(&model);
    let weights: BTreeMap<&str, &[i64]> = all
        .iter()
        .flat_map(|g| &g.initializer)
        .map(|t| (t.name.as_deref().unwrap_or_default(), t.dims.as_slice()))
        .collect();
    let mut rows = Vec::new();
    for (k, graph) in all.iter().enumerate() {
        let makers: BTreeMap<&str, &NodeProto> =
            graph.node.iter().flat_map(|n| n.output.iter().map(move |y| (y.as_str(), n))).collect();
        let before = rows.len();
        for node in &graph.node {
            if node.domain.as_deref() == Some(DOMAIN) {
                blocked(node, &weights, &mut rows, block);
            } else if node.output.iter().any(|y| y.ends_with(".digits")) {
                rows.push(format!("{} of blocks", node.op_type.as_deref().unwrap_or_default()));
            } else if node.op_type.as_deref() == Some("Conv") {
                let bias = node.input.get(2).and_then(|b| makers.get(b.as_str()));
                let zero = bias.is_some_and(|b| b.input.iter().any(|x| x.starts_with("host.zero")));
                rows.extend(zero.then(|| "shield".to_owned()));
            } else if node.output.iter().any(|y| y.starts_with("host.block")) {
                let slots = node.input.get(1).is_some_and(|x| x.starts_with("host.slots"));
                rows.extend(slots.then(|| "guard".to_owned()));
            }
        }
        if k > 0 && rows.len() > before {
            rows.push("body with blocked ops".to_owned());
        }
    }
    rows
}

fn blocked(node: &NodeProto, weights: &BTreeMap<&str, &[i64]>, rows: &mut Vec<String>, block: u64) {
    let attr = |name: &str| node.attribute.iter().find(|a| a.name.as_deref() == Some(name));
    let number = |name: &str| attr(name).and_then(|a| a.i);
    match node.op_type.as_deref().unwrap_or_default() {
        op @ ("ReorderInput" | "ReorderOutput") => {
            let last = if number("channels_last") == Some(1) { ", channels last" } else { "" };
            rows.push(format!("reorder {op}{last}"));
        }
        "Upsample" => rows.push("resize Upsample".to_owned()),
        "Conv" => {
            let dims = node.input.get(1).and_then(|w| weights.get(w.as_str())).copied();
            rows.push(kind(dims, number("group").unwrap_or(1), block).to_owned());
            if node.input.get(1).is_some_and(|w| w.ends_with(".wide.packed")) {
                rows.push("convolution, groups joined".to_owned());
            }
            if node.output.iter().any(|y| y.ends_with(".phases")) {
                rows.push("transposed convolution as one of its phases".to_owned());
            }
            if attr("dilations").is_some_and(|a| a.ints.iter().any(|&d| d > 1)) {
                rows.push("convolution, dilated".to_owned());
            }
            if node.input.get(3).is_some_and(|sum| !sum.is_empty()) {
                rows.push("sum in a convolution".to_owned());
            }
            if let Some(name) = attr("activation").and_then(|a| a.s.as_ref()) {
                rows.push(format!("activation {}", String::from_utf8_lossy(name)));
            }
        }
        op => {
            rows.push(format!("pool {op}"));
            if node.output.iter().any(|y| y.ends_with(".pooled")) {
                rows.push("reduction without its axes".to_owned());
            }
        }
    }
}

/// The kind of a blocked convolution, by the extents of its constant weights. The networks have no depthwise convolutions of one
/// tap, so what is one was a scale.
fn kind(dims: Option<&[i64]>, group: i64, block: u64) -> &'static str {
    match dims {
        Some([m, 1, 1, 1]) if *m == group => "scale as a convolution",
        Some([m, 1, ..]) if *m == group => "convolution, depthwise",
        Some(_) if group > 1 => "convolution, grouped",
        Some([_, c, ..]) if c % block as i64 != 0 => "convolution of an ordinary image",
        Some([_, _, 1, 1]) => "convolution, pointwise",
        Some(_) => "convolution, dense",
        None => "scale as a convolution, computed",
    }
}

/// Rows of what was decided: values with slots that hold no channel, and who reads them.
pub(crate) fn of_graph(graph: &Graph) -> Vec<String> {
    let mut rows = Vec::new();
    for v in graph.values() {
        let value = graph.value(v);
        let stored = graph.storage_shape(v, &value.layout);
        let padded = value.layout.as_permutation().is_none() && stored.as_deref() != value.ty.shape();
        if !padded || graph.constant(v).is_some() || value.ty.rank() != Some(4) {
            continue;
        }
        rows.push("pad slots in a value".to_owned());
        let standard = |n| graph.node(n).onnx().is_some();
        if graph.uses(v).iter().any(|u| standard(u.node)) {
            rows.push("pad slots read by a standard op".to_owned());
        }
    }
    rows
}
