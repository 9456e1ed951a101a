//! What is known of the values that stand in written graphs: which value of the graph each name stands for, and how it is stored.

use super::names::Names;
use crate::proto::NodeProto;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::types::Type;
use std::collections::BTreeMap;

/// A value under the name that it is written with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenValue {
    /// Its name in the graph; empty for what export added, which no graph has.
    pub value: String,
    /// Element type and logical shape.
    pub ty: Type,
    /// How its axes lie; `None` where the rank is not known.
    pub layout: Option<Layout>,
    /// Extents as they are stored, outermost first; `None` where they can't be said.
    pub stored: Option<Vec<Dim>>,
    /// Whether a pass gave it other elements, or another logical order, than the model's value of this name has.
    pub differs: bool,
}

/// The values of one written graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenGraph {
    /// Where the graph is: empty for the main one, the node that holds it and the attribute for a body.
    pub path: String,
    /// What nodes, inputs and constants make, by the name that it is written with.
    pub values: BTreeMap<String, WrittenValue>,
    /// The graph's outputs, in their order: one that is another value seen differently has its own shape here.
    pub outputs: Vec<WrittenValue>,
    /// Bodies, by what [`WrittenGraph::body_key`] makes of the node that holds them.
    bodies: BTreeMap<BodyKey, WrittenGraph>,
}

/// Results of a node, an attribute, and the place of the body in it.
type BodyKey = (Vec<String>, String, usize);

impl WrittenGraph {
    pub(super) fn new(path: String) -> WrittenGraph {
        WrittenGraph { path, ..WrittenGraph::default() }
    }

    /// What was written of a node's body: the `at`-th of an attribute.
    pub fn body(&self, node: &NodeProto, attribute: &str, at: usize) -> Option<&WrittenGraph> {
        self.bodies.get(&Self::body_key(node, attribute, at))
    }

    pub(super) fn add_body(&mut self, node: &NodeProto, attribute: &str, at: usize, body: WrittenGraph) {
        self.bodies.insert(Self::body_key(node, attribute, at), body);
    }

    fn body_key(node: &NodeProto, attribute: &str, at: usize) -> BodyKey {
        (node.output.clone(), attribute.to_owned(), at)
    }

    /// Notes a list of 64-bit integers that no value of the graph stands for.
    pub(super) fn add_list(&mut self, name: &str, length: Option<usize>) {
        let shape = length.map(|n| vec![Dim::from(n as i64)]);
        let ty = Type::Tensor(relayout_ir::types::TensorType { dtype: Some(DType::I64), shape: shape.clone() });
        let layout = shape.as_ref().map(|_| Layout::row_major(1));
        let list = WrittenValue { value: String::new(), ty, layout, stored: shape, differs: false };
        self.values.insert(name.to_owned(), list);
    }

    /// Notes every value of the graph that is written under a name of its own.
    pub(super) fn collect(&mut self, graph: &Graph, names: &Names) {
        for v in graph.values().filter(|&v| !names.is_alias(v)) {
            self.values.insert(names.of(v).to_owned(), written(graph, v));
        }
        self.outputs = graph.outputs().iter().map(|&v| written(graph, v)).collect();
    }
}

fn written(graph: &Graph, v: ValueId) -> WrittenValue {
    let value = graph.value(v);
    let layout = value.ty.rank().map(|_| value.layout.clone());
    let stored = layout.as_ref().and_then(|layout| graph.storage_shape(v, layout));
    WrittenValue { value: value.name.clone(), ty: value.ty.clone(), layout, stored, differs: value.differs }
}
