//! Lemma 2: means, norms and factors that are written in another way.
//!
//! A term has a *real form*: a number times a term in few ops, which is the same over the reals. A sum of products with one number is
//! a mean, a product with a reciprocal is a quotient, a square is a product, factors come out of products, sums, means and roots, and a
//! normalization is the ops that ONNX defines it by. Two terms with one real form are the same. Operands that are terms of the input
//! stay as they are, so that only what differs is written anew.

use super::halves::{FLOAT, HALF, as_floats, is_narrow, of_halves};
use super::scales::{ROUNDINGS, epsilon, unit};
use crate::terms::align::{Class, acted, term_of};
use crate::terms::arg::{Arg, Op, Term, numbers};
use crate::terms::name::Name::{self, Model};
use crate::terms::name::{OpName, Own};
use crate::terms::pointwise::{binary, pointwise, together};
use crate::terms::real::{RealForm, as_is};
use crate::terms::state::Terms;
use crate::terms::value::{Source, Value};
use crate::terms::view::{self, Digit, View, normal};
use half::f16;
use std::rc::Rc;

/// Ops whose terms are written anew where an operand was.
const FOLLOWED: &[&str] = &[
    "Add",
    "BatchNormalization",
    "Clip",
    "Div",
    "HardSigmoid",
    "Min",
    "Mul",
    "Neg",
    "Pow",
    "Reciprocal",
    "ReduceMean",
    "ReduceSum",
    "Sqrt",
    "Sub",
];

/// Whether a term is written anew where an operand was.
fn is_followed(made: &Term) -> bool {
    match made.name() {
        Name::Own(own) => own == Own::Contract,
        Model(name) => FOLLOWED.contains(&name),
        Name::Opaque(_) | Name::AsItLies(_) => false,
    }
}

/// Whether a term is a product that factors come out of: of halves nothing else is written anew.
fn has_factors(made: &Term) -> bool {
    matches!(made.name(), Name::Own(Own::Contract) | Model("Mul" | "Div"))
}

fn is_normalization(made: &Term) -> bool {
    matches!(made.name(), Model(name) if NORMALIZATIONS.contains(&name))
}

/// Ops that are written out.
const NORMALIZATIONS: &[&str] = &["GroupNormalization", "InstanceNormalization", "LayerNormalization"];

/// Most real forms inside of each other, of operands that have none yet.
const NESTED: u32 = 128;

/// A number times a value, and the difference as a form has it.
struct Multiple {
    value: Value,
    factor: f64,
    bound: f64,
}

/// What a rule makes: a value, its factor, and the relative difference of its constant.
type Ruled = Option<(Value, f64, f64)>;

/// The real form of a term as one term; operands below `bound` stay as they are.
pub(crate) fn whole(terms: &mut Terms, term: u32, bound: u32) -> RealForm {
    let form = form(terms, term, bound);
    one(terms, form).unwrap_or(as_is(term))
}

/// The real form of a term of the input, if it is another term: with its factor, and as one term.
pub(crate) fn of_input(terms: &mut Terms, term: u32, bound: u32) -> Option<(RealForm, RealForm)> {
    let factored = written(terms, term, bound)?;
    let form = one(terms, factored.clone()).filter(|form| form.term != term)?;
    if form.view.is_none() && is_normalization(terms.get(term)) {
        terms.norms.insert(term, form.term);
    }
    Some((factored, form))
}

/// The form with its factor as a product.
fn one(terms: &mut Terms, form: RealForm) -> Option<RealForm> {
    let made = Rc::clone(terms.get(form.term));
    let far = (form.factor - 1.0).abs();
    if far <= ROUNDINGS * unit(made.dtype).unwrap_or(0.0) {
        return Some(RealForm { factor: 1.0, bound: form.bound.max(far), ..form });
    }
    let view = form.view.unwrap_or_else(|| view::identity(&made.base).1);
    let base = view::shape(&view);
    let value = Value { source: Source::Term(form.term), view, dtype: made.dtype };
    // The factor is rounded once.
    let bound = form.bound.max(unit(made.dtype)?);
    let y = times(terms, &value, form.factor)?;
    in_place(terms, &base, (y, 1.0, bound))
}

