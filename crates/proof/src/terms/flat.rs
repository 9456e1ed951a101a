//! Axes that are counted as one and cut elsewhere. A reshape of 8 7 8 7 indices to 64 49 has no digits: 49 lies across a border.
//! Then the axes are one axis of a term `flat`, which is cut. An op that treats these axes alike runs before `flat`, and a reshape
//! that has the whole axis again takes `flat` away.

use crate::terms::align::{Class, acted, classes, on_axes_of};
use crate::terms::arg::{Acted, Arg, Op, Term};
use crate::terms::name::{Name, Own};
use crate::terms::state::Terms;
use crate::terms::value::{Source, Value};
use crate::terms::view::{self, Digit, REPEAT, View, divisor, normal, take_inner};
use std::rc::Rc;

/// The term of a value that is `flat`, and the number of the axis that was made.
fn flat_of(terms: &Terms, value: &Value) -> Option<(Rc<Term>, u32)> {
    let Source::Term(number) = value.source else { return None };
    let term = terms.get(number);
    (term.is(Own::Flat) && term.along.len() == 1).then(|| (Rc::clone(term), term.base.len() as u32 - 1))
}

/// A value with other extents, where digits do not say it.
pub(crate) fn regrouped(terms: &mut Terms, x: &Value, to: &[i64]) -> Option<Value> {
    terms.takes_layer(x).then_some(())?;
    let mut digits = normal(x.view.iter().flatten().copied());
    let mut groups = Vec::new();
    let mut at = to.len();
    while at > 0 {
        at -= 1;
        let (mut count, end) = (to[at], at + 1);
        loop {
            let mut rest = digits.clone();
            if take_inner(&mut rest, count).is_some() {
                digits = rest;
                break;
            }
            at = at.checked_sub(1)?;
            count *= to[at];
        }
        groups.push((count, at..end));
    }
    groups.reverse();
    let shape: Vec<i64> = groups.iter().map(|(count, _)| *count).collect();
    let mut y = x.reshaped(&shape)?;
    let (mut parts, mut made) = (Vec::new(), Vec::new());
    for (axis, (count, range)) in groups.iter().enumerate() {
        let joined = range.len() > 1;
        let targets = &to[range.clone()];
        let [outer, inner] = if joined { aside(&y.view[axis], targets) } else { [1, 1] };
        if joined {
            made.push(parts.len() + 1);
        }
        parts.extend(if joined { vec![outer, count / outer / inner, inner] } else { vec![*count] });
    }
    y = y.reshaped(&parts)?;
    for axis in made {
        let op = Op { name: Name::Own(Own::Flat), attrs: &[], dtype: y.dtype };
        y = terms.along(&op, &y, &[Acted { axis, told: Vec::new(), out: parts[axis] }])?;
    }
    y.reshaped(to)
}

/// How many indices at the start and at the end of an axis lie in the first and in the last of the axes that it becomes, so that what is
/// in between does not depend on what lies around it.
fn aside(digits: &[Digit], targets: &[i64]) -> [i64; 2] {
    let shared = |extents: &mut dyn Iterator<Item = i64>, target: i64| {
        let (mut left, mut all) = (target, 1);
        for extent in extents {
            let both = divisor(extent, left);
            (left, all) = (left / both, all * both);
            if both != extent {
                break;
            }
        }
        all
    };
    let ends = targets.first().zip(targets.last());
    ends.map_or([1, 1], |(first, last)| {
        let outer = shared(&mut digits.iter().map(|digit| digit.extent), *first);
        [outer, shared(&mut digits.iter().rev().map(|digit| digit.extent), *last)]
    })
}

/// The value without `flat`, if it has the whole axis in one piece.
pub(crate) fn without(terms: &Terms, value: &Value) -> Option<Value> {
    let (term, _) = flat_of(terms, value)?;
    let bare = under(&term, value)?;
    Some(without(terms, &bare).unwrap_or(bare))
}

