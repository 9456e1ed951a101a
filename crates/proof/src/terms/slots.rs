//! Slots: places along an axis that hold nothing of the value, as in channels that are rounded up to blocks.
//!
//! A value with slots is a term `slots` of the value without them. It says which places are real, and what the others hold: zeros,
//! or finite numbers that nobody knows. The latter have a name of their own each, so that no two of them are ever taken for equal. An
//! op that treats all places alike runs before the slots are put in.

use crate::files::model::width;
use crate::terms::align::{acted, classes, on_axes_of, term_of};
use crate::terms::arg::{Acted, Op, Term, numbers};
use crate::terms::flat::under;
use crate::terms::name::{Name, Own};
use crate::terms::picked::picked;
use crate::terms::state::Terms;
use crate::terms::value::Value;
use crate::terms::view::{self, View};
use std::rc::Rc;

/// What slots hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    Zero,
    /// Finite numbers.
    Unknown,
}

/// Real places of an axis: (first, number) of each run.
pub(crate) type Runs = Vec<(i64, i64)>;

/// A value without the slots of one axis.
pub(crate) struct Stripped {
    pub(crate) value: Value,
    pub(crate) runs: Runs,
    pub(crate) fill: Fill,
}

/// Runs with neighbours joined.
pub(crate) fn joined(runs: impl IntoIterator<Item = (i64, i64)>) -> Runs {
    let mut list = Runs::new();
    for (start, count) in runs.into_iter().filter(|run| run.1 > 0) {
        match list.last_mut() {
            Some(last) if last.0 + last.1 == start => last.1 += count,
            _ => list.push((start, count)),
        }
    }
    list
}

/// The real places one by one.
pub(crate) fn places(runs: &Runs) -> Vec<i64> {
    runs.iter().flat_map(|&(start, count)| start..start + count).collect()
}

/// Puts slots into an axis, which then has `extent` places.
pub(crate) fn filled(terms: &mut Terms, x: &Value, axis: usize, runs: &Runs, extent: i64, fill: Fill) -> Option<Value> {
    let real: i64 = runs.iter().map(|run| run.1).sum();
    if *x.shape().get(axis)? != real || runs.last().is_none_or(|(start, count)| start + count > extent) {
        return None;
    }
    if real == extent {
        return Some(x.clone());
    }
    if x.is_constant() {
        return (fill == Fill::Zero).then(|| constant(x, axis, runs, extent)).flatten();
    }
    terms.takes_layer(x).then_some(())?;
    let attrs = match fill {
        Fill::Zero => Vec::new(),
        Fill::Unknown => terms.fresh().to_le_bytes().to_vec(),
    };
    let told = runs.iter().flat_map(|&(start, count)| [start, count]).collect();
    terms.along(
        &Op { name: Name::Own(Own::Slots), attrs: &attrs, dtype: x.dtype },
        x,
        &[Acted { axis, told, out: extent }],
    )
}

fn constant(x: &Value, axis: usize, runs: &Runs, extent: i64) -> Option<Value> {
    let (mut shape, bytes) = (x.shape(), x.elements()?);
    let inner = shape[axis + 1..].iter().product::<i64>() as usize * width(x.dtype)?;
    let outer: i64 = shape[..axis].iter().product();
    let mut data = vec![0; outer as usize * extent as usize * inner];
    let (from, real) = (places(runs), shape[axis] as usize);
    for block in 0..outer as usize {
        for (at, place) in from.iter().enumerate() {
            let (to, have) = ((block * extent as usize + *place as usize) * inner, (block * real + at) * inner);
            data[to..to + inner].copy_from_slice(&bytes[have..have + inner]);
        }
    }
    shape[axis] = extent;
    Some(Value::constant(x.dtype, &shape, data.into()))
}

