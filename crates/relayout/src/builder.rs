//! Builds a graph in code, for embedders whose models are not ONNX files. The types of results are inferred as nodes are added.

use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{DuplicateName, Graph, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::op::LAST_OPSET;
use relayout_ir::op::infer::infer_one;
use relayout_ir::types::Type;

/// Why a node can't be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The name is taken.
    #[error(transparent)]
    Name(#[from] DuplicateName),
    /// Operands or attributes that the op can't have.
    #[error("{node}: {why}")]
    Node {
        /// The node.
        node: String,
        /// What is wrong.
        why: String,
    },
}

/// A graph under construction. Ops have the meaning that they have in ONNX's opset [`LAST_OPSET`], unless [`GraphBuilder::opset`]
/// sets another.
#[derive(Debug)]
pub struct GraphBuilder {
    graph: Graph,
    opset: i64,
    unknowns: u32,
}

impl GraphBuilder {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> GraphBuilder {
        GraphBuilder { graph: Graph::new(name), opset: LAST_OPSET, unknowns: 0 }
    }

    /// With the meaning that ops have in another opset.
    #[must_use]
    pub fn opset(mut self, opset: i64) -> GraphBuilder {
        self.opset = opset;
        self
    }

    /// Adds an input; dims are numbers or symbols.
    ///
    /// # Errors
    /// [`BuildError::Name`].
    pub fn input(
        &mut self,
        name: &str,
        dtype: DType,
        shape: impl IntoIterator<Item = Dim>,
    ) -> Result<ValueId, BuildError> {
        Ok(self.graph.add_input(name, Type::tensor(dtype, shape.into_iter().collect()))?)
    }

    /// Adds a constant.
    ///
    /// # Errors
    /// [`BuildError::Name`].
    pub fn constant(&mut self, name: &str, constant: Constant) -> Result<ValueId, BuildError> {
        let contents = constant.to_ints(relayout_ir::op::infer::CONTENTS_LIMIT);
        let v = self.graph.add_constant(name, constant)?;
        *self.graph.value_mut(v).contents = contents.map(|c| c.into_iter().map(Dim::from).collect());
        Ok(v)
    }

    /// Adds an op of one result.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn op(
        &mut self,
        op: &str,
        name: &str,
        inputs: &[ValueId],
        attrs: impl IntoIterator<Item = (&'static str, Attr)>,
    ) -> Result<ValueId, BuildError> {
        let op = OpName { domain: String::new(), name: op.to_owned(), overload: String::new() };
        let mut node = Node::new(Op::Onnx(op), inputs.iter().copied().map(Some).collect());
        node.opset = self.opset;
        node.attrs = attrs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        node.rank = self.graph.node_count() as u32;
        let v = self.graph.add_single(node, name.to_owned(), Type::Unknown)?;
        let producer = self.graph.value(v).producer().0;
        infer_one(&mut self.graph, producer, &mut self.unknowns)
            .map_err(|why| BuildError::Node { node: self.graph.node(producer).describe(&self.graph), why })?;
        Ok(v)
    }

    /// The node that makes a value.
    pub fn producer(&self, v: ValueId) -> NodeId {
        self.graph.value(v).producer().0
    }

    /// Makes a value an output.
    pub fn output(&mut self, v: ValueId) {
        self.graph.add_output(v);
    }

    /// Shape of a value as far as it is known.
    pub fn shape(&self, v: ValueId) -> Option<&[Dim]> {
        self.graph.value(v).ty.shape()
    }

    /// The graph.
    pub fn finish(self) -> Graph {
        self.graph
    }
}
