//! Views that passes put between nodes: row-major results, no shape operand, which export writes.

use crate::PassError;
use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, Op, OpName, ValueId};
use relayout_ir::types::{TensorType, Type};

/// An op of the standard domain.
pub fn standard(name: &str) -> OpName {
    OpName { domain: String::new(), name: name.to_owned(), overload: String::new() }
}

/// Makes views, in the place of the file's order that `rank` says.
pub struct Views<'g> {
    /// The graph.
    pub graph: &'g mut Graph,
    /// The place of the file's order.
    pub rank: u32,
}

impl Views<'_> {
    /// A Reshape of a value to as many elements.
    pub fn reshape(&mut self, x: ValueId, name: &str, shape: Vec<Dim>) -> Result<ValueId, PassError> {
        let node = Node::new(Op::Onnx(standard("Reshape")), vec![Some(x)]);
        self.add(node, View::Reshape, x, name, shape)
    }

    /// A Transpose: axis `i` of the result is axis `perm[i]` of the value. It is a view where the value lies so.
    pub fn transpose(&mut self, x: ValueId, name: &str, perm: &[usize]) -> Result<ValueId, PassError> {
        let from = self.graph.value(x).ty.shape().unwrap_or_default();
        let shape = perm.iter().filter_map(|&axis| from.get(axis).cloned()).collect();
        let mut node = Node::new(Op::Onnx(standard("Transpose")), vec![Some(x)]);
        node.attrs.insert("perm".to_owned(), Attr::Ints(perm.iter().map(|&axis| axis as i64).collect()));
        self.add(node, View::Transpose(perm.to_vec()), x, name, shape)
    }

    fn add(
        &mut self,
        mut node: Node,
        view: View,
        x: ValueId,
        name: &str,
        shape: Vec<Dim>,
    ) -> Result<ValueId, PassError> {
        (node.rank, node.form) = (self.rank, Form::View(view));
        let ty = Type::Tensor(TensorType { dtype: self.graph.value(x).ty.dtype(), shape: Some(shape) });
        let name = self.graph.fresh_name(name);
        self.graph.add_single(node, name, ty).map_err(PassError::Name)
    }
}

/// The permutation that undoes another.
pub fn inverse(perm: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..perm.len()).collect();
    order.sort_unstable_by_key(|&axis| perm[axis]);
    order
}

/// Whether a value is a constant, or views of one.
pub fn is_constant(graph: &Graph, mut v: ValueId) -> bool {
    loop {
        let node = graph.node(graph.value(v).producer().0);
        match (&node.op, &node.form, node.operand(0)) {
            (Op::Constant(_), ..) => return true,
            (Op::Onnx(_), Form::View(_), Some(x)) => v = x,
            _ => return false,
        }
    }
}
