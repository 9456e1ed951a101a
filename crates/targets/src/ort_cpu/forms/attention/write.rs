//! Attention as one op of the target, or as the products that it is in the file.
//!
//! The op reads and leaves positions outside of heads, as projections have them; the products it stands for have layouts of their
//! own.

use super::find::{Extents, Found, extents};
use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::patch::{Patch, remove_dead};
use relayout_ir::raised::Attention;
use relayout_ir::types::Type;
use relayout_target::PassError;
use relayout_target::views::Views;

/// Positions outside of heads, and back.
const OUTSIDE: [usize; 4] = [0, 2, 1, 3];

/// Makes an attention one raised op.
pub(super) fn raise(graph: &mut Graph, found: &Found) {
    let n = found.last;
    let before: Vec<NodeId> = graph.node(n).inputs.iter().flatten().map(|&v| graph.value(v).producer().0).collect();
    graph.set_inputs(n, found.operands.into_iter().map(Some).collect());
    graph.set_op(n, Attention::op(), 1);
    *graph.attrs_mut(n) = Attention { keys_by_rows: found.keys_by_rows, sums: found.sums as u64 }.attrs();
    graph.set_form(n, Form::Kernel(Box::default()));
    remove_dead(graph, before);
}

/// Writes an attention as the op; its result, and what took the place of that.
pub(super) fn write(graph: &mut Graph, found: &Found) -> Result<Option<(ValueId, ValueId)>, PassError> {
    let Some(extents) = extents(graph, found) else { return Ok(None) };
    let Some(y) = graph.node(found.last).only_result() else { return Ok(None) };
    let [q, k, v] = found.operands;
    let rank = graph.node(found.last).rank;
    let heads = found.heads.unwrap_or(1);
    let Extents { queries, keys, width, value_width, .. } = &extents;
    let mut made = Made { graph, rank, packs: found.heads.is_some() };
    let base = made.graph.value(y).name.clone();
    let inputs = [
        made.packed((q, false), &format!("{base}.queries"), (queries, heads * width))?,
        made.packed((k, !found.keys_by_rows), &format!("{base}.keys"), (keys, heads * width))?,
        made.packed((v, false), &format!("{base}.values"), (keys, heads * value_width))?,
    ];
    let op =
        OpName { domain: "com.microsoft".to_owned(), name: "MultiHeadAttention".to_owned(), overload: String::new() };
    let mut node = Node::new(Op::Onnx(op), inputs.into_iter().map(Some).collect());
    (node.rank, node.opset, node.form) = (rank, 1, Form::Kernel(Box::default()));
    node.attrs.insert("num_heads".to_owned(), Attr::Int(heads));
    node.attrs.insert("scale".to_owned(), Attr::Float(found.scale));
    let batch = extents.batch.first().cloned().unwrap_or(Dim::ONE);
    let context = made.add(
        node,
        &format!("{base}.attention"),
        vec![batch.clone(), queries.clone(), Dim::from(heads * value_width)],
    )?;
    let result = made.unpacked(context, &base, &[batch, queries.clone(), Dim::from(heads), Dim::from(*value_width)])?;
    let mut patch = Patch::new();
    patch.replace(y, result);
    patch.apply(graph).map_err(PassError::Name)?;
    remove_dead(graph, [found.last]);
    Ok(Some((y, result)))
}

/// Makes row-major nodes in the place of others.
struct Made<'g> {
    graph: &'g mut Graph,
    rank: u32,
    /// Operands have an axis of heads, which goes into that of units.
    packs: bool,
}

impl Made<'_> {
    fn add(&mut self, node: Node, name: &str, shape: Vec<Dim>) -> Result<ValueId, PassError> {
        let name = self.graph.fresh_name(name);
        self.graph.add_single(node, name, Type::tensor(DType::F32, shape)).map_err(PassError::Name)
    }

    fn views(&mut self) -> Views<'_> {
        Views { graph: self.graph, rank: self.rank }
    }

    /// An operand as the op reads it, `[batch, positions, units of all heads]`. `turned`: its last two axes have changed places.
    fn packed(
        &mut self,
        (x, turned): (ValueId, bool),
        name: &str,
        (positions, units): (&Dim, i64),
    ) -> Result<ValueId, PassError> {
        if !self.packs {
            return if turned { self.views().transpose(x, name, &[0, 2, 1]) } else { Ok(x) };
        }
        let perm = if turned { [0, 3, 1, 2] } else { OUTSIDE };
        let x = self.views().transpose(x, &format!("{name}.apart"), &perm)?;
        let batch = self.graph.value(x).ty.shape().and_then(|s| s.first().cloned()).unwrap_or(Dim::ONE);
        self.views().reshape(x, name, vec![batch, positions.clone(), Dim::from(units)])
    }

    /// The result in the place of heads that it had.
    fn unpacked(&mut self, x: ValueId, name: &str, shape: &[Dim; 4]) -> Result<ValueId, PassError> {
        if !self.packs {
            return Ok(x);
        }
        let x = self.views().reshape(x, &format!("{name}.context"), shape.to_vec())?;
        self.views().transpose(x, &format!("{name}.heads"), &OUTSIDE)
    }
}
