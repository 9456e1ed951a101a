//! Elementwise ops: each result element reads the operands' elements at its own coordinates, an operand of extent 1 or of
//! fewer axes the ones that NumPy broadcasting gives it. Also what selects by it: Where, Clip, `PRelu`, Cast, Dropout.

use super::infer::{Answer, InferContext, Inferred, boolean, is_extent, quotient, same_dtype, typed};
use super::query::{has_result, ints, is_scalar};
use super::read::number;
use super::{Axes, Case, Infer, OpDef};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::graph::{CONTENTS_LIMIT, Graph, Node};
use std::cmp::Ordering;

pub(super) const UNARY: &[Case] = &[Case::new("a* -> a*")];
const BINARY: &[Case] = &[Case::new("a*, a* -> a*")];
const VARIADIC: &[Case] = &[Case::new("a*... -> a*")];
const TERNARY: &[Case] = &[Case::new("a*, a*, a* -> a*")];
const LEGACY: &[Case] = &[Case::new("a*, a* -> a*").when(is_not_legacy_broadcast)];
const CLIP: &[Case] = &[Case::new("a*, _?, _? -> a*")];
const CAST_LIKE: &[Case] = &[Case::new("a*, _ -> a*")];
const DROPOUT: &[Case] = &[Case::new("a*, _?, _? -> a*, a*").when(drops_nothing)];
const PRELU_LEGACY: &[Case] = &[Case::new("a*, _ -> a*").when(has_one_slope), Case::new("n c s*, c -> n c s*")];

const fn unary(name: &'static str, since: i64) -> OpDef {
    OpDef::onnx(name, (since, 28), Axes::Sig(UNARY), same)
}

const fn binary(name: &'static str, since: i64, infer: Infer) -> OpDef {
    OpDef::onnx(name, (since, 28), Axes::Sig(BINARY), infer)
}

/// Before opset 7, an op broadcast only where an attribute said so, and not from the end.
const fn legacy(name: &'static str, infer: Infer) -> OpDef {
    OpDef::onnx(name, (1, 6), Axes::Sig(LEGACY), infer)
}

const fn variadic(name: &'static str, infer: Infer) -> OpDef {
    OpDef::onnx(name, (1, 28), Axes::Sig(VARIADIC), infer)
}

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("Abs", (1, 28), Axes::Sig(UNARY), abs),
    unary("Acos", 7),
    unary("Acosh", 9),
    unary("Asin", 7),
    unary("Asinh", 9),
    unary("Atan", 7),
    unary("Atanh", 9),
    unary("BitwiseNot", 18),
    OpDef::onnx("Ceil", (1, 28), Axes::Sig(UNARY), ceil),
    unary("Celu", 12),
    unary("Cos", 7),
    unary("Cosh", 9),
    unary("Elu", 1),
    unary("Erf", 9),
    unary("Exp", 1),
    OpDef::onnx("Floor", (1, 28), Axes::Sig(UNARY), floor),
    unary("Gelu", 20),
    unary("HardSigmoid", 1),
    unary("HardSwish", 14),
    unary("LeakyRelu", 1),
    unary("Log", 1),
    unary("Mish", 18),
    OpDef::onnx("Neg", (1, 28), Axes::Sig(UNARY), neg),
    unary("Reciprocal", 1),
    unary("Relu", 1),
    unary("Round", 11),
    unary("Selu", 1),
    unary("Shrink", 9),
    unary("Sigmoid", 1),
    unary("Sign", 9),
    unary("Sin", 7),
    unary("Sinh", 9),
    unary("Softplus", 1),
    unary("Softsign", 1),
    unary("Sqrt", 1),
    unary("Swish", 24),
    OpDef::onnx("SwiGLU", (28, 28), Axes::Sig(BINARY), same),
    unary("Tan", 7),
    unary("Tanh", 1),
    unary("ThresholdedRelu", 10),
    OpDef::onnx("Not", (1, 28), Axes::Sig(UNARY), not),
    OpDef::onnx("IsNaN", (9, 28), Axes::Sig(UNARY), test),
    OpDef::onnx("IsInf", (10, 28), Axes::Sig(UNARY), test),
    OpDef::onnx("Cast", (1, 28), Axes::Sig(UNARY), cast),
    OpDef::onnx("BitCast", (26, 28), Axes::Sig(UNARY), bit_cast),
    OpDef::onnx("CastLike", (15, 28), Axes::Sig(CAST_LIKE), cast_like),
    OpDef::onnx("Clip", (1, 28), Axes::Sig(CLIP), same),
    OpDef::onnx("Dropout", (1, 28), Axes::Sig(DROPOUT), dropout),
    legacy("Add", legacy_arithmetic),
    legacy("Sub", legacy_arithmetic),
    legacy("Mul", legacy_arithmetic),
    legacy("Div", legacy_arithmetic),
    legacy("Pow", legacy_arithmetic),
    legacy("And", legacy_comparison),
    legacy("Or", legacy_comparison),
    legacy("Xor", legacy_comparison),
    legacy("Equal", legacy_comparison),
    legacy("Greater", legacy_comparison),
    legacy("Less", legacy_comparison),
    binary("Add", 7, add),
    binary("Sub", 7, sub),
    binary("Mul", 7, mul),
    binary("Div", 7, div),
    binary("Pow", 7, pow),
    binary("Mod", 10, modulo),
    binary("BitShift", 11, arithmetic),
    binary("BitwiseAnd", 18, arithmetic),
    binary("BitwiseOr", 18, arithmetic),
    binary("BitwiseXor", 18, arithmetic),
    binary("And", 7, and),
    binary("Or", 7, or),
    binary("Xor", 7, comparison),
    binary("Equal", 7, equal),
    binary("Greater", 7, greater),
    binary("GreaterOrEqual", 12, greater_or_equal),
    binary("Less", 7, less),
    binary("LessOrEqual", 12, less_or_equal),
    OpDef::onnx("PRelu", (1, 6), Axes::Sig(PRELU_LEGACY), same),
    OpDef::onnx("PRelu", (7, 28), Axes::Sig(BINARY), same),
    OpDef::onnx("Where", (9, 28), Axes::Sig(TERNARY), choose),
    variadic("Max", maximum),
    variadic("Min", minimum),
    variadic("Sum", total),
    variadic("Mean", total),
];

