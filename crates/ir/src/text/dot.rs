//! Graphs in the language of Graphviz.

use super::layouts;
use crate::graph::walk::Edge;
use crate::graph::{Graph, Node, NodeId, ValueId};
use petgraph::dot::{Config, Dot};
use std::fmt::Write as _;

/// A graph and then its bodies, each as a digraph that is called by its place. Nodes have op and name, and the graph outputs that
/// they leave; edges have name, type and layout of the value. Nodes of which `moves` holds are coloured.
pub fn dot(graph: &Graph, moves: &dyn Fn(&Graph, NodeId) -> bool) -> String {
    let mut text = String::new();
    write(graph, "", moves, &mut text);
    text
}

fn write(graph: &Graph, path: &str, moves: &dyn Fn(&Graph, NodeId) -> bool, text: &mut String) {
    let of_node = |graph: &Graph, (n, node): (NodeId, &Node)| {
        let mut label = node.describe(graph);
        for &v in node.outputs.iter().flatten().filter(|&&v| graph.is_output(v)) {
            label = label + "\noutput " + &value(graph, v);
        }
        let colour = if moves(graph, n) { ", style = filled, fillcolor = orange" } else { "" };
        format!("label = {label:?}{colour}")
    };
    let of_edge = |graph: &Graph, edge: Edge| format!("label = {:?}", value(graph, edge.value));
    let config = [Config::NodeNoLabel, Config::EdgeNoLabel, Config::GraphContentOnly];
    let content = Dot::with_attr_getters(graph, &config, &of_edge, &of_node);
    let name = if path.is_empty() { &graph.name } else { path };
    let _ = writeln!(text, "digraph {name:?} {{\n{content:?}}}");
    for n in graph.nodes() {
        let node = graph.node(n);
        for (attribute, attr) in &node.attrs {
            for body in attr.bodies() {
                write(body, &node.body_path(graph, path, attribute), moves, text);
            }
        }
    }
}

fn value(graph: &Graph, v: ValueId) -> String {
    let layout = layouts::print(graph, v).map(|layout| format!("@{layout}")).unwrap_or_default();
    format!("{}: {}{layout}", graph.value(v).name, graph.value(v).ty)
}
