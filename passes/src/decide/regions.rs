//! Regions: what changes together, and whether it gains.
//!
//! Two changed nodes are in one region if a value between them is stored or read in another layout than the input's. Regions
//! meet only at values that are unchanged, so each is kept or given back by itself. One is kept iff its cost falls strictly at
//! the size hints and does not rise at their low and high ends, and the bytes that it moves rise at none of them. Where kernels of a
//! dialect are in it, whose costs were measured about the size hints alone, these decide.

use super::plan::{Plan, Price, Taken, is_transpose};
use super::scopes::Scopes;
use petgraph::unionfind::UnionFind;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId, Op, Use, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::storage::same_bytes;
use relayout_target_api::hints::{Hints, Scale};
use relayout_target_api::{Cost, MoveQuery, Sizes, Target};
use std::collections::BTreeMap;

/// Gives back every region that does not gain so many percent of its cost, or does not gain at all.
pub(super) fn keep_what_gains(
    scopes: &Scopes<'_>,
    plan: &mut Plan,
    target: &dyn Target,
    hints: &Hints,
    least_gain: u64,
) {
    let elements = Elements::of(scopes);
    let loaded = plan.loaded();
    let origin = if scopes.fixed.is_empty() { None } else { Some(plan.origin()) };
    let input = match (&loaded, &origin) {
        (Some(loaded), _) => Input::Loaded(loaded),
        (None, origin) => Input::Read(origin.as_ref()),
    };
    // Sizes that are all known are the same at both ends.
    let ends = if is_open(scopes) { &[Scale::Low, Scale::High][..] } else { &[] };
    // Giving one back can only make a neighbour's shared copy dearer, so it ends: each round gives back at least one element.
    loop {
        let losing: Vec<Element> = regions(scopes, &elements, plan, loaded.as_ref())
            .into_iter()
            .filter(|region| !gains(scopes, plan, (input, region), target, (hints, ends), least_gain))
            .flat_map(|region| region.elements)
            .filter(|e| match *e {
                Element::Node(s, n) => plan.is_changed(s, n),
                Element::Border(b) => plan.border_is_changed(b),
            })
            .collect();
        if losing.is_empty() {
            return;
        }
        for e in losing {
            match e {
                Element::Node(s, n) => plan.revert(s, n),
                Element::Border(b) => plan.revert_border(b),
            }
        }
    }
}

/// What a decision is held against.
#[derive(Clone, Copy)]
enum Input<'p> {
    /// The input as it was read; with it what a contract makes of it, if there is one.
    Read(Option<&'p Plan>),
    /// The input as the target's runtime runs it.
    Loaded(&'p Plan),
}

/// Whether the size of a value depends on a symbol, or is not known.
fn is_open(scopes: &Scopes<'_>) -> bool {
    let known = |graph: &Graph, v: ValueId| {
        let shape = graph.value(v).ty.shape();
        shape.is_some_and(|shape| shape.iter().all(|dim| dim.as_const().is_some()))
    };
    scopes.list.iter().any(|scope| scope.graph.values().any(|v| !known(scope.graph, v)))
}

/// What a region is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Node(usize, NodeId),
    Border(usize),
}

/// Numbers of elements over all scopes.
struct Elements {
    /// Where the nodes of each scope begin; then the borders.
    first: Vec<usize>,
    count: usize,
}

impl Elements {
    fn of(scopes: &Scopes<'_>) -> Elements {
        let mut first = Vec::new();
        let mut count = 0;
        for scope in &scopes.list {
            first.push(count);
            count += scope.graph.nodes().map(|n| n.index() + 1).max().unwrap_or(0);
        }
        first.push(count);
        Elements { first, count: count + scopes.borders.len() }
    }

    fn number(&self, e: Element) -> usize {
        match e {
            Element::Node(s, n) => self.first[s] + n.index(),
            Element::Border(b) => self.first.last().copied().unwrap_or(0) + b,
        }
    }
}

/// What changes together, and the values in it.
#[derive(Debug, Default)]
struct Region {
    elements: Vec<Element>,
    values: Vec<(usize, ValueId)>,
}

fn regions(scopes: &Scopes<'_>, elements: &Elements, plan: &Plan, loaded: Option<&Plan>) -> Vec<Region> {
    let mut sets = UnionFind::<usize>::new(elements.count);
    let mut members: BTreeMap<usize, Element> = BTreeMap::new();
    let mut changed: Vec<(usize, ValueId, usize)> = Vec::new();
    for s in 0..scopes.list.len() {
        for v in scopes.graph(s).values() {
            let touching = match loaded {
                Some(loaded) => touching_loaded(scopes, plan, loaded, (s, v)),
                None => touching(scopes, plan, s, v),
            };
            let Some(&first) = touching.first() else { continue };
            let first = elements.number(first);
            for e in touching {
                members.insert(elements.number(e), e);
                sets.union(first, elements.number(e));
            }
            changed.push((s, v, first));
        }
    }
    let mut regions: BTreeMap<usize, Region> = BTreeMap::new();
    for (number, e) in members {
        regions.entry(sets.find(number)).or_default().elements.push(e);
    }
    for (s, v, number) in changed {
        regions.entry(sets.find(number)).or_default().values.push((s, v));
    }
    regions.into_values().collect()
}

