//! Calls of domain `relayout`: kernels that a pass chose, and moves.

use super::error::ExportError;
use super::out::{Exporter, GraphOut};
use crate::dialect::{DOMAIN, DialectError, DialectOp, Operand, Relayout, numbered};
use crate::proto::NodeProto;
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, KernelLayouts};
use relayout_ir::graph::{Graph, Node, Op, ValueId};
use relayout_ir::layout::Layout;

/// The kernel of the dialect that a node is, with its layouts.
pub(super) fn kernel(node: &Node) -> Option<(&str, &KernelLayouts)> {
    match (&node.op, &node.form) {
        (Op::Onnx(op), Form::Kernel(layouts)) if op.domain == DOMAIN => Some((&op.name, layouts)),
        _ => None,
    }
}

impl Exporter {
    /// The call that a kernel of the dialect is. `proto` has its operands, results and attributes as the op has them.
    pub(super) fn call(
        &mut self,
        graph: &Graph,
        node: &Node,
        (name, layouts): (&str, &KernelLayouts),
        mut proto: NodeProto,
    ) -> Result<NodeProto, ExportError> {
        let fail = |why: String| ExportError::CannotExpress { node: node.describe(graph), why };
        let side = |values: &[Option<ValueId>], layouts: &[Option<Layout>]| -> Vec<Operand> {
            let stored = |slot: usize| match layouts.get(slot).cloned().flatten() {
                Some(layout) => Operand::Stored(layout),
                None => Operand::Plain,
            };
            values.iter().enumerate().map(|(i, v)| v.map_or(Operand::Absent, |_| stored(i))).collect()
        };
        let op = DialectOp::new(
            name,
            self.functions.opset(),
            &side(&node.inputs, &layouts.ins),
            &side(&node.outputs, &layouts.outs),
        )
        .map_err(|e| fail(e.to_string()))?;
        let known: Vec<&str> = op.attributes().collect();
        if let Some(other) = proto.attribute.iter().find(|a| !a.name.as_deref().is_some_and(|n| known.contains(&n))) {
            let other = other.name.as_deref().unwrap_or_default();
            return Err(fail(format!("the function {} has no attribute `{other}`", op.name())));
        }
        proto.domain = Some(DOMAIN.to_owned());
        proto.op_type = Some(op.name().to_owned());
        proto.overload = None;
        proto.input = op.inputs().filter_map(|slot| proto.input.get(slot).cloned()).collect();
        proto.output.retain(|name| !name.is_empty());
        let ends = [node.inputs.first().copied().flatten(), node.outputs.first().copied().flatten()];
        let types = ends.map(|v| graph.value(v?).ty.dtype());
        let nth = |n: usize| if n < 2 { op.name().to_owned() } else { format!("{}_{n}", op.name()) };
        let named = (op.name(), (1..).map(nth));
        self.functions.need(&mut proto, &types, named, |_| Ok(op.function())).map_err(|e| fail(e.to_string()))?;
        Ok(proto)
    }

    /// The call that moves a value between two layouts.
    pub(super) fn move_call(
        &mut self,
        out: &GraphOut<'_>,
        y: ValueId,
        from: &Layout,
        to: &Layout,
        shape: &[Dim],
    ) -> Result<NodeProto, ExportError> {
        let (producer, _) = out.graph.value(y).producer();
        let fail = |e: DialectError| ExportError::CannotExpress {
            node: out.graph.node(producer).describe(out.graph),
            why: e.to_string(),
        };
        let relayout = Relayout::new(from, to, shape).map_err(fail)?;
        let mut node = relayout.call();
        let dtype = out.graph.value(y).ty.dtype();
        // No kernel is named by a kind of moves: a kernel's name begins with that of an op.
        let first = if relayout.kind().is_empty() { 1 } else { 2 };
        let named = (relayout.kind(), (first..).map(numbered));
        self.functions.need(&mut node, &[dtype], named, |opset| relayout.function(opset)).map_err(fail)?;
        Ok(node)
    }
}
