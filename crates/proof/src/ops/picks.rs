//! Indices of an axis.

use super::blocks;
use super::call::Call;
use super::{joins, parts};
use crate::lemmas::real::operand;
use crate::terms::align::term_of;
use crate::terms::name::Own;
use crate::terms::pointwise::Made;
use crate::terms::routed;
use crate::terms::slots::{places, stripped};
use crate::terms::state::Terms;
use crate::terms::value::Value;
use crate::terms::view::{self, Digit, REPEAT, View, normal};
use std::rc::Rc;

/// Most indices of an axis that are listed one by one.
const LISTED: i64 = 1 << 18;

/// These indices of an axis. Those of real places alone are indices of the value without slots.
pub(super) fn pick(terms: &mut Terms, x: &Value, axis: usize, indices: &[i64]) -> Made {
    let extent = x.shape()[axis];
    if terms.is_open(extent) {
        return Err("its axis differs from call to call".to_owned());
    }
    if indices.is_empty() || indices.iter().any(|i| *i < 0 || *i >= extent) {
        return Err(format!("indices beyond axis {axis} of extent {extent}"));
    }
    if indices.len() as i64 == extent && indices.iter().enumerate().all(|(at, i)| at as i64 == *i) {
        return Ok(x.clone());
    }
    if let Some(found) = stripped(terms, x, axis) {
        let real = places(&found.runs);
        let inner: Option<Vec<i64>> = indices.iter().map(|i| real.binary_search(i).ok().map(|at| at as i64)).collect();
        if let Some(inner) = inner {
            return pick(terms, &found.value, axis, &inner);
        }
    }
    if let Some(y) = of_repeats(x, axis, indices.len() as i64).or_else(|| joins::pick(terms, x, axis, indices)) {
        return Ok(y);
    }
    if let Some(y) = parts::of_product(terms, x, axis, indices) {
        return Ok(y);
    }
    if let Some(y) = pick_again(terms, x, axis, indices).or_else(|| pick_before(terms, x, axis, indices)) {
        return Ok(y);
    }
    let run = indices.iter().enumerate().all(|(at, i)| indices[0] + at as i64 == *i);
    if let Some(y) =
        Some(run).filter(|run| *run).and_then(|_| blocks::cropped(terms, x, axis, indices[0], indices.len() as i64))
    {
        return Ok(y);
    }
    let apart = pick_whole(terms, x, axis, indices).or_else(|| pick_outer(terms, x, axis, indices));
    if let Some(y) = apart.or_else(|| pick_woven(terms, x, axis, indices)) {
        return Ok(y);
    }
    routed::indices(terms, x, axis, indices).ok_or_else(|| "its axes do not split".to_owned())
}

/// So many indices of an axis along which a value repeats.
pub(super) fn of_repeats(x: &Value, axis: usize, count: i64) -> Option<Value> {
    let digits = x.view.get(axis).filter(|digits| !digits.is_empty())?;
    let mut view = x.view.clone();
    view[axis] = digits.iter().all(|digit| digit.axis == REPEAT).then(|| normal([Digit::repeat(count)]))?;
    Some(Value { view, ..x.clone() })
}

/// Indices of the last axis of a value, as a term that picks them has them.
pub(super) struct Picked {
    /// The value.
    pub(super) of: Value,
    indices: Vec<i64>,
    base: Vec<i64>,
}

impl Picked {
    /// What a value is made of, if by such a term.
    pub(super) fn recognize(terms: &Terms, x: &Value) -> Option<Picked> {
        let term = Rc::clone(terms.get(term_of(x)?));
        let [(digits, indices)] = term.along.as_slice() else { return None };
        let all = operand(terms, &term, 0).filter(|_| term.is(Own::Pick))?.expanded(&term.over)?;
        let kept = term.alike();
        let whole = |axis: usize| normal([Digit { axis: axis as u32, extent: term.over[axis], stride: 1 }]);
        let seen: View = kept.map(whole).chain([digits.clone()]).collect();
        let of = Value { view: view::composed(&seen, &all.view)?, ..all };
        Some(Picked { of, indices: indices.clone(), base: term.base.clone() })
    }

    /// The value with all of its indices along a last axis, its others as `x` has them; which axis of `x` the indices are, if they are
    /// several; and these.
    pub(super) fn widened(self, x: &Value) -> Option<(Value, Option<usize>, Vec<i64>)> {
        let Picked { of, indices, base } = self;
        let count = indices.len() as i64;
        let kept = if count == 1 { base.len() } else { base.len().checked_sub(1)? };
        let all = *of.shape().get(kept).filter(|_| of.rank() == kept + 1)?;
        let made = |extent: i64| normal([Digit { axis: kept as u32, extent, stride: 1 }]);
        let mut view = x.view.clone();
        let axis = if count == 1 { None } else { Some(view.iter().position(|digits| *digits == made(count))?) };
        axis.map(|axis| view.remove(axis));
        let reads = |digit: &Digit| digit.axis == REPEAT || (digit.axis as usize) < kept;
        view.iter().flatten().all(reads).then_some(())?;
        view.push(made(all));
        Some((Value { view: view::composed(&view, &of.view)?, ..of }, axis, indices))
    }

