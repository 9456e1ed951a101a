//! Ops that treat all indices of their broadcast operands alike, or some of them as a set.

use crate::terms::align::{broadcast, term_of};
use crate::terms::arg::Op;
use crate::terms::name::{Name, Own};
use crate::terms::state::Terms;
use crate::terms::value::Value;
use crate::terms::view::{Digit, View};

/// A value, or why there is none.
pub(crate) type Made = Result<Value, String>;

/// An op that treats all indices of its broadcast operands alike.
pub(crate) fn pointwise(terms: &mut Terms, op: &Op<'_>, operands: &[&Value]) -> Made {
    together(terms, op, operands, &[], false)
}

/// The same, but for axes whose indices it takes as a set.
pub(crate) fn together(terms: &mut Terms, op: &Op<'_>, operands: &[&Value], axes: &[usize], dropped: bool) -> Made {
    let Some((shape, padded)) = broadcast(operands) else {
        if let Some(wide) = terms.stretched(operands, None) {
            return together(terms, op, &wide.iter().collect::<Vec<_>>(), axes, dropped);
        }
        apart(terms, operands);
        return Err(shapes(operands, "do not broadcast"));
    };
    over(terms, op, &shape, &padded, axes, dropped)
}

/// An op of two operands and no attributes, as the table of pointwise ops has it.
pub(crate) fn binary(terms: &mut Terms, name: &str, a: &Value, b: &Value) -> Made {
    pointwise(terms, &Op { name: Name::Model(name), attrs: &[1, 1], dtype: a.dtype }, &[a, b])
}

/// The sum of products over the axis `sum` of the common axes.
pub(crate) fn contract(terms: &mut Terms, shape: &[i64], a: (&Value, View), b: (&Value, View), sums: &[usize]) -> Made {
    let dtype = a.0.dtype;
    over(terms, &Op { name: Name::Own(Own::Contract), attrs: &[], dtype }, shape, &[a, b], sums, true)
}

/// Operands whose axes are counted in ways that no common digits say.
const APART: &str = "have axes that do not split alike";

/// Whether a message says that operands fit, and that no digits say how. Other sizes may have some.
pub(crate) fn is_apart(why: &str) -> bool {
    why.ends_with(APART)
}

/// Notes two extents of operands that keep these from broadcasting.
fn apart(terms: &mut Terms, operands: &[&Value]) {
    let extent = |value: &Value, back: usize| value.rank().checked_sub(back).map(|axis| (axis, value.shape()[axis]));
    for back in 1..=operands.iter().map(|value| value.rank()).max().unwrap_or(0) {
        let wide = |value: &&&Value| extent(value, back).is_some_and(|(_, extent)| extent != 1);
        let found: Vec<&&Value> = operands.iter().filter(wide).collect();
        let fixed = found.iter().copied().find(|value| value.is_constant()).or(found.first().copied());
        let Some((fixed, (axis, wanted))) = fixed.and_then(|value| Some((value, extent(value, back)?))) else {
            continue;
        };
        let other =
            found.iter().find_map(|value| extent(value, back).filter(|(_, e)| *e != wanted).map(|e| (value, e.0)));
        if let Some((other, at)) = other {
            terms.mismatch((other, at), (fixed, axis));
            return;
        }
    }
}

pub(crate) fn over(
    terms: &mut Terms,
    op: &Op<'_>,
    shape: &[i64],
    operands: &[(&Value, View)],
    axes: &[usize],
    dropped: bool,
) -> Made {
    let fits = |(_, view): &(&Value, View)| {
        let extents = crate::terms::view::shape(view);
        extents.len() == shape.len() && extents.iter().zip(shape).all(|(have, all)| *have == 1 || have == all)
    };
    let what = if operands.iter().all(fits) { APART } else { "do not fit" };
    let split = || shapes(&operands.iter().map(|(v, _)| *v).collect::<Vec<_>>(), what);
    let made = terms.each(op, shape, operands, axes, dropped);
    made.or_else(|| as_they_lie(terms, op, shape, operands, axes, dropped)).ok_or_else(split)
}

/// The same where no common digits say the axes of the operands: these are taken as they lie, in an order of axes that does not depend on
/// how they do. Axes of one place are left out.
fn as_they_lie(
    terms: &mut Terms,
    op: &Op<'_>,
    shape: &[i64],
    operands: &[(&Value, View)],
    axes: &[usize],
    dropped: bool,
) -> Option<Value> {
    terms.apart.then_some(())?;
    let mut values: Vec<Value> =
        operands.iter().map(|(v, view)| Value { view: view.clone(), ..(*v).clone() }).collect();
    if op.name.commutes() {
        values.sort_by_key(|value| term_of(value).unwrap_or(u32::MAX));
    }
    let order =
        ordered(&values.iter().collect::<Vec<_>>(), (0..shape.len()).filter(|&axis| shape[axis] != 1).collect());
    let seen =
        |value: &Value| Value { view: order.iter().map(|&axis| value.view[axis].clone()).collect(), ..value.clone() };
    let values: Vec<Value> = values.iter().map(seen).collect();
    let gone = |axis: &usize| dropped && axes.contains(axis);
    let made: Vec<i64> = order.iter().map(|axis| if gone(axis) { 1 } else { shape[*axis] }).collect();
    let name = op.name.to_string();
    let sets: Vec<u8> = order.iter().map(|axis| u8::from(axes.contains(axis))).collect();
    let attrs = [op.attrs, &sets, &[u8::from(dropped)]].concat();
    let operands: Vec<Option<&Value>> = values.iter().map(Some).collect();
    let y = terms
        .placed(&Op { name: Name::AsItLies(&name), attrs: &attrs, ..*op }, &operands, &[(made, op.dtype)])?
        .pop()?;
    let mut view: View = vec![Vec::new(); shape.len()];
    order.iter().zip(&y.view).for_each(|(&axis, digits)| view[axis].clone_from(digits));
    Some(Value { view, ..y })
}

fn shapes(operands: &[&Value], what: &str) -> String {
    let shapes: Vec<String> = operands.iter().map(|v| format!("{:?}", v.shape())).collect();
    format!("operands of {} {what}", shapes.join(", "))
}

/// What an axis of a value counts along first.
fn key(value: &Value, axis: usize) -> (u32, i64) {
    let first = value.view[axis].first().filter(|_| !value.is_constant());
    first.map_or((u32::MAX, 0), |&Digit { axis, stride, .. }| (axis, -stride))
}

/// Axes in the order of what values are made of, by the first of them that says it.
pub(crate) fn ordered(values: &[&Value], mut axes: Vec<usize>) -> Vec<usize> {
    axes.sort_by_key(|&axis| values.iter().map(|value| key(value, axis)).collect::<Vec<_>>());
    axes
}

/// The order that brings axes back.
pub(crate) fn back(order: &[usize]) -> Vec<usize> {
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(to, &from)| back[from] = to);
    back
}