/// Everything at a value that leaves or reads it otherwise than the input has it.
fn touching(scopes: &Scopes<'_>, plan: &Plan, s: usize, v: ValueId) -> Vec<Element> {
    if plan.is_constant(s, v) {
        return Vec::new();
    }
    let graph = scopes.graph(s);
    let taken = plan.taken(scopes, s, v);
    let mut touching = Vec::new();
    match scopes.produced(s, v) {
        Some(c) if plan.border_is_changed(c.border) => touching.push(Element::Border(c.border)),
        None if changes_producer(scopes, plan, s, v, &taken) => {
            touching.push(Element::Node(s, graph.value(v).producer().0));
        }
        _ => {}
    }
    for u in graph.uses(v) {
        match scopes.wanted(s, u) {
            Some(c) if plan.border_is_changed(c.border) => touching.push(Element::Border(c.border)),
            None if reads_otherwise(scopes, plan, s, u, v) => touching.push(Element::Node(s, u.node)),
            _ => {}
        }
    }
    touching.extend(plan.raised_readers(s, v).map(|(u, _)| Element::Node(s, u.node)));
    for &k in graph.output_places(v) {
        let changed = scopes.output(s, k).filter(|c| plan.border_is_changed(c.border));
        touching.extend(changed.map(|c| Element::Border(c.border)));
    }
    touching
}

/// The same where the input is what the runtime makes of it: whose choice is another one, and what moves a value otherwise.
fn touching_loaded(scopes: &Scopes<'_>, plan: &Plan, loaded: &Plan, (s, v): (usize, ValueId)) -> Vec<Element> {
    if plan.is_constant(s, v) {
        return Vec::new();
    }
    let graph = scopes.graph(s);
    let producer = graph.value(v).producer().0;
    let moves = |plan: &Plan| plan.taken(scopes, s, v).moved_by_producer;
    let mut touching = Vec::new();
    if plan.is_changed(s, producer) || moves(plan) != moves(loaded) {
        touching.push(Element::Node(s, producer));
    }
    touching.extend(
        graph.uses(v).into_iter().map(|u| u.node).filter(|&n| plan.is_changed(s, n)).map(|n| Element::Node(s, n)),
    );
    touching.extend(plan.raised_readers(s, v).map(|(u, _)| Element::Node(s, u.node)));
    let crossings =
        scopes.produced(s, v).into_iter().chain(graph.uses(v).into_iter().filter_map(|u| scopes.wanted(s, u)));
    let ends = graph.output_places(v).iter().filter_map(|&k| scopes.output(s, k));
    touching
        .extend(crossings.chain(ends).filter(|c| plan.border_is_changed(c.border)).map(|c| Element::Border(c.border)));
    touching
}

/// Whether a node reads the value otherwise than the input has it.
fn reads_otherwise(scopes: &Scopes<'_>, plan: &Plan, s: usize, u: Use, v: ValueId) -> bool {
    plan.runs_otherwise(s, u.node) || plan.offer(s, u.node).is_some() || !plan.wanted(scopes, s, u, v).is_row_major()
}

/// Whether the producer leaves the value otherwise than the input has it.
fn changes_producer(scopes: &Scopes<'_>, plan: &Plan, s: usize, v: ValueId, taken: &Taken) -> bool {
    let graph = scopes.graph(s);
    let node = graph.node(graph.value(v).producer().0);
    if !matches!(node.op, Op::Onnx(_)) {
        return false;
    }
    let row_major = taken.produced.as_ref().is_none_or(Layout::is_row_major);
    plan.runs_otherwise(s, graph.value(v).producer().0)
        || !row_major
        || plan.offer(s, graph.value(v).producer().0).is_some()
        || (is_transpose(node) && !is_own_move(graph, plan, s, v, taken))
}

/// Whether the value comes from a Transpose that stays as it is: row-major to row-major, moving.
fn is_own_move(graph: &Graph, plan: &Plan, s: usize, v: ValueId, taken: &Taken) -> bool {
    let (producer, _) = graph.value(v).producer();
    let Form::View(view @ View::Transpose(_)) = &graph.node(producer).form else { return false };
    let operand = graph.node(producer).operand(0);
    let (Some(x), Some(produced)) = (operand, &taken.produced) else { return true };
    let from = graph.value(x).ty.shape().unwrap_or_default();
    let to = graph.value(v).ty.shape().unwrap_or_default();
    let Some(read) = plan.choice(s, producer).and_then(|c| c.ins.first()) else { return true };
    let in_place = view.forward(read, from, to).is_ok_and(|l| same_bytes(&l, produced, to));
    read.is_row_major() && produced.is_row_major() && !in_place
}

