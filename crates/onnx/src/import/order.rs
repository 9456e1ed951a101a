//! The order in which nodes can be read, and what names their bodies read from around them.

use crate::proto::{GraphProto, NodeProto};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Nodes in an order in which every operand is defined before it is read, the file's own where that is one. `given` says
/// which names are defined in the same scope without a node, `outside` which ones further out. What is wrong is added to
/// `problems`.
pub(super) fn ordered(
    nodes: &[NodeProto],
    given: impl Fn(&str) -> bool,
    outside: impl Fn(&str) -> bool,
    problems: &mut Vec<String>,
) -> Vec<usize> {
    let mut maker: FxHashMap<&str, usize> = FxHashMap::default();
    for (i, node) in nodes.iter().enumerate() {
        for name in node.output.iter().filter(|n| !n.is_empty()) {
            if maker.insert(name, i).is_some() || given(name) {
                problems.push(format!("value `{name}` is defined twice, again by {}", label(node, i)));
            }
        }
    }
    let mut waits = vec![0usize; nodes.len()];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (i, node) in nodes.iter().enumerate() {
        for name in reads(node) {
            if let Some(&m) = maker.get(name) {
                waits[i] += 1;
                readers[m].push(i);
            } else if !given(name) && !outside(name) {
                problems.push(format!("{} reads `{name}`, which nothing defines", label(node, i)));
            }
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> = (0..waits.len()).filter(|&i| waits[i] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(waits.len());
    while let Some(Reverse(i)) = ready.pop() {
        order.push(i);
        for &r in &readers[i] {
            waits[r] -= 1;
            if waits[r] == 0 {
                ready.push(Reverse(r));
            }
        }
    }
    let stuck: Vec<usize> = (0..waits.len()).filter(|&i| waits[i] > 0).collect();
    if !stuck.is_empty() {
        let shown: Vec<String> = stuck.iter().take(4).map(|&i| label(&nodes[i], i)).collect();
        problems.push(format!("the graph has a cycle through or before {}", shown.join(", ")));
    }
    // So that what they define is not missed as well.
    order.extend(stuck);
    order
}

/// Names that a node and its bodies read, each once.
pub(crate) fn reads(node: &NodeProto) -> BTreeSet<&str> {
    let mut reads: BTreeSet<&str> = node.input.iter().map(String::as_str).filter(|n| !n.is_empty()).collect();
    let mut inside = FxHashSet::default();
    for body in node.bodies() {
        outer_reads(body, &mut inside);
    }
    reads.extend(inside);
    reads
}

/// Names that a graph and its bodies read, or give as outputs.
pub(super) fn all_reads(graph: &GraphProto) -> FxHashSet<&str> {
    let mut all: FxHashSet<&str> = graph.node.iter().flat_map(reads).collect();
    all.extend(graph.output.iter().filter_map(|o| o.name.as_deref()));
    all
}

/// Names that a body and the bodies in it read and do not define.
fn outer_reads<'p>(body: &'p GraphProto, reads: &mut FxHashSet<&'p str>) {
    let mut own: FxHashSet<&str> = FxHashSet::default();
    own.extend(body.input.iter().filter_map(|i| i.name.as_deref()));
    own.extend(body.initializer.iter().filter_map(|t| t.name.as_deref()));
    own.extend(body.sparse_initializer.iter().filter_map(|t| t.values.as_ref()?.name.as_deref()));
    own.extend(body.node.iter().flat_map(|n| n.output.iter().map(String::as_str)));
    let mut inside = FxHashSet::default();
    for node in &body.node {
        inside.extend(node.input.iter().map(String::as_str));
        for inner in node.bodies() {
            outer_reads(inner, &mut inside);
        }
    }
    inside.extend(body.output.iter().filter_map(|o| o.name.as_deref()));
    reads.extend(inside.into_iter().filter(|n| !n.is_empty() && !own.contains(n)));
}

/// A node, as messages call it.
pub(super) fn label(node: &NodeProto, index: usize) -> String {
    let op = node.op_type.as_deref().unwrap_or("?");
    match (node.name.as_deref().unwrap_or_default(), node.output.first()) {
        ("", Some(out)) => format!("node {index} ({op} -> `{out}`)"),
        ("", None) => format!("node {index} ({op})"),
        (name, _) => format!("node `{name}` ({op})"),
    }
}
