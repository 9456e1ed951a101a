//! `materialize`: writes the plan into the graph. Values get their layouts; where a reader wants another one, a Relayout stands
//! between, one per value and layout. A Transpose whose view nobody reads moves the bytes itself and needs none.
//!
//! A row-major copy takes the value's name, so that whoever reads the value by name finds what it expects; of an output of the
//! model the copy that is the output does. Where a body reads
//! a copy that has another name, its outer value follows.

use crate::decide::{BodyKey, Plan, Scopes, Taken};
use crate::forms::raise::raise;
use crate::state::{State, Step};
use relayout_ir::attr::Attr;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout_ir::patch::{Insert, Patch};
use relayout_target_api::{Become, Declared, Fact, Offer, PassError, Slot};
use rustc_hash::FxHashMap;

/// The pass.
pub(crate) const PASS: Step<'static> = Step::engine(
    Declared::new("materialize", Slot::Write, "writes the decision as layouts and Relayouts")
        .needs(&[Fact::Decided])
        .gives(&[Fact::Layouts])
        .keeps_nodes(),
    materialize,
);

/// Applies a plan to every graph of a model.
pub(crate) fn materialize(graph: &mut Graph, state: &mut State<'_>) -> Result<(), PassError> {
    let plan = &state.plan;
    let scopes = Scopes::with_ends(graph, &state.ends);
    let taken: Vec<Vec<(ValueId, Taken)>> = (0..scopes.list.len())
        .map(|s| scopes.graph(s).values().map(|v| (v, plan.taken(&scopes, s, v))).collect())
        .collect();
    drop(scopes);
    apply(graph, 0, plan, &taken, &FxHashMap::default())
}

/// Applies a plan to the graph of one scope and those within. `renamed` has the names under which its outer values go now.
fn apply(
    graph: &mut Graph,
    s: usize,
    plan: &Plan,
    taken: &[Vec<(ValueId, Taken)>],
    renamed: &FxHashMap<String, String>,
) -> Result<(), PassError> {
    let captured = captures(graph);
    for n in graph.nodes().collect::<Vec<_>>() {
        if matches!(graph.node(n).op, Op::Outer) {
            graph.rename_outer(n, renamed);
        }
    }
    for piece in plan.raised(s) {
        raise(graph, piece)?;
    }
    let mut patch = Patch::new();
    // What nobody needs any more is gone.
    for (v, taken) in taken[s].iter().filter(|(v, _)| graph.has(*v)) {
        collect(graph, s, *v, taken, &mut patch);
    }
    patch.apply(graph)?;
    // After the copies have gone to the slots that the plan speaks of.
    for n in graph.nodes().collect::<Vec<_>>() {
        if let Some(offer) = plan.offer(s, n) {
            take(graph, n, offer);
        }
    }
    for (n, before) in captured {
        let now = captures_of(graph, n);
        let inner: FxHashMap<String, String> = before.into_iter().zip(now).filter(|(a, b)| a != b).collect();
        let names: Vec<String> = graph.node(n).attrs.keys().cloned().collect();
        for name in names {
            let Some(attr) = graph.attrs_mut(n).get_mut(&name) else { continue };
            apply_bodies(attr, (s, n, name), plan, taken, &inner)?;
        }
    }
    Ok(())
}

fn apply_bodies(
    attr: &mut Attr,
    (s, n, name): (usize, NodeId, String),
    plan: &Plan,
    taken: &[Vec<(ValueId, Taken)>],
    renamed: &FxHashMap<String, String>,
) -> Result<(), PassError> {
    for (i, body) in attr.bodies_mut().iter_mut().enumerate() {
        let key: BodyKey = (s, n, name.clone(), i);
        if let Some(child) = plan.body(&key) {
            apply(body, child, plan, taken, renamed)?;
        }
    }
    Ok(())
}

/// Gives a node the layouts of the offer that was chosen for it, and makes it the op that it becomes.
fn take(graph: &mut Graph, n: NodeId, offer: &Offer) {
    let mut layouts = offer.layouts.clone();
    if let Some(Become { op, opset, operands, set, remove }) = offer.becomes.clone() {
        if let Some(operands) = operands {
            let inputs = operands.iter().map(|&slot| graph.node(n).operand(slot)).collect();
            graph.set_inputs(n, inputs);
            layouts.ins = operands.iter().map(|&slot| offer.layouts.ins.get(slot).cloned().flatten()).collect();
        }
        graph.set_op(n, op, opset);
        let attrs = graph.attrs_mut(n);
        for name in remove {
            attrs.shift_remove(&name);
        }
        attrs.extend(set);
    }
    graph.set_form(n, Form::Kernel(Box::new(layouts)));
}

/// Nodes with bodies, and the names that these read.
fn captures(graph: &Graph) -> Vec<(NodeId, Vec<String>)> {
    let holders = graph.nodes().filter(|&n| graph.node(n).bodies().next().is_some());
    holders.map(|n| (n, captures_of(graph, n))).collect()
}

fn captures_of(graph: &Graph, n: NodeId) -> Vec<String> {
    graph.node(n).captures.iter().map(|&v| graph.value(v).name.clone()).collect()
}

/// Layout and copies of one value.
fn collect(graph: &Graph, s: usize, v: ValueId, taken: &Taken, patch: &mut Patch) {
    let Some(produced) = &taken.produced else { return };
    let value = graph.value(v);
    if value.layout != *produced {
        patch.set_layout(v, produced.clone());
    }
    for copy in &taken.copies {
        let mut node = Node::new(Op::Relayout, vec![Some(v)]);
        node.rank = graph.node(value.producer().0).rank;
        let row_major = copy.layout.is_row_major();
        // Inputs and outer values are known by their names to somebody else.
        let fixed = matches!(graph.node(value.producer().0).op, Op::Input { .. } | Op::Outer);
        // An output of the model has its name for the caller, who may have agreed to another layout.
        let for_caller = if s == 0 && graph.is_output(v) { !copy.outputs.is_empty() } else { row_major };
        let takes_name = for_caller && !fixed;
        patch.insert(Insert {
            node,
            name: format!("{}.{}", value.name, if takes_name { produced } else { &copy.layout }),
            ty: value.ty.clone(),
            layout: copy.layout.clone(),
            uses: copy.uses.clone(),
            outputs: copy.outputs.clone(),
            takes_name_of: takes_name.then_some(v),
        });
    }
}
