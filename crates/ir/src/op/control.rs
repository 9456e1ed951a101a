//! Ops with bodies. Their layouts are those of the values that enter and leave the bodies, which passes treat scope by scope.
//!
//! A value that a Loop or a Scan carries may change its shape from one iteration to the next. Its type in the body starts as
//! that of the initial value; [`next_assumption`] holds it against what the body returns and takes back what does not hold, so
//! that what remains is proven by induction.

use super::infer::{Answer, InferContext, Inferred, agree, check_rank, typed};
use super::{Axes, OpDef};
use crate::attr::Attr;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId};
use crate::types::{TensorType, Type};

const BODIES: &str = "runs bodies: layouts are decided within them and at their borders";

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("If", (1, 28), Axes::Opaque(BODIES), branches),
    OpDef::onnx("Loop", (1, 28), Axes::Opaque(BODIES), iterate),
    OpDef::onnx("Scan", (8, 8), Axes::Opaque(BODIES), |_| Ok(Inferred::default())),
    OpDef::onnx("Scan", (9, 28), Axes::Opaque(BODIES), scan),
];

/// What the inputs of a node's body are taken to be.
#[derive(Clone, Debug, Default)]
pub(super) struct Assumption {
    /// Types of the body's inputs in order.
    pub(super) inputs: Vec<Type>,
    /// Extents that stand for "may differ from one iteration to the next".
    free: Vec<Dim>,
}

/// How the slots of a Loop or Scan line up with those of its body.
struct Carried {
    /// Number of carried values.
    count: usize,
    /// First operand of the node, first input and first output of the body that is carried.
    operand: usize,
    input: usize,
    output: usize,
}

fn carried(node: &Node) -> Option<Carried> {
    match node.onnx()? {
        "Loop" => Some(Carried { count: node.inputs.len().saturating_sub(2), operand: 2, input: 2, output: 1 }),
        "Scan" if node.opset >= 9 => {
            Some(Carried { count: node.inputs.len().checked_sub(scanned(node)?)?, operand: 0, input: 0, output: 0 })
        }
        _ => None,
    }
}

fn scanned(node: &Node) -> Option<usize> {
    usize::try_from(node.int("num_scan_inputs")?).ok()
}

fn body(node: &Node) -> Option<&Graph> {
    node.attrs.get("body")?.bodies().first()
}

/// Types that the inputs of a node's bodies have in the first iteration.
pub(super) fn first_assumption(graph: &Graph, id: NodeId) -> Assumption {
    let node = graph.node(id);
    let ty = |slot: usize| node.operand(slot).map_or(Type::Unknown, |v| graph.value(v).ty.clone());
    let Some(carried) = carried(node) else { return Assumption::default() };
    let mut inputs: Vec<Type> = match carried.input {
        0 => Vec::new(),
        _ => vec![Type::tensor(DType::I64, vec![]), Type::tensor(DType::Bool, vec![])],
    };
    inputs.extend((0..carried.count).map(|k| ty(carried.operand + k)));
    let axes = node.ints("scan_input_axes").unwrap_or_default();
    for (k, slot) in (carried.operand + carried.count..node.inputs.len()).enumerate() {
        inputs.push(without_axis(&ty(slot), axes.get(k).copied().unwrap_or(0)));
    }
    Assumption { inputs, free: Vec::new() }
}

fn without_axis(ty: &Type, axis: i64) -> Type {
    let Some(tensor) = ty.as_tensor() else { return Type::Unknown };
    let shape = tensor.shape.clone().and_then(|mut shape| {
        let axis = super::normalize_axis(axis, shape.len())?;
        shape.remove(axis);
        Some(shape)
    });
    typed(tensor.dtype, shape)
}

/// The assumption with no shape of a carried value in it.
pub(super) fn without_shapes(graph: &Graph, id: NodeId, mut assumption: Assumption) -> Assumption {
    if let Some(c) = carried(graph.node(id)) {
        for ty in assumption.inputs.iter_mut().skip(c.input).take(c.count) {
            *ty = ty.as_tensor().map_or(Type::Unknown, |t| typed(t.dtype, None));
        }
    }
    assumption
}

/// After the bodies were inferred under `assumption`: a weaker one, if what the body returns contradicts it.
pub(super) fn next_assumption(
    graph: &Graph,
    id: NodeId,
    assumption: &Assumption,
    unknowns: &mut u32,
) -> Option<Assumption> {
    let node = graph.node(id);
    let (c, body) = (carried(node)?, body(node)?);
    let mut next = assumption.clone();
    let mut weaker = false;
    for k in 0..c.count {
        let Some(Type::Tensor(TensorType { dtype, shape: Some(assumed) })) = assumption.inputs.get(c.input + k) else {
            continue;
        };
        let returned = body.outputs().get(c.output + k).and_then(|&v| body.value(v).ty.shape());
        // What the file declares about the body's input is taken on trust.
        let declared = body.inputs().get(c.input + k).and_then(|&v| body.value(v).ty.shape()).unwrap_or_default();
        let shape = match returned {
            Some(returned) if returned.len() == assumed.len() => {
                let mut dims = Vec::with_capacity(assumed.len());
                for (axis, (had, got)) in assumed.iter().zip(returned).enumerate() {
                    if had == got || assumption.free.contains(had) || declared.get(axis) != Some(had) {
                        dims.push(had.clone());
                        continue;
                    }
                    weaker = true;
                    *unknowns = unknowns.saturating_add(1);
                    let any = Dim::unknown(*unknowns);
                    next.free.push(any.clone());
                    dims.push(any);
                }
                Some(dims)
            }
            _ => {
                weaker = true;
                None
            }
        };
        next.inputs[c.input + k] = typed(*dtype, shape);
    }
    weaker.then_some(next)
}

