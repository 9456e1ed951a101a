//! Why values lie as they do: the nearest ops that have no choice.

use relayout_ir::form::{Bound, Form, Slot};
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use std::collections::{BTreeSet, VecDeque};
use std::fmt;

/// Most nodes that the search for a reason looks at, on either side.
const SEARCHED: usize = 64;

/// Why the producer leaves the value in its layout: the nearest op before it that has no choice, looked for through views and
/// ops that would take any order.
pub(crate) fn why_made(graph: &Graph, maker: NodeId, slot: usize) -> String {
    let (mut at, mut slot, mut through) = (maker, slot, None);
    for _ in 0..SEARCHED {
        let node = graph.node(at);
        let name = Name(graph, at);
        let reason = match (&node.op, &node.form) {
            (Op::Input { .. }, _) if given_otherwise(graph, at) => {
                Some(format!("{name} is given as the caller has it"))
            }
            (Op::Input { .. }, _) => Some(format!("{name} is given in the model's order")),
            (Op::Outer, _) => Some(format!("{name} comes in the order of the enclosing graph")),
            (Op::Constant(_), _) => Some(format!("{name} is stored so")),
            (Op::Onnx(_), Form::Opaque(why)) => Some(format!("{name} leaves it row-major ({why})")),
            (Op::Onnx(_), Form::Axes(bound)) => {
                let pinned = pinned(bound, Slot::Out(slot)).map(|axes| format!("{name} leaves {axes} at their place"));
                pinned.or_else(|| {
                    is_limited(bound).then(|| format!("{name} is computed by runtimes in few orders of its axes"))
                })
            }
            (Op::Onnx(_), Form::Kernel(_)) => Some(format!("{name} leaves it so")),
            (Op::Onnx(_), Form::View(_) | Form::Borders(_)) | (Op::Relayout, _) => None,
        };
        if let Some(reason) = reason {
            return reason + &by_way_of(graph, through);
        }
        through.get_or_insert(at);
        let before = node
            .inputs
            .iter()
            .flatten()
            .find(|v| !matches!(graph.node(graph.value(**v).producer().0).op, Op::Constant(_)));
        let Some(&before) = before else { break };
        (at, slot) = graph.value(before).producer();
    }
    format!("{} is free to leave it otherwise, at no lower price", graph.node(maker).describe(graph))
}

/// Whether an input comes in an order that a contract has, or left to the decision.
fn given_otherwise(graph: &Graph, n: NodeId) -> bool {
    graph.node(n).outputs.iter().flatten().any(|&v| !graph.value(v).layout.is_row_major())
}

/// Why readers want the value in its layout: the nearest ops after it that have no choice.
pub(crate) fn why_wanted(graph: &Graph, y: ValueId) -> String {
    const SHOWN: usize = 3;
    let mut reasons: Vec<String> = Vec::new();
    let mut queue: VecDeque<(ValueId, Option<NodeId>)> = [(y, None)].into();
    let mut seen = BTreeSet::from([y]);
    while let Some((v, through)) = queue.pop_front() {
        if seen.len() > SEARCHED {
            break;
        }
        if graph.is_output(v) {
            let value = graph.value(v);
            let order = if value.layout.is_row_major() { "in the model's order" } else { "as the caller takes it" };
            reasons.push(format!("graph output `{}` is wanted {order}{}", value.name, by_way_of(graph, through)));
        }
        for u in graph.uses(v) {
            let node = graph.node(u.node);
            let name = Name(graph, u.node);
            let reason = match (&node.op, &node.form) {
                (Op::Relayout, _) => Some(format!("{name} moves it on")),
                (_, Form::Opaque(why)) => Some(format!("{name} reads it row-major ({why})")),
                (_, Form::Axes(bound)) => {
                    let pinned = pinned(bound, Slot::In(u.slot)).map(|axes| format!("{name} finds {axes} by position"));
                    pinned.or_else(|| {
                        is_limited(bound).then(|| format!("{name} is computed by runtimes in few orders of its axes"))
                    })
                }
                (_, Form::Kernel(_)) => Some(format!("{name} reads it so")),
                (_, Form::View(_) | Form::Borders(_)) => None,
            };
            if let Some(reason) = reason {
                reasons.push(reason + &by_way_of(graph, through));
                continue;
            }
            let through = through.or(Some(u.node));
            for &out in node.outputs.iter().flatten() {
                if seen.insert(out) {
                    queue.push_back((out, through));
                }
            }
        }
    }
    if reasons.is_empty() {
        return "its readers are free to read it otherwise, at no lower price".to_owned();
    }
    let more = reasons.len().saturating_sub(SHOWN);
    reasons.truncate(SHOWN);
    let text = reasons.join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}

fn by_way_of(graph: &Graph, through: Option<NodeId>) -> String {
    through.map_or_else(String::new, |n| format!(" (by way of {})", Name(graph, n)))
}

/// A node as messages name it. Most nodes that a search passes are not named.
struct Name<'a>(&'a Graph, NodeId);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.node(self.1).describe(self.0))
    }
}

/// Whether runtimes compute the op in hardly an order of its axes but ONNX's own: an exchange of two, or none.
fn is_limited(bound: &Bound) -> bool {
    bound.orders.as_ref().is_some_and(|orders| orders.len() <= 2)
}

/// Letters of a slot that the op finds by position.
fn pinned(bound: &Bound, slot: Slot) -> Option<String> {
    let names: Vec<&str> = bound
        .axes(slot)?
        .iter()
        .filter_map(|&a| bound.atoms.get(usize::from(a)))
        .filter(|a| a.pinned)
        .map(|a| a.name.as_str())
        .collect();
    (!names.is_empty()).then(|| names.join(" "))
}
