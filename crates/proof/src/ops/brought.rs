//! Concats whose places come from the same values as those of the input, in another order: of one value, or of what the input puts together.
//!
//! What a Concat leaves is its places, each of which is a lane of some value. A Concat of the result whose lanes are all of one axis of a
//! value is these places of it. One whose lanes are those that the input has in a Concat is that one, in another order. So an op
//! that treats all places alike runs before they are put in order, as for the filters of a convolution.

use super::filters::is_read;
use crate::terms::concats::Known;
use crate::terms::lane::Lane;
use crate::terms::lanes::{Place, places};
use crate::terms::routed::reordered;
use crate::terms::state::Terms;
use crate::terms::value::{Source, Value};
use crate::terms::view::{Digit, View, normal};
use rustc_hash::{FxHashMap, FxHashSet};

/// Most places of an axis that are looked at.
const MOST: i64 = 1 << 14;

/// Most places of all Concats of the input together.
const MOST_OF_ALL: i64 = 1 << 22;

/// A Concat along an axis: noted if it is one of the input, read by what the input has if it is one of the result.
pub(super) fn read(terms: &mut Terms, y: Value, axis: usize) -> Value {
    if terms.is_of_input() {
        terms.concats.new.push((y.clone(), axis));
        return y;
    }
    if terms.lacks(&y) { found(terms, &y, axis).unwrap_or(y) } else { y }
}

fn found(terms: &mut Terms, y: &Value, axis: usize) -> Option<Value> {
    let lanes = lanes_of(terms, y, axis)?;
    if let Some(y) = of_one(terms, &lanes.iter().collect::<Vec<_>>(), axis) {
        return Some(y);
    }
    look_at_new(terms);
    let numbers: Option<Vec<u32>> = lanes.iter().map(|lane| terms.filters.numbers.get(lane).copied()).collect();
    let numbers = numbers?;
    let known = terms.concats.known.get(&sorted(&numbers))?;
    let known = known.iter().find(|known| known.y.rank() == y.rank())?;
    let at: FxHashMap<u32, i64> = known.lanes.iter().enumerate().map(|(at, lane)| (*lane, at as i64)).collect();
    let told: Vec<i64> = numbers.iter().map(|lane| at.get(lane).copied()).collect::<Option<_>>()?;
    // The other axes are read in the same order, or the lanes would not be the same.
    let mut axes: Vec<usize> = (0..y.rank()).filter(|&other| other != known.axis).collect();
    axes.insert(axis, known.axis);
    let whole = known.y.permuted(&axes)?;
    reordered(terms, &whole, axis, &told).filter(|read| read.dtype == y.dtype && read.shape() == y.shape())
}

/// Notes the lanes of those Concats of the input that were not looked at.
fn look_at_new(terms: &mut Terms) {
    for (y, axis) in std::mem::take(&mut terms.concats.new) {
        let Some(lanes) = lanes_of(terms, &y, axis) else { continue };
        terms.concats.count += lanes.len() as i64;
        if terms.concats.count > MOST_OF_ALL {
            return;
        }
        let numbers: Vec<u32> = lanes.into_iter().map(|lane| terms.filters.number(lane)).collect();
        let known = terms.concats.known.entry(sorted(&numbers)).or_default();
        known.push(Known { y, axis, lanes: numbers });
    }
}

fn sorted(numbers: &[u32]) -> Vec<u32> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted
}

/// Where each place along an axis comes from, if none is a constant, or a number that nobody knows.
fn lanes_of(terms: &Terms, y: &Value, axis: usize) -> Option<Vec<Lane>> {
    let extent = *y.shape().get(axis)?;
    if terms.is_open(extent) || extent > MOST {
        return None;
    }
    let lane = |place| match place {
        Place::Lane(lane) => Some(lane),
        _ => None,
    };
    places(terms, y, &[axis])?.into_iter().map(lane).collect()
}

/// Lanes of one value that differ along some axes of it alone, none of them twice, as these places of it.
pub(super) fn of_one(terms: &mut Terms, lanes: &[&Lane], axis: usize) -> Option<Value> {
    let first = *lanes.first()?;
    if lanes.iter().any(|lane| lane.term != first.term || lane.rest != first.rest) {
        return None;
    }
    let term = terms.get(first.term);
    let (base, dtype) = (term.base.clone(), term.dtype);
    // Places may be counted along several axes of the value, which lie in the order that the term has.
    let moving = |&own: &usize| lanes.iter().any(|lane| lane.at.get(own) != first.at.get(own));
    let own: Vec<usize> = (0..base.len()).filter(moving).collect();
    let apart = |&own: &usize| !is_read(&first.rest, own) && !terms.is_open(base[own]);
    let whole = |other: usize| own.contains(&other) || is_read(&first.rest, other) && first.at.get(other) == Some(&0);
    if own.is_empty() || !own.iter().all(apart) || !(0..base.len()).all(whole) {
        return None;
    }
    let mut view: View = first.rest.clone();
    view.insert(axis, normal(own.iter().map(|&own| Digit { axis: own as u32, extent: base[own], stride: 1 })));
    let place = |lane: &Lane| own.iter().try_fold(0, |at, &own| Some(at * base[own] + lane.at.get(own)?));
    let told: Vec<i64> = lanes.iter().map(|lane| place(lane)).collect::<Option<_>>()?;
    let once = told.iter().collect::<FxHashSet<_>>().len() == told.len();
    let value = once.then_some(Value { source: Source::Term(first.term), view, dtype })?;
    reordered(terms, &value, axis, &told)
}
