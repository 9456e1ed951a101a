//! Petgraph's algorithms on a graph of ours, against what its nodes say.

use petgraph::Direction;
use petgraph::algo::{has_path_connecting, kosaraju_scc, tarjan_scc, toposort};
use petgraph::visit::{Bfs, Dfs, EdgeFiltered, EdgeRef, IntoEdgeReferences, IntoEdgesDirected, NodeCount, Reversed};
use proptest::prelude::*;
use relayout_ir::build::Builder;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::patch::remove_dead;
use relayout_ir::text::{dot, parse};
use relayout_ir::types::Type;
use std::collections::BTreeSet;

fn ty() -> Type {
    Type::tensor(DType::F32, vec![2.into()])
}

/// A graph of one input and a node per pair, which reads two of the values before it; then nodes that nobody reads are taken out
/// where `removed` says so, so that numbers have gaps.
fn graph_of(pairs: &[(usize, usize)], removed: &[bool]) -> Graph {
    let mut graph = Graph::new("g");
    let mut values: Vec<ValueId> = vec![graph.add_input("x", ty()).unwrap()];
    for (i, &(a, b)) in pairs.iter().enumerate() {
        let operands = [a, b].map(|k| values[k % values.len()]);
        let mut make = Builder::new(&mut graph, (pairs.len() - i) as u32);
        values.push(make.op("Add", operands).kernel().result("y", ty()).unwrap());
    }
    for (v, _) in values.iter().skip(1).zip(removed).filter(|(_, removed)| **removed) {
        let n = graph.value(*v).producer().0;
        if graph.use_count(*v) == 0 {
            remove_dead(&mut graph, [n]);
        }
    }
    graph
}

fn place_of(order: &[NodeId], n: NodeId) -> usize {
    order.iter().position(|&m| m == n).unwrap()
}

/// Nodes that can be reached along readers, by hand.
fn reached(graph: &Graph, from: NodeId) -> BTreeSet<NodeId> {
    let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
    while let Some(n) = todo.pop() {
        if seen.insert(n) {
            todo.extend(graph.node(n).outputs.iter().flatten().flat_map(|&v| graph.uses(v)).map(|u| u.node));
        }
    }
    seen
}

proptest! {
    #[test]
    fn algorithms_agree_with_the_nodes(
        pairs in prop::collection::vec((0usize..40, 0usize..40), 1..30),
        removed in prop::collection::vec(any::<bool>(), 30),
    ) {
        let graph = graph_of(&pairs, &removed);
        let order = toposort(&graph, None).unwrap();
        prop_assert_eq!(order.len(), NodeCount::node_count(&graph));
        let own = graph.order().unwrap();
        for edge in graph.edge_references() {
            for order in [&order, &own] {
                prop_assert!(place_of(order, edge.source()) < place_of(order, edge.target()));
            }
            let read = &graph.node(edge.target());
            prop_assert_eq!(read.inputs[edge.id().slot], Some(*edge.weight()));
        }
        let edges: usize = graph.nodes().map(|n| graph.node(n).inputs.len()).sum();
        prop_assert_eq!(graph.edge_references().count(), edges);
        for components in [tarjan_scc(&graph), kosaraju_scc(&graph)] {
            prop_assert!(components.iter().all(|component| component.len() == 1));
            prop_assert_eq!(components.len(), own.len());
        }
        for n in graph.nodes() {
            let by_hand = reached(&graph, n);
            let mut dfs = Dfs::new(&graph, n);
            let deep: BTreeSet<NodeId> = std::iter::from_fn(|| dfs.next(&graph)).collect();
            let mut bfs = Bfs::new(&graph, n);
            let wide: BTreeSet<NodeId> = std::iter::from_fn(|| bfs.next(&graph)).collect();
            prop_assert_eq!(&deep, &by_hand);
            prop_assert_eq!(&wide, &by_hand);
            for m in graph.nodes() {
                prop_assert_eq!(has_path_connecting(&graph, n, m, None), by_hand.contains(&m));
                let back = has_path_connecting(Reversed(&graph), m, n, None);
                prop_assert_eq!(back, by_hand.contains(&m));
            }
        }
    }
}

/// `x -> Relu -> Add(y, x)`, and a node with a capture.
fn small() -> Graph {
    let mut graph = Graph::new("g");
    let x = graph.add_input("x", ty()).unwrap();
    let mut make = Builder::new(&mut graph, 1);
    let y = make.op("Relu", [x]).result("y", ty()).unwrap();
    let z = make.op("Add", [y, x]).result("z", ty()).unwrap();
    let mut held = Node::new(Op::Onnx(OpName::onnx("If")), vec![Some(z)]);
    held.name.push_str("held \"one\"");
    let n = graph.add(held, vec![Some(("w".to_owned(), ty()))]).unwrap();
    graph.add_capture(n, y);
    graph
}

#[test]
fn an_edge_is_a_place_that_reads_and_captures_are_places() {
    let graph = small();
    let named = |n: NodeId| graph.value(graph.node(n).outputs[0].unwrap()).name.as_str();
    let edges: Vec<_> = graph.edge_references().map(|e| (named(e.source()), named(e.target()), e.id().slot)).collect();
    assert_eq!(edges, [("x", "y", 0), ("x", "z", 1), ("y", "z", 0), ("y", "w", 1), ("z", "w", 0)]);
    let w = graph.nodes().last().unwrap();
    let before: Vec<_> = graph.edges_directed(w, Direction::Incoming).map(|e| named(e.source())).collect();
    assert_eq!(before, ["z", "y"]);
    let y = graph.by_name("y").unwrap();
    let without = EdgeFiltered::from_fn(&graph, |edge| edge.value != y);
    let x = graph.inputs()[0];
    assert!(!has_path_connecting(&without, graph.value(y).producer().0, w, None));
    assert!(has_path_connecting(&without, graph.value(x).producer().0, w, None));
}

#[test]
fn a_graph_is_drawn_with_its_types_and_layouts_and_its_bodies() {
    let graph = parse(
        "graph g opset=17
  %c: bool[] = input
  %x: f32[2,3] = input
  %t: f32[3,2] = Transpose(%x)
  %y: f32[3,2] = If(%c, %t) {else_branch=body, then_branch=body}
  body else_branch
    %t: f32[3,2] = outer
    output %t
  end
  body then_branch
    %t: f32[3,2] = outer
    %z: f32[3,2] = Relu(%t)
    output %z
  end
  output %y
",
    );
    let moves = |graph: &Graph, n: NodeId| graph.node(n).onnx() == Some("Transpose");
    insta::assert_snapshot!(dot(&graph.unwrap(), &moves));
}
