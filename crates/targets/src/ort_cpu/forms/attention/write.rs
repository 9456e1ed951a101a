//! Attention as one op of the target, or as the products that it is in the file.
//!
//! The op reads and leaves positions outside of heads, as projections have them; the products it stands for have layouts of their
//! own.

use super::find::{Extents, Found, extents};
use relayout_ir::attr::Attr;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{Builder, DuplicateName, Graph, NodeId, OpName, ValueId};
use relayout_ir::patch::{remove_dead, replace_value};
use relayout_ir::raised::Attention;
use relayout_ir::types::Type;
use relayout_target::PassError;

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
    let heads = found.heads.unwrap_or(1);
    let Extents { queries, keys, width, value_width, .. } = &extents;
    let base = graph.value(y).name.clone();
    let mut make = Builder::at(graph, found.last).named(base);
    let packs = found.heads.is_some();
    let inputs = [
        packed(&mut make, (q, false, packs), "queries", (queries, heads * width))?,
        packed(&mut make, (k, !found.keys_by_rows, packs), "keys", (keys, heads * width))?,
        packed(&mut make, (v, false, packs), "values", (keys, heads * value_width))?,
    ];
    let op = OpName::new("com.microsoft", "MultiHeadAttention");
    let op = make.op_of(op, 1, inputs).attr("num_heads", Attr::Int(heads)).attr("scale", Attr::Float(found.scale));
    let batch = extents.batch.first().cloned().unwrap_or(Dim::ONE);
    let shape = vec![batch.clone(), queries.clone(), Dim::from(heads * value_width)];
    let mut result = op.kernel().result("attention", Type::tensor(DType::F32, shape))?;
    if packs {
        // In the place of heads that it had.
        let apart = vec![batch, queries.clone(), Dim::from(heads), Dim::from(*value_width)];
        let context = make.reshape(result, "context", apart)?;
        result = make.transpose(context, "heads", &OUTSIDE)?;
    }
    replace_value(graph, y, result, [found.last])?;
    Ok(Some((y, result)))
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