fn is_not_legacy_broadcast(_: &Graph, node: &Node) -> Result<(), String> {
    match node.int("broadcast").unwrap_or(0) {
        0 => Ok(()),
        _ => Err("broadcasts by the rules of opset 6".to_owned()),
    }
}

fn drops_nothing(graph: &Graph, node: &Node) -> Result<(), String> {
    let trains = match node.opset {
        // `is_test` was 0 by default, but files for inference leave the mask away.
        ..7 => node.int("is_test").unwrap_or(0) == 0 && has_result(node, 1),
        7..12 => false,
        _ => node.operand(2).is_some() && ints(graph, node, 2) != Some(vec![0]),
    };
    if trains { Err("drops at random: it is not known to run for inference".to_owned()) } else { Ok(()) }
}

fn has_one_slope(graph: &Graph, node: &Node) -> Result<(), String> {
    if is_scalar(graph, node, 1) { Ok(()) } else { Err("its slope is not one number".to_owned()) }
}

/// The operand's own type and contents.
pub(super) fn same(ctx: &mut InferContext<'_>) -> Answer {
    Ok(Inferred::one(ctx.ty(0).clone()))
}

fn map(ctx: &InferContext<'_>, f: fn(&Dim) -> Option<Dim>) -> Option<Vec<Dim>> {
    ctx.contents(0)?.iter().map(f).collect()
}

fn abs(ctx: &mut InferContext<'_>) -> Answer {
    let known = |d: &Dim| if is_extent(d) { Some(d.clone()) } else { d.as_const()?.checked_abs().map(Dim::from) };
    let contents = map(ctx, known);
    Ok(same(ctx)?.with(contents))
}

fn neg(ctx: &mut InferContext<'_>) -> Answer {
    let contents = map(ctx, |d| Dim::ZERO.checked_sub(d));
    Ok(same(ctx)?.with(contents))
}

fn floor(ctx: &mut InferContext<'_>) -> Answer {
    let contents = rounded(ctx, Dim::checked_floor_div);
    Ok(same(ctx)?.with(contents))
}

fn ceil(ctx: &mut InferContext<'_>) -> Answer {
    let contents = rounded(ctx, Dim::checked_ceil_div);
    Ok(same(ctx)?.with(contents))
}