fn is_one(factor: f64) -> bool {
    factor.to_bits() == 1f64.to_bits()
}

/// A value times a number, as an op.
fn times(terms: &mut Terms, x: &Value, factor: f64) -> Option<Value> {
    if is_one(factor) {
        return Some(x.clone());
    }
    let by = scalar_of(x.dtype, factor)?;
    binary(terms, "Mul", x, &by).ok()
}

/// A number as a constant of a type that factors come out of.
fn scalar_of(dtype: u8, number: f64) -> Option<Value> {
    match dtype {
        FLOAT => scalar(number),
        HALF => {
            let rounded = f16::from_f64(number);
            let fits = rounded.is_normal() || number == 0.0;
            fits.then(|| Value::constant(HALF, &[], rounded.to_le_bytes().to_vec().into()))
        }
        _ => None,
    }
}

/// A number as a constant, if rounding it changes nothing but its last bit.
fn scalar(number: f64) -> Option<Value> {
    let rounded = number as f32;
    let fits = rounded.is_normal() || number == 0.0;
    fits.then(|| Value::constant(1, &[], rounded.to_le_bytes().to_vec().into()))
}

fn form(terms: &mut Terms, term: u32, bound: u32) -> RealForm {
    if term < bound && !is_gate(terms, term, PRODUCTS) {
        return as_is(term);
    }
    if let Some(known) = terms.forms.get(&term) {
        return known.clone();
    }
    if terms.nested > NESTED {
        return as_is(term);
    }
    terms.nested += 1;
    let made = written(terms, term, bound).unwrap_or(as_is(term));
    let part = terms.known_part(&made).filter(|part| !is_gate(terms, part.term, PRODUCTS));
    let made = part.unwrap_or(made);
    terms.nested -= 1;
    terms.forms.insert(term, made.clone());
    made
}

/// The term in other ops, if it or an operand can be written so.
fn written(terms: &mut Terms, term: u32, bound: u32) -> Option<RealForm> {
    let made = Rc::clone(terms.get(term));
    if is_normalization(&made) {
        let operands = (0..made.args.len()).map(|at| operand(terms, &made, at));
        let mut operands = operands.collect::<Option<Vec<Value>>>()?;
        if is_narrow(made.dtype) {
            operands = operands.iter().map(|x| as_floats(terms, x)).collect::<Option<_>>()?;
        }
        let mut y = normalized(terms, &made, &operands)?;
        if is_narrow(made.dtype) {
            y = as_halves(terms, y, made.dtype)?;
        }
        return in_place(terms, &made.base, (y, 1.0, 0.0));
    }
    if made.name() == Model("Cast") && is_narrow(made.dtype) {
        return rounded(terms, &made, bound);
    }
    if !is_followed(&made) || !(made.dtype == FLOAT || made.dtype == HALF && has_factors(&made)) {
        return None;
    }
    let matrix = |arg: &Arg| matches!(arg, Arg::Constant { axes, .. } if !axes.is_empty());
    let changes = |arg: &Arg| matches!(arg, Arg::Term { term, .. } if form(terms, *term, bound).term != *term);
    if made.args.iter().filter(|arg| !matrix(arg)).map(changes).filter(|changes| *changes).count() == 0
        && made.args.iter().any(matrix)
    {
        return None;
    }
    let operands: Vec<Multiple> =
        (0..made.args.len()).map(|at| multiple(terms, &made, at, bound)).collect::<Option<_>>()?;
    let error = operands.iter().fold(0f64, |error, operand| error.max(operand.bound));
    let (y, factor, more) = by_rule(terms, &made, &operands).or_else(|| {
        let whole = operands.iter().map(|x| times(terms, &x.value, x.factor)).collect::<Option<Vec<_>>>()?;
        Some((again(terms, &made, made.name(), &made.attrs, &whole)?, 1.0, 0.0))
    })?;
    in_place(terms, &made.base, (y, factor, error.max(more)))
}

