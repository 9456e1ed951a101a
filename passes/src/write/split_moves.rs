//! A move that the target's runtime is slow at becomes several that it is fast at.
//!
//! Between two of them, and behind a last one that leaves axes of size 1 elsewhere, stand a Flatten and a Reshape, which move
//! nothing. The runtime's own optimizer merges Transposes that follow each other, and those with a Reshape between them, back
//! into the slow one when it loads the file; it does not look through a Flatten.

use crate::state::Step;
use relayout_ir::attr::Attr;
use relayout_ir::build::{Builder, Draft};
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, Handover, NodeId, Op, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::storage::{finds_all, reshape_target, same_bytes};
use relayout_ir::types::Type;
use relayout_target_api::moves::{Moved, moved};
use relayout_target_api::{Context, Declared, Fact, MoveQuery, PassError, Sizes, Slot};

/// Flatten takes elements other than floats from this opset on.
const ANY_ELEMENTS: i64 = 9;

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new("split_moves", Slot::Finish, "looks at the moves that are left; those of constants are gone")
        .needs(&[Fact::Packed]),
    &split_moves,
);

/// Splits moves of one graph, for targets that ask for it.
pub(crate) fn split_moves(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    // What a step adds is of no opset.
    let any_elements = flattens_any(graph);
    for n in graph.order().unwrap_or_default() {
        if let Some((y, steps)) = split(graph, n, cx, any_elements) {
            apply(graph, n, y, &steps)?;
        }
    }
    Ok(())
}

/// The result of a move that is split, and the layouts before and after each step. `any_elements` says whether Flatten takes
/// elements other than floats.
fn split(graph: &Graph, n: NodeId, cx: &Context<'_>, any_elements: bool) -> Option<(ValueId, Vec<[Layout; 2]>)> {
    let node = graph.node(n);
    if !matches!((&node.op, &node.form), (Op::Relayout, _) | (_, Form::View(_))) {
        return None;
    }
    let Moved { result, left, .. } = moved(graph, n)?;
    let value = graph.value(result);
    let dtype = value.ty.dtype()?;
    if !any_elements && !matches!(dtype, DType::F32 | DType::F16 | DType::F64) {
        return None;
    }
    // An extent that may be other than 1 is not taken for 1, of whatever size it is thought to be.
    let mut shape = cx.settings.hints.shape(graph, result)?;
    for (extent, dim) in shape.iter_mut().zip(value.ty.shape()?) {
        if !dim.is_const() {
            *extent = (*extent).max(2);
        }
    }
    let bytes = cx.settings.hints.bytes(graph, result);
    let steps =
        cx.target().split_move(&MoveQuery::permute(&left, &value.layout, &shape).dtype(Some(dtype)).bytes(bytes));
    // A Reshape expresses only some symbolic extents.
    let written = steps.windows(2).all(|pair| match pair {
        [[_, end], [start, _]] => shapes(graph, result, end, start).is_some(),
        _ => false,
    });
    let [_, end] = steps.last()?;
    let ends = *end == value.layout || shapes(graph, result, end, &value.layout).is_some();
    (written && ends).then_some((result, steps))
}

/// Whether Flatten takes elements other than floats in this graph.
fn flattens_any(graph: &Graph) -> bool {
    graph.nodes().map(|n| graph.node(n)).any(|n| n.onnx().is_some() && n.opset >= ANY_ELEMENTS)
}

/// Extents of a value in layout `from` with all but its outermost axis made one, and what a Reshape from there to layout `to`
/// takes; `None` if no Reshape does that at every size, which a Transpose alone does, or it moves bytes.
fn shapes(graph: &Graph, v: ValueId, from: &Layout, to: &Layout) -> Option<(Vec<Dim>, Vec<i64>)> {
    if !same_bytes(from, to, graph.value(v).ty.shape()?) {
        return None;
    }
    let stored = graph.storage_shape(v, from)?;
    let (first, rest) = stored.split_first()?;
    let target = reshape_target(std::slice::from_ref(first), &graph.storage_shape(v, to)?)?;
    finds_all(&target).then_some((vec![first.clone(), Dim::product(rest)?], target))
}

/// Puts the steps behind the node that made the first of them.
fn apply(graph: &mut Graph, n: NodeId, y: ValueId, steps: &[[Layout; 2]]) -> Result<(), PassError> {
    let [[_, first], later @ ..] = steps else { return Ok(()) };
    let wanted = std::mem::replace(graph.value_mut(y).layout, first.clone());
    let (name, ty, readers) = (graph.value(y).name.clone(), graph.value(y).ty.clone(), Handover::everything(graph, y));
    let mut make = Builder::at(graph, n);
    let mut at = y;
    for (i, [start, end]) in later.iter().enumerate() {
        at = viewed(&mut make, at, start)?.result(&format!("{name}.{start}"), ty.clone())?;
        if i + 1 == later.len() && *end == wanted {
            make.move_of(at, wanted).result_for(&name, ty, readers)?;
            return Ok(());
        }
        at = make.moved(at, &format!("{name}.{end}"), end.clone())?;
    }
    viewed(&mut make, at, &wanted)?.result_for(&name, ty, readers)?;
    Ok(())
}

/// The node that declares the same bytes in another layout, in a way that the runtime leaves; its operand is added.
fn viewed<'b, 'g>(make: &'b mut Builder<'g>, x: ValueId, to: &Layout) -> Result<Draft<'b, 'g>, PassError> {
    let value = make.graph.value(x);
    let (dtype, layout, name) = (value.ty.dtype(), value.layout.clone(), value.name.clone());
    let Some(((flat, target), dtype)) = shapes(make.graph, x, &layout, to).zip(dtype) else {
        return Err(PassError::invalid("split_moves", format!("`{name}` can't be declared as {to}")));
    };
    let flatten = make.op("Flatten", [x]).attr("axis", Attr::Int(1)).kernel_in(vec![layout.declared()], vec![None]);
    let flat = flatten.result(&format!("{name}.flat"), Type::tensor(dtype, flat))?;
    let shape = make.ints(&format!("{name}.shape"), &target)?;
    Ok(make.op("Reshape", [flat, shape]).kernel_in(vec![None], vec![to.declared()]))
}
