//! Ops that treat all indices along an axis alike: pointwise ones, and those that take the indices of some axes as a set.

use super::{
    BROADCASTS_SINCE, Call, Made, Results, axes_of, bounds, movement, needless, one, pointwise, quantize, reduced,
    same_places, sums, together, window,
};
use crate::files::model::{Attr, width};
use crate::lemmas::halves::{self, BFLOAT16, DOUBLE, FLOAT, HALF};
use crate::lemmas::interpolation::contract;
use crate::lemmas::real::through;
use crate::terms::align::{broadcast, term_of};
use crate::terms::arg::{Op, numbers};
use crate::terms::name::Name;
use crate::terms::pointwise::over;
use crate::terms::state::Terms;
use crate::terms::value::Value;
use crate::terms::view::View;
use std::rc::Rc;

pub(super) const BOOL: u8 = 9;

/// Pointwise ops whose result has the type of their first operand.
const POINTWISE: &[&str] = &[
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "And",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BitShift",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Cosh",
    "Div",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "Log",
    "Max",
    "Mean",
    "Min",
    "Mish",
    "Mod",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "Pow",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Sub",
    "Sum",
    "SwiGLU",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Xor",
];

/// Pointwise ops whose result is a truth value.
const COMPARES: &[&str] = &["Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual"];

const REDUCES: &[&str] = &[
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
];

/// Those that make of one number that number.
const OF_ONE: &[&str] = &["ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"];

/// Whether ops of this name treat indices of an axis alike, or as a set.
pub(super) fn is_alike(op: &str) -> bool {
    [POINTWISE, COMPARES, REDUCES, OTHERS_ALIKE].iter().any(|list| list.contains(&op))
}

/// Others of these.
const OTHERS_ALIKE: &[&str] = &[
    "PRelu",
    "Where",
    "Cast",
    "CastLike",
    "QuantizeLinear",
    "DequantizeLinear",
    "BatchNormalization",
    "InstanceNormalization",
    "GroupNormalization",
    "LayerNormalization",
    "Softmax",
    "LogSoftmax",
    "LpNormalization",
    "MeanVarianceNormalization",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "GlobalLpPool",
    "MatMul",
    "Gemm",
    "Einsum",
];

pub(super) fn run(call: &mut Call<'_>) -> Option<Results> {
    let made = match call.op {
        op if POINTWISE.contains(&op) => call.need(0).and_then(|x| every(call, x.dtype)),
        op if COMPARES.contains(&op) => every(call, BOOL),
        op if REDUCES.contains(&op) => reduce(call),
        "PRelu" => prelu(call),
        "Where" => call.need(1).and_then(|x| every(call, x.dtype)),
        "Cast" | "CastLike" => cast(call),
        "QuantizeLinear" | "DequantizeLinear" => quantize::run(call),
        "BatchNormalization" => batch_norm(call),
        "InstanceNormalization" => instance_norm(call),
        "GroupNormalization" => group_norm(call),
        "LayerNormalization" => rows_norm(call),
        "Softmax" | "LogSoftmax" => softmax(call),
        "LpNormalization" => lp_norm(call),
        "MeanVarianceNormalization" => mean_variance(call),
        "GlobalAveragePool" => global(call, "ReduceMean"),
        "GlobalMaxPool" => global(call, "ReduceMax"),
        "GlobalLpPool" => global(call, "GlobalLpPool"),
        "MatMul" => matmul(call),
        "Gemm" => gemm(call),
        "Einsum" => einsum(call),
        _ => return None,
    };
    Some(made.and_then(one))
}

/// Pointwise over all operands that are there.
fn every(call: &mut Call<'_>, dtype: u8) -> Made {
    call.single()?;
    if call.is_aligned_by_attribute() {
        return Err("the checker does not know how axes were aligned before operator set 7".to_owned());
    }
    if let ("Sum" | "Mean" | "Min" | "Max", [Some(only)]) = (call.op, call.inputs) {
        return Ok(only.clone());
    }
    if let Some(x) = unchanged(call) {
        return Ok(x);
    }
    if let Some(x) = needless::of(call).or_else(|| bounds::of(call)) {
        return Ok(x);
    }
    if call.op == "Clip" {
        return clip(call, dtype);
    }
    let mut attrs = call.with_defaults()?;
    attrs.extend(call.inputs.iter().map(|input| u8::from(input.is_some())));
    let operands: Vec<&Value> = call.inputs.iter().flatten().collect();
    let y = same_places::pointwise(call, &attrs, &operands, dtype)?;
    Ok(sums::of(call, &y).unwrap_or(y))
}

