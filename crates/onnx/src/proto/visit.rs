//! Every tensor of a model, in one order.

use super::{AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto};

impl ModelProto {
    /// All tensors: initializers, sparse ones, attributes, in subgraphs, functions and training graphs too; in the order of the
    /// messages in a file, so it is the same for the same model.
    pub fn tensors(&self) -> Vec<&TensorProto> {
        let mut found = Vec::new();
        if let Some(graph) = &self.graph {
            graph_tensors(graph, &mut found);
        }
        for info in &self.training_info {
            for graph in info.initialization.iter().chain(&info.algorithm) {
                graph_tensors(graph, &mut found);
            }
        }
        for function in &self.functions {
            function_tensors(function, &mut found);
        }
        found
    }
}

fn graph_tensors<'a>(graph: &'a GraphProto, found: &mut Vec<&'a TensorProto>) {
    nodes_tensors(&graph.node, found);
    found.extend(&graph.initializer);
    for sparse in &graph.sparse_initializer {
        sparse_tensors(sparse, found);
    }
}

fn function_tensors<'a>(function: &'a FunctionProto, found: &mut Vec<&'a TensorProto>) {
    nodes_tensors(&function.node, found);
    for attribute in &function.attribute_proto {
        attribute_tensors(attribute, found);
    }
}

fn nodes_tensors<'a>(nodes: &'a [NodeProto], found: &mut Vec<&'a TensorProto>) {
    for attribute in nodes.iter().flat_map(|node| &node.attribute) {
        attribute_tensors(attribute, found);
    }
}

fn attribute_tensors<'a>(attribute: &'a AttributeProto, found: &mut Vec<&'a TensorProto>) {
    found.extend(attribute.t.as_deref());
    if let Some(graph) = &attribute.g {
        graph_tensors(graph, found);
    }
    found.extend(&attribute.tensors);
    for graph in &attribute.graphs {
        graph_tensors(graph, found);
    }
    for sparse in attribute.sparse_tensor.iter().map(AsRef::as_ref).chain(&attribute.sparse_tensors) {
        sparse_tensors(sparse, found);
    }
}

fn sparse_tensors<'a>(sparse: &'a SparseTensorProto, found: &mut Vec<&'a TensorProto>) {
    found.extend(sparse.values.iter().chain(&sparse.indices));
}
