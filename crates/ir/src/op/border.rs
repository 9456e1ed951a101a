//! Borders of If, Loop and Scan: which operand, result, body input and body output are one value.
//!
//! Branches of an If agree on every result. What a Loop or Scan carries is one value from the initial one over every iteration
//! to the result. What a Scan takes apart or stacks up has one more axis outside, provided that it is axis 0 there. A captured
//! value is one value in the graph that has it and in every body that reads it.

use super::normalize_axis;
use crate::form::{At, Border, Place};
use crate::graph::{Graph, Node, Op, ValueId};

/// Borders of a node; `None` for nodes that hold no bodies, or of which it is not known what they do with them.
pub(super) fn borders(graph: &Graph, node: &Node) -> Option<Vec<Border>> {
    let kind = node.onnx()?;
    let mut borders = match kind {
        "If" => branches(node)?,
        "Loop" => carried(node, &Slots { operand: 2, input: 2, output: 1, states: node.inputs.len().checked_sub(2)? }),
        "Scan" if node.opset >= 9 => {
            let scanned = usize::try_from(node.int("num_scan_inputs")?).ok()?;
            let states = node.inputs.len().checked_sub(scanned)?;
            let slots = Slots { operand: 0, input: 0, output: 0, states };
            let mut borders = carried(node, &slots);
            borders.extend(taken_apart(graph, node, states));
            borders
        }
        _ => return None,
    };
    borders.extend((0..node.captures.len()).map(|k| capture(graph, node, k)));
    borders.retain(|b| agree_in_rank(graph, node, b));
    Some(borders)
}

fn place(at: At) -> Place {
    Place { at, stacked: false }
}

fn branches(node: &Node) -> Option<Vec<Border>> {
    let attrs = ["then_branch", "else_branch"];
    if attrs.iter().any(|a| node.attrs.get(*a).is_none_or(|b| b.bodies().len() != 1)) {
        return None;
    }
    let of = |k: usize| {
        let ends = attrs.iter().map(|a| place(At::BodyOutput((*a).to_owned(), k)));
        Border { places: std::iter::once(place(At::Out(k))).chain(ends).collect() }
    };
    Some((0..node.outputs.len()).map(of).collect())
}

struct Slots {
    operand: usize,
    input: usize,
    output: usize,
    states: usize,
}

/// Carried values, and results that stack up what each iteration leaves.
fn carried(node: &Node, slots: &Slots) -> Vec<Border> {
    let body = || "body".to_owned();
    let state = |i: usize| Border {
        places: vec![
            place(At::In(slots.operand + i)),
            place(At::BodyInput(body(), slots.input + i)),
            place(At::BodyOutput(body(), slots.output + i)),
            place(At::Out(i)),
        ],
    };
    let axes = node.ints("scan_output_axes").unwrap_or_default();
    let stacked = |k: usize| {
        // An axis that is counted from the end is left alone unless it is the first by the rank that `agree_in_rank` checks.
        let first = axes.get(k).is_none_or(|&axis| axis == 0);
        first.then(|| Border {
            places: vec![
                place(At::BodyOutput(body(), slots.output + slots.states + k)),
                Place { at: At::Out(slots.states + k), stacked: true },
            ],
        })
    };
    let results = node.outputs.len().saturating_sub(slots.states);
    (0..slots.states).map(state).chain((0..results).filter_map(stacked)).collect()
}

/// What a Scan takes apart along axis 0.
fn taken_apart(graph: &Graph, node: &Node, states: usize) -> Vec<Border> {
    let axes = node.ints("scan_input_axes").unwrap_or_default();
    (states..node.inputs.len())
        .filter(|&slot| {
            let rank = node.inputs[slot].and_then(|v| graph.value(v).ty.rank()).unwrap_or(0);
            normalize_axis(axes.get(slot - states).copied().unwrap_or(0), rank) == Some(0)
        })
        .map(|slot| Border {
            places: vec![Place { at: At::In(slot), stacked: true }, place(At::BodyInput("body".to_owned(), slot))],
        })
        .collect()
}

fn capture(graph: &Graph, node: &Node, k: usize) -> Border {
    let name = &graph.value(node.captures[k]).name;
    let readers = node.attrs.iter().filter_map(|(attr, a)| {
        let [body] = a.bodies() else { return None };
        outer_value(body, name).map(|_| place(At::BodyOuter(attr.clone(), k)))
    });
    Border { places: std::iter::once(place(At::Capture(k))).chain(readers).collect() }
}

fn outer_value(body: &Graph, name: &str) -> Option<ValueId> {
    let v = body.by_name(name)?;
    matches!(body.node(body.value(v).producer().0).op, Op::Outer).then_some(v)
}

/// The graph that a place is in, by the attribute that holds it (`None` for the node's own), and the value there.
pub fn value_at<'g>(graph: &'g Graph, node: &'g Node, at: &At) -> Option<(Option<&'g str>, &'g Graph, ValueId)> {
    let body = |attr: &str| {
        let (name, attr) = node.attrs.get_key_value(attr)?;
        attr.bodies().first().map(|b| (name.as_str(), b))
    };
    match at {
        At::In(slot) => Some((None, graph, node.operand(*slot)?)),
        At::Out(slot) => Some((None, graph, node.result(*slot)?)),
        At::Capture(k) => Some((None, graph, node.captures.get(*k).copied()?)),
        At::BodyInput(attr, k) => body(attr).and_then(|(name, b)| Some((Some(name), b, b.inputs().get(*k).copied()?))),
        At::BodyOutput(attr, k) => {
            body(attr).and_then(|(name, b)| Some((Some(name), b, b.outputs().get(*k).copied()?)))
        }
        At::BodyOuter(attr, k) => {
            let captured = &graph.value(node.captures.get(*k).copied()?).name;
            body(attr).and_then(|(name, b)| Some((Some(name), b, outer_value(b, captured)?)))
        }
    }
}

/// Whether every place of a border is a tensor of one known rank, the extra axis aside. A result or operand that is left out
/// is no place.
fn agree_in_rank(graph: &Graph, node: &Node, border: &Border) -> bool {
    let mut ranks = border.places.iter().filter_map(|p| {
        let (_, graph, v) = value_at(graph, node, &p.at)?;
        Some(graph.value(v).ty.rank().and_then(|rank| rank.checked_sub(usize::from(p.stacked))))
    });
    match ranks.next() {
        Some(Some(first)) => ranks.all(|rank| rank == Some(first)),
        _ => false,
    }
}
