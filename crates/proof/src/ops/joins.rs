//! Values one behind the other, and what they were before.

use super::{Made, picks};
use crate::terms::align::term_of;
use crate::terms::arg::Op;
use crate::terms::name::Name;
use crate::terms::state::{Join, Terms};
use crate::terms::value::Value;
use crate::terms::view;

/// Notes that a value is these parts along an axis, whose other extents are its own.
pub(super) fn note(terms: &mut Terms, y: &Value, axis: usize, parts: Vec<Value>, padded: bool) {
    let shape = y.shape();
    let fits =
        |part: &Value| part.shape().iter().enumerate().all(|(at, extent)| at == axis || shape.get(at) == Some(extent));
    if let Some(term) = term_of(y).filter(|_| parts.iter().all(fits)) {
        let join = Join { view: y.view.clone(), axis, parts, padded };
        let known = terms.joins.entry(term).or_default();
        if known.iter().all(|other| other.axis != axis) {
            known.push(join);
        }
    }
}

/// The parts that a value is along an axis, if a Concat or a Pad made it, and whether a Pad did. Its axes may lie in another order.
fn parts(terms: &Terms, x: &Value, axis: usize) -> Option<(Vec<Value>, bool)> {
    terms.joins.get(&term_of(x)?)?.iter().find_map(|join| {
        let mut order: Vec<usize> = Vec::new();
        for digits in &x.view {
            let place = (0..join.view.len()).find(|at| join.view[*at] == *digits && !order.contains(at))?;
            order.push(place);
        }
        let whole = order.len() == join.view.len() && *order.get(axis)? == join.axis;
        let alike = whole && join.parts.iter().all(|part| part.dtype == x.dtype);
        let parts = join.parts.iter().map(|part| part.permuted(&order).filter(|_| alike));
        Some((parts.collect::<Option<_>>()?, join.padded))
    })
}

/// Values without Concats along this axis among them: the parts of these stand there.
pub(super) fn flattened(terms: &Terms, values: Vec<Value>, axis: usize) -> Vec<Value> {
    let joined = |x: &Value| parts(terms, x, axis).filter(|(_, padded)| !padded).map(|(parts, _)| parts);
    values.into_iter().flat_map(|x| joined(&x).unwrap_or_else(|| vec![x])).collect()
}

/// Indices of values one behind the other that need not all of these.
pub(super) fn pick(terms: &mut Terms, x: &Value, axis: usize, indices: &[i64]) -> Option<Value> {
    let (all, padded) = parts(terms, x, axis)?;
    let (least, most) = (*indices.iter().min()?, *indices.iter().max()?);
    let (mut start, mut needed, mut before) = (0, Vec::new(), 0);
    for part in &all {
        let extent = part.shape()[axis];
        if terms.is_open(extent) {
            return None;
        }
        let end = start + extent;
        if end <= least {
            before = end;
        } else if start <= most {
            needed.push(part.clone());
        }
        start = end;
    }
    let told: Vec<i64> = indices.iter().map(|index| index - before).collect();
    let few = needed.len() < all.len() && !padded;
    let y = match needed.as_slice() {
        [only] => only.clone(),
        _ if few => {
            let op = Op { name: Name::Model("Concat"), attrs: &[], dtype: x.dtype };
            let y = behind(terms, &op, &needed, axis).ok()?;
            note(terms, &y, axis, needed, false);
            y
        }
        _ => return None,
    };
    picks::pick(terms, &y, axis, &told).ok()
}

/// What a Pad was made of along an axis that differs from call to call, and where a slice starts and ends there, if it has nothing of what
/// the Pad adds. `i64::MAX` is the end of the axis.
pub(super) fn inside(terms: &Terms, x: &Value, axis: usize, [start, end]: [i64; 2]) -> Option<(Value, [i64; 2])> {
    let (all, _) = parts(terms, x, axis).filter(|(_, padded)| *padded)?;
    let at = all.iter().position(|part| terms.is_open(part.shape()[axis]))?;
    let count = |parts: &[Value]| parts.iter().map(|part| part.shape()[axis]).sum::<i64>();
    let (before, after) = (count(&all[..at]), count(&all[at + 1..]));
    let less = if end == i64::MAX { 0 } else { -end };
    let end = if less == after { i64::MAX } else { after - less };
    (start >= before && less >= after).then(|| (all[at].clone(), [start - before, end]))
}

/// Values one behind the other. Parts of the same extent are a stack of parts: an axis that counts them, and their own one.
pub(super) fn behind(terms: &mut Terms, op: &Op<'_>, values: &[Value], axis: usize) -> Made {
    let split = || "its operands have axes that do not split alike".to_owned();
    let part = values[0].view.get(axis).map(|digits| view::extent(digits)).ok_or_else(split)?;
    if part > 1 && values.iter().all(|v| v.shape() == values[0].shape()) {
        let mut one = values[0].shape();
        one.insert(axis, 1);
        let parts: Option<Vec<Value>> = values.iter().map(|v| v.reshaped(&one)).collect();
        let made = parts.and_then(|parts| terms.joined(op, &parts.iter().collect::<Vec<_>>(), axis));
        let mut whole = values[0].shape();
        whole[axis] *= values.len() as i64;
        if let Some(made) = made.and_then(|stack| stack.reshaped(&whole)) {
            return Ok(made);
        }
    }
    terms.joined(op, &values.iter().collect::<Vec<_>>(), axis).ok_or_else(split)
}