/// A value without the slots of an axis, if it has any and has that axis in one piece. Zeros that a Pad put at the end are slots too.
pub(crate) fn stripped(terms: &Terms, x: &Value, axis: usize) -> Option<Stripped> {
    let term = Rc::clone(terms.get(term_of(x)?));
    let pads = term.name() == Name::Model("Pad") && term.attrs == b"constant";
    if !(pads || term.is(Own::Slots)) || term.along.len() != 1 {
        return None;
    }
    let made = term.base.len() as u32 - 1;
    if let Some(found) = in_each_part(&term, x, axis).filter(|_| !pads) {
        return Some(found);
    }
    if x.view.get(axis)?.as_slice() != [view::Digit { axis: made, extent: term.base[made as usize], stride: 1 }] {
        return None;
    }
    let value = under(&term, x)?;
    let (_, told) = term.along.first()?;
    if terms.is_open(term.base[made as usize]) {
        return None;
    }
    let runs = match (pads, told.as_slice()) {
        (true, [before, after]) if *before >= 0 && *after >= 0 => vec![(*before, *value.shape().get(axis)?)],
        (true, _) => return None,
        (false, told) => told.chunks_exact(2).map(|run| (run[0], run[1])).collect(),
    };
    let fill = if term.attrs.is_empty() || pads { Fill::Zero } else { Fill::Unknown };
    Some(Stripped { value, runs, fill })
}

/// The same for an axis that is the inner part of the one with slots, if each part has its slots at the same places. The outer part, as
/// that of the slices of a volume, may be anywhere else.
fn in_each_part(term: &Term, x: &Value, axis: usize) -> Option<Stripped> {
    let made = term.base.len().checked_sub(1)?;
    let &[view::Digit { axis: read, extent, stride: 1 }] = x.view.get(axis)?.as_slice() else { return None };
    let whole = term.base[made];
    (read as usize == made && extent > 0 && extent < whole && whole % extent == 0).then_some(())?;
    let (_, told) = term.along.first()?;
    let real: Vec<i64> = told.chunks_exact(2).flat_map(|run| run[0]..run[0] + run[1]).collect();
    let in_part = |part: i64| -> Vec<i64> {
        real.iter().filter(|place| **place / extent == part).map(|place| place % extent).collect()
    };
    let first = in_part(0);
    (!first.is_empty() && (1..whole / extent).all(|part| in_part(part) == first)).then_some(())?;
    let count = first.len() as i64;
    let mut outer = x.view.clone();
    outer[axis] = view::normal([view::Digit { extent: count, ..x.view[axis][0] }]);
    for (_, digits) in outer.iter_mut().enumerate().filter(|(at, _)| *at != axis) {
        for digit in digits.iter_mut().filter(|digit| digit.axis == read) {
            (digit.stride % extent == 0).then_some(())?;
            digit.stride = digit.stride / extent * count;
        }
    }
    let bare = Value { view: view::identity(&term.base).1, ..x.clone() };
    let inner = under(term, &bare)?;
    let value = Value { view: view::composed(&outer, &inner.view)?, ..inner };
    let fill = if term.attrs.is_empty() { Fill::Zero } else { Fill::Unknown };
    Some(Stripped { value, runs: joined(first.into_iter().map(|place| (place, 1))), fill })
}

/// The same as a value of its own with all places real, if it has no slots.
pub(crate) fn bare(terms: &Terms, x: &Value, axis: usize) -> Option<Stripped> {
    let whole = || Some(Stripped { value: x.clone(), runs: vec![(0, *x.shape().get(axis)?)], fill: Fill::Zero });
    stripped(terms, x, axis).or_else(whole)
}

/// An op that treats places alike, of operands with slots: it runs before they are put in. `None` if it is none, or if what it makes of
/// slots is not known to be finite.
pub(crate) fn each(
    terms: &mut Terms,
    op: &Op<'_>,
    shape: &[i64],
    operands: &[(&Value, View)],
    together: &[usize],
    dropped: bool,
) -> Option<Value> {
    let slotted = |(value, _): &(&Value, View)| term_of(value).is_some_and(|term| terms.get(term).is(Own::Slots));
    let first = operands.iter().position(slotted)?;
    let base = terms.get(term_of(operands[first].0)?).base.clone();
    let class = classes(shape.len(), together);
    let (views, classes) = on_axes_of(first, &base, shape, operands, &class)?;
    let made = base.len() - 1;
    let runs = stripped(terms, &whole(operands[first].0, &views[first]), made)?.runs;
    let (mut values, mut fills) = (Vec::new(), Vec::new());
    for ((value, _), view) in operands.iter().zip(&views) {
        let (inner, fill) = without(terms, &whole(value, view), made, &runs)?;
        values.push(inner);
        fills.push(fill);
    }
    let fill = made_of(op, &fills, operands)?;
    let sets = acted(&classes);
    if sets.contains(&made) {
        return None;
    }
    let mut inner = base.clone();
    inner[made] = runs.iter().map(|run| run.1).sum();
    let inner_operands: Vec<(&Value, View)> = values.iter().map(|v| (v, v.view.clone())).collect();
    let y = terms.each(op, &inner, &inner_operands, &sets, dropped)?;
    let y = filled(terms, &y, made, &runs, base[made], fill)?;
    let mut outer = operands[first].1.clone();
    if dropped {
        for &axis in together {
            outer[axis].clear();
        }
    }
    Some(Value { view: view::composed(&outer, &y.view)?, ..y })
}

