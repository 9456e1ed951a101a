//! Broadcast operands beside results with a dim per digit: `[1, 1, H, W]` meets `NCHW16c` as `[1, 1, H, W, 1]`.
//!
//! Such an operand has no logical shape of the result's rank any more, so it is given a dim of 1 for every digit that it lacks,
//! and the op, which speaks of no axes, is fixed in these layouts.

use crate::operands::{digits, is_split, lies_apart};
use crate::state::Step;
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, KernelLayouts, Slot, View};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::op::WRITTEN_OPSET;
use relayout_ir::storage::reshape_target;
use relayout_ir::types::{TensorType, Type};
use relayout_target_api::{Declared, Fact, PassError};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// Whether the first result of a node has a dim per digit of a split axis.
pub(super) fn has_digits(graph: &Graph, n: NodeId) -> bool {
    result(graph, n).is_some_and(|y| is_split(graph, &graph.value(y).layout))
}

fn result(graph: &Graph, n: NodeId) -> Option<ValueId> {
    graph.node(n).result(0)
}

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new("raise_to_digits", relayout_target_api::Slot::Write, "the same where values have a dim per digit")
        .needs(&[Fact::Layouts])
        .keeps_nodes(),
    &|graph, cx| raise_to_digits(graph, cx.settings.opset),
);

/// Raises the operands of every such node. `opset` is the version of the standard domain that the model imports.
pub fn raise_to_digits(graph: &mut Graph, opset: i64) -> Result<(), PassError> {
    // By value and the places of the new dims: one raised value for all who read it alike.
    let mut raised: FxHashMap<(ValueId, Vec<usize>), ValueId> = FxHashMap::default();
    for n in graph.order().unwrap_or_default() {
        let slots = apart(graph, n);
        if slots.is_empty() {
            continue;
        }
        let node = graph.node(n);
        let (mut inputs, outputs) = (node.inputs.clone(), node.outputs.clone());
        for (slot, v, missing) in slots {
            let by = match raised.entry((v, missing)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let by = insert(graph, (n, opset), v, &new.key().1)?;
                    *new.insert(by)
                }
            };
            if let Some(place) = inputs.get_mut(slot) {
                *place = Some(by);
            }
        }
        let own = |v: &Option<ValueId>| v.map(|v| graph.value(v).layout.clone()).filter(|l| !l.is_row_major());
        let layouts = KernelLayouts { ins: inputs.iter().map(own).collect(), outs: outputs.iter().map(own).collect() };
        graph.set_inputs(n, inputs);
        graph.set_form(n, Form::Kernel(Box::new(layouts)));
    }
    Ok(())
}

/// Operands that lie apart, and the places of the dims that they lack among those of the result.
fn apart(graph: &Graph, n: NodeId) -> Vec<(usize, ValueId, Vec<usize>)> {
    let node = graph.node(n);
    let (Form::Axes(bound), Some(y)) = (&node.form, result(graph, n)) else { return Vec::new() };
    let full = &graph.value(y).layout;
    if !is_split(graph, full) {
        return Vec::new();
    }
    let lacking = |(slot, v): (usize, ValueId)| {
        let layout = &graph.value(v).layout;
        if !lies_apart(graph, bound, slot, v, layout, full) {
            return None;
        }
        let own = digits(bound.axes(Slot::In(slot))?, layout)?;
        let all = digits(bound.axes(Slot::Out(0))?, full)?;
        let missing = all.iter().enumerate().filter(|(_, d)| !own.contains(d)).map(|(place, _)| place).collect();
        Some((slot, v, missing))
    };
    node.inputs.iter().enumerate().filter_map(|(slot, v)| v.map(|v| (slot, v))).filter_map(lacking).collect()
}

/// The operand with dims of 1 at these places.
fn insert(graph: &mut Graph, (n, opset): (NodeId, i64), v: ValueId, missing: &[usize]) -> Result<ValueId, PassError> {
    let value = graph.value(v);
    let layout = value.layout.clone();
    let stored = graph.storage_shape(v, &layout).unwrap_or_default();
    let mut dims = stored.clone();
    for &place in missing {
        dims.insert(place.min(dims.len()), Dim::from(1));
    }
    let name = graph.fresh_name(&format!("{}.{}d", value.name, dims.len()));
    let places: Vec<i64> = missing.iter().map(|&p| p as i64).collect();
    // A Reshape needs every extent, an Unsqueeze only what is new.
    let (op, told, list) = match reshape_target(&stored, &dims) {
        Some(target) => ("Reshape", "shape", target),
        None => ("Unsqueeze", "axes", places),
    };
    let ty = Type::Tensor(TensorType { dtype: value.ty.dtype(), shape: Some(dims) });
    // What is stored as ONNX has it is the same elements in another shape, which folds into constants.
    let form = if layout.is_row_major() && ty.const_shape().is_some() {
        Form::View(View::Reshape)
    } else {
        let ins = vec![(!layout.is_row_major()).then_some(layout)];
        Form::Kernel(Box::new(KernelLayouts { ins, outs: Vec::new() }))
    };
    // A model that imports no standard operators has those of the version that such a graph is written in.
    let version = if opset == 0 { WRITTEN_OPSET } else { opset };
    let mut make = Builder::at(graph, n).opset(opset);
    let draft = make.op(op, [v]).form(form).told(told, &format!("{name}.shape"), &list, version)?;
    Ok(draft.result(&name, ty)?)
}