/// With known slopes it is a product and a maximum, or a sum of what is above and below zero. With one slope it is a `LeakyRelu`.
fn prelu(call: &mut Call<'_>) -> Made {
    let (x, slopes) = (call.need(0)?, call.need(1)?);
    if call.opset < BROADCASTS_SINCE && slopes.count() != 1 {
        return Err("the checker does not know slopes by channel before operator set 7".to_owned());
    }
    let known: Option<Vec<f32>> = numbers(&slopes).map(|list| list.into_iter().map(|slope| slope as f32).collect());
    let fits = matches!(x.dtype, FLOAT | HALF)
        && slopes.dtype == x.dtype
        && broadcast(&[&x, &slopes]).is_some_and(|(shape, _)| shape == x.shape());
    let finite = |list: &Vec<f32>| fits && !list.is_empty() && list.iter().all(|slope| slope.is_finite());
    let Some(known) = known.filter(finite) else { return every(call, x.dtype) };
    let (dtype, x, slopes) = (x.dtype, Some(x), Some(slopes));
    if known.iter().all(|slope| slope.to_bits() == known[0].to_bits()) {
        return call.inner("LeakyRelu", &[("alpha".to_owned(), Attr::Float(known[0]))], &[x]);
    }
    if known.iter().all(|&slope| slope <= 1.0 && slope != 0.0) {
        let product = call.inner("Mul", &[], &[x.clone(), slopes])?;
        return call.inner("Max", &[], &[x, Some(product)]);
    }
    let zero = Value::constant(dtype, &[], vec![0; width(dtype).unwrap_or_default()].into());
    let above = call.inner("Relu", &[], std::slice::from_ref(&x))?;
    let below = call.inner("Min", &[], &[x, Some(zero)])?;
    let product = call.inner("Mul", &[], &[Some(below), slopes])?;
    call.inner("Add", &[], &[Some(above), Some(product)])
}

/// Bounds are operands, whichever way the file says them.
fn clip(call: &mut Call<'_>, dtype: u8) -> Made {
    if dtype != 1 && (call.attr("min").is_some() || call.attr("max").is_some()) {
        return Err("the checker knows its bounds as attributes for floats of 32 bits only".to_owned());
    }
    let bound = |name: &str, at: usize| match call.attr(name) {
        Some(Attr::Float(value)) => Some(Value::constant(1, &[], value.to_le_bytes().to_vec().into())),
        _ => call.input(at).cloned(),
    };
    let both = [bound("min", 1), bound("max", 2)];
    if let Some(y) = bounds::bounded(call, &[Some(call.need(0)?), both[0].clone(), both[1].clone()]) {
        return Ok(y);
    }
    let mut operands = vec![call.need(0)?];
    let mut attrs = call.encoded(&["min", "max"])?;
    attrs.push(1);
    for bound in both {
        attrs.push(u8::from(bound.is_some()));
        operands.extend(bound.map(|bound| bound.reshaped(&[]).ok_or("a bound is no number")).transpose()?);
    }
    same_places::pointwise(call, &attrs, &operands.iter().collect::<Vec<_>>(), dtype)
}

/// What is multiplied with one, or divided by it, or what zero is added to: it stays, with each bit but for the sign of a zero.
fn unchanged(call: &Call<'_>) -> Option<Value> {
    let all =
        |value: &Value, number: &[u8]| value.splat().and_then(|one| one.elements()).is_some_and(|x| *x == *number);
    let one = |value: &Value| match value.dtype {
        1 => all(value, &1f32.to_le_bytes()),
        10 => all(value, &half::f16::ONE.to_le_bytes()),
        _ => false,
    };
    let zero = |value: &Value| match value.dtype {
        1 => all(value, &[0; 4]),
        10 => all(value, &[0; 2]),
        _ => false,
    };
    let (x, y) = (call.input(0)?, call.input(1)?);
    let kept = match call.op {
        "Mul" if one(x) && y.rank() >= x.rank() => y,
        "Mul" | "Div" if one(y) && x.rank() >= y.rank() => x,
        "Add" if zero(x) && y.rank() >= x.rank() => y,
        "Add" | "Sub" if zero(y) && x.rank() >= y.rank() => x,
        _ => return None,
    };
    let (shape, _) = broadcast(&[x, y])?;
    (kept.shape() == shape).then(|| kept.clone())
}

