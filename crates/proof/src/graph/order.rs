//! In which order the nodes of a graph are read, and which of them.

use crate::files::model::{Attr, Node};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// Nodes behind those that make what they read. ONNX asks for that order; ONNX Runtime makes it of any other, so files of other tools
/// lack it. As they stand if there is a circle, where an operand is missing in every order.
pub(crate) fn in_order(nodes: &[Node]) -> Cow<'_, [Node]> {
    let outputs = nodes.iter().enumerate().flat_map(|(at, node)| node.outputs.iter().map(move |name| (name, at)));
    let makers: FxHashMap<&String, usize> = outputs.filter(|(name, _)| !name.is_empty()).collect();
    let before: Vec<Vec<usize>> = nodes.iter().map(|node| makers_of(node, &makers)).collect();
    if before.iter().enumerate().all(|(at, before)| before.iter().all(|&maker| maker < at)) {
        return Cow::Borrowed(nodes);
    }
    // Nodes that are begun, each with how many of its makers were looked at.
    let (mut order, mut begun, mut path) = (Vec::new(), vec![false; nodes.len()], Vec::new());
    let mut done = begun.clone();
    for first in 0..nodes.len() {
        path.extend((!begun[first]).then_some((first, 0)));
        begun[first] = true;
        while let Some((at, seen)) = path.pop() {
            match before[at].get(seen) {
                Some(&maker) if begun[maker] && !done[maker] => return Cow::Borrowed(nodes),
                Some(&maker) => {
                    path.push((at, seen + 1));
                    path.extend((!begun[maker]).then_some((maker, 0)));
                    begun[maker] = true;
                }
                None => {
                    done[at] = true;
                    order.push(nodes[at].clone());
                }
            }
        }
    }
    Cow::Owned(order)
}

/// The nodes that make what a node and its bodies read.
fn makers_of(node: &Node, makers: &FxHashMap<&String, usize>) -> Vec<usize> {
    let mut names: FxHashSet<String> = node.inputs.iter().cloned().collect();
    node.attrs.iter().for_each(|(_, attr)| captured(attr, &mut names));
    let mut found: Vec<usize> = names.iter().filter_map(|name| makers.get(name).copied()).collect();
    found.sort_unstable();
    found
}

/// Which nodes the outputs need.
pub(crate) fn needed(nodes: &[Node], outputs: &[String]) -> Vec<bool> {
    let mut wanted: FxHashSet<String> = outputs.iter().cloned().collect();
    let mut needed = vec![false; nodes.len()];
    for (node, needed) in nodes.iter().zip(&mut needed).rev() {
        *needed = node.outputs.iter().any(|o| wanted.contains(o));
        if *needed {
            wanted.extend(node.inputs.iter().cloned());
            node.attrs.iter().for_each(|(_, attr)| captured(attr, &mut wanted));
        }
    }
    needed
}

/// Every name that a body reads.
fn captured(attr: &Attr, names: &mut FxHashSet<String>) {
    if let Attr::Graph(graph) = attr {
        names.extend(graph.outputs.iter().cloned());
        for node in &graph.nodes {
            names.extend(node.inputs.iter().cloned());
            node.attrs.iter().for_each(|(_, attr)| captured(attr, names));
        }
    }
}
