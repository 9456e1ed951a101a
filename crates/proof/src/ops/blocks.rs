//! Convolutions of blocks, and parts of what a convolution makes.
//!
//! Where a convolution of stride 1 reads the places of blocks of b as a part of its batch, each place has a convolution of its own over
//! every b-th index: `y[(n, q), m, o]` adds up `x[n, c, b (o + d k - p) + q]` times the weights of tap k. That is what one convolution
//! with dilations b d and padding b p makes at index b o + q. It holds for every operand, of whatever extents.
//!
//! Neighbouring indices of what windows make along an axis are what windows with less padding make.

use super::window::convolved;
use crate::terms::align::term_of;
use crate::terms::state::Terms;
use crate::terms::value::Value;
use crate::terms::view::{self, Digit, REPEAT, View, normal};
use crate::terms::windows::{Convolution, Windows};
use std::rc::Rc;

/// A convolution whose batch holds places of blocks of a spatial axis, as one of the axis that both are.
pub(super) struct Apart {
    pub(super) image: Value,
    pub(super) windows: Windows,
    pub(super) place: Place,
}

/// Where the places stood: extents of the batch before them, of themselves, and of the batch behind them, and the spatial axis.
pub(super) struct Place {
    before: i64,
    places: i64,
    behind: i64,
    axis: usize,
}

/// The convolution of the whole axis, if the batch holds the places of its blocks.
pub(super) fn dilated(terms: &Terms, x: &Value, windows: &Windows) -> Option<Apart> {
    let batch = x.view.first().filter(|_| !x.is_constant())?;
    let still = |at: &usize| windows.strides[*at] == 1 && !windows.ceil;
    let blocks = |at: usize| x.view.get(at + 2)?.last().filter(|digit| digit.axis != REPEAT);
    let of = |at: usize, place: &Digit| {
        place.extent > 1 && !terms.is_open(place.extent) && blocks(at).is_some_and(|blocks| blocks.joins(*place))
    };
    let found = |at: usize| Some((at, batch.iter().position(|place| of(at, place))?));
    let (at, digit) = (0..windows.kernel.len()).filter(still).find_map(found)?;
    let mut view = x.view.clone();
    let place = view[0].remove(digit);
    view[0] = normal(std::mem::take(&mut view[0]));
    view[at + 2] = normal(view[at + 2].iter().copied().chain([place]));
    let mut windows = windows.clone();
    let rank = windows.kernel.len();
    windows.dilations[at] = windows.dilations[at].checked_mul(place.extent)?;
    for end in [at, at + rank] {
        windows.pads[end] = windows.pads[end].checked_mul(place.extent)?;
    }
    let place = Place {
        before: view::extent(&batch[..digit]),
        places: place.extent,
        behind: view::extent(&batch[digit + 1..]),
        axis: at + 2,
    };
    Some(Apart { image: Value { view, ..x.clone() }, windows, place })
}

/// The result with the places in the batch again.
pub(super) fn batched(terms: &mut Terms, y: &Value, place: &Place) -> Option<Value> {
    let shape = y.shape();
    let extent = *shape.get(place.axis)?;
    if extent % place.places != 0 {
        return None;
    }
    // [before, behind, channels, ..., blocks, places, ...]
    let mut split = vec![place.before, place.behind];
    split.extend(&shape[1..]);
    split.splice(place.axis + 1..=place.axis + 1, [extent / place.places, place.places]);
    let split = terms.moved(y, &split)?;
    let mut order: Vec<usize> = (0..split.rank()).filter(|at| *at != place.axis + 2).collect();
    order.insert(1, place.axis + 2);
    let mut to = shape;
    to[0] = place.before * place.places * place.behind;
    to[place.axis] = extent / place.places;
    terms.moved(&split.permuted(&order)?, &to)
}

/// Notes what a term of a convolution is made of.
pub(super) fn note(terms: &mut Terms, y: &Value, convolution: Convolution) {
    if let Some(term) = term_of(y) {
        terms.convolved.of.insert(term, Rc::new(convolution));
    }
}

/// `count` indices from `first` on of an axis along which a convolution makes them: those of windows with less padding. `None` if
/// there is not so much padding.
pub(super) fn cropped(terms: &mut Terms, y: &Value, axis: usize, first: i64, count: i64) -> Option<Value> {
    let convolution = Rc::clone(terms.convolved.of.get(&term_of(y)?)?);
    let Convolution { x, w, bias, group, windows } = &*convolution;
    let mut windows = windows.clone();
    let mut shape = vec![*x.shape().first()?, *w.shape().first()?];
    shape.extend(windows.slid(terms, x.shape().get(2..)?).ok()?);
    let (_, own) = view::identity(&shape);
    let at = (0..windows.kernel.len()).find(|at| !own[at + 2].is_empty() && own[at + 2] == y.view[axis])?;
    let rank = windows.kernel.len();
    let taken = first.checked_mul(windows.strides[at])?;
    let end = (count - 1).checked_mul(windows.strides[at])?.checked_add(windows.reach(at))?;
    let (before, extent) = (windows.pads[at].checked_sub(taken)?, x.shape()[at + 2]);
    let after = end.checked_sub(extent)?.checked_sub(before)?;
    if before < 0 || after < 0 || windows.ceil || count < 1 {
        return None;
    }
    (windows.pads[at], windows.pads[at + rank]) = (before, after);
    let made = convolved(terms, x, w, bias.as_ref(), *group, windows).ok()?;
    shape[at + 2] = count;
    // The value sees the axes of the whole result, and now the same of a part of it.
    let (base, _) = view::identity(&shape);
    let place = y.view[axis].first()?.axis;
    // An axis of one place has no number of its own.
    let gone = u32::from(count == 1);
    let renumbered = |digit: &Digit| {
        let behind = digit.axis != REPEAT && digit.axis > place;
        Digit { axis: if behind { digit.axis - gone } else { digit.axis }, ..*digit }
    };
    let narrow = |(number, digits): (usize, &Vec<Digit>)| match number {
        _ if number != axis => digits.iter().map(renumbered).collect(),
        _ if count == 1 => Vec::new(),
        _ => vec![Digit { axis: place, extent: count, stride: 1 }],
    };
    let seen: View = y.view.iter().enumerate().map(narrow).collect();
    let whole = made.reshaped(&base)?;
    Some(Value { view: view::composed(&seen, &whole.view)?, ..whole })
}