/// The form of a term with these axes, if it has each of its elements once.
fn in_place(terms: &Terms, base: &[i64], (y, factor, bound): (Value, f64, f64)) -> Option<RealForm> {
    let term = term_of(&y).filter(|_| (y.dtype == FLOAT || is_narrow(y.dtype)) && factor.is_finite())?;
    let own = &terms.get(term).base;
    let view = Some(y.view).filter(|view| own != base || *view != view::identity(base).1);
    let whole = |view: &View| view::shape(view) == base && view::inverse(view, own).is_some();
    view.as_ref().is_none_or(whole).then_some(RealForm { term, view, factor, bound })
}

/// The real form of an operand, over the common axes of a term.
fn multiple(terms: &mut Terms, made: &Term, at: usize, bound: u32) -> Option<Multiple> {
    let mut value = operand(terms, made, at)?;
    let (mut factor, mut error) = (1.0, 0.0);
    if let Some(term) = term_of(&value) {
        let form = form(terms, term, bound);
        value.source = Source::Term(form.term);
        if let Some(own) = form.view {
            value.view = view::composed(&value.view, &own)?;
        }
        (factor, error) = (form.factor, form.bound);
    }
    while let Some((inner, by)) = scaled(terms, &value) {
        (value, factor) = (inner, factor * by);
    }
    Some(Multiple { value, factor, bound: error })
}

/// An operand over the common axes of a term.
pub(crate) fn operand(terms: &Terms, made: &Term, at: usize) -> Option<Value> {
    match made.args.get(at)? {
        Arg::Term { term, reads, own } if own.is_empty() => {
            let axis = |(read, &extent): (&Option<(u32, i64)>, &i64)| match *read {
                Some((axis, stride)) => normal([Digit { axis, extent, stride }]),
                None => Vec::new(),
            };
            let view = reads.iter().zip(&made.over).map(axis).collect();
            Some(Value { source: Source::Term(*term), view, dtype: terms.get(*term).dtype })
        }
        Arg::Constant { dtype, axes, own, elements } if own.is_empty() => {
            let shape: Vec<i64> = axes.iter().map(|&axis| made.over[axis as usize]).collect();
            let list = terms.constant(*dtype, &shape, *elements)?;
            let mut view = vec![Vec::new(); made.over.len()];
            for (digits, &axis) in list.view.iter().zip(axes) {
                view[axis as usize].clone_from(digits);
            }
            Some(Value { view, ..list })
        }
        _ => None,
    }
}

/// An operand of what a value is, seen as the value is.
pub(crate) fn through(terms: &Terms, x: &Value, made: &Term, at: usize) -> Option<Value> {
    let inner = operand(terms, made, at)?.expanded(&made.over)?;
    Some(Value { view: view::composed(&x.view, &inner.view)?, ..inner })
}

/// The same op of other operands over the same axes. Axes that are summed over are gone.
fn again(terms: &mut Terms, made: &Term, name: OpName<'_>, attrs: &[u8], operands: &[Value]) -> Option<Value> {
    let sums = acted(&made.class);
    let operands: Vec<(&Value, View)> = operands.iter().map(|value| (value, value.view.clone())).collect();
    let op = Op { name, attrs, dtype: made.dtype };
    let y = terms.each(&op, &made.over, &operands, &sums, !sums.is_empty())?;
    let y = without(y, &sums);
    Some(settled(terms, y))
}

/// What a rule made for a result, as the input has it. Gates of the input do not stay as they are.
fn settled(terms: &mut Terms, y: Value) -> Value {
    let known = terms.known_form(&y);
    known.filter(|known| term_of(known).is_some_and(|term| !is_gate(terms, term, PRODUCTS))).unwrap_or(y)
}

fn without(y: Value, axes: &[usize]) -> Value {
    let kept = y.view.into_iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
    Value { view: kept.map(|(_, digits)| digits).collect(), ..y }
}

