//! Lemma 3 of convolutions: a sum of convolutions that go alike is one of the channels of all, whose sum of products is added up in
//! another order. So a convolution over frames is the sum of what its taps make, each of a frame.

use super::Call;
use super::joins;
use super::window::convolved;
use crate::files::model::width;
use crate::terms::align::term_of;
use crate::terms::arg::{Arg, Op};
use crate::terms::name::{Name, Own};
use crate::terms::state::Terms;
use crate::terms::value::Value;
use crate::terms::view;
use crate::terms::windows::{Convolution, TapSum};
use std::rc::Rc;

/// Most channels that are put side by side: of more there is no sum of convolutions that anybody writes.
const MOST: i64 = 1 << 16;

/// The sum of `a` and `b`, where one is a convolution of the result or a sum of such, if the input computes it as fewer.
pub(super) fn of(call: &mut Call<'_>, [a, b]: [&Value; 2], y: &Value) -> Option<Value> {
    let both = [known(call.terms, a), known(call.terms, b)];
    let sum = match both {
        [Some(p), Some(q)] if p.rest.is_none() || q.rest.is_none() => TapSum {
            convolution: side_by_side(call.terms, &p.convolution, &q.convolution)?,
            rest: p.rest.clone().or_else(|| q.rest.clone()),
        },
        [Some(p), None] if p.rest.is_none() => TapSum { rest: Some(b.clone()), ..(*p).clone() },
        [None, Some(q)] if q.rest.is_none() => TapSum { rest: Some(a.clone()), ..(*q).clone() },
        _ => return None,
    };
    let Convolution { x, w, bias, group, windows } = &sum.convolution;
    let made = convolved(call.terms, x, w, bias.as_ref(), *group, windows.clone()).ok()?;
    if is_foreign(call.terms, &made) || made.shape() != y.shape() {
        if let Some(term) = term_of(y).filter(|_| y.view == view::identity(&y.shape()).1) {
            call.terms.convolved.sums.insert(term, Rc::new(sum));
        }
        return None;
    }
    let found = match sum.rest {
        None => made,
        Some(rest) => call.inner("Add", &[], &[Some(made), Some(rest)]).ok()?,
    };
    let found = Some(found).filter(|found| !is_foreign(call.terms, found) && found.shape() == y.shape())?;
    call.terms.by_lemma("sums in another order");
    Some(found)
}

/// Whether the input has neither a value nor what it has some places of.
fn is_foreign(terms: &Terms, x: &Value) -> bool {
    let Some(mut term) = term_of(x) else { return true };
    loop {
        (term, _) = terms.beneath(term);
        match (terms.get(term).is(Own::Pick), terms.get(term).args.as_slice()) {
            (true, [Arg::Term { term: inner, .. }]) => term = *inner,
            _ => return terms.is_foreign(term),
        }
    }
}

/// The convolutions that a value of the result is the sum of.
fn known(terms: &Terms, x: &Value) -> Option<Rc<TapSum>> {
    let term = term_of(x).filter(|term| terms.is_foreign(*term) && x.view == view::identity(&x.shape()).1)?;
    if let Some(sum) = terms.convolved.sums.get(&term) {
        return Some(Rc::clone(sum));
    }
    let convolution = (**terms.convolved.of.get(&term)?).clone();
    let fits = convolution.w.shape().first() == x.shape().get(1);
    fits.then(|| Rc::new(TapSum { convolution, rest: None }))
}

/// Two convolutions as one that reads the channels of both.
fn side_by_side(terms: &mut Terms, a: &Convolution, b: &Convolution) -> Option<Convolution> {
    let (own, other) = (a.x.shape(), b.x.shape());
    let without_channels =
        |shape: &[i64]| shape.iter().enumerate().filter(|(at, _)| *at != 1).map(|(_, n)| *n).collect();
    let (mine, theirs): (Vec<i64>, Vec<i64>) = (without_channels(&own), without_channels(&other));
    let alike = a.windows == b.windows && a.x.dtype == b.x.dtype && a.w.dtype == b.w.dtype;
    let whole = a.group == 1 && b.group == 1 && a.w.is_constant() && b.w.is_constant();
    let channels = own.get(1)?.checked_add(*other.get(1)?).filter(|channels| *channels <= MOST)?;
    let one_bias = a.bias.is_none() || b.bias.is_none();
    (mine == theirs && alike && whole && one_bias && !terms.is_open(channels)).then_some(())?;
    let op = Op { name: Name::Model("Concat"), attrs: &[], dtype: a.x.dtype };
    let values = vec![a.x.clone(), b.x.clone()];
    let x = joins::behind(terms, &op, &values, 1).ok()?;
    joins::note(terms, &x, 1, values, false);
    let w = joined_filters(&a.w, &b.w)?;
    let bias = a.bias.clone().or_else(|| b.bias.clone());
    Some(Convolution { x, w, bias, group: 1, windows: a.windows.clone() })
}

/// Constant weights of both, the channels of `a` first.
fn joined_filters(a: &Value, b: &Value) -> Option<Value> {
    let (mut shape, other) = (a.shape(), b.shape());
    (shape.first() == other.first() && shape.get(2..) == other.get(2..)).then_some(())?;
    let filter = |shape: &[i64]| -> Option<usize> {
        usize::try_from(shape.get(1..)?.iter().product::<i64>()).ok()?.checked_mul(width(a.dtype)?).filter(|n| *n > 0)
    };
    let (own, others) = (a.elements()?, b.elements()?);
    let rows = own.chunks_exact(filter(&shape)?).zip(others.chunks_exact(filter(&other)?));
    let mut data = Vec::with_capacity(own.len().checked_add(others.len())?);
    rows.for_each(|(own, other)| {
        data.extend_from_slice(own);
        data.extend_from_slice(other);
    });
    shape[1] = shape[1].checked_add(other[1])?;
    Some(Value::constant(a.dtype, &shape, data.into()))
}
