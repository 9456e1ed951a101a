//! Ops that leave an operand as it is, or make the same number of all that there is: they need no term of their own. Every bit stays, but
//! for the sign of what is no number.

use super::Call;
use super::each::BOOL;
use crate::files::model::width;
use crate::lemmas::real::through;
use crate::terms::align::{broadcast, term_of};
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
        "Not" | "Neg" => under(call.terms, call.input(0)?, call.op),
        "And" | "Or" => by_truth(call),
        "Where" => chosen(call),
        "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" => compared(call),
        "Sub" => of_itself(call).filter(|x| is_integer(x.dtype)).and_then(|x| zero(x.dtype)?.expanded(&x.shape())),
        "Mul" => times_zero(call).or_else(|| squared(call)),
        "Mod" => again(call),
        _ => None,
    }
}

fn is_integer(dtype: u8) -> bool {
    matches!(dtype, 2..=7 | 12 | 13)
}

fn zero(dtype: u8) -> Option<Value> {
    Some(Value::constant(dtype, &[], vec![0; width(dtype)?].into()))
}

/// What an op of this name made a value of, seen as the value is.
fn under(terms: &Terms, x: &Value, op: &str) -> Option<Value> {
    let made = Rc::clone(terms.get(term_of(x)?));
    through(terms, x, &made, 0).filter(|inner| made.name() == Name::Model(op) && inner.dtype == x.dtype)
}

/// The operand, if both are one.
fn of_itself(call: &mut Call<'_>) -> Option<Value> {
    let [Some(x), Some(y)] = call.inputs else { return None };
    (call.terms.same(x, y) == Some(true)).then(|| x.clone())
}

/// A truth value that a constant has everywhere.
fn truth(value: &Value) -> Option<bool> {
    let one = value.splat().filter(|_| value.dtype == BOOL)?.elements()?;
    matches!(one.as_ref(), [0 | 1]).then(|| one[0] == 1)
}

fn by_truth(call: &Call<'_>) -> Option<Value> {
    let (x, y) = (call.input(0)?, call.input(1)?);
    let (shape, _) = broadcast(&[x, y]).filter(|_| [x, y].iter().all(|value| value.dtype == BOOL))?;
    let (known, constant, other) = match (truth(x), truth(y)) {
        (Some(known), _) => (known, x, y),
        (None, known) => (known?, y, x),
    };
    let kept = if known == (call.op == "And") { other.clone() } else { constant.splat()? };
    kept.expanded(&shape)
}

fn chosen(call: &mut Call<'_>) -> Option<Value> {
    let [Some(condition), Some(yes), Some(no)] = call.inputs else { return None };
    let (shape, _) = broadcast(&[condition, yes, no]).filter(|_| yes.dtype == no.dtype && condition.dtype == BOOL)?;
    if call.terms.same(yes, no) == Some(true) {
        return yes.expanded(&shape);
    }
    if let Some(known) = truth(condition) {
        return if known { yes } else { no }.expanded(&shape);
    }
    let other = under(call.terms, condition, "Not")?;
    call.inner("Where", &[], &[Some(other), Some(no.clone()), Some(yes.clone())]).ok()
}

/// What is no number does not equal itself.
fn compared(call: &mut Call<'_>) -> Option<Value> {
    let holds = !matches!(call.op, "Greater" | "Less");
    let x = of_itself(call).filter(|x| !holds || is_integer(x.dtype) || x.dtype == BOOL)?;
    Value::constant(BOOL, &[], vec![u8::from(holds)].into()).expanded(&x.shape())
}

fn times_zero(call: &Call<'_>) -> Option<Value> {
    let (x, y) = (call.input(0)?, call.input(1)?);
    let (shape, _) = broadcast(&[x, y]).filter(|_| is_integer(x.dtype) && x.dtype == y.dtype)?;
    let nought = |value: &&&Value| value.splat().and_then(|one| one.zero()) == Some(true);
    [x, y].iter().find(nought)?.splat()?.expanded(&shape)
}

/// A magnitude times itself is what it is of times itself.
fn squared(call: &mut Call<'_>) -> Option<Value> {
    let x = of_itself(call)?;
    let inner = Some(under(call.terms, &x, "Abs")?);
    call.inner("Mul", &[], &[inner.clone(), inner]).ok()
}

/// A rest of a rest by the same number.
fn again(call: &mut Call<'_>) -> Option<Value> {
    let [Some(x), Some(by)] = call.inputs else { return None };
    let made = Rc::clone(call.terms.get(term_of(x)?));
    let told = [call.with_defaults().ok()?, vec![1, 1]].concat();
    let alike = made.name() == Name::Model("Mod") && made.attrs == told && is_integer(x.dtype);
    let before = through(call.terms, x, &made, 1).filter(|_| alike && made.args.len() == 2)?;
    let (shape, _) = broadcast(&[x, by])?;
    let by = by.expanded(&shape).filter(|_| shape == x.shape())?;
    (call.terms.same(&before, &by) == Some(true)).then(|| x.clone())
}