/// What is rounded to whole numbers: they are already, or they are whole numbers divided by whole ones, or times the inverse of one.
fn rounded(ctx: &InferContext<'_>, divided: fn(&Dim, i64) -> Option<Dim>) -> Option<Vec<Dim>> {
    if let Some(contents) = ctx.contents(0) {
        return Some(contents.to_vec());
    }
    let graph = ctx.graph;
    let quotient = graph.node(graph.value(ctx.node.operand(0)?).producer().0);
    let (x, by) = (quotient.operand(0)?, quotient.operand(1)?);
    let parts = graph.value(x).contents.as_deref()?;
    let by = match quotient.onnx()? {
        "Div" => number(graph, by)?,
        "Mul" => 1.0 / number(graph, by)?,
        _ => return None,
    };
    // Half, a third and so on: `1 / (1 / 3)` in floats is not always whole.
    let whole = by.round();
    let exact = (2.0..f64::from(1 << 24)).contains(&whole) && ((by - whole) / whole).abs() < 1e-7;
    let exact = exact && (quotient.onnx() == Some("Div") || (whole as i64 & (whole as i64 - 1)) == 0);
    exact.then(|| parts.iter().map(|d| divided(d, whole as i64)).collect())?
}

fn not(ctx: &mut InferContext<'_>) -> Answer {
    // What is true or false is 1 or 0, also where it is not known which.
    let opposite = |d: &Dim| match d.as_const() {
        Some(c) => Some(Dim::from(i64::from(c == 0))),
        None => Dim::ONE.checked_sub(d),
    };
    let contents = map(ctx, opposite);
    Ok(Inferred::one(boolean(ctx.shape(0).map(<[Dim]>::to_vec))).with(contents))
}

fn test(ctx: &mut InferContext<'_>) -> Answer {
    Ok(Inferred::one(boolean(ctx.shape(0).map(<[Dim]>::to_vec))))
}

fn cast(ctx: &mut InferContext<'_>) -> Answer {
    let to = ctx.dtype_attr("to")?.ok_or("lacks the element type `to`")?;
    Ok(cast_to(ctx, Some(to)))
}

fn bit_cast(ctx: &mut InferContext<'_>) -> Answer {
    let to = ctx.dtype_attr("to")?.ok_or("lacks the element type `to`")?;
    Ok(Inferred::one(typed(Some(to), ctx.shape(0).map(<[Dim]>::to_vec))))
}

fn cast_like(ctx: &mut InferContext<'_>) -> Answer {
    let to = ctx.dtype(1);
    Ok(cast_to(ctx, to))
}

fn cast_to(ctx: &InferContext<'_>, to: Option<DType>) -> Inferred {
    let ty = typed(to, ctx.shape(0).map(<[Dim]>::to_vec));
    Inferred::one(ty).with(to.and_then(|to| cast_contents(ctx, to)))
}

fn cast_contents(ctx: &InferContext<'_>, to: DType) -> Option<Vec<Dim>> {
    match to {
        DType::Bool => ctx.contents(0)?.iter().map(|d| Some(Dim::from(i64::from(d.as_const()? != 0)))).collect(),
        DType::String => None,
        to if to.is_float() => ctx.contents(0).filter(|_| ctx.dtype(0) != Some(DType::Bool)).map(<[Dim]>::to_vec),
        _ if ctx.contents(0).is_some() => ctx.contents(0).map(<[Dim]>::to_vec),
        _ => {
            // Truncated; from 2^53 on the float stands for more than one integer, and none of it is a size.
            let floats = ctx.constant(0)?.to_floats(CONTENTS_LIMIT)?;
            floats.iter().map(|x| (x.abs() < 9.0e15).then(|| Dim::from(x.trunc() as i64))).collect()
        }
    }
}

fn dropout(ctx: &mut InferContext<'_>) -> Answer {
    // Until opset 10 the mask was of the data's type.
    let mask = if ctx.node.opset < 10 { ctx.dtype(0) } else { Some(DType::Bool) };
    let mask = typed(mask, ctx.shape(0).map(<[Dim]>::to_vec));
    Ok(Inferred::many(vec![ctx.ty(0).clone(), mask]))
}

fn legacy_arithmetic(ctx: &mut InferContext<'_>) -> Answer {
    same(ctx)
}

fn legacy_comparison(ctx: &mut InferContext<'_>) -> Answer {
    test(ctx)
}