/// What a rule makes of a term.
fn by_rule(terms: &mut Terms, made: &Term, operands: &[Multiple]) -> Ruled {
    match (made.name(), operands) {
        (Name::Own(Own::Contract), [a, b]) => contracted(terms, made, a, b),
        (Model("Mul"), [a, b]) => product(terms, made, a, b).or_else(|| product(terms, made, b, a)).or_else(|| {
            let y = again(terms, made, Model("Mul"), &[1, 1], &[a.value.clone(), b.value.clone()])?;
            Some((y, a.factor * b.factor, 0.0))
        }),
        (Model("Div"), [a, b]) => {
            if let Some(by) = known(&b.value) {
                return Some((a.value.clone(), a.factor / by, 0.0));
            }
            if let Some(y) = shares(terms, made, a, b) {
                return Some(y);
            }
            let y = again(terms, made, Model("Div"), &[1, 1], &[a.value.clone(), b.value.clone()])?;
            Some((y, a.factor / b.factor, 0.0))
        }
        (Model("Add"), [a, b]) => sum(terms, made, a, b, b.factor),
        (Model("Sub"), [a, b]) if known(&a.value) == Some(0.0) => Some((b.value.clone(), -b.factor, 0.0)),
        (Model("Sub"), [a, b]) => variance(terms, a, b).or_else(|| sum(terms, made, a, b, -b.factor)),
        (Model("Neg"), [x]) => Some((x.value.clone(), -x.factor, 0.0)),
        (Model("Clip"), [x, least, most]) if known(&least.value) == Some(0.0) => {
            let most = known(&most.value).filter(|most| *most > 0.0)?;
            let (y, error) = ramp(terms, &x.value, x.factor / most, 0.0)?;
            Some((y, most, error))
        }
        (Model("Min"), _) => {
            let (x, most) = cut_off(terms, made)?;
            let (y, error) = ramp(terms, &x, 1.0 / most, 0.0)?;
            Some((y, most, error))
        }
        (Model("HardSigmoid"), [x]) => {
            let [slope, start] = ["alpha", "beta"].map(|name| told(&made.attrs, name));
            let (y, error) = ramp(terms, &x.value, slope? * x.factor, start?)?;
            Some((y, 1.0, error))
        }
        (Model("ReduceMean"), [x]) => {
            let sets = summed(made);
            Some((without(averaged(terms, &x.value, &sets)?, &sets), x.factor, 0.0))
        }
        (Model("ReduceSum"), [x]) => {
            let (sets, count) = (summed(made), counted(terms, made)?);
            Some((without(averaged(terms, &x.value, &sets)?, &sets), x.factor * count, 0.0))
        }
        (Model("Sqrt"), [x]) if x.factor > 0.0 => {
            Some((again(terms, made, Model("Sqrt"), &[1], std::slice::from_ref(&x.value))?, x.factor.sqrt(), 0.0))
        }
        (Model("Reciprocal"), [x]) => {
            Some((again(terms, made, Model("Reciprocal"), &[1], std::slice::from_ref(&x.value))?, 1.0 / x.factor, 0.0))
        }
        (Model("Pow"), [x, by]) if known(&by.value) == Some(2.0) => {
            let y = again(terms, made, Model("Mul"), &[1, 1], &[x.value.clone(), x.value.clone()])?;
            Some((y, x.factor * x.factor, 0.0))
        }
        (Model("Pow"), [x, by]) if known(&by.value) == Some(0.5) && x.factor > 0.0 => {
            let root = again(terms, made, Model("Sqrt"), &[1], std::slice::from_ref(&x.value))?;
            Some((root, x.factor.sqrt(), 0.0))
        }
        _ => None,
    }
}

/// `Clip(slope x + start, 0, 1)`, written as `Clip((x + start / slope) slope, 0, 1)`, and the difference of its numbers.
fn ramp(terms: &mut Terms, x: &Value, slope: f64, start: f64) -> Option<(Value, f64)> {
    (slope > 0.0 && slope.is_finite() && !x.is_constant()).then_some(())?;
    let (mut x, mut before) = (x.clone(), 0.0);
    for _ in 0..SUMS {
        let Some((inner, number)) = without_number(terms, &x) else { break };
        (x, before) = (inner, before + number);
    }
    let (add, error) = terms.near(before + start / slope)?;
    let (slope, more) = terms.near(slope)?;
    let x = if add == 0.0 { x } else { binary(terms, "Add", &x, &scalar(add)?).ok()? };
    let x = times(terms, &x, slope)?;
    let op = Op { name: Model("Clip"), attrs: &[1, 1, 1], dtype: x.dtype };
    let y = pointwise(terms, &op, &[&x, &scalar(0.0)?, &scalar(1.0)?]).ok()?;
    Some((y, error.max(more)))
}