fn whole(value: &Value, view: &View) -> Value {
    Value { view: view.clone(), ..value.clone() }
}

/// An operand without its slots, and what they hold; `None` for the fill if all its places are real.
fn without(terms: &Terms, x: &Value, axis: usize, runs: &Runs) -> Option<(Value, Option<Fill>)> {
    let digits = &x.view[axis];
    if digits.iter().all(|d| d.axis == view::REPEAT) {
        let mut x = x.clone();
        x.view[axis].clear();
        return Some((x, None));
    }
    if x.is_constant() {
        let real = places(runs);
        let others: Vec<i64> = (0..view::extent(digits)).filter(|place| !real.contains(place)).collect();
        // What repeats is looked at once.
        let mut once = x.clone();
        once.view.iter_mut().filter(|axis| axis.iter().all(|d| d.axis == view::REPEAT)).for_each(Vec::clear);
        let held = picked(&once, axis, &others).ok()?;
        let zero = held.elements()?.iter().all(|b| *b == 0);
        let fill = if zero { Fill::Zero } else { Fill::Unknown };
        let finite = numbers(&held)?.iter().all(|v| v.is_finite());
        let kept = picked(&once, axis, &real).ok().filter(|_| finite)?;
        let mut shape = x.shape();
        shape[axis] = real.len() as i64;
        return Some((kept.expanded(&shape)?, Some(fill)));
    }
    let found = stripped(terms, x, axis)?;
    (found.runs == *runs).then_some((found.value, Some(found.fill)))
}

/// Ops of one operand that are zero at zero, and finite for finite numbers.
const ZERO_AT_ZERO: &[&str] = &[
    "Abs",
    "Ceil",
    "Celu",
    "Elu",
    "Erf",
    "Floor",
    "Gelu",
    "HardSwish",
    "LeakyRelu",
    "Mish",
    "Neg",
    "Relu",
    "Round",
    "Selu",
    "Sign",
    "Softsign",
    "Tanh",
    "com.microsoft.Gelu",
    "com.microsoft.QuickGelu",
];

/// What an op makes of slots; `None` if that may be no finite number.
fn made_of(op: &Op<'_>, fills: &[Option<Fill>], operands: &[(&Value, View)]) -> Option<Fill> {
    if !is_tame(op, fills, operands) {
        return None;
    }
    let zeros = fills.iter().all(|fill| *fill == Some(Fill::Zero));
    let zero = |holds: bool| Some(if holds { Fill::Zero } else { Fill::Unknown });
    let Name::Model(name) = op.name else { return None };
    match name {
        name if ZERO_AT_ZERO.contains(&name) => zero(zeros),
        // Means and extremes are those over other axes.
        "Add" | "Sub" | "Max" | "Min" | "Sum" | "ReduceMean" | "ReduceSum" | "ReduceMax" | "ReduceMin" => zero(zeros),
        "Mul" => zero(fills.contains(&Some(Fill::Zero))),
        "PRelu" => zero(fills.first() == Some(&Some(Fill::Zero))),
        "Sigmoid" | "HardSigmoid" | "Softplus" => zero(false),
        "Clip" => {
            let starts = fills.first() == Some(&Some(Fill::Zero));
            zero(starts && matches!(op.attrs.last_chunk::<3>(), Some([1, 1, 1])) && around_zero(operands))
        }
        "Exp" => zero(false).filter(|_| zeros),
        "Sqrt" => zero(true).filter(|_| zeros),
        "Div" => {
            let [_, (by, _)] = operands else { return None };
            let nonzero = by.splat()?.elements()?.iter().any(|b| *b & 0x7f != 0);
            zero(fills.first() == Some(&Some(Fill::Zero))).filter(|_| nonzero)
        }
        _ => None,
    }
}