fn cast(call: &mut Call<'_>) -> Made {
    let x = call.need(0)?;
    if call.text("to").is_some() {
        return Err("the checker does not know types by name".to_owned());
    }
    let to = if call.op == "Cast" { call.dtype("to") } else { call.need(1)?.dtype };
    if to == x.dtype {
        return Ok(x);
    }
    let x = if to == DOUBLE { widened(call.terms, &x).unwrap_or(x) } else { x };
    // What the input makes halves of too is the same without a lemma.
    let known = term_of(&x).is_some_and(|term| call.terms.halves.contains_key(&term));
    let halves = if to == halves::HALF && !known { halves::narrow(call.terms, &x) } else { None };
    if let Some(halves) = halves {
        return Ok(halves);
    }
    let attrs = call.encoded(&["to"])?;
    let made = pointwise(call.terms, &Op { name: Name::Model("Cast"), attrs: &attrs, dtype: to }, &[&x])?;
    if to == halves::HALF && call.terms.is_of_input() {
        halves::note_rounding(call.terms, &made);
    }
    Ok(made)
}

/// The halves that floats are made of: what is made of those floats in 64 bits is made of them.
fn widened(terms: &Terms, x: &Value) -> Option<Value> {
    let made = Rc::clone(terms.get(term_of(x)?));
    let inner = through(terms, x, &made, 0).filter(|_| made.name() == Name::Model("Cast") && made.dtype == FLOAT)?;
    matches!(inner.dtype, HALF | BFLOAT16).then_some(inner)
}

/// A list of one number per index of an axis, as an operand that broadcasts.
pub(super) fn per_axis(value: &Value, axis: usize, rank: usize) -> Made {
    match value.shape().as_slice() {
        [] => Ok(value.clone()),
        [n] => {
            let mut to = vec![1; rank];
            *to.get_mut(axis).ok_or("its axis is beyond the rank")? = *n;
            value.reshaped(&to).ok_or_else(|| "a list does not fit its axis".to_owned())
        }
        other => Err(format!("a list of shape {other:?}")),
    }
}

/// An operand and numbers by channel, of which there are `count`.
fn by_channel(call: &mut Call<'_>, count: usize) -> Result<Vec<Value>, String> {
    let x = call.need(0)?;
    let mut operands = vec![x.clone()];
    for at in 1..=count {
        let list = call.need(at)?;
        if Some(&list.count()) != x.shape().get(1) {
            call.terms.fixes(&x, 1, list.count());
            return Err(format!("operand {at} has not one number per channel"));
        }
        operands.push(per_axis(&list, 1, x.rank())?);
    }
    Ok(operands)
}

fn batch_norm(call: &mut Call<'_>) -> Made {
    call.single()?;
    if call.int("training_mode", 0) != 0 || call.int("spatial", 1) != 1 || call.opset < 7 {
        return Err("it is in training".to_owned());
    }
    let operands = by_channel(call, 4)?;
    let attrs = call.encoded(&["momentum", "training_mode", "spatial"])?;
    let dtype = operands[0].dtype;
    same_places::pointwise(call, &attrs, &operands.iter().collect::<Vec<_>>(), dtype)
}

fn instance_norm(call: &mut Call<'_>) -> Made {
    let operands = by_channel(call, 2)?;
    let attrs = call.encoded(&[])?;
    let spatial: Vec<usize> = (2..operands[0].rank()).collect();
    let op = Op { name: Name::Model("InstanceNormalization"), attrs: &attrs, dtype: operands[0].dtype };
    together(call.terms, &op, &operands.iter().collect::<Vec<_>>(), &spatial, false)
}

fn group_norm(call: &mut Call<'_>) -> Made {
    let x = call.need(0)?;
    let shape = x.shape();
    let groups = call.int("num_groups", 0);
    let (Some(&n), Some(&c)) = (shape.first(), shape.get(1)) else { return Err("its rank is below 2".to_owned()) };
    if groups < 1 || c % groups != 0 {
        return Err("its groups do not divide the channels".to_owned());
    }
    let mut split = vec![n, groups, c / groups];
    split.extend(&shape[2..]);
    let wrong = || "its shapes do not fit".to_owned();
    let mut operands = vec![call.terms.moved(&x, &split).ok_or_else(wrong)?];
    // Of the first version each group has a number, and later each channel.
    let numbers = if call.opset < 21 { groups } else { c };
    for at in [1, 2] {
        let list = call.need(at)?;
        if list.count() != numbers {
            return Err(format!(
                "the checker does not know {} numbers of {groups} groups of {c} channels",
                list.count()
            ));
        }
        let mut to = vec![1; split.len()];
        to[1] = groups;
        to[2] = list.count() / groups;
        operands.push(list.reshaped(&to).ok_or_else(wrong)?);
    }
    let attrs = call.encoded(&["num_groups"])?;
    let op = Op { name: Name::Model("GroupNormalization"), attrs: &attrs, dtype: x.dtype };
    let axes: Vec<usize> = (2..split.len()).collect();
    let y = together(call.terms, &op, &operands.iter().collect::<Vec<_>>(), &axes, false)?;
    call.terms.moved(&y, &shape).ok_or_else(wrong)
}