/// The operand of an op that acts along some axes, seen as its result is, if the result has each of these axes in one piece.
pub(crate) fn under(term: &Term, value: &Value) -> Option<Value> {
    let [Arg::Term { term: inner, reads, .. }] = term.args.as_slice() else { return None };
    let kept: Vec<usize> = term.alike().collect();
    if term.base.len() != kept.len() + term.along.len() {
        return None;
    }
    let common = |digit: Digit, axis: usize| -> Digit {
        match reads[axis] {
            Some((axis, stride)) => Digit { axis, extent: digit.extent, stride: digit.stride * stride },
            None => Digit::repeat(digit.extent),
        }
    };
    let mut view = View::new();
    for axis in &value.view {
        let mut digits = Vec::new();
        for digit in axis {
            let at = digit.axis as usize;
            if digit.axis == REPEAT {
                digits.push(*digit);
            } else if let Some(&axis) = kept.get(at) {
                digits.push(common(*digit, axis));
            } else {
                let (list, _) = term.along.get(at - kept.len())?;
                if digit.stride != 1 || term.base.get(at) != Some(&digit.extent) {
                    return None;
                }
                digits.extend(list.iter().map(|d| if d.axis == REPEAT { *d } else { common(*d, d.axis as usize) }));
            }
        }
        view.push(normal(digits));
    }
    Some(Value { source: Source::Term(*inner), view, dtype: value.dtype })
}

/// Operands with those axes joined that are cut through a `flat`: the shape, the operands, and which axes were joined. `None` if no
/// operand is `flat`, or one is that these axes do not help.
pub(crate) fn joined(
    terms: &Terms,
    shape: &[i64],
    operands: &[(&Value, View)],
) -> Option<(std::ops::Range<usize>, Vec<i64>, Vec<Value>)> {
    let mut places = Vec::new();
    for (value, view) in operands {
        if let Some((_, made)) = flat_of(terms, value) {
            places.extend((0..view.len()).filter(|&axis| view[axis].iter().any(|d| d.axis == made)));
        }
    }
    let range = *places.iter().min()?..places.iter().max()? + 1;
    if range.len() < 2 {
        return None;
    }
    let mut to = shape.to_vec();
    to.splice(range.clone(), [shape[range.clone()].iter().product()]);
    let mut values = Vec::new();
    for (value, view) in operands {
        let mut whole = Value { view: view.clone(), ..(*value).clone() };
        let own = whole.shape();
        let absent = own[range.clone()].iter().all(|d| *d == 1);
        let mut wide = own.clone();
        if !absent {
            wide[range.clone()].copy_from_slice(&shape[range.clone()]);
            whole = whole.expanded(&wide)?;
        }
        wide.splice(range.clone(), [wide[range.clone()].iter().product()]);
        let merged = whole.reshaped(&wide)?;
        values.push(without(terms, &merged).unwrap_or(merged));
    }
    let gone = values
        .iter()
        .zip(operands)
        .any(|(now, (before, _))| flat_of(terms, before).is_some() && flat_of(terms, now).is_none());
    gone.then_some((range, to, values))
}

/// An op that treats places alike, of an operand that is `flat` and has all of its axes, in whatever order: it runs before `flat`.
pub(crate) fn each(
    terms: &mut Terms,
    op: &Op<'_>,
    shape: &[i64],
    operands: &[(&Value, View)],
    together: &[usize],
    dropped: bool,
) -> Option<Value> {
    let first = operands.iter().position(|(value, _)| flat_of(terms, value).is_some())?;
    let (term, made) = flat_of(terms, operands[first].0)?;
    let class = classes(shape.len(), together);
    let (views, classes) = on_axes_of(first, &term.base, shape, operands, &class)?;
    if classes[made as usize] == Class::Acted {
        return None;
    }
    let whole = |((value, _), view): (&(&Value, View), View)| Value { view, ..(*value).clone() };
    let values: Vec<Value> = operands.iter().zip(views).map(whole).collect();
    without(terms, &values[first])?;
    let values: Vec<Value> = values.into_iter().map(|value| without(terms, &value).unwrap_or(value)).collect();
    let sets = acted(&classes);
    let inner: Vec<(&Value, View)> = values.iter().map(|value| (value, value.view.clone())).collect();
    let y = terms.each(op, &term.base, &inner, &sets, dropped)?;
    let acted = Acted { axis: made as usize, told: Vec::new(), out: term.base[made as usize] };
    let y = terms.along(&Op { name: Name::Own(Own::Flat), attrs: &[], dtype: y.dtype }, &y, &[acted])?;
    let mut outer = operands[first].1.clone();
    for &axis in together.iter().filter(|_| dropped) {
        outer[axis].clear();
    }
    Some(Value { view: view::composed(&outer, &y.view)?, ..y })
}