fn arithmetic(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = same_dtype(ctx, [0, 1])?;
    let shape = ctx.broadcast(&[ctx.shape(0), ctx.shape(1)])?;
    Ok(Inferred::one(typed(dtype, shape)))
}

fn comparison(ctx: &mut InferContext<'_>) -> Answer {
    same_dtype(ctx, [0, 1])?;
    let shape = ctx.broadcast(&[ctx.shape(0), ctx.shape(1)])?;
    Ok(Inferred::one(boolean(shape)))
}

/// Contents of a binary op on operands of the same shape, or of which one is one number of no more axes.
fn fold<T>(ctx: &InferContext<'_>, f: impl Fn(&Dim, &Dim) -> Option<T>) -> Option<Vec<T>> {
    fold_slices(ctx, (0, ctx.contents(0)?), (1, ctx.contents(1)?), f)
}

fn fold_slices<T>(
    ctx: &InferContext<'_>,
    (left, a): (usize, &[Dim]),
    (right, b): (usize, &[Dim]),
    f: impl Fn(&Dim, &Dim) -> Option<T>,
) -> Option<Vec<T>> {
    match (a, b) {
        (a, b) if ctx.shape(left)? == ctx.shape(right)? => a.iter().zip(b).map(|(a, b)| f(a, b)).collect(),
        (a, [b]) => a.iter().map(|a| f(a, b)).collect(),
        ([a], b) => b.iter().map(|b| f(a, b)).collect(),
        _ => None,
    }
}

fn add(ctx: &mut InferContext<'_>) -> Answer {
    Ok(arithmetic(ctx)?.with(fold(ctx, Dim::checked_add)))
}

fn sub(ctx: &mut InferContext<'_>) -> Answer {
    Ok(arithmetic(ctx)?.with(fold(ctx, Dim::checked_sub)))
}

fn mul(ctx: &mut InferContext<'_>) -> Answer {
    Ok(arithmetic(ctx)?.with(fold(ctx, Dim::checked_mul)))
}

fn div(ctx: &mut InferContext<'_>) -> Answer {
    // What padding before and after adds up to is known where the half of it that goes before is not.
    if ctx.dtype(0).is_some_and(DType::is_float) {
        return Ok(arithmetic(ctx)?.with(fold(ctx, Dim::exact_div)));
    }
    let quotients = fold(ctx, |a, b| Some(quotient(a, b)));
    let contents = quotients.map(|all| all.into_iter().map(|q| q.unwrap_or_else(|| ctx.unknown_number())).collect());
    Ok(arithmetic(ctx)?.with(contents))
}

fn pow(ctx: &mut InferContext<'_>) -> Answer {
    let shape = ctx.broadcast(&[ctx.shape(0), ctx.shape(1)])?;
    let power = |a: &Dim, b: &Dim| a.as_const()?.checked_pow(u32::try_from(b.as_const()?).ok()?).map(Dim::from);
    Ok(Inferred::one(typed(ctx.dtype(0), shape)).with(fold(ctx, power)))
}

fn modulo(ctx: &mut InferContext<'_>) -> Answer {
    let of_dividend = ctx.node.flag("fmod");
    let rest = |a: &Dim, b: &Dim| match (a.as_const(), b.as_const()) {
        (Some(a), Some(b)) => {
            let rest = a.checked_rem(b)?;
            // Without `fmod` the result has the divisor's sign.
            let adjust = !of_dividend && rest != 0 && (rest < 0) != (b < 0);
            Some(Dim::from(if adjust { rest + b } else { rest }))
        }
        (None, Some(b)) if b > 0 && is_extent(a) => {
            let whole = a.checked_floor_div(b)?.checked_mul(&Dim::from(b))?;
            a.checked_sub(&whole)
        }
        _ => a.exact_div(b).map(|_| Dim::ZERO),
    };
    Ok(arithmetic(ctx)?.with(fold(ctx, rest)))
}

/// How two numbers compare, if that is the same for all values of their symbols.
fn compare(a: &Dim, b: &Dim) -> Option<Ordering> {
    if let Some(difference) = a.checked_sub(b).as_ref().and_then(Dim::as_const) {
        return Some(difference.cmp(&0));
    }
    match (a.as_const(), b.as_const()) {
        (Some(a), None) if a < 0 && is_extent(b) => Some(Ordering::Less),
        (None, Some(b)) if b < 0 && is_extent(a) => Some(Ordering::Greater),
        _ => None,
    }
}

