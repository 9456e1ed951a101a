//! What fails is given back: where a rewrite leaves what can't be, the nodes that it was about stay as they are in the file, and
//! the model is decided anew without them.
//!
//! A node that [stays as it is](relayout_ir::graph::Node::kept) is for every pass an op that nobody knows, so no rewrite and no layout
//! reaches it, whatever they are. The first time it is the nodes that the fault names and their neighbours, then ever more around them,
//! twice as far each time. A fault that names no node is looked for by halves. After [`TRIES`] the model is left as it is.

use crate::error::Error;
use crate::facts::{self, LoadFault};
use relayout_ir::graph::{Graph, NodeId, Op};
use relayout_target_api::PassError;
use std::collections::BTreeSet;

/// How often a model is decided at most.
pub(crate) const TRIES: usize = 8;

/// Names that a message lists.
const NAMED: usize = 3;

/// What stays as it was.
#[derive(Clone, Debug)]
pub(crate) struct GivenBack {
    /// Whether that is the whole model.
    pub(crate) all: bool,
    /// What failed, and what stays.
    pub(crate) why: String,
    /// What failed, each fault once.
    causes: Vec<String>,
}

impl GivenBack {
    /// The whole model, after this.
    pub(crate) fn whole(self) -> GivenBack {
        GivenBack { all: true, ..self }
    }

    /// Whether one of these notes says it, maybe with other nodes that stay.
    pub(crate) fn is_said(&self, notes: &[String]) -> bool {
        self.causes.iter().all(|cause| notes.iter().any(|note| note.contains(cause)))
    }
}

/// How what is said of a fault begins.
const SAID: &str = "a rewrite failed";

/// What is wrong with what a round made.
#[derive(Debug)]
pub(crate) struct Failed {
    /// Whether a rewrite is at fault, and not a runtime.
    fault: bool,
    why: String,
    /// Places in the file of the nodes that it is about, if that is known.
    ranks: Vec<u32>,
}

impl Failed {
    /// A fault of a rewrite.
    pub(crate) fn of(e: &Error) -> Failed {
        let ranks = match e {
            Error::Pass(PassError::Invalid { ranks, .. }) => ranks.clone(),
            _ => Vec::new(),
        };
        Failed { fault: true, why: e.to_string(), ranks }
    }

    /// A result that a check does not show to compute what the model computes, by the values of the model around the first node of it
    /// that differs.
    pub(crate) fn unproved(graph: &Graph, values: &BTreeSet<String>, why: String) -> Failed {
        let makers = values.iter().filter_map(|value| graph.by_name(value)).map(|v| graph.value(v).producer().0);
        Failed { fault: true, why, ranks: makers.map(|n| graph.node(n).rank).collect() }
    }

    /// What a runtime would do wrong, if anything, in a graph that is about to be written.
    pub(crate) fn at(graph: &Graph, found: &[LoadFault]) -> Option<Failed> {
        let first = found.first()?;
        let makers = found.iter().filter_map(|found| graph.by_name(&found.value));
        let ranks = makers.map(|v| graph.node(graph.value(v).producer().0).rank).collect();
        Some(Failed { fault: false, why: first.why.clone(), ranks })
    }

    /// What stays as it was because of it and of faults before it, nodes of these places.
    pub(crate) fn part(&self, graph: &Graph, kept: &BTreeSet<u32>, before: Option<GivenBack>) -> GivenBack {
        let nodes = graph.order().unwrap_or_default().into_iter().filter(|&n| kept.contains(&graph.node(n).rank));
        let named = nodes.filter(|&n| matches!(graph.node(n).op, Op::Onnx(_)));
        let names: Vec<String> = named.map(|n| graph.node(n).describe(graph)).collect();
        let first = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = names.len().checked_sub(NAMED + 1).map_or(String::new(), |more| format!(" and {} more", more + 1));
        let stay = format!("{first}{more} {} as before", if names.len() == 1 { "stays" } else { "stay" });
        let mut causes = before.map_or(Vec::new(), |before| before.causes);
        if !causes.contains(&self.why) {
            causes.push(self.why.clone());
        }
        let all = causes.join("; ");
        let why = if self.fault { format!("{SAID}, so {stay}: {all}") } else { format!("{stay}: {all}") };
        GivenBack { all: false, why, causes }
    }

    /// Adds what it is about to what stays as it is.
    pub(crate) fn grow(&self, kept: &mut BTreeSet<u32>, graph: &Graph, tries: usize) {
        if self.ranks.is_empty() {
            return halve(kept, graph, tries);
        }
        // Another fault than those before begins at its own nodes.
        let again = self.ranks.iter().all(|rank| kept.contains(rank));
        kept.extend(&self.ranks);
        for _ in 0..if again { 1_usize << tries } else { 1 } {
            // What is beside a node is not what else reads an input of the graph.
            let is_op = |&n: &NodeId| matches!(graph.node(n).op, Op::Onnx(_));
            let own = graph.nodes().filter(|&n| kept.contains(&graph.node(n).rank)).filter(is_op);
            let own: Vec<NodeId> = own.collect();
            let near: Vec<NodeId> = own.into_iter().flat_map(|n| neighbours(graph, n)).filter(is_op).collect();
            let before = kept.len();
            kept.extend(near.into_iter().map(|n| graph.node(n).rank));
            if kept.len() == before {
                break;
            }
        }
    }
}

/// Why a whole model is given back.
pub(crate) fn all_given_back(failed: &Error) -> String {
    format!("{SAID}: {failed}")
}

/// Whether a note says that something was given back.
pub(crate) fn is_given_back(note: &str) -> bool {
    note.starts_with(SAID) || note.contains(facts::SEEN_IN)
}

/// Whether an error is about a rewrite, and not about the model, the target or who asks.
pub(crate) fn is_fault(e: &Error) -> bool {
    let of_pass = |e: &PassError| matches!(e, PassError::Invalid { .. } | PassError::Name(_) | PassError::Decision(_));
    match e {
        Error::Pass(e) => of_pass(e),
        Error::Export(_) => true,
        _ => false,
    }
}

fn neighbours(graph: &Graph, n: NodeId) -> Vec<NodeId> {
    let node = graph.node(n);
    let before = node.inputs.iter().flatten().chain(&node.captures).map(|&v| graph.value(v).producer().0);
    let behind = node.outputs.iter().flatten().flat_map(|&v| graph.uses(v)).map(|u| u.node);
    before.chain(behind).collect()
}

/// One half of the nodes, then the other, then both but a quarter, and so on.
fn halve(kept: &mut BTreeSet<u32>, graph: &Graph, tries: usize) {
    let ranks: Vec<u32> = graph.order().unwrap_or_default().into_iter().map(|n| graph.node(n).rank).collect();
    let (first, second) = ranks.split_at(ranks.len() / 2);
    match tries {
        0 => kept.extend(first),
        1 => *kept = second.iter().copied().collect(),
        // Both halves have a fault: what may change gets smaller from its end.
        _ => {
            let free = ranks.len() >> tries;
            kept.extend(ranks.get(free..).unwrap_or_default());
            kept.retain(|rank| !ranks[..free].contains(rank));
        }
    }
}