/// A normalization of the last axes with what these are multiplied by, and perhaps what is added.
pub(super) fn rows_norm(call: &mut Call<'_>) -> Made {
    call.single()?;
    let x = call.need(0)?;
    let axis = movement::axis(call, -1, x.rank())?;
    let mut attrs = call.encoded(&["axis"])?;
    attrs.push(u8::from(call.input(2).is_some()));
    let op = Op { name: Name::Model(call.op), attrs: &attrs, dtype: x.dtype };
    let axes: Vec<usize> = (axis..x.rank()).collect();
    let operands: Vec<&Value> = call.inputs.iter().flatten().collect();
    let wide = operands.iter().any(|v| v.rank() > x.rank());
    if wide {
        return Err("its scale has more axes than its operand".to_owned());
    }
    together(call.terms, &op, &operands, &axes, false)
}

fn softmax(call: &mut Call<'_>) -> Made {
    let x = call.need(0)?;
    let old = call.opset < 13;
    let axis = movement::axis(call, if old { 1 } else { -1 }, x.rank())?;
    let axes: Vec<usize> = if old { (axis..x.rank()).collect() } else { vec![axis] };
    let attrs = call.encoded(&["axis"])?;
    together(call.terms, &Op { name: Name::Model(call.op), attrs: &attrs, dtype: x.dtype }, &[&x], &axes, false)
}

fn lp_norm(call: &mut Call<'_>) -> Made {
    let x = call.need(0)?;
    let axis = movement::axis(call, -1, x.rank())?;
    let attrs = call.encoded(&["axis"])?;
    together(call.terms, &Op { name: Name::Model(call.op), attrs: &attrs, dtype: x.dtype }, &[&x], &[axis], false)
}

fn mean_variance(call: &mut Call<'_>) -> Made {
    let x = call.need(0)?;
    let axes = axes_of(&call.list("axes", 1)?.unwrap_or_else(|| vec![0, 2, 3]), x.rank())?;
    let attrs = call.encoded(&["axes"])?;
    together(call.terms, &Op { name: Name::Model(call.op), attrs: &attrs, dtype: x.dtype }, &[&x], &axes, false)
}

fn reduce(call: &mut Call<'_>) -> Made {
    let x = call.need(0)?;
    let given = call.list("axes", 1)?;
    let axes = match given {
        Some(axes) if !axes.is_empty() => axes_of(&axes, x.rank())?,
        _ if call.int("noop_with_empty_axes", 0) != 0 => return Err("it reduces nothing".to_owned()),
        _ => (0..x.rank()).collect(),
    };
    let keeps = call.int("keepdims", 1) != 0;
    let attrs = call.encoded(&["axes", "keepdims", "noop_with_empty_axes"])?;
    // Of one number it is that number, with each bit but for the sign of a zero.
    let alone = OF_ONE.contains(&call.op) && axes.iter().all(|axis| x.shape()[*axis] == 1);
    let op = Op { name: Name::Model(call.op), attrs: &attrs, dtype: x.dtype };
    let mut y = if alone {
        x
    } else if let Some(y) = reduced::of(call.terms, &op, &x, &axes) {
        y
    } else {
        together(call.terms, &op, &[&x], &axes, true)?
    };
    if !keeps {
        y.view =
            y.view.into_iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, digits)| digits).collect();
    }
    Ok(y)
}

fn global(call: &mut Call<'_>, name: &str) -> Made {
    let x = call.need(0)?;
    let axes: Vec<usize> = (2..x.rank()).collect();
    let attrs = call.encoded(&[])?;
    together(call.terms, &Op { name: Name::Model(name), attrs: &attrs, dtype: x.dtype }, &[&x], &axes, true)
}

