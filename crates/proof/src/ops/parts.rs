//! Parts of a product of matrices: where constants were joined to one operand, a part of what is made is the product with a part of it.

use crate::lemmas::real::operand;
use crate::terms::align::{Class, term_of};
use crate::terms::name::Own;
use crate::terms::pointwise::contract;
use crate::terms::state::Terms;
use crate::terms::value::Value;
use crate::terms::view::{self, Digit, normal};
use std::rc::Rc;

/// Neighbouring indices of an axis of a product that only a constant has. They are the product with these indices of the constant.
pub(super) fn of_product(terms: &mut Terms, x: &Value, axis: usize, indices: &[i64]) -> Option<Value> {
    let made = Rc::clone(terms.get(term_of(x)?));
    let [digit] = x.view.get(axis)?.as_slice() else { return None };
    let own = usize::try_from(digit.axis).ok().filter(|_| made.is(Own::Contract))?;
    let whole = |extent: i64| normal([Digit { axis: digit.axis, extent, stride: 1 }]);
    let others = x.view.iter().enumerate().filter(|(at, _)| *at != axis);
    let alone = others.flat_map(|(_, digits)| digits).all(|other| other.axis != digit.axis);
    let (first, count) = (*indices.first()?, indices.len() as i64);
    let run = indices.iter().enumerate().all(|(at, index)| first + at as i64 == *index);
    (run && alone && x.view[axis] == whole(*made.base.get(own)?)).then_some(())?;
    let over = made.alike().nth(own)?;
    let mut both = [operand(terms, &made, 0)?, operand(terms, &made, 1)?];
    let has = both.each_ref().map(|value| !value.view[over].is_empty());
    let at = has.iter().position(|has| *has)?;
    (both[at].is_constant() && has != [true, true]).then_some(())?;
    both[at] = both[at].part(over, first, count)?;
    let mut shape = made.over.clone();
    shape[over] = count;
    let sums: Vec<usize> = (0..shape.len()).filter(|axis| made.class[*axis] == Class::Acted).collect();
    let [a, b] = &both;
    let mut y = contract(terms, &shape, (a, a.view.clone()), (b, b.view.clone()), &sums).ok()?;
    let mut axes = 0..;
    y.view.retain(|_| axes.next().is_some_and(|axis| !sums.contains(&axis)));
    let mut view = x.view.clone();
    view[axis] = whole(count);
    Some(Value { view: view::composed(&view, &y.view)?, ..y })
}
