//! The hosts that a verdict is about: what the ops of `com.microsoft.nchwc` compute depends on the block of the host.
//!
//! A file has a *guard* if hosts of another block can't run it. It is a `ReorderInput` of a constant of c channels, one number each,
//! and a Reshape of the result to as many numbers as c is in whole blocks of the host that the file is for, if that is another number in
//! blocks of another host. An output must depend on it. A body is guarded by the graph around it too, as that runs to its end.

use crate::files::model::{Attr, Graph, Model, Node};
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::fmt;

/// The domain whose ops depend on the host.
const DOMAIN: &str = "com.microsoft.nchwc";
/// The blocks that hosts have.
const BLOCKS: [i64; 2] = [8, 16];

/// Hosts that a verdict is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Hosts {
    /// Channels of a block there.
    pub block: i64,
    /// Whether the file can't run on other hosts. If not, it may compute something else there.
    pub guarded: bool,
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "for hosts with blocks of {}", self.block)?;
        if self.guarded {
            Ok(())
        } else {
            write!(f, " only: the file has no guard, so others may compute something else")
        }
    }
}

/// The hosts that a model is for; `None` if it is for all.
pub(crate) fn find(model: &Model) -> Option<Hosts> {
    let in_functions = model.functions.iter().any(|f| f.nodes.iter().any(is_blocked));
    if !in_functions && !has_blocked(&model.graph) {
        return None;
    }
    let block = model.block?;
    Some(Hosts { block, guarded: !in_functions && is_guarded(&model.graph, block, false) })
}

/// Whether a model has ops that depend on the host, and does not say for which it is.
pub(crate) fn is_silent(model: &Model) -> bool {
    let in_functions = model.functions.iter().any(|f| f.nodes.iter().any(is_blocked));
    model.block.is_none() && (in_functions || has_blocked(&model.graph))
}

/// Whether a node or a body of it depends on the block.
fn is_blocked(node: &Node) -> bool {
    node.domain == DOMAIN || bodies(node).any(has_blocked)
}

fn has_blocked(graph: &Graph) -> bool {
    graph.nodes.iter().any(is_blocked)
}

fn bodies(node: &Node) -> impl Iterator<Item = &Graph> {
    node.attrs.iter().filter_map(|(_, attr)| if let Attr::Graph(body) = attr { Some(&**body) } else { None })
}

/// Whether a guard runs wherever a graph or a body of it runs ops that depend on the block.
fn is_guarded(graph: &Graph, block: i64, around: bool) -> bool {
    let covered = around || has_guard(graph, block);
    let own = graph.nodes.iter().any(|node| node.domain == DOMAIN);
    (covered || !own) && graph.nodes.iter().flat_map(bodies).all(|body| is_guarded(body, block, covered))
}

fn has_guard(graph: &Graph, block: i64) -> bool {
    let needed = needed(graph);
    graph.nodes.iter().any(|node| {
        node.outputs.first().is_some_and(|y| needed.contains(y.as_str())) && fails_elsewhere(graph, node, block)
    })
}

/// Whether a node is a Reshape that a host of another block can't run.
fn fails_elsewhere(graph: &Graph, node: &Node, block: i64) -> bool {
    let constant = |name: &String| {
        let is_input = graph.inputs.iter().any(|input| input.name == *name);
        graph.initializers.iter().find(|(known, _)| known == name && !is_input).map(|(_, tensor)| tensor)
    };
    let [x, shape] = &node.inputs[..] else { return false };
    let Some(packed) = graph.nodes.iter().find(|n| n.outputs.first() == Some(x)) else { return false };
    if node.op != "Reshape"
        || !node.domain.is_empty()
        || (packed.op.as_str(), packed.domain.as_str()) != ("ReorderInput", DOMAIN)
        || !packed.attrs.is_empty()
    {
        return false;
    }
    let channels = packed.inputs.first().and_then(constant).and_then(|zeros| match zeros.dims[..] {
        [1, channels, 1, 1] => Some(channels),
        _ => None,
    });
    let wanted = constant(shape).filter(|to| to.dims == [1]).and_then(|to| to.data.as_ref().try_into().ok());
    let Some((channels, wanted)) = channels.zip(wanted.map(i64::from_le_bytes)) else { return false };
    let packed_in = |block: i64| (channels + block - 1) / block * block;
    BLOCKS.iter().all(|&host| (packed_in(host) == wanted) == (host == block))
}

/// The values that outputs of a graph depend on.
fn needed(graph: &Graph) -> FxHashSet<&str> {
    let mut needed: FxHashSet<&str> = graph.outputs.iter().map(String::as_str).collect();
    // Nodes of a file stand behind those that they read.
    for node in graph.nodes.iter().rev() {
        if node.outputs.iter().any(|y| needed.contains(y.as_str())) {
            reads(node, &mut needed);
        }
    }
    needed
}

/// What a node and its bodies read. Names are unique, so those of a body's own values do no harm.
fn reads<'g>(node: &'g Node, into: &mut FxHashSet<&'g str>) {
    into.extend(node.inputs.iter().map(String::as_str));
    for body in bodies(node) {
        into.extend(body.outputs.iter().map(String::as_str));
        body.nodes.iter().for_each(|node| reads(node, into));
    }
}
