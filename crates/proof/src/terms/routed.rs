//! Places of one axis in another order. An op that treats all places alike runs before they are put in order.

use crate::terms::align::{Class, acted, classes, on_axes_of, term_of};
use crate::terms::arg::{Acted, Op, Term};
use crate::terms::flat::under;
use crate::terms::name::{Name, Own};
use crate::terms::picked::picked;
use crate::terms::state::Terms;
use crate::terms::value::Value;
use crate::terms::view::{self, Digit, REPEAT, View};
use std::rc::Rc;

/// These places of an axis, in this order.
pub(crate) fn reordered(terms: &mut Terms, x: &Value, axis: usize, told: &[i64]) -> Option<Value> {
    if told.iter().copied().eq(0..*x.shape().get(axis)?) {
        return Some(x.clone());
    }
    let acted = Acted { axis, out: told.len() as i64, told: told.to_vec() };
    terms.along(&Op { name: Name::Own(Own::Routed), attrs: &[], dtype: x.dtype }, x, &[acted])
}

/// These indices of an axis, as nothing but that.
pub(crate) fn indices(terms: &mut Terms, x: &Value, axis: usize, told: &[i64]) -> Option<Value> {
    let acted = Acted { axis, out: told.len() as i64, told: told.to_vec() };
    terms.along(&Op { name: Name::Own(Own::Pick), attrs: &[], dtype: x.dtype }, x, &[acted])
}

/// A value whose axis is in another order: the value without that, and the order.
pub(crate) fn without(terms: &Terms, x: &Value, axis: usize) -> Option<(Value, Vec<i64>)> {
    let (term, made) = routed(terms, x)?;
    let whole = [Digit { axis: made as u32, extent: term.base[made], stride: 1 }];
    (x.view.get(axis)?.as_slice() == whole).then_some(())?;
    Some((under(&term, x)?, term.along.first()?.1.clone()))
}

/// The term of a value that is in another order, and the axis that is.
fn routed(terms: &Terms, x: &Value) -> Option<(Rc<Term>, usize)> {
    let term = terms.get(term_of(x)?);
    let made = term.base.len().checked_sub(1)?;
    (term.is(Own::Routed) && term.along.len() == 1).then(|| (Rc::clone(term), made))
}

/// An op that treats places alike, of operands in one other order: it runs before that. `None` if it is none.
pub(crate) fn each(
    terms: &mut Terms,
    op: &Op<'_>,
    shape: &[i64],
    operands: &[(&Value, View)],
    together: &[usize],
    dropped: bool,
) -> Option<Value> {
    let first = operands.iter().position(|(value, _)| routed(terms, value).is_some())?;
    let (term, made) = routed(terms, operands[first].0)?;
    let class = classes(shape.len(), together);
    let (views, classes) = on_axes_of(first, &term.base, shape, operands, &class)?;
    let (digits, told) = term.along.first().filter(|_| classes[made] == Class::Alike)?;
    let mut inner = term.base.clone();
    inner[made] = view::extent(digits);
    let mut values = Vec::new();
    for ((value, _), view) in operands.iter().zip(&views) {
        let value = Value { view: view.clone(), ..(*value).clone() };
        values.push(before(terms, value, made, told, inner[made])?);
    }
    let sets = acted(&classes);
    let plain: Vec<(&Value, View)> = values.iter().map(|value| (value, value.view.clone())).collect();
    let y = terms.each(op, &inner, &plain, &sets, dropped)?;
    let y = reordered(terms, &y, made, told)?;
    let mut outer = operands[first].1.clone();
    for &axis in together.iter().filter(|_| dropped) {
        outer[axis].clear();
    }
    Some(Value { view: view::composed(&outer, &y.view)?, ..y })
}

/// An operand as it is before the axis is put in this order.
fn before(terms: &Terms, mut x: Value, axis: usize, told: &[i64], extent: i64) -> Option<Value> {
    if x.view[axis].iter().all(|digit| digit.axis == REPEAT) {
        x.view[axis].clear();
        return Some(x);
    }
    if x.is_constant() {
        // What repeats stays one place.
        x.view.iter_mut().filter(|axis| axis.iter().all(|digit| digit.axis == REPEAT)).for_each(Vec::clear);
        let from = |place: i64| told.iter().position(|at| *at == place).map(|at| at as i64);
        let back: Vec<i64> = (0..extent).map(from).collect::<Option<_>>()?;
        return picked(&x, axis, &back).ok().filter(|_| told.len() == back.len());
    }
    let (inner, own) = without(terms, &x, axis)?;
    (own == told).then_some(inner)
}
