//! Standard ops in the place of others.

use crate::PassError;
use crate::views::{Views, standard};
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout_ir::op::bind;
use relayout_ir::patch::{Patch, constant_node, remove_dead};
use relayout_ir::types::Type;

/// Makes standard ops and views of row-major results, in the place of a node.
pub struct Made<'g> {
    pub graph: &'g mut Graph,
    pub rank: u32,
    pub opset: i64,
    /// What new names begin with.
    pub base: String,
}

impl<'g> Made<'g> {
    /// In the place of a node of this result, of its version.
    pub fn before(graph: &'g mut Graph, n: NodeId, opset: i64, result: ValueId) -> Made<'g> {
        let (rank, base) = (graph.node(n).rank, graph.value(result).name.clone());
        Made { graph, rank, opset, base }
    }

    pub fn views(&mut self) -> Views<'_> {
        Views { graph: self.graph, rank: self.rank }
    }

    /// An op of these operands with a result of their type and this shape.
    pub fn op(
        &mut self,
        op: &str,
        operands: &[ValueId],
        what: &str,
        shape: &[Dim],
        attrs: &[(&str, Attr)],
    ) -> Result<ValueId, PassError> {
        let mut node = Node::new(Op::Onnx(standard(op)), operands.iter().copied().map(Some).collect());
        (node.rank, node.opset) = (self.rank, self.opset);
        node.attrs.extend(attrs.iter().map(|(name, attr)| ((*name).to_owned(), attr.clone())));
        let dtype = operands.first().and_then(|&v| self.graph.value(v).ty.dtype()).unwrap_or(DType::F32);
        let name = self.graph.fresh_name(&format!("{}.{what}", self.base));
        let y = self.graph.add_single(node, name, Type::tensor(dtype, shape.to_vec())).map_err(PassError::Name)?;
        let (n, _) = self.graph.value(y).producer();
        let form = bind(self.graph, n);
        self.graph.set_form(n, form);
        Ok(y)
    }

    /// A constant of the same number, of float32 or float64.
    pub fn filled(&mut self, what: &str, dtype: DType, dims: &[i64], number: f64) -> Result<ValueId, PassError> {
        let count = dims.iter().product::<i64>().max(0) as usize;
        let bytes = match dtype {
            DType::F64 => number.to_le_bytes().repeat(count),
            _ => (number as f32).to_le_bytes().repeat(count),
        };
        let constant = Constant::inline(dtype, dims.to_vec(), bytes.into());
        let ty = Type::tensor(dtype, dims.iter().map(|&d| Dim::from(d)).collect());
        let name = self.graph.fresh_name(&format!("{}.{what}", self.base));
        self.graph.add_single(constant_node(constant, self.rank), name, ty).map_err(PassError::Name)
    }
}

/// Has what read one value read another, and takes away the node that left the first.
pub fn replace(graph: &mut Graph, last: NodeId, y: ValueId, by: ValueId) -> Result<(), PassError> {
    let mut patch = Patch::new();
    patch.replace(y, by);
    patch.apply(graph).map_err(PassError::Name)?;
    remove_dead(graph, [last]);
    Ok(())
}
