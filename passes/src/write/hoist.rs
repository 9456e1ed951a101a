//! `hoist`: what a body that runs again and again makes of an outer value, it makes of the same value each time: a Relayout or a
//! raised operand that the passes put into the body of a Loop or Scan is made once, outside, and captured instead.
//!
//! Branches of an If are left as they are: they may not run at all. What the file itself has in a body stays there.

use crate::state::Step;
use relayout_ir::attr::Attr;
use relayout_ir::build::bind_again;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout_ir::patch::{Patch, remove_dead};
use relayout_target_api::{Context, Declared, Fact, PassError, Slot};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::model(
    Declared::new(
        "hoist",
        Slot::Finish,
        "takes moves and raised operands of captured values out of loops, those of constants included",
    )
    .needs(&[Fact::Written]),
    hoist,
);

/// Hoists out of every body, from the innermost out.
pub fn hoist(graph: &mut Graph, _cx: &mut Context<'_>) -> Result<(), PassError> {
    hoist_all(graph)
}

fn hoist_all(graph: &mut Graph) -> Result<(), PassError> {
    for n in graph.nodes().collect::<Vec<_>>() {
        if graph.node(n).bodies().next().is_none() {
            continue;
        }
        let names: Vec<String> = graph.node(n).attrs.keys().cloned().collect();
        for name in &names {
            let Some(attr) = graph.attrs_mut(n).get_mut(name) else { continue };
            for body in attr.bodies_mut() {
                hoist_all(body)?;
            }
        }
        if matches!(graph.node(n).onnx(), Some("Loop" | "Scan")) && hoist_out_of(graph, n)? {
            bind_again(graph, n);
        }
    }
    Ok(())
}

/// What a body makes of an outer value: the node, the outer value's name and the result.
struct Repeated {
    node: NodeId,
    outer: String,
    result: ValueId,
}

/// Hoists out of the one body of a node; whether there was anything.
fn hoist_out_of(graph: &mut Graph, n: NodeId) -> Result<bool, PassError> {
    let found: Vec<Repeated> = match graph.node(n).bodies().collect::<Vec<_>>()[..] {
        [body] => body.nodes().filter_map(|m| repeated(body, m)).collect(),
        _ => Vec::new(),
    };
    let mut any = false;
    for repeated in found {
        any |= hoist_one(graph, n, &repeated)?;
    }
    Ok(any)
}

fn repeated(body: &Graph, m: NodeId) -> Option<Repeated> {
    let node = body.node(m);
    let made = node.origin.is_none()
        && (matches!(node.op, Op::Relayout)
            || (matches!(node.op, Op::Onnx(_)) && matches!(node.form, Form::View(View::Reshape))));
    let x = node.operand(0).filter(|_| made && node.inputs.len() == 1)?;
    let result = node.result(0)?;
    let outer = matches!(body.node(body.value(x).producer().0).op, Op::Outer);
    outer.then(|| Repeated { node: m, outer: body.value(x).name.clone(), result })
}

/// Makes it outside and lets the body read that.
fn hoist_one(graph: &mut Graph, n: NodeId, repeated: &Repeated) -> Result<bool, PassError> {
    let Some(v) = graph.by_name(&repeated.outer) else { return Ok(false) };
    let Some(body) = graph.node(n).bodies().next() else { return Ok(false) };
    let (inner, made) = (body.node(repeated.node), body.value(repeated.result));
    let inside = inner.operand(0).map(|x| &body.value(x).layout);
    // An output of the body has its own name and place; a body within reads by name.
    let by_name = body.uses(repeated.result).iter().any(|u| u.slot >= body.node(u.node).inputs.len());
    if inside != Some(&graph.value(v).layout) || body.is_output(repeated.result) || by_name {
        return Ok(false);
    }
    let mut node = Node::new(inner.op.clone(), vec![Some(v)]);
    (node.opset, node.form, node.rank) =
        (inner.opset, inner.form.clone(), graph.node(graph.value(v).producer().0).rank);
    let (ty, layout) = (made.ty.clone(), made.layout.clone());
    let name = free_in_both(graph, body, &made.name);
    let hoisted = graph.add_single(node, name.clone(), ty.clone())?;
    *graph.value_mut(hoisted).layout = layout.clone();
    graph.add_capture(n, hoisted);
    let Some(body) = graph.attrs_mut(n).values_mut().flat_map(Attr::bodies_mut).next() else {
        return Ok(false);
    };
    let captured = body.add_single(Node::new(Op::Outer, vec![]), name, ty)?;
    *body.value_mut(captured).layout = layout;
    let mut patch = Patch::new();
    patch.redirect(repeated.result, captured);
    patch.apply(body)?;
    remove_dead(body, [repeated.node]);
    Ok(true)
}

/// A name that neither graph has.
fn free_in_both(graph: &Graph, body: &Graph, base: &str) -> String {
    let mut name = graph.fresh_name(base);
    while body.by_name(&name).is_some() || graph.by_name(&name).is_some() {
        name = body.fresh_name(&format!("{name}.outer"));
    }
    name
}
