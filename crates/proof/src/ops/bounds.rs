//! The order of numbers: bounds and comparisons that say the same in other ops. Every bit stays, but for what bounds make of what is no
//! number, of which the standard says nothing, and for the sign of a zero.

use super::Call;
use crate::lemmas::halves::FLOAT;
use crate::lemmas::real::through;
use crate::terms::align::{broadcast, term_of};
use crate::terms::arg::numbers;
use crate::terms::name::Name;
use crate::terms::state::Terms;
use crate::terms::value::Value;
use std::rc::Rc;

/// What a pointwise op makes if it is one of these.
pub(super) fn of(call: &mut Call<'_>) -> Option<Value> {
    if call.inputs.iter().flatten().any(Value::is_opaque) {
        return None;
    }
    match call.op {
        "Greater" => turned(call, "Less"),
        "GreaterOrEqual" => turned(call, "LessOrEqual"),
        "Less" => less(call),
        "And" => both_less(call),
        "Abs" | "Ceil" | "Floor" | "Round" | "Sign" => again(call),
        "Relu" => again(call).or_else(|| bounded(call, call.inputs)),
        "Min" | "Max" => bounded(call, call.inputs).or_else(|| bounded_by_values(call)),
        _ => None,
    }
}

/// A comparison the other way round.
fn turned(call: &mut Call<'_>, op: &str) -> Option<Value> {
    let [Some(x), Some(y)] = call.inputs else { return None };
    call.inner(op, &[], &[Some(y.clone()), Some(x.clone())]).ok()
}

/// The operands of what an op of this name made a value of, seen as the value is.
pub(super) fn under<const N: usize>(terms: &Terms, x: &Value, op: &str) -> Option<[Value; N]> {
    let made = Rc::clone(terms.get(term_of(x)?));
    if made.name() != Name::Model(op) || made.args.len() != N {
        return None;
    }
    let all: Option<Vec<Value>> = (0..N).map(|at| through(terms, x, &made, at)).collect();
    all?.try_into().ok()
}

/// Both operands of an op of two, the one that is the given value first.
fn beside(terms: &mut Terms, both: &[Value; 2], one: &Value) -> Option<Value> {
    let [x, y] = both;
    match [x, y].map(|value| terms.same(value, one)) {
        [Some(true), _] => Some(y.clone()),
        [_, Some(true)] => Some(x.clone()),
        _ => None,
    }
}

/// An op that changes nothing of what it made.
fn again(call: &Call<'_>) -> Option<Value> {
    let x = call.input(0)?;
    under::<1>(call.terms, x, call.op).map(|_| x.clone())
}

/// `x < max(x, z)` is `x < z`, and `min(y, z) < y` is `z < y`, whatever the bounds make of what is no number.
fn less(call: &mut Call<'_>) -> Option<Value> {
    let [Some(x), Some(y)] = call.inputs else { return None };
    let wide = under(call.terms, y, "Max").and_then(|both| beside(call.terms, &both, x));
    if let Some(other) = wide {
        return call.inner("Less", &[], &[Some(x.clone()), Some(other)]).ok();
    }
    let both = under(call.terms, x, "Min")?;
    let other = beside(call.terms, &both, y)?;
    call.inner("Less", &[], &[Some(other), Some(y.clone())]).ok()
}

/// The number of 32 bits that a value is everywhere, and none that is no number.
fn number(value: &Value) -> Option<f32> {
    let one = value.splat().filter(|_| value.dtype == FLOAT)?;
    numbers(&one)?.first().map(|&number| number as f32).filter(|number| !number.is_nan())
}

/// `x < c` and `x < d` is `x` less than the smaller of both, and so it is of `c < x` and `d < x` with the larger.
fn both_less(call: &mut Call<'_>) -> Option<Value> {
    let [Some(a), Some(b)] = call.inputs else { return None };
    let [a, b] = [under::<2>(call.terms, a, "Less")?, under::<2>(call.terms, b, "Less")?];
    for (free, known) in [(0, 1), (1, 0)] {
        let Some((c, d)) = number(&a[known]).zip(number(&b[known])) else { continue };
        if call.terms.same(&a[free], &b[free]) == Some(true) {
            let first = if known == 1 { c <= d } else { c >= d };
            let kept = if first { a } else { b }.map(Some);
            return call.inner("Less", &[], &kept).ok();
        }
    }
    None
}

