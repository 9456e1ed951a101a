//! `bring_filters`: filters and biases that the convolutions of one body alone read lie in that body.
//!
//! ONNX Runtime blocks no convolution in a body whose filters are a constant of a graph around it, and no form of ours packs what it does
//! not see. Exporters keep all constants in the main graph.

use relayout_ir::attr::Attr;
use relayout_ir::build::bind_again;
use relayout_ir::constant::Constant;
use relayout_ir::graph::{Graph, Handover, Node, NodeId, Op, Use, ValueId};
use relayout_ir::patch::remove_dead;
use relayout_target_api::PassError;

/// Brings those of a graph into its bodies, and then those of its bodies into theirs.
pub(super) fn bring_filters(graph: &mut Graph) -> Result<(), PassError> {
    for n in graph.nodes().filter(|&n| graph.node(n).bodies().next().is_some()).collect::<Vec<_>>() {
        let mut moved = Vec::new();
        for v in graph.node(n).captures.clone() {
            let Some((constant, attribute, k)) = only_body(graph, n, v) else { continue };
            let name = graph.value(v).name.clone();
            let body = graph.attrs_mut(n).get_mut(&attribute).and_then(|attr| attr.bodies_mut().get_mut(k));
            put(body, &name, constant)?;
            graph.remove_capture(n, v);
            moved.push(graph.value(v).producer().0);
        }
        if !moved.is_empty() {
            remove_dead(graph, moved);
            bind_again(graph, n);
        }
        for body in graph.attrs_mut(n).values_mut().flat_map(Attr::bodies_mut) {
            bring_filters(body)?;
        }
    }
    Ok(())
}

/// The only body that reads a constant, if convolutions do so there or bodies of its own: the attribute, and which one of its bodies.
fn only_body(graph: &Graph, n: NodeId, v: ValueId) -> Option<(Constant, String, usize)> {
    let constant = graph.constant(v).filter(|_| graph.only_use(v).is_some())?;
    let name = &graph.value(v).name;
    let bodies = graph.node(n).attrs.iter();
    let bodies = bodies.flat_map(|(attribute, attr)| attr.bodies().iter().enumerate().map(move |at| (attribute, at)));
    let mut readers = bodies.filter(|(_, (_, body))| outer(body, name).is_some());
    let (attribute, (k, body)) = readers.next().filter(|_| readers.next().is_none())?;
    let filters = |u: &Use| {
        let node = body.node(u.node);
        u.slot >= node.inputs.len() || (node.onnx() == Some("Conv") && u.slot > 0)
    };
    body.uses(outer(body, name)?).iter().any(filters).then(|| (constant.clone(), attribute.clone(), k))
}

/// What a body calls a value of the graph around it.
fn outer(body: &Graph, name: &str) -> Option<ValueId> {
    body.by_name(name).filter(|&v| matches!(body.node(body.value(v).producer().0).op, Op::Outer))
}

/// Puts a constant into a body, in the place of what it read by this name.
fn put(body: Option<&mut Graph>, name: &str, constant: Constant) -> Result<(), PassError> {
    let Some((body, read)) = body.and_then(|body| outer(body, name).map(|read| (body, read))) else { return Ok(()) };
    let (ty, layout) = (body.value(read).ty.clone(), body.value(read).layout.clone());
    let free = body.fresh_name(name);
    let inside = body.add_single(Node::new(Op::Constant(constant), Vec::new()), free, ty)?;
    *body.value_mut(inside).layout = layout;
    body.know_contents(inside);
    let everything = Handover::everything(body, read);
    body.hand_over(everything, inside);
    remove_dead(body, [body.value(read).producer().0]);
    Ok(())
}
