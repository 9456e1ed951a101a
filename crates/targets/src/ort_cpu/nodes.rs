//! Nodes of the target's dialect, as forms and passes make and find them.

use super::machine::op;
use relayout_ir::constant::{Constant, Repack};
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Builder, Graph, Handover, Node, NodeId, Op, OpName, Use, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::NCHWC;
use relayout_ir::op::read::perm;
use relayout_ir::types::Type;
use relayout_target::PassError;

/// A blocked convolution.
pub(crate) fn convolution() -> OpName {
    op("Conv")
}

/// Whether a node is a blocked convolution.
pub(crate) fn is_convolution(node: &Node) -> bool {
    matches!(&node.op, Op::Onnx(op) if op.domain == NCHWC && op.name == "Conv")
}

/// Makes a node a Reshape of this value, its result in this layout.
pub(crate) fn become_reshape(
    graph: &mut Graph,
    n: NodeId,
    x: ValueId,
    target: &[i64],
    to: Option<Layout>,
) -> Result<(), PassError> {
    let to = to.unwrap_or_else(|| Layout::row_major(target.len()));
    Builder::at(graph, n).reshape_stored(x, target, &to)?.in_place_of(n);
    Ok(())
}

/// The same bytes in other extents, declared as they are: a value without a layout of its own.
pub(crate) fn reshape(
    graph: &mut Graph,
    n: NodeId,
    x: ValueId,
    target: &[i64],
    shape: Vec<Dim>,
) -> Result<ValueId, PassError> {
    let plain = Layout::row_major(shape.len());
    insert_reshape(graph, n, x, target, (Type::tensor(DType::F32, shape), plain), (vec![], vec![]), None)
}

/// The same bytes as a value of another type and layout, read by these.
pub(crate) fn insert_reshape(
    graph: &mut Graph,
    n: NodeId,
    x: ValueId,
    target: &[i64],
    (ty, layout): (Type, Layout),
    (uses, outputs): (Vec<Use>, Vec<usize>),
    takes_name_of: Option<ValueId>,
) -> Result<ValueId, PassError> {
    let name = format!("{}.reshaped", graph.value(x).name);
    let mut make = Builder::at(graph, n);
    let readers = Handover { uses, outputs, takes_name_of };
    Ok(make.reshape_stored(x, target, &layout)?.result_for(&name, ty, readers)?)
}

/// The constant that a value is, or is behind Transposes and moves.
pub(crate) fn constant_behind_moves(graph: &Graph, v: ValueId) -> Option<Constant> {
    // Which axis of the value at hand each axis of the first one is.
    let (mut at, mut order) = (v, (0..graph.value(v).ty.rank()?).collect::<Vec<_>>());
    let constant = loop {
        let node = graph.node(graph.value(at).producer().0);
        match (&node.op, &node.form) {
            (Op::Constant(constant), _) => break constant,
            (Op::Relayout, _) | (_, Form::View(View::Same)) => {}
            (_, Form::View(View::Transpose(own))) => order = perm::then(own, &order)?,
            _ => return None,
        }
        at = node.operand(0)?;
    };
    if perm::is_identity(&order) {
        return Some(constant.clone());
    }
    if constant.pending.is_some() || !graph.value(at).layout.is_row_major() {
        return None;
    }
    let dims = order.iter().map(|&axis| constant.dims.get(axis).copied()).collect::<Option<_>>()?;
    let repack = Repack { extents: constant.dims.clone(), to: Layout::permutation(&order).ok()? };
    Some(Constant { dims, pending: Some(Box::new(repack)), ..constant.clone() })
}

/// The value that a Reshape to other extents as stored made `x` of, if it lies in these.
pub(crate) fn stored_before(graph: &Graph, x: ValueId, dims: &[Dim]) -> Option<ValueId> {
    let maker = graph.node(graph.value(x).producer().0);
    let reshapes = maker.op.is_named("Reshape") && matches!(maker.form, Form::Kernel(_));
    let before = graph.value(maker.operand(0).filter(|_| reshapes)?);
    (before.layout.is_row_major() && before.ty.shape() == Some(dims)).then_some(maker.operand(0))?
}

/// Extents as a Reshape takes them, of which the first may be computed.
pub(crate) fn numbers(dims: &[Dim]) -> Option<Vec<i64>> {
    let number = |(i, d): (usize, &Dim)| d.as_const().or((i == 0).then_some(-1));
    dims.iter().enumerate().map(number).collect()
}