/// What a minimum cuts off at a number above zero, and a maximum before it at zero, and the number.
fn cut_off(terms: &Terms, made: &Term) -> Option<(Value, f64)> {
    let with_number =
        |made: &Term, at: usize| Some((operand(terms, made, 1 - at)?, known(&operand(terms, made, at)?)?));
    let of_two = |made: &Term| [0, 1].into_iter().find_map(|at| with_number(made, at)).filter(|_| made.args.len() == 2);
    let (x, most) = of_two(made).filter(|(_, most)| made.name() == Model("Min") && *most > 0.0)?;
    let inner = terms.get(term_of(&x)?);
    let at = match inner.name() {
        Model("Relu") => 0,
        Model("Max") => {
            [0, 1].into_iter().find(|&at| with_number(inner, 1 - at).is_some_and(|(_, least)| least == 0.0))?
        }
        _ => return None,
    };
    Some((through(terms, &x, inner, at)?, most))
}

/// Most sums with a number that are taken apart one behind the other.
const SUMS: usize = 4;

/// Most products that a gate is looked for in: that with what it opens, and those with numbers.
const PRODUCTS: usize = 3;

/// Whether a term is a `HardSigmoid`, a sum with a number that is cut off, as one is written out, or so many products of these. Where the
/// input has one of them a result may have another, so they do not stay as they are.
fn is_gate(terms: &Terms, term: u32, products: usize) -> bool {
    let made = terms.get(term);
    let shifted = |x: &Value| without_number(terms, x).is_some();
    let inside = |arg: &Arg| matches!(arg, Arg::Term { term, .. } if is_gate(terms, *term, products - 1));
    match made.name() {
        Model("HardSigmoid") => true,
        Model("Clip") => operand(terms, made, 0).as_ref().is_some_and(shifted),
        Model("Min") => cut_off(terms, made).is_some_and(|(x, _)| shifted(&x)),
        Model("Mul" | "Div") => products > 0 && made.args.iter().any(inside),
        _ => false,
    }
}

/// A number among encoded attributes that are there whatever the file says: its bits.
fn told(attrs: &[u8], name: &str) -> Option<f64> {
    let text = String::from_utf8_lossy(attrs);
    let bits = text.split(';').find_map(|attr| attr.strip_prefix(name)?.strip_prefix('='))?;
    bits.parse().ok().map(f32::from_bits).map(f64::from)
}

/// A sum with a number as what the number is added to, and the number.
fn without_number(terms: &Terms, x: &Value) -> Option<(Value, f64)> {
    let made = Rc::clone(terms.get(term_of(x)?));
    let number = operand(terms, &made, 1).filter(|_| made.name() == Model("Add")).and_then(|by| known(&by))?;
    Some((through(terms, x, &made, 0)?, number))
}

/// The number that a constant is.
fn known(value: &Value) -> Option<f64> {
    Some(value).filter(|_| value.count() == 1).and_then(numbers)?.first().copied()
}

/// The axes that a term sums over.
fn summed(made: &Term) -> Vec<usize> {
    acted(&made.class)
}

/// How many are summed, which is a number of all sizes only if it does not differ from call to call.
fn counted(terms: &Terms, made: &Term) -> Option<f64> {
    let extents = summed(made).into_iter().map(|axis| made.over[axis]);
    extents.clone().all(|extent| !terms.is_open(extent)).then(|| extents.product::<i64>() as f64)
}

