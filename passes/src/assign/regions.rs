//! Regions: what changes together, and whether it gains.
//!
//! Two changed nodes are in one region if a value between them is stored or read in another layout than the input's. Regions
//! meet only at values that are unchanged, so each is kept or given back by itself. One is kept iff its cost falls strictly at
//! the size hints and does not rise at their low and high ends.

use super::plan::{Plan, Taken, is_transpose};
use crate::hints::{Hints, Scale};
use petgraph::unionfind::UnionFind;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::storage::same_bytes;
use relayout_target::{Cost, MoveKind, Target};
use std::collections::BTreeMap;

/// Gives back every region that does not gain.
pub(super) fn keep_what_gains(graph: &Graph, plan: &mut Plan, target: &dyn Target, hints: &Hints) {
    // Giving one back can only make a neighbour's shared copy dearer, so it ends: each round gives back at least one node.
    loop {
        let losing: Vec<NodeId> = regions(graph, plan)
            .into_iter()
            .filter(|region| !gains(graph, plan, region, target, hints))
            .flat_map(|region| region.nodes)
            .filter(|&n| plan.choice(n) != plan.origin_choice(n))
            .collect();
        if losing.is_empty() {
            return;
        }
        for n in losing {
            plan.revert(n);
        }
    }
}

/// Nodes that change together, and the values they share.
#[derive(Debug, Default)]
struct Region {
    nodes: Vec<NodeId>,
    values: Vec<ValueId>,
}

fn regions(graph: &Graph, plan: &Plan) -> Vec<Region> {
    let bound = graph.nodes().map(|n| n.index() + 1).max().unwrap_or(0);
    let mut sets = UnionFind::<usize>::new(bound);
    let mut changed_values: Vec<(ValueId, usize)> = Vec::new();
    let mut dirty = vec![false; bound];
    for v in graph.values() {
        if plan.is_constant(v) {
            continue;
        }
        let taken = plan.taken(graph, v);
        let (producer, _) = graph.value(v).producer();
        let mut touching: Vec<NodeId> = Vec::new();
        if changes_producer(graph, plan, v, &taken) {
            touching.push(producer);
        }
        for u in graph.uses(v) {
            if !plan.wanted(graph, u, v).is_row_major() {
                touching.push(u.node);
            }
        }
        let Some(&first) = touching.first() else { continue };
        for n in &touching {
            dirty[n.index()] = true;
            sets.union(first.index(), n.index());
        }
        changed_values.push((v, first.index()));
    }
    let mut regions: BTreeMap<usize, Region> = BTreeMap::new();
    for n in graph.nodes().filter(|n| dirty[n.index()]) {
        regions.entry(sets.find(n.index())).or_default().nodes.push(n);
    }
    for (v, n) in changed_values {
        regions.entry(sets.find(n)).or_default().values.push(v);
    }
    regions.into_values().collect()
}

/// Whether the producer leaves the value otherwise than the input has it.
fn changes_producer(graph: &Graph, plan: &Plan, v: ValueId, taken: &Taken) -> bool {
    let node = graph.node(graph.value(v).producer().0);
    if !matches!(node.op, Op::Onnx(_)) {
        return false;
    }
    let row_major = taken.produced.as_ref().is_none_or(Layout::is_row_major);
    !row_major || (is_transpose(node) && !plan.is_constant(v) && !is_own_move(graph, plan, v, taken))
}

/// Whether the value comes from a Transpose that stays as it is: row-major to row-major, moving.
fn is_own_move(graph: &Graph, plan: &Plan, v: ValueId, taken: &Taken) -> bool {
    let (producer, _) = graph.value(v).producer();
    let Form::View(view @ View::Transpose(_)) = &graph.node(producer).form else { return false };
    let operand = graph.node(producer).inputs.first().copied().flatten();
    let (Some(x), Some(produced)) = (operand, &taken.produced) else { return true };
    let from = graph.value(x).ty.shape().unwrap_or_default();
    let to = graph.value(v).ty.shape().unwrap_or_default();
    let Some(read) = plan.choice(producer).and_then(|c| c.ins.first()) else { return true };
    let in_place = view.forward(read, from, to).is_ok_and(|l| same_bytes(&l, produced, to));
    read.is_row_major() && produced.is_row_major() && !in_place
}

fn gains(graph: &Graph, plan: &Plan, region: &Region, target: &dyn Target, hints: &Hints) -> bool {
    let at = |scale| {
        let hints = hints.scaled(scale);
        (cost_now(graph, plan, region, target, &hints), cost_before(graph, plan, region, target, &hints))
    };
    let (now, before) = at(Scale::Typical);
    now < before && [Scale::Low, Scale::High].into_iter().map(at).all(|(now, before)| now <= before)
}

fn cost_now(graph: &Graph, plan: &Plan, region: &Region, target: &dyn Target, hints: &Hints) -> Cost {
    let nodes: Cost = region.nodes.iter().map(|&n| node_cost(graph, plan, n, target, hints)).sum();
    let copies = region.values.iter().map(|&v| plan.copies_cost(graph, v, &plan.taken(graph, v), target, hints));
    nodes + copies.sum()
}

fn node_cost(graph: &Graph, plan: &Plan, n: NodeId, target: &dyn Target, hints: &Hints) -> Cost {
    let own = plan.choice(n).map_or(Cost::ZERO, |c| c.cost);
    let moved: Cost = graph
        .node(n)
        .outputs
        .iter()
        .flatten()
        .filter_map(|&v| Some((v, plan.taken(graph, v).moved_by_producer?)))
        .map(|(v, kind)| target.move_cost(kind, hints.bytes(graph, v)))
        .sum();
    own + moved
}

/// What the input pays for the same nodes: their own cost in ONNX's order, and every Transpose among them.
fn cost_before(graph: &Graph, plan: &Plan, region: &Region, target: &dyn Target, hints: &Hints) -> Cost {
    let of = |n: &NodeId| {
        let node = graph.node(*n);
        if is_transpose(node) {
            let result = node.outputs.first().copied().flatten();
            return result.map_or(Cost::ZERO, |v| target.move_cost(MoveKind::Permute, hints.bytes(graph, v)));
        }
        plan.origin_choice(*n).map_or(Cost::ZERO, |c| c.cost)
    };
    region.nodes.iter().map(of).sum()
}
