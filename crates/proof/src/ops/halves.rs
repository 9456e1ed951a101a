//! Ops on floats that were halves, as lemmas 5 and 6 have them.

use super::call::{Call, Results};
use crate::lemmas::halves::{FLOAT, HALF, LEMMA, UNROUNDED, is_foreign, narrow, narrow_constant, widened};
use crate::terms::align::term_of;
use crate::terms::state::Terms;
use crate::terms::value::Value;

/// Operands that are floats of halves, as these; others as they are. `None` if there are no such, or floats that are none. How often a
/// Resize repeats an axis is a float next to halves, too.
fn operands(call: &mut Call<'_>) -> Option<Vec<Option<Value>>> {
    let mut inputs = call.inputs.to_vec();
    let told = if matches!(call.op, "Resize" | "Upsample") { 1 } else { inputs.len() };
    let (constants, values): (Vec<&mut Value>, Vec<&mut Value>) =
        inputs.iter_mut().take(told).flatten().filter(|x| x.dtype == FLOAT).partition(|x| x.is_constant());
    let any = !values.is_empty();
    for x in values {
        *x = narrow(call.terms, x)?;
    }
    for x in constants {
        *x = narrow_constant(x)?;
    }
    any.then_some(inputs)
}

/// The results of an op, with floats of the input's halves in the place of floats that the input does not compute.
pub(super) fn of_halves(
    call: &mut Call<'_>,
    made: Vec<Option<Value>>,
    run: fn(&mut Call<'_>) -> Option<Results>,
) -> Vec<Option<Value>> {
    let strange = |terms: &Terms, value: &Value| {
        value.dtype != HALF && term_of(value).is_some_and(|term| is_foreign(terms, term))
    };
    let floats = |x: &Value| x.dtype == FLOAT && !x.is_constant();
    let any = call.inputs.iter().flatten().any(floats) && made.iter().flatten().any(|value| strange(call.terms, value));
    if !any || call.terms.is_of_input() || call.op == "Cast" {
        return made;
    }
    let unrounded = |terms: &Terms| terms.held.lemmas.get(UNROUNDED).copied();
    let before = unrounded(call.terms);
    let Some(inputs) = operands(call) else { return made };
    let exact = unrounded(call.terms) == before;
    let results = call.results.clone();
    let mut of_narrow = Call { inputs: &inputs, results, terms: call.terms, ..*call };
    let Some(Ok(halves)) = run(&mut of_narrow) else { return made };
    let terms = of_narrow.terms;
    let mut found = Vec::new();
    for (value, half) in made.into_iter().zip(halves) {
        let known = half.filter(|half| term_of(half).is_some_and(|term| !is_foreign(terms, term)));
        let wide = match (&value, known) {
            (Some(value), Some(half)) if strange(terms, value) => match [value.dtype, half.dtype] {
                [FLOAT, HALF] => widened(terms, &half),
                // What a comparison makes, or the place of a number, is of no other type. A rounding may change it.
                [wide, other] if exact && wide == other && wide != FLOAT => Some(half),
                _ => None,
            },
            _ => None,
        };
        if wide.is_some() {
            terms.by_lemma(LEMMA);
        }
        found.push(wide.or(value));
    }
    found
}
