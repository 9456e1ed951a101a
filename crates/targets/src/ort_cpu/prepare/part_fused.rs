//! `part_fused`: convolutions that took in a sum and an activation, as in files that ONNX Runtime saved after its own rewrites, become
//! the nodes that they were.
//!
//! ONNX Runtime puts `FusedConv` into blocks when it loads a file, as it does convolutions. No form stands for it, so what is around it
//! would be put in order twice. Plain convolutions take in the same nodes again on load.

use super::super::taken_in::{Activation, HARD_SWISH_OPSET, attributes_of, said};
use crate::shared::forms::product::BROADCASTS_SINCE;
use relayout_ir::build::{Builder, Draft, bind_again};
use relayout_ir::dtype::DType;
use relayout_ir::graph::{DuplicateName, Graph, Handover, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::op::MICROSOFT;
use relayout_target_api::{Context, PassError};

/// Opset from which Clip reads its bounds as operands.
const CLIP_OPERANDS: i64 = 11;
/// The operand that is added to the products.
const SUM: usize = 3;

/// Writes out those of a graph.
pub(super) fn part_fused(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let opset = cx.settings.opset;
    for n in graph.order().unwrap_or_default() {
        if let Some(activation) = fused(graph, graph.node(n), opset) {
            part(graph, n, activation, opset)?;
        }
    }
    Ok(())
}

/// The activation of a fused convolution, with its numbers.
type Taken = Option<(String, Vec<f32>)>;

/// What a convolution of floats with constant weights took in, if all of that is in a version of the standard domain.
fn fused(graph: &Graph, node: &Node, opset: i64) -> Option<Taken> {
    let is_fused = matches!(&node.op, Op::Onnx(op) if op.domain == MICROSOFT && op.name == "FusedConv");
    let (w, y) = (node.operand(1).filter(|_| is_fused)?, node.only_result()?);
    let typed = graph.value(y).ty.dtype() == Some(DType::F32) && graph.value(y).ty.rank().is_some();
    (typed && graph.constant(w).is_some() && opset >= BROADCASTS_SINCE).then_some(())?;
    let Some((op, params)) = said(node) else { return Some(None) };
    let names = Activation::named(op)?.attributes().count();
    let known = params.len() == names && (op != "HardSwish" || opset >= HARD_SWISH_OPSET);
    known.then(|| Some((op.to_owned(), params.to_vec())))
}

fn part(graph: &mut Graph, n: NodeId, activation: Taken, opset: i64) -> Result<(), DuplicateName> {
    let node = graph.node(n);
    let Some(y) = node.only_result() else { return Ok(()) };
    let sum = node.operand(SUM);
    let (name, ty) = (graph.value(y).name.clone(), graph.value(y).ty.clone());
    let readers = Handover::everything(graph, y);
    let own: Vec<Option<ValueId>> = node.inputs.iter().copied().take(SUM).collect();
    graph.set_op(n, OpName::onnx("Conv"), opset);
    graph.set_inputs(n, own);
    let attrs = graph.attrs_mut(n);
    attrs.shift_remove("activation");
    attrs.shift_remove("activation_params");
    bind_again(graph, n);
    let mut made = Builder::at(graph, n).opset(opset);
    let last = match (sum, activation) {
        (None, None) => return Ok(()),
        (Some(sum), None) => made.op("Add", [y, sum]),
        (sum, Some((op, params))) => {
            let y = match sum {
                Some(sum) => made.op("Add", [y, sum]).result(&format!("{name}.sum"), ty.clone())?,
                None => y,
            };
            activated(&mut made, y, &op, &params, opset)?
        }
    };
    last.result_for(&name, ty, readers).map(drop)
}

/// The node of an activation.
fn activated<'b, 'g>(
    made: &'b mut Builder<'g>,
    y: ValueId,
    op: &str,
    params: &[f32],
    opset: i64,
) -> Result<Draft<'b, 'g>, DuplicateName> {
    if op == "Clip" && opset >= CLIP_OPERANDS {
        let mut operands = vec![y];
        for (what, &number) in ["least", "most"].into_iter().zip(params) {
            operands.push(made.filled(what, DType::F32, &[], number.into())?);
        }
        return Ok(made.op(op, operands));
    }
    Ok(made.op(op, [y]).attrs(attributes_of(op, params)))
}
