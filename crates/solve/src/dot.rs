//! The network in the language of Graphviz.

use super::Problem;
use petgraph::dot::{Config, Dot};
use petgraph::graph::{DiGraph, NodeIndex};

impl Problem {
    /// Variables with the number of their states; shared values as boxes, between who makes and who reads them; pair factors as
    /// lines without a direction.
    #[must_use]
    pub fn dot(&self) -> String {
        let label = |name: &str, count: usize, what: &str| format!("label = {:?}", format!("{name}\n{count} {what}"));
        let mut network: DiGraph<String, &str> = DiGraph::new();
        let states = self.names.iter().zip(&self.unary);
        let vars: Vec<NodeIndex> =
            states.map(|(name, costs)| network.add_node(label(name, costs.len(), "states"))).collect();
        for value in &self.values {
            let node = network.add_node(label(&value.name, value.layouts, "layouts") + ", shape = box");
            network.add_edge(vars[value.producer.index()], node, "");
            for read in &value.uses {
                network.add_edge(node, vars[read.var.index()], "");
            }
        }
        for pair in &self.pairs {
            network.add_edge(vars[pair.a.index()], vars[pair.b.index()], "dir = none");
        }
        let config = [Config::NodeNoLabel, Config::EdgeNoLabel];
        let attrs =
            Dot::with_attr_getters(&network, &config, &|_, edge| (*edge.weight()).to_owned(), &|_, (_, label)| {
                label.clone()
            });
        format!("{attrs:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cost;
    use crate::{SharedValue, Use};

    #[test]
    fn factors_stand_between_their_variables() {
        let mut problem = Problem::new();
        let conv = problem.add_variable("Conv `c`", vec![Cost::ZERO; 2]).unwrap();
        let relu = problem.add_variable("Relu -> `r`", vec![Cost::ZERO; 2]).unwrap();
        problem.add_pair(conv, relu, vec![Cost::ZERO; 4]).unwrap();
        let uses = vec![Use { var: relu, wants: vec![Some(0), None] }];
        let name = "y".to_owned();
        let moves = vec![Cost::ZERO; 4];
        problem.add_value(SharedValue { name, producer: conv, produces: vec![0, 1], uses, layouts: 2, moves }).unwrap();
        insta::assert_snapshot!(problem.dot(), @r#"
        digraph {
            0 [ label = "Conv `c`\n2 states"]
            1 [ label = "Relu -> `r`\n2 states"]
            2 [ label = "y\n2 layouts", shape = box]
            0 -> 2 [ ]
            2 -> 1 [ ]
            0 -> 1 [ dir = none]
        }
        "#);
    }
}