fn matmul(call: &mut Call<'_>) -> Made {
    let (a, b) = (call.need(0)?, call.need(1)?);
    product(call.terms, &a, &b)
}

/// A product of matrices as ONNX has it. The axes are those of the batch, rows, columns, and the one that is summed over.
pub(super) fn product(terms: &mut Terms, a: &Value, b: &Value) -> Made {
    let (row, column) = (a.rank() == 1, b.rank() == 1);
    let wrong = || format!("{:?} and {:?} have no product", a.shape(), b.shape());
    if a.rank() == 0 || b.rank() == 0 {
        return Err(wrong());
    }
    let mut left = a.view.clone();
    let mut right = b.view.clone();
    if row {
        left.insert(0, Vec::new());
    }
    if column {
        right.push(Vec::new());
    }
    let rank = left.len().max(right.len());
    let lift = |mut view: View| {
        while view.len() < rank {
            view.insert(0, Vec::new());
        }
        view
    };
    let (mut left, mut right) = (lift(left), lift(right));
    // a: batch M K -> batch M 1 K; b: batch K N -> batch 1 N K
    left.insert(rank - 1, Vec::new());
    let k = right.remove(rank - 2);
    right.insert(rank - 2, Vec::new());
    right.push(k);
    let (left_shape, right_shape) = (crate::terms::view::shape(&left), crate::terms::view::shape(&right));
    let shape: Vec<i64> = left_shape.iter().zip(&right_shape).map(|(l, r)| if *l == 1 { *r } else { *l }).collect();
    if left_shape[rank] != right_shape[rank] {
        let (at, other) = (a.rank() - 1, b.rank().saturating_sub(2));
        if terms.is_open(left_shape[rank]) {
            terms.fixes(a, at, right_shape[rank]);
        } else if terms.is_open(right_shape[rank]) {
            terms.fixes(b, other, left_shape[rank]);
        }
        terms.mismatch((a, at), (b, other));
        return Err(wrong());
    }
    let mut y = contract(terms, &shape, (a, left), (b, right), &[rank])?;
    y.view.truncate(rank);
    if column {
        y.view.pop();
    }
    if row {
        y.view.remove(rank - 2);
    }
    Ok(y)
}

fn gemm(call: &mut Call<'_>) -> Made {
    let turned = |value: Value, attr: &str| match call.int(attr, 0) {
        0 => Ok(value),
        _ => value.permuted(&[1, 0]).ok_or_else(|| "an operand is no matrix".to_owned()),
    };
    let (a, b) = (turned(call.need(0)?, "transA")?, turned(call.need(1)?, "transB")?);
    if a.rank() != 2 || b.rank() != 2 {
        return Err("an operand is no matrix".to_owned());
    }
    let factor = |name| match call.attr(name) {
        Some(Attr::Float(value)) => *value,
        _ => 1.0,
    };
    let (alpha, beta) = (factor("alpha"), factor("beta"));
    let y = product(call.terms, &a, &b)?;
    let addend = call.inputs.get(2).and_then(Option::as_ref);
    // A bias is one more summand. With other factors the op is one of its own.
    let plain = alpha.to_bits() == 1f32.to_bits() && (addend.is_none() || beta.to_bits() == 1f32.to_bits());
    match addend {
        None if plain => Ok(window::by_column(call.terms, &a, &b, None, y)),
        Some(c) if plain => {
            let sum = call.inner("Add", &[], &[Some(y), Some(c.clone())])?;
            Ok(window::by_column(call.terms, &a, &b, Some(c), sum))
        }
        _ => {
            let attrs = call.encoded(&["transA", "transB"])?;
            let operands: Vec<&Value> = [Some(&y), addend].into_iter().flatten().collect();
            pointwise(call.terms, &Op { name: Name::Model("Gemm"), attrs: &attrs, dtype: y.dtype }, &operands)
        }
    }
}

/// Letters for the axes of an ellipsis, the last one first: an equation has none of them.
const OTHERS: std::ops::RangeInclusive<char> = '\u{e000}'..='\u{e03f}';

