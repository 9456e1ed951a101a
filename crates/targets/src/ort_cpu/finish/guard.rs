//! The host guard of ONNX Runtime's blocked ops, and the shield of convolutions that stay plain.
//!
//! A blocked file computes wrong numbers on a host of another block, without an error. A reorder of a few zero channels gives as
//! many numbers as the host rounds them up to, so a Reshape to the number that the file was made for fails on any other host. The
//! zero that comes out is added to a bias. ONNX Runtime can't know that it is zero: its constant folding leaves reorders alone.
//!
//! For the same reason a plain convolution whose bias takes that zero stays plain: on load ONNX Runtime blocks only those whose
//! bias it knows.

use super::make::Maker;
use crate::ort_cpu::nodes::convolution;
use relayout_ir::constant::Constant;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, KernelLayouts};
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::op::NCHWC;
use relayout_ir::patch::{Insert, Patch};
use relayout_ir::types::Type;
use relayout_target::PassError;
use std::collections::BTreeSet;

/// Channels of the zeros that are reordered: no multiple of any block, so each rounds them up otherwise; whole groups of four,
/// as the reorder needs them.
const CHANNELS: i64 = 20;

/// Adds what a graph needs. `shielded` are the convolutions that must stay plain.
pub(super) fn guard(graph: &mut Graph, block: Option<u64>, shielded: &[NodeId]) -> Result<(), PassError> {
    let guarded = block.and_then(|_| cheapest(graph));
    let biased: Vec<NodeId> = guarded.into_iter().chain(shielded.iter().copied()).collect();
    let Some(&first) = biased.first() else { return Ok(()) };
    let rank = biased.iter().map(|&n| graph.node(n).rank).min().unwrap_or(graph.node(first).rank);
    let mut made = Maker { graph, rank };
    let zero = made.zero(block)?;
    for n in biased {
        made.add_to_bias(n, zero)?;
    }
    Ok(())
}

/// The blocked convolution of the fewest filters, one with a bias if there is one.
fn cheapest(graph: &Graph) -> Option<NodeId> {
    let blocked = graph.order().ok()?.into_iter().filter(|&n| is(graph.node(n), &convolution()));
    let filters = |n: NodeId| {
        let w = graph.node(n).inputs.get(1).copied().flatten()?;
        graph.value(w).ty.shape()?.first()?.as_const()
    };
    let bias = |n: NodeId| graph.node(n).inputs.get(2).copied().flatten().is_some_and(|b| graph.constant(b).is_some());
    blocked
        .filter_map(|n| Some((!bias(n), filters(n)?, n)))
        .min_by_key(|&(none, filters, _)| (none, filters))
        .map(|(_, _, n)| n)
}

fn is(node: &Node, op: &OpName) -> bool {
    matches!(&node.op, Op::Onnx(name) if name == op)
}

impl Maker<'_> {
    /// `[0]`, known at run time only, and there only on a host of this block.
    fn zero(&mut self, block: Option<u64>) -> Result<ValueId, PassError> {
        let zeros = Constant::inline(DType::F32, vec![1, CHANNELS, 1, 1], vec![0u8; CHANNELS as usize * 4].into());
        let zeros = self.constant("host.zeros", zeros)?;
        let slots = block.map_or(-1, |b| (CHANNELS as u64).next_multiple_of(b) as i64);
        let declared = Dim::from(slots.max(CHANNELS));
        let one = || Dim::from(1);
        let packed = Type::tensor(DType::F32, vec![one(), declared.clone(), one(), one()]);
        let packed = self.node(NCHWC, "ReorderInput", vec![zeros], "host.packed", packed, 1)?;
        let length = self.constant("host.slots", Constant::ints(&[slots]))?;
        let vector =
            self.node("", "Reshape", vec![packed, length], "host.block", Type::tensor(DType::F32, vec![declared]), 13)?;
        let first = self.constant("host.first", Constant::ints(&[0]))?;
        self.node("", "Gather", vec![vector, first], "host.zero", Type::tensor(DType::F32, vec![one()]), 13)
    }

    /// Adds the zero to the bias of a convolution, which gets one if it has none.
    fn add_to_bias(&mut self, n: NodeId, zero: ValueId) -> Result<(), PassError> {
        let node = self.graph.node(n);
        let Some(filters) = node
            .inputs
            .get(1)
            .copied()
            .flatten()
            .and_then(|w| self.graph.storage_shape(w, &self.graph.value(w).layout)?.first()?.as_const())
        else {
            return Ok(());
        };
        let bias = if let Some(bias) = node.inputs.get(2).copied().flatten() {
            bias
        } else {
            let zeros = vec![0u8; usize::try_from(filters).unwrap_or(0) * 4];
            self.constant("host.bias", Constant::inline(DType::F32, vec![filters], zeros.into()))?
        };
        let layout = self.graph.value(bias).layout.clone();
        let (name, ty) = (format!("{}.guarded", self.graph.value(bias).name), self.graph.value(bias).ty.clone());
        let sum = self.node("", "Add", vec![bias, zero], &name, ty, 13)?;
        *self.graph.value_mut(sum).layout = layout.clone();
        let own = (!layout.is_row_major()).then_some(layout);
        let (add, _) = self.graph.value(sum).producer();
        self.graph.set_form(add, Form::Kernel(Box::new(KernelLayouts { ins: vec![own.clone()], outs: vec![own] })));
        let mut inputs = self.graph.node(n).inputs.clone();
        inputs.resize(inputs.len().max(3), None);
        inputs[2] = Some(sum);
        self.graph.set_inputs(n, inputs);
        Ok(())
    }
}

