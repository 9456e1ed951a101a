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
use relayout_ir::graph::{Graph, Node, NodeId, Op, OpName, Use, ValueId};
use relayout_ir::patch::{Insert, Patch, remove_dead};
use relayout_ir::types::Type;
use relayout_target_api::{Context, Numerics, PassError};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Ops that name an element type, tie two, or round on purpose: what they read and leave keeps its type.
const TYPED: &[&str] = &[
    "CastLike",
    "ConstantOfShape",
    "RandomNormal",
    "RandomUniform",
    "RandomNormalLike",
    "RandomUniformLike",
    "Bernoulli",
    "Multinomial",
    "EyeLike",
    "BitCast",
];

/// Ops for which ONNX Runtime 1.31 has kernels of halves on a CPU, found by loading each alone without optimizations: around all others
/// it puts Casts.
const OF_HALVES: &[&str] = &[
    "Clip",
    "Concat",
    "Expand",
    "Flatten",
    "Gather",
    "Identity",
    "LayerNormalization",
    "Max",
    "Min",
    "Reshape",
    "Sign",
    "Slice",
    "Split",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
];

/// Element types all of whose numbers are halves.
const WITHIN_HALVES: &[DType] = &[DType::Bool, DType::I8, DType::U8];

/// Widens the main graph, if it convolves halves and nothing stands against it.
pub(super) fn widen_halves(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let convolves = |n: NodeId| {
        let node = graph.node(n);
        node.onnx() == Some("Conv") && node.operand(0).is_some_and(|x| is_half(graph, x))
    };
    if !graph.nodes().any(convolves) || graph.nodes().any(|n| stands_against(graph, n)) {
        return Ok(());
    }
    let numerics = cx.settings.numerics;
    let kept: FxHashSet<NodeId> = graph.nodes().filter(|&n| keeps_types(graph, n, numerics)).collect();
    let halves: Vec<ValueId> = graph.values().filter(|&v| is_half(graph, v)).collect();
    let mut patch = Patch::new();
    for &v in &halves {
        let (producer, outputs) = (graph.value(v).producer().0, graph.output_places(v).to_vec());
        if is_widened(graph, &kept, v) {
            let as_halves: Vec<Use> = graph.uses(v).into_iter().filter(|u| kept.contains(&u.node)).collect();
            if !as_halves.is_empty() || !outputs.is_empty() {
                let takes_name_of = (!outputs.is_empty()).then_some(v);
                patch.insert(Insert { outputs, takes_name_of, ..cast(graph, v, DType::F16, as_halves) });
            }
            continue;
        }
        // Of what stays halves, a Cast reads these.
        let reads_floats = |u: &Use| !kept.contains(&u.node) && !is_cast(graph, u.node);
        let (as_floats, others): (Vec<Use>, Vec<Use>) = graph.uses(v).into_iter().partition(reads_floats);
        if as_floats.is_empty() {
            continue;
        }
        let floats = cast(graph, v, DType::F32, as_floats);
        patch.insert(match &graph.node(producer).op {
            Op::Constant(c) => Insert {
                node: Node::constant(widened(c), graph.node(producer).rank),
                takes_name_of: (others.is_empty() && outputs.is_empty()).then_some(v),
                ..floats
            },
            _ => floats,
        });
    }
    let casts: Vec<NodeId> = graph.order().unwrap_or_default().into_iter().filter(|&n| is_cast(graph, n)).collect();
    skip_idle_casts(graph, &kept, &casts, &mut patch);
    let computed: Vec<ValueId> = halves.into_iter().filter(|&v| is_widened(graph, &kept, v)).collect();
    for v in computed {
        let ty = of_type(graph, v, DType::F32);
        *graph.value_mut(v).ty = ty;
        let (n, _) = graph.value(v).producer();
        if is_cast(graph, n) {
            graph.attrs_mut(n).insert("to".to_owned(), Attr::Int(i64::from(DType::F32.to_onnx())));
        }
    }
    patch.apply(graph)?;
    remove_dead(graph, casts);
    Ok(())
}

fn is_half(graph: &Graph, v: ValueId) -> bool {
    graph.value(v).ty.dtype() == Some(DType::F16)
}

fn is_cast(graph: &Graph, n: NodeId) -> bool {
    graph.node(n).onnx() == Some("Cast")
}

/// Whether halves become floats: a node computes them that does not keep its types.
fn is_widened(graph: &Graph, kept: &FxHashSet<NodeId>, v: ValueId) -> bool {
    let (n, _) = graph.value(v).producer();
    matches!(graph.node(n).op, Op::Onnx(_)) && !kept.contains(&n)
}

