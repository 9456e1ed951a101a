//! Nodes of the target's dialect, as forms and passes make and find them.

use super::machine::op;
use crate::shared::nodes::insert_reshape;
use relayout_ir::attr::Attr;
use relayout_ir::constant::{Constant, Repack};
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::NCHWC;
use relayout_ir::perm;
use relayout_ir::types::Type;
use relayout_target_api::{Fragment, Left, Made, Operand, PassError, Piece};

/// A blocked convolution.
pub(crate) fn convolution() -> OpName {
    op("Conv")
}

/// Whether a node is a blocked convolution.
pub(crate) fn is_convolution(node: &Node) -> bool {
    matches!(&node.op, Op::Onnx(op) if op.domain == NCHWC && op.name == "Conv")
}

/// Whether the bias of a convolution has a number for each filter; `None` if it has no bias, or extents are not known.
pub(crate) fn bias_fits(graph: &Graph, conv: &Node) -> Option<bool> {
    let extents = |slot| graph.value(conv.operand(slot)?).ty.const_shape();
    let (filters, bias) = (extents(1)?, extents(2)?);
    Some(bias[..] == [*filters.first()?])
}

/// The same bytes as a row-major value of these extents.
pub(crate) fn reshaped(
    made: &mut Fragment,
    graph: &Graph,
    x: impl Into<Operand>,
    target: &[i64],
    shape: Vec<Dim>,
) -> Operand {
    let x = x.into();
    let name = format!("{}.reshaped", made.name(graph, x).unwrap_or_default());
    let reshape = made.reshape(graph, x, target, &Layout::row_major(shape.len()));
    made.add(reshape, Left::row_major(name, Type::tensor(DType::F32, shape)))
}

/// A convolution of one image with a filter per channel, of this extent: operands are the image, the filters, and perhaps a bias.
pub(crate) fn depthwise(
    made: &Fragment,
    graph: &Graph,
    operands: Vec<Operand>,
    channels: i64,
    kernel: [i64; 2],
) -> Made {
    let blocked = operands.first().and_then(|&x| made.layout(graph, x)?.declared());
    let conv = Made::op(NCHWC, "Conv", 1, operands).in_layouts(vec![blocked], Vec::new());
    conv.with("group", Attr::Int(channels)).with("kernel_shape", Attr::Ints(kernel.to_vec()))
}

/// The piece's node becomes a depthwise convolution of one tap, of images that are channels of one image of shape `flat`; those who
/// read its result have the images again.
pub(crate) fn become_one_tap(
    made: &mut Fragment,
    piece: &Piece<'_>,
    operands: Vec<Operand>,
    images: i64,
    flat: &[Dim; 4],
) {
    let wide = flat[1].as_const().unwrap_or(1);
    let mut conv = depthwise(made, piece.graph, operands, wide, [1, 1]);
    let y = piece.graph.node(piece.node).result(0).filter(|_| images > 1);
    let Some(y) = y else {
        if let Form::Kernel(layouts) = &mut conv.form {
            layouts.outs.clone_from(&piece.layouts.outs);
        }
        return made.become_op(conv);
    };
    made.become_op_of(conv, Type::tensor(DType::F32, flat.to_vec()), Layout::row_major(4));
    let value = piece.graph.value(y);
    let name = format!("{}.reshaped", made.name(piece.graph, y.into()).unwrap_or_default());
    let back = made.reshape(piece.graph, y.into(), &[images, wide / images, 0, 0], &value.layout);
    let images = made.add(back, Left { name, ty: value.ty.clone(), layout: value.layout.clone() });
    made.exit(y, images);
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

/// The constant that a value is, or is behind Transposes and moves.
pub(crate) fn constant_behind_moves(graph: &Graph, v: ValueId) -> Option<Constant> {
    // Which axis of the value at hand each axis of the first one is.
    let (mut at, mut order) = (v, (0..graph.value(v).ty.rank()?).collect::<Vec<_>>());
    let constant = loop {
        let node = graph.node(graph.value(at).producer().0);
        match (&node.op, &node.form) {
            (Op::Constant(constant), _) if constant.can_move() => break constant,
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