fn gains(
    scopes: &Scopes<'_>,
    plan: &Plan,
    (input, region): (Input<'_>, &Region),
    target: &dyn Target,
    (hints, ends): (&Hints, &[Scale]),
    least_gain: u64,
) -> bool {
    let at = |scale| {
        let hints = hints.scaled(scale);
        let before = match input {
            Input::Loaded(loaded) => price_now(scopes, loaded, region, target, &hints),
            Input::Read(origin) => {
                let agreed = origin.map(|origin| price_of_contract(scopes, origin, region, target, &hints));
                price_before(scopes, plan, region, target, &hints) + agreed.unwrap_or_default()
            }
        };
        (price_now(scopes, plan, region, target, &hints), before)
    };
    let (now, before) = at(Scale::Typical);
    // Costs of a dialect's kernels were measured about the size hints: what is made of them far from these is no reason.
    let priced = region.elements.iter().any(|e| match *e {
        Element::Node(s, n) => {
            let choices = [plan.choice(s, n), plan.origin_choice(s, n)];
            choices.into_iter().flatten().any(|choice| choice.cost != Cost::ZERO)
        }
        Element::Border(_) => false,
    });
    let ends = if target.capabilities().checks_sizes || !priced { ends } else { &[] };
    now.gains_over(before, target, least_gain)
        && ends.iter().all(|&end| {
            let (now, before) = at(end);
            now.holds_against(before, target)
        })
}

fn price_now(scopes: &Scopes<'_>, plan: &Plan, region: &Region, target: &dyn Target, hints: &Hints) -> Price {
    let elements: Price = region.elements.iter().map(|&e| element_price(scopes, plan, e, target, hints)).sum();
    let copies = region.values.iter().map(|&(s, v)| plan.copies_price(scopes, s, v, target, hints));
    elements + copies.sum()
}

fn element_price(scopes: &Scopes<'_>, plan: &Plan, e: Element, target: &dyn Target, hints: &Hints) -> Price {
    let Element::Node(s, n) = e else { return Price::default() };
    let graph = scopes.graph(s);
    let own = Price::of_op(plan.choice_cost(s, graph, n, target, hints));
    let moved: Price = graph
        .node(n)
        .outputs
        .iter()
        .flatten()
        .filter_map(|&v| {
            let taken = plan.taken(scopes, s, v);
            Some(Price::of_move(graph, v, &taken.moved_by_producer?, &taken.produced?, target, hints))
        })
        .sum();
    (own + moved).times(scopes.list[s].weight)
}

/// What the input pays for the same nodes: their own cost in ONNX's order, and every Transpose among them.
fn price_before(scopes: &Scopes<'_>, plan: &Plan, region: &Region, target: &dyn Target, hints: &Hints) -> Price {
    let of = |e: &Element| {
        let Element::Node(s, n) = *e else { return Price::default() };
        let graph = scopes.graph(s);
        let node = graph.node(n);
        let price = if is_transpose(node) && node.outputs.iter().flatten().any(|&y| scopes.is_fixed(s, y)) {
            // Its price is that of what the contract makes of it.
            Price::default()
        } else if is_transpose(node) {
            own_move(scopes, s, n, target, hints)
        } else {
            Price::of_op(plan.origin_cost(s, graph, n, target, hints))
        };
        price.times(scopes.list[s].weight)
    };
    region.elements.iter().map(of).sum()
}

/// What the input pays where a contract has an end otherwise: moves of the ends, and Transposes that leave them.
fn price_of_contract(scopes: &Scopes<'_>, origin: &Plan, region: &Region, target: &dyn Target, hints: &Hints) -> Price {
    let ends = region.values.iter().filter(|&&(s, v)| scopes.is_fixed(s, v));
    let copies = ends.map(|&(s, v)| origin.copies_price(scopes, s, v, target, hints)).sum::<Price>();
    let leaves = |e: &&Element| match **e {
        Element::Node(s, n) => {
            let node = scopes.graph(s).node(n);
            is_transpose(node) && node.outputs.iter().flatten().any(|&y| scopes.is_fixed(s, y))
        }
        Element::Border(_) => false,
    };
    let transposes = region.elements.iter().filter(leaves);
    copies + transposes.map(|&e| element_price(scopes, origin, e, target, hints)).sum()
}

/// What a Transpose of the input pays: its operand's view, moved to ONNX's order.
pub(super) fn own_move(scopes: &Scopes<'_>, s: usize, n: NodeId, target: &dyn Target, hints: &Hints) -> Price {
    let graph = scopes.graph(s);
    let node = graph.node(n);
    let Form::View(View::Transpose(perm)) = &node.form else { return Price::default() };
    let Some(y) = node.result(0) else { return Price::default() };
    let row_major = Layout::row_major(perm.len());
    let Ok(left) = row_major.transpose(perm) else { return Price::default() };
    let Some(shape) = hints.shape(graph, y) else { return Price::default() };
    let dtype = graph.value(y).ty.dtype();
    // A Transpose of the file moves even where a Reshape would do.
    let bytes = hints.bytes(graph, y);
    let query = MoveQuery::permute(&left, &row_major, &shape).dtype(dtype).bytes(bytes);
    Price { cost: target.move_cost(&query).unwrap_or(Cost::INFINITE), bytes }
}
