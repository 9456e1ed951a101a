//! Names under which values are written.
//!
//! A value that is another one seen differently is written under that one's name, in bodies too. Where such a view is a graph
//! output its own name has to be there: the value it is a view of takes it if that one's is free to go.

use super::change::{Change, change};
use crate::proto::{GraphProto, ModelProto, NodeProto};
use relayout_ir::graph::{Graph, Op, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Every value name of a model, in all its graphs.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    names: FxHashSet<String>,
    /// Those that are defined more than once: in bodies, and in a graph around these for what comes later there.
    twice: FxHashSet<String>,
    /// The number that was found last for a base; those before it are taken, and stay so.
    last: FxHashMap<String, usize>,
}

impl Taken {
    pub(crate) fn of(model: &ModelProto) -> Taken {
        let mut taken = Taken::default();
        if let Some(g) = &model.graph {
            taken.collect(g);
        }
        taken
    }

    fn collect(&mut self, graph: &GraphProto) {
        let inputs = graph.input.iter().filter_map(|i| i.name.clone());
        let initializers = graph.initializer.iter().filter_map(|t| t.name.clone());
        let results = graph.node.iter().flat_map(|n| n.output.iter().cloned());
        for name in inputs.chain(initializers).chain(results) {
            if let Some(name) = self.names.replace(name) {
                self.twice.insert(name);
            }
        }
        for body in graph.node.iter().flat_map(NodeProto::bodies) {
            self.collect(body);
        }
    }

    /// A name that no graph of the model has: `base`, or `base.1`, `base.2`, …
    pub(crate) fn fresh(&mut self, base: &str) -> String {
        if self.names.insert(base.to_owned()) {
            return base.to_owned();
        }
        let last = self.last.entry(base.to_owned()).or_default();
        loop {
            *last += 1;
            let name = format!("{base}.{last}");
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The graph around a body, on its way out.
#[derive(Clone, Copy)]
pub(super) struct Outer<'g> {
    pub(super) graph: &'g Graph,
    pub(super) names: &'g Names,
}

impl Outer<'_> {
    fn name_of(&self, name: &str) -> Option<String> {
        self.graph.by_name(name).map(|v| self.names.of(v).to_owned())
    }
}

/// Names of one graph's values.
#[derive(Debug)]
pub(super) struct Names {
    by_value: Vec<String>,
    /// Views that are written as nothing at all.
    aliases: FxHashSet<ValueId>,
}

impl Names {
    /// Finds every name.
    pub(super) fn resolve(graph: &Graph, origin: &GraphProto, outer: Option<Outer<'_>>, taken: &mut Taken) -> Names {
        let results: FxHashSet<&str> = origin.node.iter().flat_map(|n| n.output.iter().map(String::as_str)).collect();
        let mut old: FxHashSet<&str> = FxHashSet::default();
        old.extend(origin.input.iter().filter_map(|i| i.name.as_deref()));
        old.extend(origin.initializer.iter().filter_map(|t| t.name.as_deref()));
        old.extend(origin.sparse_initializer.iter().filter_map(|t| t.values.as_ref()?.name.as_deref()));
        old.extend(&results);
        // A node after the one with the body may have made it. As a constant it is there before, and the body may not define it too.
        let is_early = |v: ValueId, taken: &Taken| {
            let name = graph.value(v).name.as_str();
            graph.constant(v).is_some() && !graph.is_output(v) && results.contains(name) && taken.twice.contains(name)
        };
        let mut names = Names { by_value: vec![String::new(); graph.value_bound()], aliases: FxHashSet::default() };
        for v in graph.values() {
            let name = &graph.value(v).name;
            names.by_value[v.index()] = if matches!(graph.node(graph.value(v).producer().0).op, Op::Outer) {
                outer.and_then(|o| o.name_of(name)).unwrap_or_else(|| name.clone())
            } else if old.contains(name.as_str()) && !is_early(v, taken) {
                name.clone()
            } else {
                taken.fresh(name)
            };
        }
        names.follow_views(graph);
        names
    }

