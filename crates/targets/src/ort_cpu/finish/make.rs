//! Nodes that legalization puts before those that they serve: ops of one result in ONNX's order, and constants.

use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, Node, Op, OpName, ValueId};
use relayout_ir::patch::constant_node;
use relayout_ir::types::Type;
use relayout_target::PassError;

/// Makes row-major nodes before those that they serve.
pub(super) struct Maker<'g> {
    pub(super) graph: &'g mut Graph,
    /// The place in the order of the file that they get.
    pub(super) rank: u32,
}

impl Maker<'_> {
    pub(super) fn constant(&mut self, name: &str, c: Constant) -> Result<ValueId, PassError> {
        let ty = Type::tensor(c.dtype, c.dims.iter().map(|&d| Dim::from(d)).collect());
        let name = self.graph.fresh_name(name);
        self.graph.add_single(constant_node(c, self.rank), name, ty).map_err(PassError::from)
    }

    pub(super) fn node(
        &mut self,
        domain: &str,
        op: &str,
        inputs: Vec<ValueId>,
        name: &str,
        ty: Type,
        opset: i64,
    ) -> Result<ValueId, PassError> {
        let op = OpName { domain: domain.to_owned(), name: op.to_owned(), overload: String::new() };
        let mut node = Node::new(Op::Onnx(op), inputs.into_iter().map(Some).collect());
        (node.rank, node.opset) = (self.rank, if domain.is_empty() { 0 } else { opset });
        node.form = Form::Kernel(Box::default());
        let name = self.graph.fresh_name(name);
        self.graph.add_single(node, name, ty).map_err(PassError::from)
    }
}