/// The extents of a value whose axis `range.start` is cut again.
pub(crate) fn cut_again(value: &Value, range: &std::ops::Range<usize>, shape: &[i64]) -> Vec<i64> {
    let mut to = view::shape(&value.view);
    to.splice(range.start..=range.start, shape[range.clone()].iter().copied());
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(terms: &mut Terms, shape: &[i64]) -> Value {
        let op = Op { name: Name::Own(Own::Input), attrs: b"x", dtype: 1 };
        terms.placed(&op, &[], &[(shape.to_vec(), 1)]).unwrap().pop().unwrap()
    }

    #[test]
    fn a_cut_across_a_border_and_back_is_nothing() {
        let mut terms = Terms::new();
        let x = input(&mut terms, &[8, 7, 5]);
        let x = x.permuted(&[1, 0, 2]).unwrap();
        assert!(view::reshape(&x.view, &[4, 14, 5]).is_none());
        let y = regrouped(&mut terms, &x, &[4, 14, 5]).unwrap();
        assert_eq!(y.shape(), [4, 14, 5]);
        let back = without(&terms, &y.reshaped(&[56, 5]).unwrap()).unwrap();
        assert_eq!(terms.same(&back.reshaped(&[7, 8, 5]).unwrap(), &x), Some(true));
    }

    #[test]
    fn a_part_of_the_axis_stays_flat() {
        let mut terms = Terms::new();
        let x = input(&mut terms, &[8, 7]).permuted(&[1, 0]).unwrap();
        let y = regrouped(&mut terms, &x, &[4, 14]).unwrap();
        assert!(without(&terms, &y).is_none());
        let turned = y.permuted(&[1, 0]).unwrap();
        assert!(without(&terms, &turned.reshaped(&[56]).unwrap()).is_none());
    }

    #[test]
    fn what_lies_around_a_border_does_not_matter() {
        let mut terms = Terms::new();
        let x = input(&mut terms, &[2, 3, 5, 7, 4]).permuted(&[1, 0, 2, 3, 4]).unwrap();
        let apart = terms.moved(&x, &[2, 3, 35, 4]).unwrap();
        let whole = terms.moved(&x, &[2, 420]).unwrap();
        assert_eq!(terms.same(&apart.reshaped(&[2, 420]).unwrap(), &whole), Some(true));
        // A part of what lies around it is on the same side of the border, too.
        let y = input(&mut terms, &[4, 3]).permuted(&[1, 0]).unwrap();
        let less = terms.moved(&y, &[2, 3, 2]).unwrap();
        let more = terms.moved(&y, &[2, 6]).unwrap();
        assert_eq!(terms.same(&less.reshaped(&[2, 6]).unwrap(), &more), Some(true));
        assert_ne!(terms.same(&less.permuted(&[0, 2, 1]).unwrap().reshaped(&[2, 6]).unwrap(), &more), Some(true));
    }

    #[test]
    fn an_op_runs_before_axes_are_counted_as_one_and_cut_twice() {
        let mut terms = Terms::new();
        let x = input(&mut terms, &[6, 5, 2]);
        // [2 6] as one axis of channels, in blocks of 4, with the places in between.
        let blocks = |terms: &mut Terms, x: &Value| {
            let channels = x.permuted(&[2, 0, 1]).unwrap();
            let cut = terms.moved(&channels, &[3, 4, 5]).unwrap().permuted(&[0, 2, 1]).unwrap();
            terms.moved(&cut, &[12, 5]).unwrap()
        };
        let change = |terms: &mut Terms, x: &Value| {
            let relu = Op { name: Name::Model("Relu"), attrs: &[1], dtype: 1 };
            let y = crate::terms::pointwise::pointwise(terms, &relu, &[x]).unwrap();
            crate::terms::pointwise::binary(terms, "Sub", x, &y).unwrap()
        };
        let after = blocks(&mut terms, &x);
        let after = change(&mut terms, &after);
        let before = change(&mut terms, &x);
        let before = blocks(&mut terms, &before);
        assert_eq!(terms.same(&before, &after), Some(true));
    }
}