/// Whether a convolution that stayed plain would be blocked by ONNX Runtime on load: one of float32 images whose weights and
/// bias it knows, and whose channels its reorders and packings take.
pub(super) fn needs_shield(graph: &Graph, n: NodeId, block: u64) -> bool {
    let node = graph.node(n);
    let operand = |slot: usize| node.inputs.get(slot).copied().flatten();
    let Some(w) = operand(1) else { return false };
    let weights = graph.value(w).ty.const_shape().filter(|_| graph.value(w).ty.dtype() == Some(DType::F32));
    let Some([filters, depth, _, _]) = weights.and_then(|s| <[i64; 4]>::try_from(s).ok()) else { return false };
    let (block, group) = (block as i64, node.int("group").unwrap_or(1));
    let taken = if group > 1 {
        let depthwise = depth == 1 && filters == group;
        let whole = depth % block == 0 && filters % group == 0 && (filters / group) % block == 0;
        filters % 4 == 0 && (depthwise || whole)
    } else {
        depth < block || depth % 4 == 0
    };
    node.onnx() == Some("Conv")
        && taken
        && known_on_load(graph, w)
        && operand(2).is_none_or(|b| known_on_load(graph, b))
}

/// Parts the result of a plain convolution that is an output of the graph and is added to that of another convolution from the
/// output, by a copy. ONNX Runtime 1.31 takes the sum into the convolution and then misses the output, so it can't load the file.
pub(super) fn part_output(graph: &mut Graph, n: NodeId) -> Result<(), PassError> {
    let Some(y) = graph.node(n).outputs.first().copied().flatten().filter(|&y| is_summed_output(graph, y)) else {
        return Ok(());
    };
    let value = graph.value(y);
    let op = OpName { domain: String::new(), name: "Identity".to_owned(), overload: String::new() };
    let mut node = Node::new(Op::Onnx(op), vec![Some(y)]);
    (node.rank, node.opset) = (graph.node(n).rank, graph.node(n).opset);
    // Not a view, which export would leave out.
    node.form = Form::Kernel(Box::default());
    let mut patch = Patch::new();
    patch.insert(Insert {
        node,
        name: value.name.clone(),
        ty: value.ty.clone(),
        layout: value.layout.clone(),
        uses: vec![],
        outputs: graph.output_places(y).to_vec(),
        takes_name_of: Some(y),
    });
    patch.apply(graph)?;
    Ok(())
}

fn is_summed_output(graph: &Graph, y: ValueId) -> bool {
    let convolved = |v: ValueId| graph.node(graph.value(v).producer().0).onnx() == Some("Conv");
    let sums = |n: NodeId| {
        let node = graph.node(n);
        node.onnx() == Some("Add") && node.inputs.iter().flatten().all(|&v| convolved(v))
    };
    graph.is_output(y) && graph.uses(y).into_iter().any(|u| sums(u.node))
}

/// Whether ONNX Runtime may know a value when it loads the file: a constant, what it computes from constants then, and what a body
/// reads from outside, where that may be a constant. Its constant folding leaves reorders alone, and `DequantizeLinear`, which it
/// looks for in quantized units.
fn known_on_load(graph: &Graph, v: ValueId) -> bool {
    let (mut left, mut seen) = (vec![v], BTreeSet::new());
    while let Some(v) = left.pop() {
        if !seen.insert(v) || graph.constant(v).is_some() {
            continue;
        }
        let node = graph.node(graph.value(v).producer().0);
        let operands = node.inputs.iter().copied().flatten();
        match &node.op {
            Op::Outer => {}
            Op::Onnx(_) if matches!(node.onnx(), Some("Shape" | "Size")) => {}
            Op::Relayout => left.extend(operands),
            Op::Onnx(_) if node.onnx() == Some("DequantizeLinear") => return false,
            Op::Onnx(op) if op.domain.is_empty() && !node.inputs.is_empty() && node.captures.is_empty() => {
                left.extend(operands);
            }
            _ => return false,
        }
    }
    true
}
