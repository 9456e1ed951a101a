//! The same places of values: what an op that treats places alike makes of them are these places of what it makes of the whole values.
//! Both have the same bits.

use super::Call;
use super::picks::{self, Picked};
use crate::terms::align::term_of;
use crate::terms::arg::Op;
use crate::terms::name::Name;
use crate::terms::pointwise::{self, Made};
use crate::terms::state::Terms;
use crate::terms::value::Value;

/// What an op makes that treats all indices of its broadcast operands alike.
pub(super) fn pointwise(call: &mut Call<'_>, attrs: &[u8], operands: &[&Value], dtype: u8) -> Made {
    let y = call.pointwise(attrs, operands, dtype)?;
    let name = call.name();
    Ok(of(call.terms, &Op { name: Name::Model(&name), attrs, dtype }, operands, &y).unwrap_or(y))
}

/// What a pointwise op makes of the same places of values, where the input has what it makes of these.
fn of(terms: &mut Terms, op: &Op<'_>, operands: &[&Value], y: &Value) -> Option<Value> {
    if !terms.lacks(y) {
        return None;
    }
    let mut first: Option<(Vec<i64>, Option<usize>)> = None;
    let mut whole = Vec::new();
    for x in operands {
        if x.count() == 1 {
            whole.push(x.reshaped(&[])?);
            continue;
        }
        let (all, axis, indices) = Picked::recognize(terms, x)?.widened(x)?;
        let (known, place) = first.get_or_insert_with(|| (indices.clone(), axis));
        (*known == indices && *place == axis && x.rank() == y.rank()).then_some(())?;
        whole.push(all);
    }
    let (indices, axis) = first?;
    let made = pointwise::pointwise(terms, op, &whole.iter().collect::<Vec<_>>())
        .ok()
        .filter(|made| term_of(made).is_some() && !terms.lacks(made))?;
    let last = made.rank().checked_sub(1)?;
    let found = picks::pick(terms, &made, last, &indices).ok()?;
    let Some(axis) = axis else { return found.reshaped(&y.shape()) };
    let mut order: Vec<usize> = (0..last).collect();
    order.insert(axis, last);
    found.permuted(&order).filter(|found| found.shape() == y.shape())
}
