//! `fold_weights`: moves and views of constants become constants. Their bytes are not touched here: a permutation is a note
//! on the constant that export executes while it writes.

pub use crate::operands::known_constant;
use crate::state::Step;
use relayout_ir::constant::{Constant, Repack};
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::patch::{Insert, Patch};
use relayout_ir::perm::inverse;
use relayout_ir::storage::same_bytes;
use relayout_target_api::{Context, Declared, Fact, PassError, Slot};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new("fold_weights", Slot::Finish, "absorbs moves and views of constants, whoever added them")
        .needs(&[Fact::Written])
        .gives(&[Fact::Packed]),
    &fold_weights,
);

/// Folds in topological order, so that chains fold whole.
pub fn fold_weights(graph: &mut Graph, _cx: &mut Context<'_>) -> Result<(), PassError> {
    for n in graph.order().unwrap_or_default() {
        let Some((y, constant)) = folded(graph, n) else { continue };
        let value = graph.value(y);
        let mut patch = Patch::new();
        patch.insert(Insert {
            node: Node::constant(constant, graph.node(n).rank),
            name: value.name.clone(),
            ty: value.ty.clone(),
            layout: value.layout.clone(),
            uses: graph.uses(y).into_vec(),
            outputs: graph.output_places(y).to_vec(),
            takes_name_of: Some(y),
        });
        patch.apply(graph)?;
    }
    Ok(())
}

/// The constant that a node's result is, if it is a move or a changed view of a constant.
fn folded(graph: &Graph, n: NodeId) -> Option<(ValueId, Constant)> {
    let node = graph.node(n);
    let x = node.operand(0)?;
    let y = node.result(0)?;
    if graph.use_count(y) == 0 && !graph.is_output(y) {
        return None;
    }
    if matches!(node.op, Op::Onnx(_)) && to_is_plain_transpose(graph, n, y) {
        return known_constant(graph, y).map(|c| (y, c)).or_else(|| folded_view(graph, n, x, y));
    }
    folded_view(graph, n, x, y)
}

/// The same, from the constant behind the operand.
fn folded_view(graph: &Graph, n: NodeId, x: ValueId, y: ValueId) -> Option<(ValueId, Constant)> {
    let node = graph.node(n);
    let constant = constant_behind(graph, x).filter(Constant::can_move)?;
    let (from, to) = (graph.value(x), graph.value(y));
    // What the model says of its types may contradict its constants.
    if to.ty.dtype() != Some(constant.dtype) {
        return None;
    }
    let (from_shape, to_shape) = (from.ty.shape()?, to.ty.shape()?);
    let dims: Vec<i64> = graph.storage_shape(y, &to.layout)?.iter().map(Dim::as_const).collect::<Option<_>>()?;
    let view = node.view()?;
    let moves = matches!(view, View::Transpose(_)) || matches!(node.op, Op::Relayout);
    if !moves && from.layout.is_row_major() && to.layout.is_row_major() && node.origin.is_some() {
        // A Reshape of the input's own that nothing has touched.
        return None;
    }
    let left = view.forward(&from.layout, from_shape, to_shape).ok()?;
    let mut folded = Constant { dims, ..constant };
    if !same_bytes(&left, &to.layout, to_shape) {
        let repack = repack(&left, &to.layout, to_shape)?;
        folded.pending = Some(Box::new(match &folded.pending {
            None => repack,
            Some(before) => compose(before, &repack)?,
        }));
    }
    Some((y, folded))
}

/// The constant that a value is: itself one, or one seen through Reshapes of the input's own. Their bytes are the same.
fn constant_behind(graph: &Graph, v: ValueId) -> Option<Constant> {
    if let Some(c) = graph.constant(v) {
        return Some(c.clone());
    }
    let value = graph.value(v);
    let known = value.layout.is_row_major().then(|| known_constant(graph, v)).flatten();
    if known.is_some() {
        return known;
    }
    let node = graph.node(value.producer().0);
    let x = node.operand(0)?;
    let plain = value.layout.is_row_major() && graph.value(x).layout.is_row_major();
    if !plain || !matches!(node.form, Form::View(View::Reshape | View::Same)) {
        return None;
    }
    let before = constant_behind(graph, x)?;
    let dims = value.ty.const_shape()?;
    let behind = Constant { dims, ..before.clone() };
    (value.ty.dtype() == Some(before.dtype) && behind.elems() == before.elems()).then_some(behind)
}

/// Whether the node is a Transpose whose result is stored in ONNX's order.
fn to_is_plain_transpose(graph: &Graph, n: NodeId, y: ValueId) -> bool {
    matches!(graph.node(n).form, Form::View(View::Transpose(_))) && graph.value(y).layout.is_row_major()
}

/// The move from layout `from`, an order of whole axes, to layout `to`, in terms of the places that `from` stores.
fn repack(from: &Layout, to: &Layout, shape: &[Dim]) -> Option<Repack> {
    let stored = from.as_permutation()?;
    let extents = stored.iter().map(|&axis| shape.get(axis)?.as_const()).collect::<Option<_>>()?;
    Some(Repack { extents, to: to.transpose(&stored).ok()? })
}

/// One move after another, where the first is a permutation and the second speaks of the places that it leaves.
fn compose(first: &Repack, second: &Repack) -> Option<Repack> {
    let perm = first.to.as_permutation()?;
    let left: Option<Vec<i64>> = perm.iter().map(|&p| first.extents.get(p).copied()).collect();
    if left? != second.extents {
        return None;
    }
    Some(Repack { extents: first.extents.clone(), to: second.to.transpose(&inverse(&perm)).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_compose_in_the_order_they_are_made() {
        let repack = |extents: &[i64], to: &str| Repack { extents: extents.to_vec(), to: to.parse().unwrap() };
        let a = repack(&[2, 3, 4], "b c a");
        assert_eq!(compose(&a, &repack(&[3, 4, 2], "c a b")), Some(repack(&[2, 3, 4], "a b c")));
        assert_eq!(compose(&a, &repack(&[3, 4, 2], "c a/8 b a%8")), Some(repack(&[2, 3, 4], "a b/8 c b%8")));
        assert_eq!(compose(&a, &repack(&[12, 2], "b a")), None);
        assert_eq!(compose(&repack(&[2, 3], "b a/8 a%8"), &repack(&[3, 2], "b a")), None);
    }
}