fn decide(ctx: &InferContext<'_>, holds: impl Fn(Ordering) -> bool) -> Option<Vec<Dim>> {
    fold(ctx, |a, b| compare(a, b).map(|o| Dim::from(i64::from(holds(o)))))
}

fn equal(ctx: &mut InferContext<'_>) -> Answer {
    // Where it depends on sizes, it is a number of its own, 1 or 0: what is chosen by it may come to the same.
    let found = fold(ctx, |a, b| Some(compare(a, b)));
    let truth = |o: Ordering| Dim::from(i64::from(o.is_eq()));
    let contents = found.map(|all| all.into_iter().map(|o| o.map_or_else(|| ctx.unknown_number(), truth)).collect());
    Ok(comparison(ctx)?.with(contents))
}

fn greater(ctx: &mut InferContext<'_>) -> Answer {
    Ok(comparison(ctx)?.with(decide(ctx, Ordering::is_gt)))
}

fn greater_or_equal(ctx: &mut InferContext<'_>) -> Answer {
    Ok(comparison(ctx)?.with(decide(ctx, Ordering::is_ge)))
}

fn less(ctx: &mut InferContext<'_>) -> Answer {
    Ok(comparison(ctx)?.with(decide(ctx, Ordering::is_lt)))
}

fn less_or_equal(ctx: &mut InferContext<'_>) -> Answer {
    Ok(comparison(ctx)?.with(decide(ctx, Ordering::is_le)))
}

fn truth(ctx: &InferContext<'_>, f: fn(bool, bool) -> bool) -> Option<Vec<Dim>> {
    fold(ctx, |a, b| Some(Dim::from(i64::from(f(a.as_const()? != 0, b.as_const()? != 0)))))
}

fn and(ctx: &mut InferContext<'_>) -> Answer {
    Ok(comparison(ctx)?.with(truth(ctx, |a, b| a && b)))
}

fn or(ctx: &mut InferContext<'_>) -> Answer {
    Ok(comparison(ctx)?.with(truth(ctx, |a, b| a || b)))
}

fn choose(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = same_dtype(ctx, [1, 2])?;
    let shape = ctx.broadcast(&[ctx.shape(0), ctx.shape(1), ctx.shape(2)])?;
    let contents = chosen(ctx);
    Ok(Inferred::one(typed(dtype, shape)).with(contents))
}

/// Elements of a Where whose operands have at most one axis.
fn chosen(ctx: &InferContext<'_>) -> Option<Vec<Dim>> {
    if (0..3).any(|i| ctx.rank(i).is_none_or(|r| r > 1)) {
        return None;
    }
    let (c, a, b) = (ctx.contents(0)?, ctx.contents(1)?, ctx.contents(2)?);
    let len = [c, a, b].map(<[Dim]>::len).into_iter().find(|&n| n != 1).unwrap_or(1);
    let at = |v: &[Dim], i: usize| if v.len() == 1 { v.first().cloned() } else { v.get(i).cloned() };
    (0..len).map(|i| if at(c, i)?.as_const()? != 0 { at(a, i) } else { at(b, i) }).collect()
}

/// Element type and shape of an op of any number of operands.
fn total(ctx: &mut InferContext<'_>) -> Answer {
    let slots = ctx.node.inputs.len();
    let dtype = same_dtype(ctx, 0..slots)?;
    let shapes: Vec<Option<&[Dim]>> = (0..slots).map(|i| ctx.shape(i)).collect();
    let shape = ctx.broadcast(&shapes)?;
    Ok(Inferred::one(typed(dtype, shape)))
}

fn extreme(ctx: &mut InferContext<'_>, wanted: Ordering) -> Answer {
    let pick = |a: &Dim, b: &Dim| match compare(a, b)? {
        o if o == wanted => Some(a.clone()),
        _ => Some(b.clone()),
    };
    let contents = match ctx.node.inputs.len() {
        1 => ctx.contents(0).map(<[Dim]>::to_vec),
        2 => fold(ctx, pick),
        _ => None,
    };
    Ok(total(ctx)?.with(contents))
}

fn maximum(ctx: &mut InferContext<'_>) -> Answer {
    extreme(ctx, Ordering::Greater)
}

fn minimum(ctx: &mut InferContext<'_>) -> Answer {
    extreme(ctx, Ordering::Less)
}
