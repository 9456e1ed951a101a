//! Attention as one op of the target, or as the products that it is in the file.
//!
//! The op reads and leaves positions outside of heads, as projections have them; the products it stands for have layouts of their
//! own.

use super::OP;
use super::find::{AttentionParts, Extents, extents};
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::graph::{DuplicateName, Graph, NodeId, OpName, ValueId};
use relayout_ir::op::MICROSOFT;
use relayout_ir::types::Type;
use relayout_target_api::PassError;

/// Positions outside of heads, and back.
const OUTSIDE: [usize; 4] = [0, 2, 1, 3];

/// Writes a raised attention as the op; what takes the place of its result.
pub(crate) fn write(graph: &mut Graph, n: NodeId) -> Result<Option<ValueId>, PassError> {
    let Some((y, found)) = graph.node(n).only_result().zip(AttentionParts::recognize(graph, n)) else {
        return Ok(None);
    };
    let Some(extents) = extents(graph, &found) else { return Ok(None) };
    let [q, k, v] = found.operands;
    let Some(dtype) = graph.value(q).ty.dtype() else { return Ok(None) };
    let heads = found.heads.unwrap_or(1);
    let Extents { queries, keys, width, value_width, .. } = &extents;
    let base = graph.value(y).name.clone();
    let mut make = Builder::at(graph, n).named(base);
    let packs = found.heads.is_some();
    let inputs = [
        packed(&mut make, (q, false, packs), "queries", (queries, heads * width))?,
        packed(&mut make, (k, !found.keys_by_rows, packs), "keys", (keys, heads * width))?,
        packed(&mut make, (v, false, packs), "values", (keys, heads * value_width))?,
    ];
    let op = OpName::new(MICROSOFT, OP);
    let op = make.op_of(op, 1, inputs).attr("num_heads", Attr::Int(heads)).attr("scale", Attr::Float(found.scale));
    let batch = extents.batch.first().cloned().unwrap_or(Dim::ONE);
    let shape = vec![batch.clone(), queries.clone(), Dim::from(heads * value_width)];
    let mut result = op.kernel().result("attention", Type::tensor(dtype, shape))?;
    if packs {
        // In the place of heads that it had.
        let apart = vec![batch, queries.clone(), Dim::from(heads), Dim::from(*value_width)];
        let context = make.reshape(result, "context", apart)?;
        result = make.transpose(context, "heads", &OUTSIDE)?;
    }
    Ok(Some(result))
}

/// An operand as the op reads it, `[batch, positions, units of all heads]`. `turned`: its last two axes have changed places; `packs`:
/// it has an axis of heads, which goes into that of units.
fn packed(
    make: &mut Builder<'_>,
    (x, turned, packs): (ValueId, bool, bool),
    what: &str,
    (positions, units): (&Dim, i64),
) -> Result<ValueId, DuplicateName> {
    if !packs {
        return if turned { make.transpose(x, what, &[0, 2, 1]) } else { Ok(x) };
    }
    let perm = if turned { [0, 3, 1, 2] } else { OUTSIDE };
    let x = make.transpose(x, &format!("{what}.apart"), &perm)?;
    let batch = make.graph.value(x).ty.shape().and_then(|s| s.first().cloned()).unwrap_or(Dim::ONE);
    make.reshape(x, what, vec![batch, positions.clone(), Dim::from(units)])
}
