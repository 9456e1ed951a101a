//! How many channels the values of a file of the blocked dialect have: the others were added to fill a block.
//!
//! The file declares the sum of both. Who moves data into blocks or out of them knows how many there were; convolutions of groups
//! of one channel, pools and sums keep their number; any other convolution may have what its results are read for.

use super::dialect;
use petgraph::unionfind::UnionFind;
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::op::infer::infer_graph;
use relayout_ir::op::read::{Groups, group};
use std::collections::{BTreeMap, BTreeSet};

/// Channels by value.
#[derive(Debug)]
pub(super) struct Channels {
    declared: BTreeMap<ValueId, u64>,
    /// Extents of last axes, where there are four.
    last: BTreeMap<ValueId, u64>,
    /// Values whose channels are the same ones, by their indices.
    classes: UnionFind<usize>,
    /// What is known of a class, by its representative.
    kept: BTreeMap<usize, u64>,
}

impl Channels {
    /// Finds them; `blocked` are the values that lie in blocks.
    pub(super) fn collect(graph: &Graph, order: &[NodeId], blocked: &BTreeSet<ValueId>) -> Channels {
        let mut inferred = graph.clone();
        // Problems of the model are told when the lifted graph is inferred; here unknown shapes will do.
        let _ = infer_graph(&mut inferred, &mut 0);
        let axis_of = |v: ValueId, axis: usize| {
            let extent = inferred.value(v).ty.shape()?.get(axis)?.as_const()?;
            u64::try_from(extent).ok()
        };
        let declared = graph.values().filter_map(|v| Some((v, axis_of(v, 1)?))).collect();
        let last = graph.values().filter_map(|v| Some((v, axis_of(v, 3)?))).collect();
        let classes = UnionFind::new(graph.value_bound());
        let mut channels = Channels { declared, last, classes, kept: BTreeMap::new() };
        let mut facts: Vec<(ValueId, u64)> = Vec::new();
        for &n in order {
            let node = graph.node(n);
            let (x, y) = (node.operand(0), node.result(0));
            match (dialect(node), x, y) {
                (Some("ReorderInput"), Some(x), Some(y)) => facts.extend(channels.fed(node, x).map(|c| (y, c))),
                (Some("ReorderOutput"), Some(x), _) => {
                    facts.extend(node.int("channels").and_then(|c| u64::try_from(c).ok()).map(|c| (x, c)));
                }
                (Some("Conv"), Some(x), Some(y)) => {
                    channels.convolution(graph, node, (x, y), blocked, &mut facts);
                }
                _ => channels.others(node, blocked, &mut facts),
            }
        }
        let outputs = graph.outputs().iter().filter(|v| blocked.contains(v));
        facts.extend(outputs.filter_map(|&v| Some((v, channels.declared(v)?))));
        for (v, count) in facts {
            let class = channels.classes.find(v.index());
            let kept = channels.kept.entry(class).or_insert(0);
            *kept = count.max(*kept);
        }
        channels
    }

    fn convolution(
        &mut self,
        graph: &Graph,
        node: &Node,
        (x, y): (ValueId, ValueId),
        blocked: &BTreeSet<ValueId>,
        facts: &mut Vec<(ValueId, u64)>,
    ) {
        if let Some(sum) = node.operand(super::SUM) {
            self.join(sum, y);
        }
        let constant = node.inputs.iter().skip(1).take(2).flatten().all(|&v| graph.constant(v).is_some());
        if constant && is_depthwise(graph, node) && blocked.contains(&x) {
            self.join(x, y);
        } else if !constant || group(node) != Ok(1) {
            facts.extend([x, y].into_iter().filter_map(|v| Some((v, self.declared(v)?))));
        }
    }

    /// A pool or an elementwise op keeps the channels of what it reads; of anything else they are as many as are declared.
    fn others(&mut self, node: &Node, blocked: &BTreeSet<ValueId>, facts: &mut Vec<(ValueId, u64)>) {
        let values: Vec<ValueId> = node.inputs.iter().chain(&node.outputs).copied().flatten().collect();
        if !values.iter().any(|v| blocked.contains(v)) {
            return;
        }
        // Of what a reorder leaves the rounded number is not known.
        let mut counts = values.iter().filter_map(|&v| self.declared(v));
        let alike = counts.next().is_none_or(|first| counts.all(|count| count == first));
        let keeps = dialect(node).is_some() || !matches!(node.onnx(), Some("Concat" | "Split"));
        if keeps && alike && values.iter().all(|v| blocked.contains(v)) {
            values.windows(2).for_each(|pair| self.join(pair[0], pair[1]));
        } else {
            facts.extend(values.into_iter().filter_map(|v| Some((v, self.declared(v)?))));
        }
    }

    fn join(&mut self, a: ValueId, b: ValueId) {
        self.classes.union(a.index(), b.index());
    }

    /// As the file declares it.
    pub(super) fn declared(&self, v: ValueId) -> Option<u64> {
        self.declared.get(&v).copied()
    }

    /// The channels of what a `ReorderInput` reads.
    pub(super) fn fed(&self, node: &Node, x: ValueId) -> Option<u64> {
        if super::is_last(node) { self.last.get(&x).copied() } else { self.declared(x) }
    }

    /// Those that anyone reads.
    pub(super) fn kept(&self, v: ValueId) -> Option<u64> {
        let known = (v.index() < self.classes.len()).then(|| self.classes.find(v.index()));
        let kept = known.and_then(|class| self.kept.get(&class)).copied();
        [kept, self.declared(v)].into_iter().flatten().min()
    }
}

/// Whether each channel is a group of its own.
pub(super) fn is_depthwise(graph: &Graph, node: &Node) -> bool {
    let filters = node.operand(1).and_then(|w| graph.constant(w));
    filters.and_then(|c| Groups::read(node, &c.dims)).is_some_and(Groups::is_depthwise)
}