/// The same extent in the scope around a body, where anonymous extents of the body mean nothing.
fn outside(ctx: &mut InferContext<'_>, d: &Dim, around: Option<&Dim>) -> Dim {
    if !d.is_anonymous() || around == Some(d) { d.clone() } else { ctx.unknown() }
}

fn branches(ctx: &mut InferContext<'_>) -> Answer {
    let node = ctx.node;
    let sides =
        ["then_branch", "else_branch"].map(|name| node.attrs.get(name).map(Attr::bodies).and_then(<[_]>::first));
    let [Some(yes), Some(no)] = sides else { return Err("lacks a branch".to_owned()) };
    if yes.outputs().len() != no.outputs().len() || yes.outputs().len() != ctx.results() {
        return Err("its branches return unequal numbers of values".to_owned());
    }
    let mut types = Vec::new();
    for (a, b) in yes.outputs().iter().zip(no.outputs()) {
        types.push(match (&yes.value(*a).ty, &no.value(*b).ty) {
            (Type::Tensor(a), Type::Tensor(b)) => either(ctx, a, b),
            (a, b) if a == b => a.clone(),
            _ => Type::Unknown,
        });
    }
    Ok(Inferred::many(types))
}

/// The type of a value that is one or the other.
fn either(ctx: &mut InferContext<'_>, a: &TensorType, b: &TensorType) -> Type {
    let shape = match (&a.shape, &b.shape) {
        (Some(a), Some(b)) if a.len() == b.len() => {
            Some(a.iter().zip(b).map(|(a, b)| if a == b { a.clone() } else { ctx.unknown() }).collect())
        }
        _ => None,
    };
    typed(a.dtype.filter(|d| b.dtype == Some(*d)), shape)
}

/// Types of the carried results, which are the initial values after any number of iterations.
fn final_states(ctx: &mut InferContext<'_>, c: &Carried, body: &Graph) -> Vec<Type> {
    let mut types = Vec::new();
    for k in 0..c.count {
        let within = body.inputs().get(c.input + k).map_or(&Type::Unknown, |&v| &body.value(v).ty);
        let initial = ctx.shape(c.operand + k);
        types.push(match within {
            Type::Tensor(t) => {
                let shape = t.shape.as_ref().map(|dims| {
                    dims.iter().enumerate().map(|(i, d)| outside(ctx, d, initial.and_then(|s| s.get(i)))).collect()
                });
                typed(t.dtype.or(ctx.dtype(c.operand + k)), shape)
            }
            other => other.clone(),
        });
    }
    types
}

/// Type of a result that gathers what each iteration returns, along a new axis.
fn gathered(ctx: &mut InferContext<'_>, body: &Graph, output: usize, axis: i64, count: Dim) -> Result<Type, String> {
    let Some(tensor) = body.outputs().get(output).and_then(|&v| body.value(v).ty.as_tensor()) else {
        return Ok(Type::Unknown);
    };
    let Some(dims) = &tensor.shape else { return Ok(typed(tensor.dtype, None)) };
    check_rank(dims.len() + 1)?;
    let axis = ctx.axis(axis, dims.len() + 1)?;
    let mut shape: Vec<Dim> = dims.iter().map(|d| outside(ctx, d, None)).collect();
    shape.insert(axis, count);
    Ok(typed(tensor.dtype, Some(shape)))
}

fn iterate(ctx: &mut InferContext<'_>) -> Answer {
    let (Some(c), Some(body)) = (carried(ctx.node), body(ctx.node)) else { return Err("lacks its body".to_owned()) };
    if body.inputs().len() != c.count + 2 || body.outputs().len() != ctx.results() + 1 {
        return Err("its body does not take and return what it carries".to_owned());
    }
    let mut types = final_states(ctx, &c, body);
    // One count for all: they stop together.
    let count = ctx.unknown();
    for output in c.count + 1..body.outputs().len() {
        types.push(gathered(ctx, body, output, 0, count.clone())?);
    }
    Ok(Inferred::many(types))
}

fn scan(ctx: &mut InferContext<'_>) -> Answer {
    let (Some(c), Some(body)) = (carried(ctx.node), body(ctx.node)) else {
        return Err("lacks its body or a fitting `num_scan_inputs`".to_owned());
    };
    if body.inputs().len() != ctx.node.inputs.len() || body.outputs().len() != ctx.results() {
        return Err("its body does not take and return what it scans".to_owned());
    }
    let mut types = final_states(ctx, &c, body);
    let node = ctx.node;
    let axis_of = |name: &str, k: usize| node.ints(name).and_then(|v| v.get(k)).copied().unwrap_or(0);
    let mut count = None;
    for (k, slot) in (c.count..ctx.node.inputs.len()).enumerate() {
        let Some(shape) = ctx.shape(slot) else { continue };
        let extent = &shape[ctx.axis(axis_of("scan_input_axes", k), shape.len())?];
        count = Some(match count {
            Some(count) => agree(&count, extent, "lengths of what it scans")?,
            None => extent.clone(),
        });
    }
    let count = count.unwrap_or_else(|| ctx.unknown());
    for (k, output) in (c.count..body.outputs().len()).enumerate() {
        types.push(gathered(ctx, body, output, axis_of("scan_output_axes", k), count.clone())?);
    }
    Ok(Inferred::many(types))
}