/// What a value is between, and the value: numbers below and above.
struct Bounded {
    x: Value,
    least: f32,
    most: f32,
}

impl Bounded {
    /// What an op makes of these operands, if its bounds are known and the lower one is not above the other.
    fn by(op: &str, operands: &[Option<Value>]) -> Option<Bounded> {
        let given = |at: usize| operands.get(at).and_then(Option::as_ref);
        let (first, free) = (given(0)?, f32::INFINITY);
        let bound = |at: usize, none: f32| given(at).map_or(Some(none), number);
        let (x, least, most) = match (op, operands.len()) {
            ("Relu", 1) => (first, 0.0, free),
            ("Clip", _) => (first, bound(1, -free)?, bound(2, free)?),
            ("Max" | "Min", 2) => {
                let second = given(1)?;
                let (x, by) = number(second).map(|by| (first, by)).or_else(|| Some((second, number(first)?)))?;
                if op == "Max" { (x, by, free) } else { (x, -free, by) }
            }
            _ => return None,
        };
        let fits = x.dtype == FLOAT && !x.is_constant() && least <= most;
        fits.then(|| Bounded { x: x.clone(), least, most })
    }

    /// What made a value.
    fn made(terms: &Terms, x: &Value) -> Option<Bounded> {
        let made = Rc::clone(terms.get(term_of(x)?));
        let Name::Model(op @ ("Relu" | "Clip" | "Max" | "Min")) = made.name() else { return None };
        let mut operands: Vec<Option<Value>> =
            (0..made.args.len()).map(|at| through(terms, x, &made, at).map(Some)).collect::<Option<_>>()?;
        // The last of what it is told are whether it has bounds.
        if op == "Clip" && made.attrs.ends_with(&[1, 0, 1]) {
            operands.insert(1, None);
        }
        Bounded::by(op, &operands)
    }
}

/// The larger or the smaller of two numbers.
fn known(op: &str, operands: &[Option<Value>]) -> Option<Value> {
    let [Some(x), Some(y)] = operands else { return None };
    let (one, other) = (number(x)?, number(y)?);
    let made = match op {
        "Max" => one.max(other),
        "Min" => one.min(other),
        _ => return None,
    };
    let (shape, _) = broadcast(&[x, y])?;
    Value::constant(FLOAT, &[], made.to_le_bytes().to_vec().into()).expanded(&shape)
}

/// A value between bounds without end, and one between bounds that is put between others: that is between the first bounds, put between
/// the second ones.
pub(super) fn bounded(call: &mut Call<'_>, operands: &[Option<Value>]) -> Option<Value> {
    if let Some(y) = known(call.op, operands) {
        return Some(y);
    }
    let outer = Bounded::by(call.op, operands)?;
    // No bound gives the value more places.
    let shape = outer.x.shape();
    operands.iter().flatten().all(|value| value.expanded(&shape).is_some()).then_some(())?;
    if outer.least == -f32::INFINITY && outer.most == f32::INFINITY {
        return Some(outer.x);
    }
    let inner = Bounded::made(call.terms, &outer.x)?;
    let [least, most] = [inner.least, inner.most].map(|bound| bound.clamp(outer.least, outer.most));
    if least == 0.0 && most == f32::INFINITY {
        return call.inner("Relu", &[], &[Some(inner.x)]).ok();
    }
    let bound = |number: f32| {
        let value = Value::constant(FLOAT, &[], number.to_le_bytes().to_vec().into());
        number.is_finite().then_some(value)
    };
    call.inner("Clip", &[], &[Some(inner.x), bound(least), bound(most)]).ok()
}

/// `min(max(min(max(x, c), d), c), d)`: what was put between these values stays between them.
fn bounded_by_values(call: &mut Call<'_>) -> Option<Value> {
    let [Some(a), Some(b)] = call.inputs else { return None };
    (call.op == "Min").then_some(())?;
    for (wide, most) in [(a, b), (b, a)] {
        let Some(sides) = under::<2>(call.terms, wide, "Max") else { continue };
        for (inner, least) in [(0, 1), (1, 0)] {
            let (inner, least) = (&sides[inner], &sides[least]);
            let before = under(call.terms, inner, "Min").and_then(|both| beside(call.terms, &both, most));
            let first = before.and_then(|before| under(call.terms, &before, "Max"));
            if first.is_some_and(|both| beside(call.terms, &both, least).is_some()) {
                return Some(inner.clone());
            }
        }
    }
    None
}