    /// The same indices of a value that was computed of this one, seen as `x` is.
    pub(super) fn again(&self, terms: &mut Terms, all: &Value, x: &Value) -> Option<Value> {
        let y = pick(terms, all, all.rank().checked_sub(1)?, &self.indices).ok()?.reshaped(&self.base)?;
        Some(Value { view: view::composed(&x.view, &y.view)?, ..y })
    }
}

/// Indices of indices are indices of the value that those are of.
fn pick_again(terms: &mut Terms, x: &Value, axis: usize, indices: &[i64]) -> Option<Value> {
    let Picked { of, indices: known, mut base } = Picked::recognize(terms, x)?;
    let last = base.len().checked_sub(1).filter(|last| base[*last] == known.len() as i64)?;
    let made = |extent: i64| normal([Digit { axis: last as u32, extent, stride: 1 }]);
    (*x.view.get(axis)? == made(base[last])).then_some(())?;
    let told: Option<Vec<i64>> = indices.iter().map(|at| known.get(usize::try_from(*at).ok()?).copied()).collect();
    let y = pick(terms, &of, of.rank().checked_sub(1)?, &told?).ok()?;
    base[last] = indices.len() as i64;
    let mut view = x.view.clone();
    view[axis] = made(base[last]);
    let y = y.reshaped(&base)?;
    Some(Value { view: view::composed(&view, &y.view)?, ..y })
}

/// Indices of an axis of indices of another axis: the first of both axes, in the order of what the value is made of, comes first.
fn pick_before(terms: &mut Terms, x: &Value, axis: usize, indices: &[i64]) -> Option<Value> {
    let Picked { of, indices: known, mut base } = Picked::recognize(terms, x)?;
    let last = base.len().checked_sub(1)?;
    let [digit] = x.view.get(axis)?.as_slice() else { return None };
    let own = usize::try_from(digit.axis).ok().filter(|own| *own < last)?;
    let whole = |extent: i64| normal([Digit { axis: digit.axis, extent, stride: 1 }]);
    let shape = of.shape();
    let alike = x.view[axis] == whole(base[own]) && shape.len() == base.len() && shape[..last] == base[..last];
    let elsewhere =
        |(at, digits): (usize, &Vec<Digit>)| at == axis || digits.iter().all(|other| other.axis != digit.axis);
    let alone = x.view.iter().enumerate().all(elsewhere);
    (alike && alone && of.view[own] < of.view[last]).then_some(())?;
    let y = pick(terms, &of, own, indices).ok()?;
    base[own] = indices.len() as i64;
    let y = pick(terms, &y, last, &known).ok()?.reshaped(&base)?;
    let mut view = x.view.clone();
    view[axis] = whole(base[own]);
    Some(Value { view: view::composed(&view, &y.view)?, ..y })
}

/// Indices of an axis of a value.
pub(super) struct Indices {
    /// The value, that axis last.
    of: Value,
    list: Vec<i64>,
}

/// The indices along an axis that a value is of another one.
pub(super) fn indices_of(terms: &Terms, x: &Value, axis: usize) -> Option<Indices> {
    let (mut of, at, list) = Picked::recognize(terms, x)?.widened(x)?;
    match at {
        Some(at) => (at == axis).then_some(())?,
        // One index has no axis.
        None => of.view.get(axis)?.is_empty().then(|| drop(of.view.remove(axis)))?,
    }
    list.is_sorted_by(|a, b| a + 1 == *b).then_some(Indices { of, list })
}

impl Indices {
    /// Takes in those behind these, if they are of the same value.
    pub(super) fn takes(&mut self, terms: &mut Terms, next: &Indices) -> bool {
        let behind = self.list.last().zip(next.list.first()).is_some_and(|(last, first)| last + 1 == *first);
        let alike = behind && terms.same(&self.of, &next.of) == Some(true);
        self.list.extend(next.list.iter().filter(|_| alike));
        alike
    }

    /// The value at these indices.
    pub(super) fn picked(&self, terms: &mut Terms, axis: usize) -> Option<Value> {
        let last = self.of.rank().checked_sub(1)?;
        let mut order: Vec<usize> = (0..last).collect();
        order.insert(axis, last);
        pick(terms, &self.of, last, &self.list).ok()?.permuted(&order)
    }
}