    fn follow_views(&mut self, graph: &Graph) {
        let mut root: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        let mut wanted_by_name: FxHashSet<ValueId> = graph.outputs().iter().copied().collect();
        for n in graph.order().unwrap_or_default() {
            // In any operator set.
            let Some(Change::Nothing { x, y }) = change(graph, n, i64::MAX) else { continue };
            let from = root.get(&x).copied().unwrap_or(x);
            if wanted_by_name.contains(&y) {
                let fixed = !matches!(graph.node(graph.value(from).producer().0).op, Op::Onnx(_) | Op::Relayout);
                if fixed || !wanted_by_name.insert(from) {
                    continue;
                }
                self.by_value[from.index()].clone_from(&graph.value(y).name);
            }
            root.insert(y, from);
            self.aliases.insert(y);
        }
        for (y, from) in root {
            let name = self.by_value[from.index()].clone();
            self.by_value[y.index()] = name;
        }
    }

    /// The name under which a value is written.
    pub(super) fn of(&self, v: ValueId) -> &str {
        &self.by_value[v.index()]
    }

    /// Whether the value is written as the one it is a view of.
    pub(super) fn is_alias(&self, v: ValueId) -> bool {
        self.aliases.contains(&v)
    }
}

/// Gives nodes that are new another name where a node of the file has the same one: runtimes want names of nodes to be distinct. A new
/// node is named after what it makes, which may be the name of another node.
pub(super) fn part_namesakes(nodes: &mut [NodeProto], origin: &GraphProto) {
    let named = |node: &NodeProto| node.name.clone().filter(|name| !name.is_empty());
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    let mut names = nodes.iter().filter_map(|node| node.name.as_deref()).filter(|name| !name.is_empty());
    if names.all(|name| seen.insert(name)) {
        return;
    }
    let mut counts: FxHashMap<String, usize> = FxHashMap::default();
    for name in nodes.iter().filter_map(named) {
        *counts.entry(name).or_default() += 1;
    }
    counts.retain(|_, count| *count > 1);
    // What the file has more than once is the file's own. It may have more of them than are left.
    for name in origin.node.iter().filter_map(named) {
        if let Some(count) = counts.get_mut(&name) {
            *count = count.saturating_sub(1);
        }
    }
    let old = |node: &NodeProto| {
        origin.node.iter().any(|o| o.name == node.name && o.op_type == node.op_type && o.attribute == node.attribute)
    };
    let mut taken: FxHashSet<String> = nodes.iter().filter_map(named).collect();
    for node in nodes.iter_mut() {
        let Some(left) = named(node).and_then(|name| counts.get_mut(&name)).filter(|left| **left > 0) else { continue };
        if !old(node) {
            *left -= 1;
            let base = named(node).unwrap_or_default();
            let mut numbered = (1..u64::MAX).map(|number| format!("{base}_{number}"));
            node.name = numbered.find(|name| taken.insert(name.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(ops: &[&str]) -> Vec<NodeProto> {
        let node = |op: &&str| NodeProto {
            name: Some("same".to_owned()),
            op_type: Some((*op).to_owned()),
            ..NodeProto::default()
        };
        ops.iter().map(node).collect()
    }

    #[test]
    fn as_many_keep_a_name_as_the_file_has() {
        let origin = GraphProto { node: nodes(&["Relu", "Abs", "Neg"]), ..GraphProto::default() };
        let named = |ops: &[&str]| {
            let mut list = nodes(ops);
            part_namesakes(&mut list, &origin);
            assert!(list.iter().all(|node| !node.name().is_empty()));
            list.iter().map(|node| node.name() == "same").collect::<Vec<_>>()
        };
        assert_eq!(named(&["Relu", "Neg"]), [true, true]);
        assert_eq!(named(&["Relu", "Transpose", "Abs", "Neg"]), [true, false, true, true]);
        assert_eq!(named(&["Transpose", "Transpose"]), [true, true]);
    }
}