/// A sum of products: with one number n times it is n times a mean, and so is one of two values that have all axes.
fn contracted(terms: &mut Terms, made: &Term, a: &Multiple, b: &Multiple) -> Ruled {
    let (sets, count) = (summed(made), counted(terms, made));
    if let Some((by, count)) = known(&b.value).zip(count) {
        let y = without(averaged(terms, &a.value, &sets)?, &sets);
        let error = (by * count - 1.0).abs();
        let near = error <= ROUNDINGS * unit(b.value.dtype)?;
        return Some(if near { (y, a.factor, error) } else { (y, a.factor * by * count, 0.0) });
    }
    let all = |x: &Multiple| !x.value.is_constant() && x.value.view.iter().all(|digits| !digits.is_empty());
    if let Some(count) = count.filter(|_| all(a) && all(b)) {
        let squares = binary(terms, "Mul", &a.value, &b.value).ok()?;
        let squares = settled(terms, squares);
        let y = without(averaged(terms, &squares, &sets)?, &sets);
        return Some((y, a.factor * b.factor * count, 0.0));
    }
    let y = again(terms, made, Name::Own(Own::Contract), &[], &[a.value.clone(), b.value.clone()])?;
    Some((y, a.factor * b.factor, 0.0))
}

/// A product with a number, a reciprocal, or a constant that is divided.
fn product(terms: &mut Terms, made: &Term, a: &Multiple, b: &Multiple) -> Ruled {
    if let Some(by) = known(&b.value) {
        return Some((a.value.clone(), a.factor * by, 0.0));
    }
    let term = Rc::clone(terms.get(term_of(&b.value)?));
    let seen = |terms: &Terms, at: usize| through(terms, &b.value, &term, at);
    let factor = a.factor * b.factor;
    match term.name() {
        Model("Reciprocal") => {
            let by = seen(terms, 0)?;
            Some((again(terms, made, Model("Div"), &[1, 1], &[a.value.clone(), by])?, factor, 0.0))
        }
        Model("Pow") if known(&operand(terms, &term, 1)?) == Some(-0.5) => {
            let inner = seen(terms, 0)?;
            let root =
                pointwise(terms, &Op { name: Model("Sqrt"), attrs: &[1], dtype: inner.dtype }, &[&inner]).ok()?;
            let root = settled(terms, root);
            Some((again(terms, made, Model("Div"), &[1, 1], &[a.value.clone(), root])?, factor, 0.0))
        }
        Model("Div") if matches!(term.args.first(), Some(Arg::Constant { .. })) => {
            let (constant, by) = (seen(terms, 0)?, seen(terms, 1)?);
            let quotient = again(terms, made, Model("Div"), &[1, 1], &[a.value.clone(), by])?;
            Some((again(terms, made, Model("Mul"), &[1, 1], &[quotient, constant])?, factor, 0.0))
        }
        _ => None,
    }
}

/// Powers of e divided by their sum along some axes are a Softmax. What is the same along these may be subtracted in front of it.
fn shares(terms: &mut Terms, made: &Term, a: &Multiple, b: &Multiple) -> Ruled {
    let (power, sum) = (Rc::clone(terms.get(term_of(&a.value)?)), Rc::clone(terms.get(term_of(&b.value)?)));
    (power.name() == Model("Exp") && matches!(sum.name(), Model("ReduceSum" | "ReduceMean"))).then_some(())?;
    let sets: Vec<usize> = (0..made.over.len()).filter(|&axis| b.value.view[axis].is_empty()).collect();
    let op = Op { name: sum.name(), attrs: &sum.attrs, dtype: sum.dtype };
    let all = together(terms, &op, &[&a.value], &sets, true).ok()?;
    is_same(&all, &b.value).then_some(())?;
    let count = match sum.name() {
        Model("ReduceSum") => 1.0,
        _ if sets.iter().any(|&axis| terms.is_open(made.over[axis])) => return None,
        _ => sets.iter().map(|&axis| made.over[axis]).product::<i64>() as f64,
    };
    let mut x = through(terms, &a.value, &power, 0)?;
    if let Some(less) = term_of(&x).map(|term| Rc::clone(terms.get(term))).filter(|less| less.name() == Model("Sub")) {
        let alike = |y: &Value| sets.iter().all(|&axis| y.view[axis].iter().all(|digit| digit.axis == view::REPEAT));
        if through(terms, &x, &less, 1).is_some_and(|y| alike(&y)) {
            x = through(terms, &x, &less, 0)?;
        }
    }
    let y = together(terms, &Op { name: Model("Softmax"), attrs: &[], dtype: x.dtype }, &[&x], &sets, false).ok()?;
    Some((y, a.factor * count / b.factor, 0.0))
}