/// Indices of an outer digit of an axis whose inner one is another axis: they are runs of indices of both together.
fn pick_whole(terms: &mut Terms, x: &Value, axis: usize, indices: &[i64]) -> Option<Value> {
    let [outer] = x.view.get(axis)?.as_slice() else { return None };
    let each = outer.stride;
    let inner = [Digit { axis: outer.axis, extent: each, stride: 1 }];
    let runs = indices.len() as i64;
    if x.is_constant() || outer.axis == REPEAT || each < 2 || runs.checked_mul(each)? > LISTED {
        return None;
    }
    let other = x.view.iter().position(|digits| digits.as_slice() == inner)?;
    let mut order: Vec<usize> = (0..x.rank()).filter(|at| ![axis, other].contains(at)).collect();
    let first = order.len();
    order.extend([axis, other]);
    let moved = x.permuted(&order)?;
    let mut shape = moved.shape();
    shape.splice(first.., [outer.extent * each]);
    let told: Vec<i64> = indices.iter().flat_map(|i| (0..each).map(move |at| i * each + at)).collect();
    let y = pick(terms, &moved.reshaped(&shape)?, first, &told).ok()?;
    shape.splice(first.., [runs, each]);
    let back: Vec<usize> = (0..x.rank()).filter_map(|axis| order.iter().position(|at| *at == axis)).collect();
    y.reshaped(&shape)?.permuted(&back)
}

/// Neighbouring indices that are all of what the inner digits of the axis count: they are indices of the outer digits.
fn pick_outer(terms: &mut Terms, x: &Value, axis: usize, indices: &[i64]) -> Option<Value> {
    let (first, count) = (*indices.first()?, indices.len() as i64);
    let run = indices.iter().enumerate().all(|(at, i)| first + at as i64 == *i);
    let digits = x.view.get(axis).filter(|_| run && !x.is_constant())?;
    let whole = |inner: &i64| *inner > 1 && first % inner == 0 && count % inner == 0;
    let inner = (1..digits.len()).map(|at| view::extent(&digits[at..])).find(whole)?;
    let mut shape = x.shape();
    shape.splice(axis..=axis, [shape[axis] / inner, inner]);
    let outer = listed(first / inner, count / inner, 1).ok()?;
    let y = pick(terms, &x.reshaped(&shape)?, axis, &outer).ok()?;
    shape.splice(axis..=axis + 1, [count]);
    y.reshaped(&shape)
}

/// One index of each of several equal parts of an axis, then the next one of each: they are indices of an axis that counts within a part.
fn pick_woven(terms: &mut Terms, x: &Value, axis: usize, indices: &[i64]) -> Option<Value> {
    let (extent, count) = (x.shape()[axis], indices.len());
    let each = *indices.get(1)? - indices[0];
    if x.is_constant() || each < 2 || extent % each != 0 {
        return None;
    }
    let (parts, groups) = (extent / each, usize::try_from(extent / each).ok()?);
    let woven = |run: &[i64]| run[0] < each && run.iter().enumerate().all(|(at, i)| run[0] + at as i64 * each == *i);
    if parts < 2 || !count.is_multiple_of(groups) || !indices.chunks(groups).all(woven) {
        return None;
    }
    let mut shape = x.shape();
    shape.splice(axis..=axis, [parts, each]);
    let mut order: Vec<usize> = (0..shape.len()).collect();
    order.swap(axis, axis + 1);
    let inner: Vec<i64> = indices.iter().step_by(groups).copied().collect();
    let y = pick(terms, &x.reshaped(&shape)?.permuted(&order)?, axis, &inner).ok()?;
    let mut shape = x.shape();
    shape[axis] = count as i64;
    y.reshaped(&shape)
}

/// `count` indices from `first` on, so far apart.
pub(super) fn listed(first: i64, count: i64, step: i64) -> Result<Vec<i64>, String> {
    if count > LISTED {
        return Err(format!("the checker does not list {count} indices of an axis"));
    }
    Ok((0..count).map(|at| first + at * step).collect())
}

/// Indices of a slice, as ONNX clamps them.
pub(super) fn range(start: i64, end: i64, step: i64, extent: i64) -> Result<Vec<i64>, String> {
    let place = |n: i64| if n < 0 { n.saturating_add(extent) } else { n };
    let (least, most) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
    let (first, end) = (place(start).clamp(0, most.max(0)), place(end).clamp(least, most));
    let length = if step > 0 { end - first } else { first - end };
    let steps = length.max(0).unsigned_abs().div_ceil(step.unsigned_abs());
    listed(first, steps as i64, step)
}

/// The parts of an axis that a Split makes.
pub(super) fn parts_of(call: &Call<'_>, extent: i64) -> Result<Vec<i64>, String> {
    let parts = if let Some(parts) = call.list("split", 1)? {
        parts
    } else {
        let count = call.results.len().max(1) as i64;
        if call.int("num_outputs", count) != count {
            return Err(format!("it has not {count} results"));
        }
        if call.terms.is_open(extent) {
            return Err("its axis differs from call to call".to_owned());
        }
        let size = (extent + count - 1) / count;
        (0..count).map(|at| size.min(extent - at * size)).collect()
    };
    parts.iter().try_for_each(|part| call.terms.closed(*part))?;
    whole_parts(&parts, extent)?;
    Ok(parts)
}

/// Whether parts are all of an axis, one behind the other.
pub(super) fn whole_parts(parts: &[i64], extent: i64) -> Result<(), String> {
    let all = parts.iter().try_fold(0_i64, |all, part| all.checked_add(*part));
    let whole = all == Some(extent) && parts.iter().all(|part| *part > 0);
    whole.then_some(()).ok_or_else(|| format!("parts {parts:?} of extent {extent}"))
}
