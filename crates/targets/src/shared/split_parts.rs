//! What a Transpose puts outermost and Gathers take apart again, as queries, keys and values of one projection are: parts of a Split.
//!
//! ONNX Runtime moves a Transpose behind Gathers of an axis on load, so that one move of all is as many as there are parts, and the
//! Gathers read scattered rows. It does not move one behind a Reshape that merges axes, and a Split of the merged axis leaves the same
//! parts.

use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::read::known_ints;
use relayout_ir::op::{int_or_default, normalize_axis};
use relayout_ir::patch::{Patch, remove_dead};
use relayout_ir::storage::same_bytes;
use relayout_ir::types::Type;
use relayout_target_api::{Declared, Fact, Pass, PassError, Slot};

/// The pass, after these of its slot.
pub(crate) fn pass(after: &'static [&'static str]) -> Pass {
    let is = Declared::new("split_parts", Slot::Write, "no form reads the Gathers any more")
        .needs(&[Fact::Written])
        .after(after);
    Pass::on_each_graph(is, |graph, cx| split_parts(graph, cx.settings.opset))
}

/// Splits what such Gathers read.
fn split_parts(graph: &mut Graph, opset: i64) -> Result<(), PassError> {
    for n in graph.order().unwrap_or_default() {
        if let Some(parts) = graph.contains(n).then(|| Parts::recognize(graph, n)).flatten() {
            parts.split(graph, opset)?;
        }
    }
    Ok(())
}

/// What a Transpose makes, and the Gathers that read it, each part once.
struct Parts {
    whole: ValueId,
    /// By part: who takes it.
    gathers: Vec<NodeId>,
}

impl Parts {
    fn recognize(graph: &Graph, n: NodeId) -> Option<Parts> {
        let node = graph.node(n);
        let &[Some(whole)] = &node.outputs[..] else { return None };
        let moves = matches!(&node.form, Form::View(View::Transpose(perm)) if perm.first() != Some(&0))
            && matches!(node.op, Op::Onnx(_));
        let [count, rest @ ..] = graph.value(whole).ty.shape()? else { return None };
        let count = usize::try_from(count.as_const()?).ok()?;
        let known = rest.first().is_some_and(|d| d.as_const().is_some_and(|d| d > 0));
        let uses = graph.uses(whole);
        let shape = graph.value(whole).ty.shape().unwrap_or_default();
        let in_order = same_bytes(&graph.value(whole).layout, &Layout::row_major(shape.len()), shape);
        if !moves || !known || !in_order || uses.len() != count || count < 2 {
            return None;
        }
        let mut gathers = vec![None; count];
        for u in uses {
            let part = part_of(graph, u.node, count)?;
            gathers.get_mut(part)?.replace(u.node);
        }
        let gathers = gathers.into_iter().collect::<Option<_>>()?;
        (!graph.is_output(whole)).then_some(Parts { whole, gathers })
    }

    fn split(self, graph: &mut Graph, opset: i64) -> Result<(), PassError> {
        let value = graph.value(self.whole);
        let (name, shape) = (value.name.clone(), value.ty.shape().unwrap_or_default().to_vec());
        let (Some(first), [count, each, rest @ ..]) = (self.gathers.first(), &shape[..]) else { return Ok(()) };
        let (Some(sizes), Some(merged)) = (each.as_const(), count.checked_mul(each)) else { return Ok(()) };
        let merged: Vec<Dim> = std::iter::once(merged).chain(rest.iter().cloned()).collect();
        let results = self.gathers.iter().filter_map(|&g| graph.node(g).result(0));
        let results: Vec<ValueId> = results.collect();
        let part = |&y: &ValueId| (format!("{}.part", graph.value(y).name), graph.value(y).ty.clone());
        let parts: Vec<(String, Type)> = results.iter().map(part).collect();
        let mut make = Builder::at(graph, *first);
        let merged = make.reshape(self.whole, &format!("{name}.parts"), merged)?;
        let split = make.op("Split", [merged]).attr("axis", Attr::Int(0)).kernel();
        let sizes = vec![sizes; self.gathers.len()];
        let made = split.told("split", &format!("{name}.sizes"), &sizes, opset)?.results(parts)?;
        let mut patch = Patch::new();
        for (&y, &part) in results.iter().zip(&made) {
            patch.replace(y, part);
        }
        patch.apply(graph)?;
        remove_dead(graph, self.gathers);
        Ok(())
    }
}

/// The part that a node takes alone: a Gather of one index along the first axis, its result in ONNX's order.
fn part_of(graph: &Graph, n: NodeId, count: usize) -> Option<usize> {
    let node = graph.node(n);
    let (&[Some(_), Some(index)], &[Some(y)]) = (&node.inputs[..], &node.outputs[..]) else { return None };
    let plain = matches!(node.form, Form::Axes(_)) && graph.value(y).layout.is_row_major();
    let scalar = graph.value(index).ty.rank() == Some(0);
    if node.onnx() != Some("Gather") || int_or_default(node, "axis") != Some(0) || !plain || !scalar {
        return None;
    }
    let [index] = known_ints(graph, index)?[..] else { return None };
    normalize_axis(index, count)
}