/// Lets those who read a Cast between what are floats on both sides from now on read what it casts. A graph output is that, under the
/// name that it had, unless it has another name already, or no node makes it.
fn skip_idle_casts(graph: &Graph, kept: &FxHashSet<NodeId>, casts: &[NodeId], patch: &mut Patch) {
    let is_float = |v: ValueId| match graph.value(v).ty.dtype() {
        Some(DType::F32) => true,
        Some(DType::F16) => is_widened(graph, kept, v),
        _ => false,
    };
    let mut idle: FxHashMap<ValueId, ValueId> = FxHashMap::default();
    let mut named: FxHashSet<ValueId> = FxHashSet::default();
    for &n in casts.iter().filter(|n| !kept.contains(n)) {
        let (Some(x), Some(y)) = (graph.node(n).operand(0), graph.node(n).result(0)) else { continue };
        if !is_float(x) || !is_float(y) {
            continue;
        }
        let x = idle.get(&x).copied().unwrap_or(x);
        if !graph.is_read_by_name(y) {
            patch.redirect(y, x);
        } else if is_widened(graph, kept, x) && !graph.is_read_by_name(x) && named.insert(x) {
            patch.replace(y, x);
        } else {
            continue;
        }
        idle.insert(y, x);
    }
}

/// Whether the network stays as it is because of a node.
fn stands_against(graph: &Graph, n: NodeId) -> bool {
    let node = graph.node(n);
    let half = |&v: &ValueId| is_half(graph, v);
    let touches_halves = || node.inputs.iter().chain(&node.outputs).flatten().any(half);
    match &node.op {
        // What is quantized is the runtime's to make units of. Bodies read by name, and a type that is not known may be halves.
        Op::Onnx(op) => {
            let unknown = |v: &ValueId| match &graph.value(*v).ty {
                Type::Tensor(tensor) => tensor.dtype.is_none(),
                Type::Unknown => true,
                Type::Other(_) => false,
            };
            node.captures.iter().any(half)
                || op.name.ends_with("QuantizeLinear") && touches_halves()
                || op.name.ends_with("DequantizeLinear") && touches_halves()
                || node.outputs.iter().flatten().any(unknown)
        }
        Op::Input { default } => default.is_some() && touches_halves(),
        Op::Constant(c) => !c.source.is_available() && c.dtype == DType::F16,
        Op::Outer | Op::Relayout => false,
    }
}

/// Whether halves that a node reads and leaves stay halves. The runtime has kernels of its own for other domains, and a body, or a
/// sequence, says its types by itself.
fn keeps_types(graph: &Graph, n: NodeId, numerics: Numerics) -> bool {
    let node = graph.node(n);
    let Op::Onnx(op) = &node.op else { return false };
    let other = |v: &ValueId| matches!(graph.value(*v).ty, Type::Other(_));
    !op.domain.is_empty()
        || node.bodies().next().is_some()
        || TYPED.contains(&op.name.as_str())
        || node.inputs.iter().chain(&node.outputs).flatten().any(other)
        || op.name == "Cast" && rounds_on_purpose(graph, n, numerics)
}

/// Whether a Cast from or to halves sees a rounding, in the runtime as well. Before and behind what that computes in floats it leaves
/// out the rounding. It keeps what it moves as halves, two Casts of the model behind one another, and those of integers.
fn rounds_on_purpose(graph: &Graph, n: NodeId, numerics: Numerics) -> bool {
    let node = graph.node(n);
    let (Some(x), Some(y)) = (node.operand(0), node.result(0)) else { return true };
    if numerics < Numerics::Reassociate {
        return true;
    }
    if is_half(graph, x) {
        let maker = graph.node(graph.value(x).producer().0);
        return !is_half(graph, y) && maker.onnx().is_some_and(|op| OF_HALVES.contains(&op));
    }
    if !is_half(graph, y) {
        return false;
    }
    let from = graph.value(x).ty.dtype();
    let float = matches!(from, Some(DType::F32 | DType::F64));
    let wide = !float && !from.is_some_and(|from| WITHIN_HALVES.contains(&from));
    wide || graph.is_output(y) || graph.uses(y).into_iter().any(|u| is_cast(graph, u.node))
}

fn of_type(graph: &Graph, v: ValueId, dtype: DType) -> Type {
    let mut ty = graph.value(v).ty.clone();
    if let Type::Tensor(tensor) = &mut ty {
        tensor.dtype = Some(dtype);
    }
    ty
}

/// A Cast of a value, for these readers.
fn cast(graph: &Graph, v: ValueId, to: DType, uses: Vec<Use>) -> Insert {
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
        uses,
        outputs: vec![],
        takes_name_of: None,
    }
}

/// Halves as floats. What was computed of constants is not rounded: the runtime computes it in floats as well.
fn widened(c: &Constant) -> Constant {
    let (dtype, dims) = (DType::F32, c.dims.clone());
    let floats = match c.source.before_rounding() {
        Some(source) => Constant { dtype, dims, source, pending: c.pending.clone() },
        None => Constant { dtype, dims, source: Arc::new(Widened { halves: c.clone() }), pending: None },
    };
    // Small ones are read by passes; those take no room.
    let small = floats.elems().filter(|&n| n <= 16).and_then(|_| bytes_of(&floats).ok());
    small.map_or(floats, |bytes| Constant::inline(dtype, c.dims.clone(), bytes))
}
