//! Nodes, edges, names, scopes, constants, and layouts against shapes.

use super::{Invariant, Scope};
use crate::constant::Constant;
use crate::graph::{Node, Op, Use, ValueId};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// Everything but forms and pinned layouts; false if some id leads nowhere, so that nothing else can be asked.
pub(super) fn check(scope: &mut Scope<'_>) -> bool {
    let graph = scope.graph;
    if !ids_exist(scope) {
        return false;
    }
    if let Err(stuck) = graph.order() {
        let names: Vec<String> = stuck.iter().take(4).map(|&n| graph.node(n).describe(graph)).collect();
        let more = if stuck.len() > names.len() { " and others" } else { "" };
        let problem = format!("nodes wait for each other: {}{more}", names.join(", "));
        scope.report(Invariant::Acyclic, None, problem, "let one of them read something that does not depend on it");
    }
    edges(scope);
    names(scope);
    let inputs: FxHashSet<ValueId> = graph.inputs().iter().copied().collect();
    for n in graph.nodes() {
        let node = graph.node(n);
        scope.node = Some(node);
        sources(scope, node, &inputs);
        captures(scope, node);
        for &v in node.outputs.iter().flatten() {
            layout(scope, v);
        }
    }
    scope.node = None;
    true
}

fn exists(scope: &Scope<'_>, v: ValueId) -> bool {
    v.index() < scope.graph.value_bound() && scope.graph.contains(scope.graph.value(v).producer().0)
}

fn ids_exist(scope: &mut Scope<'_>) -> bool {
    let graph = scope.graph;
    let before = scope.violations.len();
    for (k, &v) in graph.outputs().iter().enumerate() {
        if !exists(scope, v) {
            let fix = "make it a value of this graph";
            scope.report(Invariant::Outputs, None, format!("graph output {k} has no producer"), fix);
        }
    }
    for n in graph.nodes() {
        let node = graph.node(n);
        scope.node = Some(node);
        for &v in node.inputs.iter().flatten().chain(&node.captures) {
            if !exists(scope, v) {
                let fix = "connect it to a value of this graph, or remove the node";
                scope.report(Invariant::Edges, None, "reads a value that has no producer", fix);
            }
        }
    }
    scope.node = None;
    scope.violations.len() == before
}

/// Operand lists against edges, result lists against producers.
fn edges(scope: &mut Scope<'_>) {
    let graph = scope.graph;
    let fix = "change the topology through the graph's own methods or a patch";
    let mut linked = 0;
    for v in graph.values() {
        linked += graph.use_count(v);
        let (n, slot) = graph.value(v).producer();
        if graph.node(n).outputs.get(slot) != Some(&Some(v)) {
            let problem = format!("is not result {slot} of the node that should make it");
            scope.report(Invariant::Edges, Some(v), problem, fix);
        }
    }
    // Each operand is an edge and there are no more edges, so that there is nothing to be compared one by one.
    let operands = || graph.nodes().flat_map(|node| graph.reads(node).map(move |(slot, v)| (v, Use { node, slot })));
    if operands().all(|(v, u)| graph.is_use(v, u)) && operands().count() == linked {
        return;
    }
    let listed: BTreeSet<(ValueId, Use)> = operands().collect();
    let linked: BTreeSet<(ValueId, Use)> =
        graph.values().flat_map(|v| graph.uses(v).into_iter().map(move |u| (v, u))).collect();
    for &(v, Use { node, slot }) in listed.symmetric_difference(&linked) {
        scope.node = Some(graph.node(node));
        let problem = format!("is read in slot {slot} by the operands or by the edges, not by both");
        scope.report(Invariant::Edges, Some(v), problem, fix);
    }
    scope.node = None;
}

fn names(scope: &mut Scope<'_>) {
    let graph = scope.graph;
    for v in graph.values() {
        if graph.by_name(&graph.value(v).name) != Some(v) {
            scope.report(
                Invariant::Names,
                Some(v),
                "shares its name with another value",
                "give one of them a fresh name",
            );
        }
    }
}

/// Inputs, constants and outer values; `inputs` are those of the graph.
fn sources(scope: &mut Scope<'_>, node: &Node, inputs: &FxHashSet<ValueId>) {
    let result = match node.outputs[..] {
        [Some(v)] => Some(v),
        _ => None,
    };
    let source = !matches!(node.op, Op::Relayout | Op::Onnx(_));
    if source && (result.is_none() || !node.inputs.is_empty()) {
        let fix = "give it one result and no operands";
        scope.report(Invariant::Scope, None, "an input, constant or outer value stands for one value", fix);
    }
    match (&node.op, result) {
        (Op::Input { .. }, Some(v)) if !inputs.contains(&v) => {
            let fix = "add it with `Graph::add_input`";
            scope.report(Invariant::Scope, Some(v), "is made by an input node, but is not a graph input", fix);
        }
        (Op::Outer, _) if scope.contract.is_some() => {
            let fix = "make it an input or a constant";
            scope.report(
                Invariant::Scope,
                result,
                "is an outer value of the main graph, which has no outer scope",
                fix,
            );
        }
        (Op::Constant(c) | Op::Input { default: Some(c) }, Some(v)) => constant(scope, c, v),
        _ => {}
    }
}

