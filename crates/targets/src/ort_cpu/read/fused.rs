//! What ONNX Runtime makes of standard ops before it runs them, as those again, so that rules which know the exports see them.

use super::{OPSET, SUM, node_of, put, put_instead};
use crate::ort_cpu::taken_in::{HARD_SWISH_OPSET, attributes_of, said};
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{DuplicateName, Graph, Node, NodeId, Op, OpName, Use, ValueId};
use relayout_ir::op::float_or_default;
use relayout_ir::patch::{NewOperand, Patch, remove_dead};
use relayout_target_api::{PassError, each_graph};

/// The domain of the fused ops.
const DOMAIN: &str = "com.microsoft";
/// Opset from which the standard domain has normalizations of layers.
const LAYER_OPSET: i64 = 17;

/// Writes fused ops of the graph and its bodies as standard ones: convolutions, products and normalizations with what they took
/// in, and products of rows between Reshapes that only put those together.
///
/// # Errors
/// [`PassError::Name`], which fresh names rule out.
pub fn write_out_fused(graph: &mut Graph) -> Result<(), PassError> {
    each_graph(graph, "", &mut |graph, _| {
        for n in graph.order().unwrap_or_default() {
            // What stood before a product may be gone.
            if graph.contains(n) {
                write_out(graph, n).map_err(PassError::Name)?;
            }
        }
        Ok(())
    })
}

fn write_out(graph: &mut Graph, n: NodeId) -> Result<(), DuplicateName> {
    let node = graph.node(n);
    let Op::Onnx(op) = &node.op else { return Ok(()) };
    match (op.domain.as_str(), op.name.as_str()) {
        (DOMAIN, "FusedConv") => {
            graph.set_op(n, OpName::onnx("Conv"), OPSET);
            write_out_convolution(graph, n).map(drop)
        }
        (DOMAIN, "FusedMatMul") => product(graph, n),
        (DOMAIN, "SkipLayerNormalization") => normalization(graph, n),
        ("", "Gemm") => rows(graph, n),
        _ => Ok(()),
    }
}

/// A convolution, the Add and the activation that it took in: the nodes that are new.
pub(super) fn write_out_convolution(graph: &mut Graph, n: NodeId) -> Result<Vec<NodeId>, DuplicateName> {
    let node = graph.node(n);
    let Some(y) = node.only_result() else { return Ok(Vec::new()) };
    let sum = node.operand(SUM);
    let activation = activation(node);
    let inputs: Vec<Option<ValueId>> = node.inputs.iter().copied().take(SUM).collect();
    graph.set_inputs(n, inputs);
    let attrs = graph.attrs_mut(n);
    attrs.shift_remove("activation");
    attrs.shift_remove("activation_params");
    let mut made = Vec::new();
    let mut last = y;
    for next in [sum.map(|sum| node_of("Add", vec![None, Some(sum)], [])), activation].into_iter().flatten() {
        last = behind(graph, last, next, &mut made)?;
    }
    Ok(made)
}

/// Puts a node behind a value, as its first operand; the result.
fn behind(graph: &mut Graph, v: ValueId, mut node: Node, made: &mut Vec<NodeId>) -> Result<ValueId, DuplicateName> {
    match node.inputs.first_mut() {
        Some(first) => *first = Some(v),
        None => node.inputs.push(Some(v)),
    }
    let near = graph.value(v).producer().0;
    let new = put_instead(graph, near, node, v)?;
    made.extend(&new);
    Ok(new.first().and_then(|&n| graph.node(n).only_result()).unwrap_or(v))
}

/// The activation that a fused convolution ends in, as a node without operands.
fn activation(node: &Node) -> Option<Node> {
    let (op, params) = said(node)?;
    let opset = if op == "HardSwish" { HARD_SWISH_OPSET } else { OPSET };
    Some(Node { opset, ..node_of(op, Vec::new(), attributes_of(op, params)) })
}

