//! Lemma 2: means and normalizations that are written in another way.
//!
//! A term has a *real form*: the same over the reals, in few ops. A sum of n products with 1 / n is a mean, a product with a reciprocal
//! is a quotient, a square is a product, a factor of an operand is one of the product, and a normalization is the ops that ONNX defines
//! it by. Two terms with one real form are the
//! same. Operands that are terms of the input stay as they are, so that only what differs is written anew.

use crate::align::term_of;
use crate::lemma::{ROUNDINGS, epsilon, unit};
use crate::ops::{binary, pointwise, together};
use crate::term::{Arg, Op, Term, Terms, numbers};
use crate::value::{Source, Value};
use crate::view::{self, Digit, View, normal};
use std::rc::Rc;

/// Ops whose terms are written anew where an operand was.
const FOLLOWED: &[&str] =
    &["Add", "BatchNormalization", "Div", "Mul", "Neg", "Pow", "Reciprocal", "ReduceMean", "Sqrt", "Sub", "contract"];

/// Ops that are written out.
const NORMALIZATIONS: &[&str] = &["GroupNormalization", "InstanceNormalization", "LayerNormalization"];

/// A real form, and the largest relative difference between a constant in it and the one that a rule asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) term: u32,
    pub(crate) bound: f64,
}

/// The real form of a term; operands below `bound` stay as they are.
pub(crate) fn form(terms: &mut Terms, term: u32, bound: u32) -> Form {
    let as_is = Form { term, bound: 0.0 };
    if term < bound {
        return as_is;
    }
    if let Some(known) = terms.forms.get(&term) {
        return *known;
    }
    let made = written(terms, term, bound).unwrap_or(as_is);
    terms.forms.insert(term, made);
    made
}

/// The term in other ops, if it or an operand can be written so.
pub(crate) fn written(terms: &mut Terms, term: u32, bound: u32) -> Option<Form> {
    let made = Rc::clone(terms.get(term));
    if NORMALIZATIONS.contains(&made.op.as_str()) {
        return normalized(terms, &made).and_then(|y| in_place(&made, &y, 0.0));
    }
    if !FOLLOWED.contains(&made.op.as_str()) {
        return None;
    }
    let forms = made.args.iter().map(|arg| match arg {
        Arg::Term { term, .. } => Some(form(terms, *term, bound)).filter(|form| form.term != *term),
        _ => None,
    });
    let forms: Vec<Option<Form>> = forms.collect();
    let matrix = |arg: &Arg| matches!(arg, Arg::Constant { axes, .. } if !axes.is_empty());
    let changed = forms.iter().any(Option::is_some);
    if !changed && made.args.iter().any(matrix) {
        return None;
    }
    let (mut operands, mut error) = (Vec::new(), 0f64);
    for (at, form) in forms.iter().enumerate() {
        let mut value = operand(terms, &made, at)?;
        if let Some(form) = form {
            error = error.max(form.bound);
            value.source = Source::Term(form.term);
        }
        operands.push(value);
    }
    if let Some((y, more)) = by_rule(terms, &made, &operands) {
        return in_place(&made, &y, error.max(more));
    }
    let y = changed.then(|| again(terms, &made, &made.op, &made.attrs, &operands)).flatten()?;
    in_place(&made, &y, error)
}

/// The form, if it has the axes of what it stands for in their order.
fn in_place(made: &Term, y: &Value, bound: f64) -> Option<Form> {
    let alike = y.dtype == made.dtype && y.view == view::identity(&made.base).1;
    Some(Form { term: term_of(y).filter(|_| alike)?, bound })
}

/// An operand over the common axes of a term.
fn operand(terms: &Terms, made: &Term, at: usize) -> Option<Value> {
    match made.args.get(at)? {
        Arg::Term { term, reads, own } if own.is_empty() => {
            let axis = |(read, &extent): (&Option<(u32, i64)>, &i64)| match *read {
                Some((axis, stride)) => normal([Digit { axis, extent, stride }]),
                None => Vec::new(),
            };
            let view = reads.iter().zip(&made.over).map(axis).collect();
            Some(Value { source: Source::Term(*term), view, dtype: terms.get(*term).dtype })
        }
        Arg::Constant { dtype, axes, own, digest } if own.is_empty() => {
            let shape: Vec<i64> = axes.iter().map(|&axis| made.over[axis as usize]).collect();
            let list = Value::constant(*dtype, &shape, terms.bytes(*dtype, *digest)?);
            let mut view = vec![Vec::new(); made.over.len()];
            for (digits, &axis) in list.view.iter().zip(axes) {
                view[axis as usize].clone_from(digits);
            }
            Some(Value { view, ..list })
        }
        _ => None,
    }
}

/// The same op of other operands over the same axes. Axes that are summed over are gone.
fn again(terms: &mut Terms, made: &Term, name: &str, attrs: &[u8], operands: &[Value]) -> Option<Value> {
    let sums: Vec<usize> = (0..made.over.len()).filter(|&axis| made.class[axis] > 0).collect();
    let operands: Vec<(&Value, View)> = operands.iter().map(|value| (value, value.view.clone())).collect();
    let op = Op { name, attrs, dtype: made.dtype };
    let y = terms.each(&op, &made.over, &operands, &sums, !sums.is_empty())?;
    Some(without(y, &sums))
}