/// The letters of operands and of the result of an Einsum, with those of `OTHERS` for an ellipsis: the axes of an operand that no letter
/// names. `None` if the result has no ellipsis and an operand has one.
fn without_ellipses(from: &[&str], to: &str, operands: &[Value]) -> Option<(Vec<Vec<char>>, Vec<char>)> {
    let letters = |term: &str, axes: usize| -> Option<Vec<char>> {
        let Some((before, after)) = term.split_once("...") else { return Some(term.chars().collect()) };
        let others = OTHERS.take(axes).collect::<Vec<_>>();
        (others.len() == axes).then(|| before.chars().chain(others.into_iter().rev()).chain(after.chars()).collect())
    };
    let has = |term: &str| term.contains("...");
    let others = |(term, value): (&&str, &Value)| {
        if has(term) { value.rank().checked_sub(term.chars().count() - 3) } else { Some(0) }
    };
    let axes: Vec<usize> = from.iter().zip(operands).map(others).collect::<Option<_>>()?;
    let most = *axes.iter().max()?;
    let same = from.len() == operands.len() && has(to) == from.iter().any(|term| has(term));
    let terms = from.iter().zip(axes).map(|(term, axes)| letters(term, axes)).collect::<Option<_>>()?;
    Some((terms, letters(to, most)?)).filter(|_| same)
}

fn einsum(call: &mut Call<'_>) -> Made {
    let equation = call.text("equation").unwrap_or_default().replace(' ', "");
    let known = || format!("the checker does not know equation `{equation}`");
    let (from, to) = equation
        .split_once("->")
        .map_or_else(|| (equation.as_str(), implied(&equation)), |(from, to)| (from, to.to_owned()));
    let operands: Vec<Value> = call.inputs.iter().flatten().cloned().collect();
    let from: Vec<&str> = from.split(',').collect();
    let (terms, to) = without_ellipses(&from, &to, &operands).ok_or_else(known)?;
    let mut letters = to.clone();
    terms.iter().flatten().for_each(|c| {
        if !letters.contains(c) {
            letters.push(*c);
        }
    });
    let repeats = |list: &Vec<char>| (1..list.len()).any(|at| list[..at].contains(&list[at]));
    let is_axis = |letter: &char| letter.is_ascii_alphabetic() || OTHERS.contains(letter);
    let plain = letters.iter().all(is_axis) && !terms.iter().chain([&to]).any(repeats);
    if !plain
        || terms.len() != 2
        || operands.len() != 2
        || terms.iter().zip(&operands).any(|(t, v)| t.len() != v.rank())
    {
        return Err(known());
    }
    let lifted = |at: usize| -> View {
        let place = |c: &char| terms[at].iter().position(|l| l == c);
        letters.iter().map(|c| place(c).map_or_else(Vec::new, |axis| operands[at].view[axis].clone())).collect()
    };
    let (left, right) = (lifted(0), lifted(1));
    let sizes = crate::terms::view::shape(&left).into_iter().zip(crate::terms::view::shape(&right));
    let shape: Vec<i64> = sizes.map(|(l, r)| if l == 1 { r } else { l }).collect();
    let sums: Vec<usize> = (to.len()..letters.len()).collect();
    if sums.is_empty() {
        // Nothing is summed: each element is one product.
        let op = Op { name: Name::Model("Mul"), attrs: &[1, 1], dtype: operands[0].dtype };
        return over(call.terms, &op, &shape, &[(&operands[0], left), (&operands[1], right)], &[], false);
    }
    let mut y = contract(call.terms, &shape, (&operands[0], left), (&operands[1], right), &sums)?;
    y.view.truncate(to.len());
    Ok(y)
}

/// The result of an equation that tells none: an ellipsis where it has one, and then each letter that occurs once, in order of the alphabet.
fn implied(from: &str) -> String {
    let mut own: Vec<char> = from.chars().filter(char::is_ascii_alphabetic).collect();
    own.sort_unstable();
    let once = own.iter().filter(|c| own.iter().filter(|other| other == c).count() == 1);
    let dots = if from.contains("...") { "..." } else { "" };
    dots.chars().chain(once.copied()).collect()
}

/// One of two values, by a condition.
pub(crate) fn choose(terms: &mut Terms, condition: &Value, yes: &Value, no: &Value) -> Made {
    if let Some(known) = condition.as_ints().and_then(|c| c.first().copied()) {
        return Ok(if known != 0 { yes.clone() } else { no.clone() });
    }
    if yes.shape() != no.shape() || yes.dtype != no.dtype || condition.count() != 1 {
        return Err("its branches have results of different shapes".to_owned());
    }
    let condition = condition.reshaped(&[]).ok_or("its condition is no scalar")?;
    // The values come first, so that their order of axes is that of the result.
    pointwise(terms, &Op { name: Name::Model("If"), attrs: &[], dtype: yes.dtype }, &[yes, no, &condition])
}