/// A sum, where the second operand has this factor.
fn sum(terms: &mut Terms, made: &Term, a: &Multiple, b: &Multiple, by: f64) -> Ruled {
    let same = |x: f64, y: f64| x.to_bits() == y.to_bits();
    if let Some(number) = known(&b.value).filter(|_| !a.value.is_constant()) {
        if number == 0.0 {
            return Some((a.value.clone(), a.factor, 0.0));
        }
        let (number, error) = terms.near(number * by / a.factor)?;
        return Some((binary(terms, "Add", &a.value, &scalar(number)?).ok()?, a.factor, error));
    }
    let (a, b, factor, by) =
        if is_one(by.abs()) && !is_one(a.factor) { (b, a, by, a.factor) } else { (a, b, a.factor, by) };
    let more = if same(factor.abs(), by.abs()) {
        b.value.clone()
    } else {
        let more = times(terms, &b.value, (by / factor).abs())?;
        settled(terms, more)
    };
    let name = if (factor < 0.0) == (by < 0.0) { "Add" } else { "Sub" };
    Some((again(terms, made, Model(name), &[1, 1], &[a.value.clone(), more])?, factor, 0.0))
}

/// The mean of squares less the square of the mean, which is the mean of the squares of what is left of each without the mean.
fn variance(terms: &mut Terms, a: &Multiple, b: &Multiple) -> Ruled {
    let twice = |terms: &Terms, y: &Value| -> Option<Value> {
        let made = Rc::clone(terms.get(term_of(y)?));
        let [x, z] = [0, 1].map(|at| through(terms, y, &made, at).filter(|_| made.name() == Model("Mul")));
        x.filter(|x| z.is_some_and(|z| is_same(x, &z)))
    };
    let mean = Rc::clone(terms.get(term_of(&a.value)?));
    (mean.name() == Model("ReduceMean") && a.factor.to_bits() == b.factor.to_bits()).then_some(())?;
    let (squares, sets) = (operand(terms, &mean, 0)?, summed(&mean));
    let x = twice(terms, &squares)?;
    let middle = averaged(terms, &x, &sets)?;
    let seen = |y: &Value| -> Option<Value> {
        let y = without(y.clone(), &sets);
        Some(Value { view: view::composed(&a.value.view, &y.view)?, ..y })
    };
    is_same(&seen(&middle)?, &twice(terms, &b.value)?).then_some(())?;
    let centred = binary(terms, "Sub", &x, &middle).ok()?;
    let centred = settled(terms, centred);
    let squares = binary(terms, "Mul", &centred, &centred).ok()?;
    let squares = settled(terms, squares);
    let y = averaged(terms, &squares, &sets)?;
    Some((seen(&y)?, a.factor, 0.0))
}

/// Whether two values are one term, seen alike.
fn is_same(a: &Value, b: &Value) -> bool {
    term_of(a).is_some() && term_of(a) == term_of(b) && a.view == b.view
}

