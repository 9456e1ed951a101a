//! Lemma 3: a sum of three values may be added up in another order, as by a kernel that adds a bias behind what skips a layer.

use super::bounds::under;
use super::{Call, tap_sums};
use crate::lemmas::halves::{FLOAT, HALF};
use crate::terms::align::term_of;
use crate::terms::pointwise::binary;
use crate::terms::state::Terms;
use crate::terms::value::Value;

/// The input's sum of the same three values, where the result adds them up in an order that the input does not.
pub(super) fn of(call: &mut Call<'_>, y: &Value) -> Option<Value> {
    let [Some(a), Some(b)] = call.inputs else { return None };
    if call.op != "Add" || !matches!(y.dtype, FLOAT | HALF) || !call.terms.lacks(y) {
        return None;
    }
    if let Some(found) = tap_sums::of(call, [a, b], y) {
        return Some(found);
    }
    let found = [(a, b), (b, a)].into_iter().find_map(|(sum, last)| {
        let [first, second] = under::<2>(call.terms, sum, "Add")?;
        let orders = [(&first, &second), (&second, &first)];
        orders.into_iter().find_map(|(one, other)| ordered(call.terms, [one, last, other]))
    });
    let found = found.filter(|found| found.dtype == y.dtype && found.shape() == y.shape())?;
    call.terms.by_lemma("sums in another order");
    Some(found)
}

/// The sum of the first two and the third, if the input has it.
fn ordered(terms: &mut Terms, [first, second, third]: [&Value; 3]) -> Option<Value> {
    let inner = binary(terms, "Add", first, second).ok().filter(|inner| !terms.lacks(inner))?;
    binary(terms, "Add", &inner, third).ok().filter(|sum| term_of(sum).is_some() && !terms.lacks(sum))
}