fn without(y: Value, axes: &[usize]) -> Value {
    let kept = y.view.into_iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
    Value { view: kept.map(|(_, digits)| digits).collect(), ..y }
}

/// What a rule makes of a term, and the relative difference of its constant.
fn by_rule(terms: &mut Terms, made: &Term, operands: &[Value]) -> Option<(Value, f64)> {
    match (made.op.as_str(), operands) {
        ("contract", [x, by]) => mean(terms, made, x, by).or_else(|| Some((factored(terms, made, operands)?, 0.0))),
        ("Mul", [a, b]) => {
            let over = |terms: &mut Terms, a: &Value, b: &Value| {
                let by = inverted(terms, b)?;
                again(terms, made, "Div", &[1, 1], &[a.clone(), by])
            };
            let y = over(terms, a, b).or_else(|| over(terms, b, a))?;
            Some((y, 0.0))
        }
        ("Pow", [x, by]) => {
            let two = by.splat()?.elements().filter(|_| by.dtype == 1)?;
            let square = *two == 2f32.to_le_bytes();
            let y = square.then(|| again(terms, made, "Mul", &[1, 1], &[x.clone(), x.clone()]))??;
            Some((y, 0.0))
        }
        _ => None,
    }
}

/// The sum of n elements, each times 1 / n, is their mean.
fn mean(terms: &mut Terms, made: &Term, x: &Value, by: &Value) -> Option<(Value, f64)> {
    let number = *numbers(by).filter(|_| by.count() == 1)?.first()?;
    let sums = (0..made.over.len()).filter(|&axis| made.class[axis] > 0);
    let count: i64 = sums.map(|axis| made.over[axis]).product();
    let error = (number * count as f64 - 1.0).abs();
    let near = count > 1 && error <= ROUNDINGS * unit(by.dtype)?;
    let y = near.then(|| again(terms, made, "ReduceMean", &[], std::slice::from_ref(x)))??;
    Some((y, error))
}

/// Factors of both operands are a factor of their product.
fn factored(terms: &mut Terms, made: &Term, operands: &[Value]) -> Option<Value> {
    let (mut factor, mut inner) = (1f64, operands.to_vec());
    for operand in &mut inner {
        if let Some((x, by)) = multiple(terms, operand) {
            (factor, *operand) = (factor * by, x);
        }
    }
    if factor.to_bits() == 1f64.to_bits() || made.dtype != 1 {
        return None;
    }
    let y = again(terms, made, "contract", &[], &inner)?;
    let factor = Value::constant(1, &[], (factor as f32).to_le_bytes().to_vec().into());
    binary(terms, "Mul", &y, &factor).ok()
}

/// What a value is a multiple of, and by which number.
fn multiple(terms: &Terms, x: &Value) -> Option<(Value, f64)> {
    let made = Rc::clone(terms.get(term_of(x)?));
    let [a, b] = [operand(terms, &made, 0)?, operand(terms, &made, 1)?];
    let number = |value: &Value| numbers(value).filter(|_| value.count() == 1)?.first().copied();
    let (inner, factor) = match (made.op.as_str(), number(&a), number(&b)) {
        ("Mul", None, Some(by)) => (a, by),
        ("Mul", Some(by), None) => (b, by),
        ("Div", None, Some(by)) => (a, 1.0 / by),
        _ => return None,
    };
    let known = factor.is_finite() && !inner.is_constant();
    Some((Value { view: view::composed(&x.view, &inner.view)?, ..inner }, factor)).filter(|_| known)
}

/// What a value is the reciprocal of.
fn inverted(terms: &Terms, x: &Value) -> Option<Value> {
    let made = Rc::clone(terms.get(term_of(x)?));
    let inner = operand(terms, &made, 0).filter(|_| made.op == "Reciprocal")?;
    Some(Value { view: view::composed(&x.view, &inner.view)?, ..inner })
}

/// A normalization as ONNX defines it: (x - mean) / sqrt(mean of squares + epsilon), times a scale, plus a shift.
fn normalized(terms: &mut Terms, made: &Term) -> Option<Value> {
    let x = operand(terms, made, 0).filter(|_| made.dtype == 1)?;
    let epsilon = epsilon(&made.attrs)? as f32;
    let sets: Vec<usize> = (0..made.over.len()).filter(|&axis| made.class[axis] > 0).collect();
    let mean = |terms: &mut Terms, x: &Value| {
        let op = Op { name: "ReduceMean", attrs: &[], dtype: x.dtype };
        together(terms, &op, &[x], &sets, true).ok()
    };
    let middle = mean(terms, &x)?;
    let centred = binary(terms, "Sub", &x, &middle).ok()?;
    let squares = binary(terms, "Mul", &centred, &centred).ok()?;
    let variance = mean(terms, &squares)?;
    let epsilon = Value::constant(1, &[], epsilon.to_le_bytes().to_vec().into());
    let sum = binary(terms, "Add", &variance, &epsilon).ok()?;
    let deviation = pointwise(terms, &Op { name: "Sqrt", attrs: &[1], dtype: x.dtype }, &[&sum]).ok()?;
    let mut y = binary(terms, "Div", &centred, &deviation).ok()?;
    for (at, name) in [(1, "Mul"), (2, "Add")] {
        if at < made.args.len() {
            let by = operand(terms, made, at)?;
            y = binary(terms, name, &y, &by).ok()?;
        }
    }
    Some(y)
}