/// Whether constants that slots are computed with are finite. Bounds of a Clip may have no end on their side.
fn is_tame(op: &Op<'_>, fills: &[Option<Fill>], operands: &[(&Value, View)]) -> bool {
    operands.iter().zip(fills).enumerate().all(|(at, ((value, _), fill))| {
        let endless = match (op.name, op.attrs.last_chunk::<3>(), at) {
            (Name::Model("Clip"), Some([1, 1, _]), 1) => f64::NEG_INFINITY,
            (Name::Model("Clip"), ..) => f64::INFINITY,
            _ => 0.0,
        };
        let tame = |number: &f64| number.is_finite() || number.total_cmp(&endless).is_eq();
        fill.is_some() || !value.is_constant() || numbers(value).is_some_and(|list| list.iter().all(tame))
    })
}

/// Whether the bounds of a Clip are known and zero lies between them.
fn around_zero(operands: &[(&Value, View)]) -> bool {
    let number = |at: usize| -> Option<f32> {
        let (value, _) = operands.get(at)?;
        let bytes = value.elements().filter(|bytes| value.dtype == 1 && bytes.len() == 4)?;
        Some(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    };
    number(1).zip(number(2)).is_some_and(|(least, most)| least <= 0.0 && 0.0 <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `x`, whose second axis has slots that are put in by parts, as [3, 2, 32, 5].
    fn parts(terms: &mut Terms, runs: &Runs) -> (Value, Value) {
        let op = Op { name: Name::Own(Own::Input), attrs: b"x", dtype: 1 };
        let x = terms.placed(&op, &[], &[(vec![3, 56, 5], 1)]).unwrap().pop().unwrap();
        let y = filled(terms, &x, 1, runs, 64, Fill::Unknown).unwrap();
        (x, y.reshaped(&[3, 2, 32, 5]).unwrap())
    }

    #[test]
    fn slots_of_each_part_of_an_axis_are_slots_of_the_part() {
        let mut terms = Terms::new();
        let (x, y) = parts(&mut terms, &vec![(0, 20), (24, 8), (32, 20), (56, 8)]);
        let found = stripped(&terms, &y, 2).expect("each part has the same slots");
        assert_eq!((found.runs, found.fill), (vec![(0, 20), (24, 8)], Fill::Unknown));
        assert_eq!(terms.same(&found.value, &x.reshaped(&[3, 2, 28, 5]).unwrap()), Some(true));
        let turned = y.permuted(&[1, 2, 3, 0]).unwrap();
        let found = stripped(&terms, &turned, 1).expect("the outer part may lie anywhere");
        let wanted = x.reshaped(&[3, 2, 28, 5]).unwrap().permuted(&[1, 2, 3, 0]).unwrap();
        assert_eq!(terms.same(&found.value, &wanted), Some(true));
        assert!(stripped(&terms, &y, 1).is_none(), "the outer part has no slots");
    }

    #[test]
    fn an_op_runs_before_slots_of_what_repeats() {
        let mut terms = Terms::new();
        let op = Op { name: Name::Own(Own::Input), attrs: b"x", dtype: 1 };
        let x = terms.placed(&op, &[], &[(vec![3, 6, 5], 1)]).unwrap().pop().unwrap();
        let twice = |mut value: Value| {
            value.view[2] = view::normal(value.view[2].iter().copied().chain([view::Digit::repeat(2)]));
            value
        };
        let runs = vec![(0, 6)];
        let relu = Op { name: Name::Model("Relu"), attrs: &[1], dtype: 1 };
        let slotted = filled(&mut terms, &x, 1, &runs, 8, Fill::Zero).unwrap();
        let after = crate::terms::pointwise::pointwise(&mut terms, &relu, &[&twice(slotted)]).unwrap();
        let before = crate::terms::pointwise::pointwise(&mut terms, &relu, &[&x]).unwrap();
        let before = filled(&mut terms, &before, 1, &runs, 8, Fill::Zero).unwrap();
        assert_eq!(terms.same(&after, &twice(before)), Some(true));
    }

    #[test]
    fn parts_with_slots_at_other_places_have_none_in_common() {
        let mut terms = Terms::new();
        let (_, y) = parts(&mut terms, &vec![(0, 20), (24, 8), (32, 21), (57, 7)]);
        assert!(stripped(&terms, &y, 2).is_none());
        let (_, y) = parts(&mut terms, &vec![(0, 30), (32, 26)]);
        assert!(stripped(&terms, &y, 2).is_none());
        let (_, y) = parts(&mut terms, &vec![(0, 28), (32, 28)]);
        let cut = y.reshaped(&[3, 4, 16, 5]).unwrap();
        assert!(stripped(&terms, &cut, 2).is_none(), "parts of 16 places end otherwise");
    }
}