/// The mean over some axes, which stay with one place. A mean of means is a mean, and a number comes out of it.
fn averaged(terms: &mut Terms, x: &Value, sets: &[usize]) -> Option<Value> {
    if let Some(term) = term_of(x).map(|term| Rc::clone(terms.get(term))) {
        if let (Model("Add"), Some(number)) = (term.name(), operand(terms, &term, 1).and_then(|by| known(&by))) {
            let inner = through(terms, x, &term, 0)?;
            let y = averaged(terms, &inner, sets)?;
            return binary(terms, "Add", &y, &scalar(number)?).ok();
        }
        if term.name() == Model("ReduceMean") {
            let inner = operand(terms, &term, 0)?;
            let (mut over, mut kept) = (Vec::new(), View::new());
            for (digits, class) in inner.view.iter().zip(&term.class) {
                if *class == Class::Acted { &mut over } else { &mut kept }.push(digits.clone());
            }
            let mut view = view::composed(&x.view, &kept)?;
            let (rank, mut all) = (view.len(), sets.to_vec());
            all.extend(rank..rank + over.len());
            view.extend(over);
            let mut y = averaged(terms, &Value { view, ..inner }, &all)?;
            y.view.truncate(rank);
            return Some(y);
        }
    }
    let op = Op { name: Model("ReduceMean"), attrs: &[], dtype: x.dtype };
    let y = together(terms, &op, &[x], sets, true).ok()?;
    Some(settled(terms, y))
}

/// What a value is a multiple of, and by which number.
fn scaled(terms: &Terms, x: &Value) -> Option<(Value, f64)> {
    let made = Rc::clone(terms.get(term_of(x)?));
    if !matches!(made.name(), Model("Mul" | "Div")) {
        return None;
    }
    let by = known(&operand(terms, &made, 1)?).filter(|by| by.is_finite() && by.abs() > 0.0)?;
    let inner = through(terms, x, &made, 0).filter(|inner| !inner.is_constant())?;
    Some((inner, if made.name() == Model("Mul") { by } else { 1.0 / by }))
}

/// Halves that floats are rounded to, which are the floats over the reals: the same of the real form of these.
fn rounded(terms: &mut Terms, made: &Term, bound: u32) -> Option<RealForm> {
    let floats = multiple(terms, made, 0, bound).filter(|floats| floats.value.dtype == FLOAT)?;
    let x = times(terms, &floats.value, floats.factor)?;
    let y = as_halves(terms, x, made.dtype)?;
    let y = settled(terms, y);
    in_place(terms, &made.base, (y, 1.0, floats.bound))
}

/// Floats as the type that they were made of, or rounded to it.
fn as_halves(terms: &mut Terms, floats: Value, dtype: u8) -> Option<Value> {
    let halves = term_of(&floats).and_then(|term| of_halves(terms, terms.get(term)));
    if let Some(halves) = halves.filter(|halves| terms.get(*halves).dtype == dtype) {
        return Some(Value { source: Source::Term(halves), dtype, ..floats });
    }
    pointwise(terms, &Op { name: Model("Cast"), attrs: &[], dtype }, &[&floats]).ok()
}

/// A normalization as ONNX defines it: (x - mean) / sqrt(mean of squares + epsilon), times a scale, plus a shift. What the input has in
/// other ops is that.
fn normalized(terms: &mut Terms, made: &Term, operands: &[Value]) -> Option<Value> {
    let x = operands.first().filter(|x| x.dtype == FLOAT)?;
    let epsilon = epsilon(&made.attrs)?;
    let sets = summed(made);
    let middle = averaged(terms, x, &sets)?;
    let middle = terms.real(middle);
    let centred = as_input(terms, "Sub", x, &middle)?;
    let squares = as_input(terms, "Mul", &centred, &centred)?;
    let variance = averaged(terms, &squares, &sets)?;
    terms.addends.push(epsilon);
    let variance = terms.real(variance);
    let sum = as_input(terms, "Add", &variance, &scalar(epsilon)?)?;
    let deviation = pointwise(terms, &Op { name: Model("Sqrt"), attrs: &[1], dtype: x.dtype }, &[&sum]).ok()?;
    let deviation = terms.real(deviation);
    let mut y = as_input(terms, "Div", &centred, &deviation)?;
    for (by, name) in operands.iter().skip(1).zip(["Mul", "Add"]) {
        y = as_input(terms, name, &y, by)?;
    }
    Some(y)
}

/// An op of two operands, as the input has it if that is the same over the reals.
fn as_input(terms: &mut Terms, name: &str, a: &Value, b: &Value) -> Option<Value> {
    let y = binary(terms, name, a, b).ok()?;
    Some(terms.real(y))
}
