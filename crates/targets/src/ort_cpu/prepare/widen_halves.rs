//! `widen_halves`: float16 networks in float32, for runtimes that compute convolutions of halves in no other way.
//!
//! ONNX Runtime's CPU provider has no float16 convolutions: on load it puts Casts around them and takes away those that meet, so that
//! it runs float32 throughout, and then blocks it. Said in the file, the decision is made before. Inputs and outputs stay halves;
//! weights are widened while they are written.

use relayout_eval::{Widened, bytes_of};
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, ValueId};
use relayout_ir::patch::{Insert, Patch, constant_node};
use relayout_ir::types::Type;
use relayout_target::{Context, PassError};
use std::sync::Arc;

/// Ops that name an element type or tie two, round on purpose, or hold graphs: a network with one of them stays as it is.
const TYPED: &[&str] = &[
    "Cast",
    "CastLike",
    "ConstantOfShape",
    "RandomNormal",
    "RandomUniform",
    "RandomNormalLike",
    "RandomUniformLike",
    "Bernoulli",
    "Multinomial",
    "EyeLike",
    "QuantizeLinear",
    "DequantizeLinear",
    "BitCast",
];

/// Widens the main graph, if it convolves halves and nothing stands against it.
pub(super) fn widen_halves(graph: &mut Graph, _cx: &mut Context<'_>) -> Result<(), PassError> {
    let halves = |graph: &Graph, v: ValueId| graph.value(v).ty.dtype() == Some(DType::F16);
    let convolves = |n: NodeId| {
        let node = graph.node(n);
        node.onnx() == Some("Conv") && node.operand(0).is_some_and(|x| halves(graph, x))
    };
    if !graph.nodes().any(convolves) || graph.nodes().any(|n| stands_against(graph, n)) {
        return Ok(());
    }
    let mut patch = Patch::new();
    for v in graph.values().filter(|&v| halves(graph, v)).collect::<Vec<_>>() {
        match &graph.node(graph.value(v).producer().0).op {
            Op::Input { .. } => patch.insert(cast(graph, v, DType::F32)),
            Op::Constant(c) => {
                let constant = widened(c);
                patch.insert(Insert {
                    node: constant_node(constant, graph.node(graph.value(v).producer().0).rank),
                    ty: of_type(graph, v, DType::F32),
                    takes_name_of: Some(v),
                    ..cast(graph, v, DType::F32)
                });
            }
            _ => {}
        }
    }
    for (k, &v) in graph.outputs().iter().enumerate().filter(|(_, v)| halves(graph, **v)) {
        let narrowed = cast(graph, v, DType::F16);
        patch.insert(Insert { uses: vec![], outputs: vec![k], takes_name_of: Some(v), ..narrowed });
    }
    let computed: Vec<ValueId> = graph.values().filter(|&v| halves(graph, v) && is_computed(graph, v)).collect();
    for v in computed {
        let ty = of_type(graph, v, DType::F32);
        *graph.value_mut(v).ty = ty;
    }
    patch.apply(graph).map(drop).map_err(PassError::Name)
}

fn is_computed(graph: &Graph, v: ValueId) -> bool {
    matches!(graph.node(graph.value(v).producer().0).op, Op::Onnx(_))
}

fn stands_against(graph: &Graph, n: NodeId) -> bool {
    let node = graph.node(n);
    match &node.op {
        Op::Onnx(op) => !op.domain.is_empty() || TYPED.contains(&op.name.as_str()) || node.bodies().next().is_some(),
        Op::Input { default } => default.is_some(),
        Op::Constant(c) => !c.source.is_available() && c.dtype == DType::F16,
        Op::Outer | Op::Relayout => false,
    }
}

fn of_type(graph: &Graph, v: ValueId, dtype: DType) -> Type {
    let mut ty = graph.value(v).ty.clone();
    if let Type::Tensor(tensor) = &mut ty {
        tensor.dtype = Some(dtype);
    }
    ty
}

/// A Cast of a value that all its readers read.
fn cast(graph: &Graph, v: ValueId, to: DType) -> Insert {
    let value = graph.value(v);
    let op = OpName { domain: String::new(), name: "Cast".to_owned(), overload: String::new() };
    let mut node = Node::new(Op::Onnx(op), vec![Some(v)]);
    node.rank = graph.node(value.producer().0).rank;
    node.opset = graph.nodes().map(|n| graph.node(n)).find(|n| n.onnx().is_some()).map_or(0, |n| n.opset);
    node.attrs.insert("to".to_owned(), Attr::Int(i64::from(to.to_onnx())));
    node.form = Form::Kernel(Box::default());
    Insert {
        node,
        name: format!("{}.{to}", value.name),
        ty: of_type(graph, v, to),
        layout: value.layout.clone(),
        uses: graph.uses(v).into_vec(),
        outputs: vec![],
        takes_name_of: None,
    }
}

fn widened(c: &Constant) -> Constant {
    let source = Arc::new(Widened { halves: c.clone() });
    // Small ones are read by passes; those take no room.
    let inline = c.elems().filter(|&n| n <= 16).and_then(|_| {
        let halves = bytes_of(c).ok()?;
        Some(Constant::inline(DType::F32, c.dims.clone(), Widened::widen(&halves).ok()?.into()))
    });
    inline.unwrap_or(Constant { dtype: DType::F32, dims: c.dims.clone(), source, pending: None })
}
