//! What the graph knows of itself (readers, outputs, order, number of edits) against what its nodes say, edit by edit.

use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, Use, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::patch::{Insert, Patch, remove_dead};
use relayout_ir::types::Type;
use relayout_ir::verify::verify;
use std::collections::BTreeSet;

/// Nodes of the graph; more than a few, so that what they share has many readers.
const NODES: usize = 40;

fn op(name: &str) -> Op {
    Op::Onnx(OpName::onnx(name))
}

fn float() -> Type {
    Type::tensor(DType::F32, vec![1.into()])
}

fn result(graph: &Graph, n: NodeId) -> ValueId {
    graph.node(n).outputs[0].unwrap()
}

/// A chain of Adds of one constant, the last of which is an output twice.
fn chain() -> (Graph, ValueId, Vec<NodeId>) {
    let mut graph = Graph::new("chain");
    let mut x = graph.add_input("x", float()).unwrap();
    let shared = graph.add_constant("shared", Constant::inline(DType::F32, vec![1], vec![0u8; 4].into())).unwrap();
    let mut nodes = Vec::new();
    for i in 0..NODES {
        let node = Node::new(op("Add"), vec![Some(x), None, Some(shared)]);
        nodes.push(graph.add(node, vec![Some((format!("y{i}"), float()))]).unwrap());
        x = result(&graph, nodes[i]);
    }
    graph.add_output(x);
    graph.add_output(x);
    (graph, shared, nodes)
}

/// Holds every answer against the nodes.
fn check(graph: &Graph) {
    let mut reads: BTreeSet<(ValueId, Use)> = BTreeSet::new();
    for n in graph.nodes() {
        let node = graph.node(n);
        let slots = node.inputs.iter().copied().chain(node.captures.iter().map(|&v| Some(v))).enumerate();
        reads.extend(slots.filter_map(|(slot, v)| v.map(|v| (v, Use { node: n, slot }))));
    }
    for v in graph.values() {
        let uses: Vec<Use> = reads.iter().filter(|(w, _)| *w == v).map(|(_, u)| *u).collect();
        let places: Vec<usize> = (0..graph.outputs().len()).filter(|&k| graph.outputs()[k] == v).collect();
        assert_eq!(graph.uses(v).to_vec(), uses);
        assert_eq!(graph.use_count(v), uses.len());
        assert_eq!(graph.output_places(v), places);
        assert_eq!(graph.is_output(v), !places.is_empty());
        let only = uses.first().copied().filter(|_| uses.len() == 1 && places.is_empty());
        assert_eq!(graph.only_use(v), only);
    }
    let order = graph.order().unwrap();
    assert_eq!(order.iter().collect::<BTreeSet<_>>(), graph.nodes().collect::<Vec<_>>().iter().collect());
    let place = |n: NodeId| order.iter().position(|&m| m == n).unwrap();
    for (v, u) in &reads {
        assert!(place(graph.value(*v).producer().0) < place(u.node));
    }
    verify(graph).unwrap();
}

/// Makes an edit, and checks that it was counted and everything follows it.
fn edited<T>(graph: &mut Graph, edit: impl FnOnce(&mut Graph) -> T) -> T {
    let before = graph.edits();
    let made = edit(graph);
    assert!(graph.edits() > before, "an edit was not counted");
    check(graph);
    assert_eq!(graph.clone().edits(), graph.edits());
    made
}

fn patched(graph: &mut Graph, fill: impl FnOnce(&mut Patch)) -> Vec<NodeId> {
    edited(graph, |graph| {
        let mut patch = Patch::new();
        fill(&mut patch);
        patch.apply(graph).unwrap()
    })
}

fn negated(v: ValueId, uses: Vec<Use>, outputs: Vec<usize>, takes_name_of: Option<ValueId>) -> Insert {
    let (node, layout) = (Node::new(op("Neg"), vec![Some(v)]), Layout::row_major(1));
    Insert { node, name: "n".to_owned(), ty: float(), layout, uses, outputs, takes_name_of }
}

#[test]
fn readers_outputs_and_order_follow_every_patch() {
    let (mut graph, shared, nodes) = chain();
    check(&graph);
    assert_eq!(graph.use_count(shared), NODES);
    let some: Vec<Use> = graph.uses(shared).into_iter().step_by(3).collect();
    let made = patched(&mut graph, |patch| patch.insert(negated(shared, some, vec![], Some(shared))));
    assert_eq!(graph.value(result(&graph, made[0])).name, "shared");
    let last = result(&graph, nodes[NODES - 1]);
    let ends = patched(&mut graph, |patch| patch.insert(negated(last, vec![], vec![1], None)));
    assert_eq!(graph.output_places(last), [0]);
    let end = result(&graph, ends[0]);
    assert_eq!(graph.output_places(end), [1]);
    let before = result(&graph, nodes[NODES - 2]);
    patched(&mut graph, |patch| patch.replace(end, before));
    assert_eq!(graph.output_places(before), [1]);
    patched(&mut graph, |patch| patch.connect(nodes[4], 4, shared));
    let of_shared = result(&graph, made[0]);
    patched(&mut graph, |patch| patch.redirect(of_shared, shared));
    assert_eq!(edited(&mut graph, |graph| remove_dead(graph, [made[0]])), 1);
    // The next node gets the number of the one that went, but none of its readers.
    let again = patched(&mut graph, |patch| patch.insert(negated(end, vec![], vec![], None)));
    assert_eq!(again[0], made[0]);
    assert_eq!(graph.use_count(of_shared), 0);
}

#[test]
fn every_way_to_change_a_graph_is_counted() {
    let (mut graph, shared, nodes) = chain();
    let n = nodes[7];
    let x = result(&graph, nodes[3]);
    edited(&mut graph, |graph| graph.set_inputs(n, vec![Some(shared), Some(x)]));
    edited(&mut graph, |graph| graph.add_capture(n, shared));
    edited(&mut graph, |graph| graph.add_output(x));
    edited(&mut graph, |graph| graph.add_input("late", float()).unwrap());
    edited(&mut graph, |graph| graph.set_form(n, Form::unbound()));
    edited(&mut graph, |graph| *graph.value_mut(x).ty = float());
    edited(&mut graph, |graph| graph.attrs_mut(n).clear());
    let name = OpName { domain: String::new(), name: "Mul".to_owned(), overload: String::new() };
    edited(&mut graph, |graph| graph.set_op(n, name, 13));
    let before = graph.edits();
    check(&graph);
    assert_eq!(graph.edits(), before);
}

#[test]
fn nodes_that_wait_for_each_other_are_named_until_one_no_longer_does() {
    let (mut graph, _, nodes) = chain();
    let (x, last) = (graph.inputs()[0], result(&graph, nodes[NODES - 1]));
    graph.set_inputs(nodes[5], vec![Some(last)]);
    assert_eq!(graph.order().unwrap_err(), nodes[5..]);
    graph.set_inputs(nodes[5], vec![Some(x)]);
    check(&graph);
}

#[test]
fn as_many_names_as_asked_for_are_made_of_one_base() {
    let mut graph = Graph::new("names");
    for i in 0..50_000 {
        let name = graph.fresh_name("zero");
        assert_eq!(name, if i == 0 { "zero".to_owned() } else { format!("zero.{i}") });
        graph.add_input(name, float()).unwrap();
    }
}
