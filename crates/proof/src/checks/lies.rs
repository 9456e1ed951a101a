//! Values as claims and agreements say that they lie.

use super::agreed::Digits;
use crate::terms::state::Terms;
use crate::terms::value::{Value, count_of};
use crate::terms::view::{self, View, normal};

/// A value as these digits say that it lies.
pub(crate) fn laid(terms: &mut Terms, value: &Value, lies: Option<&Digits>) -> Option<Value> {
    let Some(dims) = lies else { return Some(value.clone()) };
    let (mut view, mut counts) = (View::new(), Vec::new());
    for digits in dims {
        let part = |&(number, extent, stride): &(u32, i64, i64)| {
            let part = view::part(value.view.get(number as usize)?, extent, stride)?;
            counts.push(view::extent(&part));
            count_of(&counts).ok().map(|_| part)
        };
        match digits.iter().map(part).collect::<Option<Vec<_>>>() {
            Some(parts) => view.push(normal(parts.concat())),
            None => return cut(terms, value, dims),
        }
    }
    (count_of(&counts) == Ok(value.count())).then(|| Value { view, ..value.clone() })
}

/// The same where digits cut an axis across a border of what it counts along.
fn cut(terms: &mut Terms, value: &Value, dims: &[Vec<(u32, i64, i64)>]) -> Option<Value> {
    let shape = value.shape();
    let mut digits = Vec::new();
    for (at, &(axis, extent, stride)) in dims.iter().flatten().enumerate() {
        (stride > 0).then_some(())?;
        let whole = *shape.get(axis as usize)?;
        let extent = if extent == -1 { whole.checked_div(stride)? } else { extent };
        digits.push((axis, stride, extent, at));
    }
    digits.sort_by_key(|&(axis, stride, ..)| (axis, -stride));
    let mut left = shape.clone();
    for &(axis, stride, extent, _) in &digits {
        let rest = left.get_mut(axis as usize)?;
        (extent > 0 && stride.checked_mul(extent) == Some(*rest)).then(|| *rest = stride)?;
    }
    let split: Vec<i64> = digits.iter().map(|digit| digit.2).collect();
    let mut order = vec![0; digits.len()];
    digits.iter().enumerate().for_each(|(from, digit)| order[digit.3] = from);
    let apart = terms.moved(value, &split).filter(|_| left.iter().all(|rest| *rest == 1))?.permuted(&order)?;
    let mut extents = order.iter().map(|&at| split[at]);
    let to: Vec<i64> = dims.iter().map(|dim| extents.by_ref().take(dim.len()).product()).collect();
    terms.moved(&apart, &to)
}