/// A product with turned operands, scaled.
fn product(graph: &mut Graph, n: NodeId) -> Result<(), DuplicateName> {
    let node = graph.node(n);
    let alpha = float_or_default(node, "alpha").unwrap_or(1.0);
    let turned = [node.flag("transA"), node.flag("transB")];
    let ranks: Vec<Option<usize>> =
        (0..2).map(|slot| Some(graph.value(node.operand(slot)?).ty.shape()?.len())).collect();
    let Some(y) = node.only_result().filter(|_| !node.flag("transBatchA") && !node.flag("transBatchB")) else {
        return Ok(());
    };
    if turned.iter().zip(&ranks).any(|(&turned, rank)| turned && rank.is_none_or(|rank| rank < 2)) {
        return Ok(());
    }
    let scaled = alpha.to_bits() != 1f32.to_bits();
    if scaled && graph.value(y).ty.dtype() != Some(DType::F32) {
        return Ok(());
    }
    graph.set_op(n, OpName::onnx("MatMul"), OPSET);
    graph.attrs_mut(n).clear();
    for (slot, rank) in ranks.into_iter().enumerate().filter(|(slot, _)| turned[*slot]) {
        let (Some(x), Some(rank)) = (graph.node(n).operand(slot), rank) else { continue };
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(rank - 2, rank - 1);
        let node = node_of("Transpose", vec![Some(x)], [("perm", Attr::axes(&perm))]);
        put(graph, n, node, x, vec![Use { node: n, slot }])?;
    }
    if !scaled {
        return Ok(());
    }
    let result = behind(graph, y, node_of("Mul", vec![None], []), &mut Vec::new())?;
    let node = graph.value(result).producer().0;
    let constant = Constant::inline(DType::F32, Vec::new(), alpha.to_le_bytes().to_vec().into());
    let mut patch = Patch::new();
    patch.set_operand(NewOperand { node, slot: 1, constant, name: "alpha".to_owned(), takes_name_of: None });
    patch.apply(graph).map(drop)
}

/// A sum and the normalization of it.
fn normalization(graph: &mut Graph, n: NodeId) -> Result<(), DuplicateName> {
    let node = graph.node(n);
    let result = |k: usize| node.result(k);
    let unread = |k: usize| result(k).is_none_or(|v| graph.use_count(v) == 0 && !graph.is_output(v));
    let (Some(x), Some(skip), Some(gamma)) = (node.operand(0), node.operand(1), node.operand(2)) else { return Ok(()) };
    if !unread(1) || !unread(2) || node.operand(4).is_some() {
        return Ok(());
    }
    let (sum, beta, epsilon) = (result(3), node.operand(3), node.attrs.get("epsilon").cloned());
    let add = node_of("Add", vec![Some(x), Some(skip)], []);
    let made = match sum {
        Some(sum) => put_instead(graph, n, add, sum)?,
        None => put(graph, n, add, x, Vec::new())?,
    };
    let Some(added) = made.first().and_then(|&n| graph.node(n).only_result()) else { return Ok(()) };
    let Some(y) = graph.node(n).result(0) else { return Ok(()) };
    let mut norm = node_of("LayerNormalization", vec![Some(added), Some(gamma), beta], [("axis", Attr::Int(-1))]);
    norm.opset = LAYER_OPSET;
    norm.attrs.extend(epsilon.map(|epsilon| ("epsilon".to_owned(), epsilon)));
    put_instead(graph, n, norm, y)?;
    remove_dead(graph, [n]);
    Ok(())
}

/// A product whose rows a Reshape puts together and another takes apart again multiplies by matrix: a `MatMul`, and the `Add` of its
/// bias.
fn rows(graph: &mut Graph, n: NodeId) -> Result<(), DuplicateName> {
    let node = graph.node(n);
    let plain = !["transA", "transB"].iter().any(|name| node.flag(name))
        && ["alpha", "beta"].iter().all(|name| node.float(name).is_none_or(|x| x.to_bits() == 1f32.to_bits()));
    let (Some(a), Some(b), Some(y)) = (node.operand(0), node.operand(1), node.only_result()) else { return Ok(()) };
    let bias = node.operand(2);
    let Some((x, after)) = between_reshapes(graph, a, y).filter(|_| plain) else { return Ok(()) };
    if bias.is_some_and(|c| graph.value(c).ty.shape().is_none_or(|shape| shape.len() != 1)) {
        return Ok(());
    }
    let Some(z) = graph.node(after).only_result() else { return Ok(()) };
    let product = node_of("MatMul", vec![Some(x), Some(b)], []);
    let made = put_instead(graph, n, product, z)?;
    if let (Some(c), Some(y)) = (bias, made.first().and_then(|&n| graph.node(n).only_result())) {
        behind(graph, y, node_of("Add", vec![None, Some(c)], []), &mut Vec::new())?;
    }
    remove_dead(graph, [after]);
    Ok(())
}

/// What the Reshape before `a` reads and the Reshape behind `y`, where the former puts rows together as the latter takes them
/// apart.
fn between_reshapes(graph: &Graph, a: ValueId, y: ValueId) -> Option<(ValueId, NodeId)> {
    let before = graph.node(graph.value(a).producer().0);
    let x = before.operand(0).filter(|_| before.onnx() == Some("Reshape"))?;
    let after = graph.only_use(y).filter(|u| u.slot == 0 && graph.node(u.node).onnx() == Some("Reshape"))?.node;
    let z = graph.node(after).only_result()?;
    let split = |v: ValueId| graph.value(v).ty.shape()?.split_last();
    let ((k, rows), (n, results)) = (split(x)?, split(z)?);
    let same = split(a)?.0 == k && split(y)?.0 == n && rows == results && rows.len() > 1;
    same.then_some((x, after))
}
