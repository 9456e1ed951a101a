//! How operands lie, and which are known: what the decision and the passes around it ask of a graph.

use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{AtomId, Bound, Slot};
use relayout_ir::graph::{Graph, ValueId};
use relayout_ir::layout::{Factor, Layout};
use relayout_ir::op::read::known_ints;
use relayout_ir::storage::StorageRule;

/// The constant that shape arithmetic found a value to be, stored in ONNX's order.
pub fn known_constant(graph: &Graph, v: ValueId) -> Option<Constant> {
    let value = graph.value(v);
    let dims = value.ty.const_shape()?;
    let elements = known_ints(graph, v)?;
    let dtype = value.ty.dtype()?;
    let width = match dtype {
        DType::I64 => 8,
        DType::I32 => 4,
        _ => return None,
    };
    let fits = |&e: &i64| width == 8 || i32::try_from(e).is_ok();
    let whole = dims.iter().try_fold(1i64, |n, &d| n.checked_mul(d)) == Some(elements.len() as i64);
    if !whole || !elements.iter().all(fits) {
        return None;
    }
    let bytes: Vec<u8> = elements.iter().flat_map(|e| e.to_le_bytes()[..width].to_vec()).collect();
    Some(Constant::inline(dtype, dims, bytes.into()))
}

/// Whether an operand that the op aligns at its end no longer lines up there, its layout and that of the result being these.
/// An axis of extent 1 fits anywhere.
pub(crate) fn needs_raise(
    graph: &Graph,
    bound: &Bound,
    slot: usize,
    v: ValueId,
    layout: &Layout,
    full: Option<&Layout>,
) -> bool {
    if let Some(full) = full.filter(|full| is_split(graph, full)) {
        return lies_apart(graph, bound, slot, v, layout, full);
    }
    if !bound.aligned.get(slot).copied().unwrap_or(false) {
        return false;
    }
    let stored = |axes: Option<&[AtomId]>, layout: Option<&Layout>| -> Option<Vec<AtomId>> {
        layout?.as_permutation()?.iter().map(|&a| axes?.get(a).copied()).collect()
    };
    let own = stored(bound.axes(Slot::In(slot)), Some(layout));
    let (Some(own), Some(full)) = (own, stored(bound.axes(Slot::Out(0)), full)) else { return false };
    let axes = bound.axes(Slot::In(slot)).unwrap_or_default();
    let shape = graph.value(v).ty.shape().unwrap_or_default();
    let one = |atom: &AtomId| axes.iter().position(|a| a == atom).and_then(|i| shape.get(i)).is_some_and(Dim::is_one);
    // What a product adds up over is no axis of the result, and stands where the product wants it. A view for the full rank may undo
    // another one, but a constant would be stored again for nothing.
    let stays = |atom: &AtomId| !full.contains(atom) && graph.constant(v).is_some();
    own.iter().rev().zip(full.iter().rev()).any(|(a, b)| a != b && !one(a) && !stays(a))
}

/// Whether values of this layout have another number of dims than axes.
pub(crate) fn is_split(graph: &Graph, layout: &Layout) -> bool {
    graph.storage == StorageRule::PerDigit && layout.factors().len() != layout.rank()
}

/// A digit of an atom. The outermost ones of an operand that repeats one element and of the result are the same.
pub(crate) type Digit = (AtomId, Option<u64>);

fn digit(axes: &[AtomId], f: &Factor) -> Option<Digit> {
    Some((*axes.get(usize::from(f.axis))?, f.modulo.map(|_| f.div)))
}

pub(crate) fn digits(axes: &[AtomId], layout: &Layout) -> Option<Vec<Digit>> {
    layout.factors().iter().map(|f| digit(axes, f)).collect()
}

/// Whether the dims of an operand do not meet those of the result at their end. A dim of 1 fits anywhere.
pub(crate) fn lies_apart(
    graph: &Graph,
    bound: &Bound,
    slot: usize,
    v: ValueId,
    layout: &Layout,
    full: &Layout,
) -> bool {
    let (Some(axes), Some(all)) = (bound.axes(Slot::In(slot)), bound.axes(Slot::Out(0))) else { return false };
    if !bound.renumber.is_empty() || !axes.iter().all(|a| all.contains(a)) {
        return false;
    }
    let (Some(own), Some(full)) = (digits(axes, layout), digits(all, full)) else { return false };
    let shape = graph.value(v).ty.shape().unwrap_or_default();
    let one = |d: &Digit| axes.iter().position(|a| *a == d.0).and_then(|axis| shape.get(axis)).is_some_and(Dim::is_one);
    own.iter().rev().zip(full.iter().rev()).any(|(a, b)| a != b && !one(a))
}