fn constant(scope: &mut Scope<'_>, c: &Constant, v: ValueId) {
    let value = scope.graph.value(v);
    if value.ty.dtype().is_some_and(|dtype| dtype != c.dtype) {
        let problem = format!("is {}, but its constant is {}", value.ty, c.dtype);
        scope.report(Invariant::Constant, Some(v), problem, "give the value the constant's element type");
    }
    if let Some(stored) = scope.graph.storage_shape(v, &value.layout) {
        let fits = stored.len() == c.dims.len()
            && stored.iter().zip(&c.dims).all(|(dim, &extent)| dim.as_const().is_none_or(|dim| dim == extent));
        if !fits {
            let problem =
                format!("is {} stored as {}, but its constant has the extents {:?}", value.ty, value.layout, c.dims);
            let fix = "note a repack to the layout's order on the constant, with the extents in that order";
            scope.report(Invariant::Constant, Some(v), problem, fix);
        }
    }
    let Some(repack) = &c.pending else { return };
    let made = repack.to.bind(&repack.extents).map(|bound| bound.storage_elems());
    if made.ok() != c.elems() {
        let problem = format!("is to be repacked from {:?} as {} to {:?}", repack.extents, repack.to, c.dims);
        let fix = "give the layout in which the source's axes fill the extents";
        scope.report(Invariant::Constant, Some(v), problem, fix);
    }
}

/// Outer values of a node's bodies among its captures.
fn captures(scope: &mut Scope<'_>, node: &Node) {
    let graph = scope.graph;
    if node.bodies().next().is_none() {
        return;
    }
    let captured: BTreeSet<&str> = node.captures.iter().map(|&v| graph.value(v).name.as_str()).collect();
    let mut missing = BTreeSet::new();
    for body in node.bodies() {
        for outer in body.nodes().map(|n| body.node(n)).filter(|n| matches!(n.op, Op::Outer)) {
            let names = outer.outputs.iter().flatten().map(|&v| body.value(v).name.as_str());
            missing.extend(names.filter(|name| !captured.contains(name)));
        }
    }
    for name in missing {
        let problem = "is read by a body of the node, which does not capture it";
        let fix = "add it to the node's captures, and where it comes from further out, to the graph as an outer value";
        scope.report_named(Invariant::Scope, Some(name.to_owned()), problem, fix);
    }
}

fn layout(scope: &mut Scope<'_>, v: ValueId) {
    let value = scope.graph.value(v);
    let Some(shape) = value.ty.shape() else { return };
    let layout = &value.layout;
    if layout.rank() != shape.len() {
        let problem = format!("is {}, but its layout {layout} has rank {}", value.ty, layout.rank());
        scope.report(Invariant::Layout, Some(v), problem, "set a layout of the value's rank whenever the type is set");
        return;
    }
    if let Some(axis) = (0..shape.len()).find(|&axis| layout.slot_map(axis).is_some() && !shape[axis].is_const()) {
        let problem = format!("is {}, and its layout {layout} has a slot map for the symbolic axis {axis}", value.ty);
        scope.report(Invariant::Layout, Some(v), problem, "store that axis without a slot map");
        return;
    }
    if let Err(why) = layout.fits(shape) {
        let problem = format!("is {}, which does not fit its layout {layout}: {why}", value.ty);
        scope.report(Invariant::Layout, Some(v), problem, "choose a layout for this shape");
    }
}

/// Inputs and outputs of the main graph. Those of a body are the business of the node that holds it.
pub(super) fn pinned(scope: &mut Scope<'_>) {
    let graph = scope.graph;
    let Some(contract) = scope.contract else { return };
    let mut seen = BTreeSet::new();
    for &v in graph.inputs().iter().chain(graph.outputs()) {
        if seen.insert(v) {
            let agreed = contract.get(&graph.value(v).name);
            let (because, fix) = match agreed {
                Some(_) => ("the contract has it", "put a relayout there, or change the contract"),
                None => ("the caller sees it", "put a relayout there, or record its layout in the contract"),
            };
            scope.stored_as(Invariant::Pinned, v, agreed, because, fix);
        }
    }
}
