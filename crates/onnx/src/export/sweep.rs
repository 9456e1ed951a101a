//! What nobody reads any more. Export replaces operands (a Reshape's target, a list of axes), and what computed the old ones goes
//! with them. What nobody read in the input stays: it is the user's.

use crate::proto::{GraphProto, NodeProto};
use rustc_hash::FxHashSet;

/// Removes nodes and initializers that were read in the origin and are not read now. Before IR version 4 an initializer's
/// input goes with it; since then it is the default of an input, which callers would have to feed without it, and stays.
pub(super) fn remove_unread(origin: &GraphProto, graph: &mut GraphProto, inputs_too: bool) {
    let mut before = FxHashSet::default();
    for node in &origin.node {
        reads(node, &mut before);
    }
    let made_before: FxHashSet<&str> = origin.node.iter().flat_map(|n| &n.output).map(String::as_str).collect();
    let nodes = std::mem::take(&mut graph.node);
    let mut now: FxHashSet<&str> = graph.output.iter().filter_map(|o| o.name.as_deref()).collect();
    let mut kept = vec![false; nodes.len()];
    for (node, kept) in nodes.iter().zip(&mut kept).rev() {
        let read = node.output.iter().any(|name| now.contains(name.as_str()));
        let was_read = node.output.iter().any(|name| before.contains(name.as_str()));
        let made = !node.output.iter().any(|name| made_before.contains(name.as_str()));
        *kept = read || !(was_read || made) || node.output.is_empty();
        if *kept {
            reads(node, &mut now);
        }
    }
    let gone = |name: &str| before.contains(name) && !now.contains(name);
    let inputs: FxHashSet<&str> =
        graph.input.iter().filter(|_| !inputs_too).filter_map(|i| i.name.as_deref()).collect();
    graph.initializer.retain(|t| inputs.contains(t.name()) || !gone(t.name()));
    if inputs_too {
        let initializers: FxHashSet<&str> = origin.initializer.iter().filter_map(|t| t.name.as_deref()).collect();
        graph.input.retain(|i| {
            let name = i.name.as_deref().unwrap_or_default();
            !(initializers.contains(name) && gone(name))
        });
    }
    graph.node = nodes.into_iter().zip(kept).filter_map(|(node, kept)| kept.then_some(node)).collect();
}

/// Names that a node reads, in its bodies too.
fn reads<'n>(node: &'n NodeProto, names: &mut FxHashSet<&'n str>) {
    names.extend(node.input.iter().map(String::as_str).filter(|n| !n.is_empty()));
    for body in node.bodies() {
        names.extend(body.output.iter().filter_map(|o| o.name.as_deref()));
        for inner in &body.node {
            reads(inner, names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{TensorProto, ValueInfoProto};

    #[test]
    fn what_is_the_default_of_an_input_stays_without_a_reader() {
        let node = |inputs: &[&str]| NodeProto {
            input: inputs.iter().map(|&name| name.to_owned()).collect(),
            output: vec!["y".to_owned()],
            ..NodeProto::default()
        };
        let initializer = |name: &str| TensorProto { name: Some(name.to_owned()), ..TensorProto::default() };
        let input = |name: &str| ValueInfoProto { name: Some(name.to_owned()), ..ValueInfoProto::default() };
        let origin = GraphProto {
            node: vec![node(&["x", "w", "c"])],
            initializer: vec![initializer("w"), initializer("c")],
            input: vec![input("x"), input("w")],
            output: vec![input("y")],
            ..GraphProto::default()
        };
        for (before_defaults, left) in [(false, vec!["w"]), (true, vec![])] {
            let mut now = GraphProto { node: vec![node(&["x"])], ..origin.clone() };
            remove_unread(&origin, &mut now, before_defaults);
            let names: Vec<&str> = now.initializer.iter().map(TensorProto::name).collect();
            assert_eq!(names, left);
            assert_eq!(now.input.len(), if before_defaults { 1 } else { 2 });
        }
    }
}
