// @generated from schema/onnx-ml.proto; do not edit: `cargo run -p relayout-onnx --example generate_schema`
// writes it anew.

//! Every tensor of a model, in one order.

use super::{
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    TrainingInfoProto,
};

impl ModelProto {
    /// All tensors: initializers, sparse ones, attributes, in subgraphs, functions and training graphs too; in the
    /// order of the messages in a file, so it is the same for the same model.
    pub fn tensors(&self) -> Vec<&TensorProto> {
        let mut found = Vec::new();
        model_proto(self, &mut found);
        found
    }
}

fn attribute_proto<'a>(m: &'a AttributeProto, found: &mut Vec<&'a TensorProto>) {
    found.extend(m.t.as_deref());
    if let Some(inner) = &m.g {
        graph_proto(inner, found);
    }
    found.extend(&m.tensors);
    for inner in &m.graphs {
        graph_proto(inner, found);
    }
    if let Some(inner) = &m.sparse_tensor {
        sparse_tensor_proto(inner, found);
    }
    for inner in &m.sparse_tensors {
        sparse_tensor_proto(inner, found);
    }
}

fn node_proto<'a>(m: &'a NodeProto, found: &mut Vec<&'a TensorProto>) {
    for inner in &m.attribute {
        attribute_proto(inner, found);
    }
}

fn training_info_proto<'a>(m: &'a TrainingInfoProto, found: &mut Vec<&'a TensorProto>) {
    if let Some(inner) = &m.initialization {
        graph_proto(inner, found);
    }
    if let Some(inner) = &m.algorithm {
        graph_proto(inner, found);
    }
}

fn model_proto<'a>(m: &'a ModelProto, found: &mut Vec<&'a TensorProto>) {
    if let Some(inner) = &m.graph {
        graph_proto(inner, found);
    }
    for inner in &m.training_info {
        training_info_proto(inner, found);
    }
    for inner in &m.functions {
        function_proto(inner, found);
    }
}

fn graph_proto<'a>(m: &'a GraphProto, found: &mut Vec<&'a TensorProto>) {
    for inner in &m.node {
        node_proto(inner, found);
    }
    found.extend(&m.initializer);
    for inner in &m.sparse_initializer {
        sparse_tensor_proto(inner, found);
    }
}

fn sparse_tensor_proto<'a>(m: &'a SparseTensorProto, found: &mut Vec<&'a TensorProto>) {
    found.extend(&m.values);
    found.extend(&m.indices);
}

fn function_proto<'a>(m: &'a FunctionProto, found: &mut Vec<&'a TensorProto>) {
    for inner in &m.node {
        node_proto(inner, found);
    }
    for inner in &m.attribute_proto {
        attribute_proto(inner, found);
    }
}
