//! Lanes: the single places along some axes of a value, each followed back to where it comes from.
//!
//! Channels that are only brought elsewhere, by Concat, Split, shuffles, slots and padding, are the same lanes afterwards.

use crate::terms::align::term_of;
use crate::terms::arg::{Arg, Term};
use crate::terms::lane::Lane;
use crate::terms::name::{Name, Own};
use crate::terms::state::Terms;
use crate::terms::value::Value;
use crate::terms::view::{self, Digit, REPEAT, View, normal};
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// What lies at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Zero,
    /// Finite numbers that nobody knows.
    Unknown,
    Lane(Lane),
}

/// Most places that are followed one by one.
const MOST: i64 = 1 << 18;

/// The terms that lanes of a value may come from.
pub(crate) fn roots(terms: &Terms, x: &Value) -> FxHashSet<u32> {
    let (mut found, mut todo) = (FxHashSet::default(), Vec::from_iter(term_of(x)));
    while let Some(term) = todo.pop() {
        found.insert(term);
        let made = terms.get(term);
        if made.is(Own::Flat) || made_axis(made).is_some() {
            todo.extend(made.args.iter().filter_map(|arg| match arg {
                Arg::Term { term, .. } if !found.contains(term) => Some(*term),
                _ => None,
            }));
        }
    }
    found
}

/// The places along these axes of a value, the last axis innermost, as the value has them.
pub(crate) fn lanes(terms: &Terms, x: &Value, axes: &[usize]) -> Option<Vec<Lane>> {
    let term = term_of(x)?;
    let rest = x.view.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
    let first =
        Lane { term, at: vec![0; terms.get(term).base.len()], rest: rest.map(|(_, digits)| digits.clone()).collect() };
    let digits: Vec<Digit> = axes.iter().map(|&axis| x.view.get(axis).cloned()).collect::<Option<Vec<_>>>()?.concat();
    if view::extent(&digits) > MOST || digits.iter().any(|d| terms.is_open(d.extent) || terms.is_open(d.stride)) {
        return None;
    }
    let mut all = vec![first];
    for digit in digits {
        let step = |lane: &Lane, index: i64| {
            let mut lane = lane.clone();
            if digit.axis != REPEAT {
                lane.at[digit.axis as usize] += index * digit.stride;
            }
            lane
        };
        all = all.iter().flat_map(|lane| (0..digit.extent).map(move |index| step(lane, index))).collect();
    }
    Some(all)
}

/// The same places, each followed back.
pub(crate) fn places(terms: &Terms, x: &Value, axes: &[usize]) -> Option<Vec<Place>> {
    lanes(terms, x, axes)?.into_iter().map(|lane| followed(terms, lane)).collect()
}

/// Where a lane comes from; `None` if it is a constant.
fn followed(terms: &Terms, mut lane: Lane) -> Option<Place> {
    loop {
        let term = Rc::clone(terms.get(lane.term));
        if let Some(inner) = unflattened(terms, &term, &lane) {
            lane = inner;
            continue;
        }
        let differs = |made: &u32| term.base.get(*made as usize).is_some_and(|extent| terms.is_open(*extent));
        let Some(made) = made_axis(&term).filter(|made| !reads(&lane.rest, *made) && !differs(made)) else {
            return Some(Place::Lane(lane));
        };
        // An axis of one place is none of the term.
        let index = lane.at.get(made as usize).copied().unwrap_or(0);
        lane = match term.name() {
            Name::Model("Concat") => part(&term, &lane, index)?,
            _ => match inner_index(&term, index) {
                Ok(index) => under(&term, &lane, index)?,
                Err(place) => return Some(place),
            },
        };
        lane.at.resize(terms.get(lane.term).base.len(), 0);
    }
}

/// The lane before axes were counted as one. That axis may be read in part by the lane and in part by what is not followed, as long as
/// both are digits of their own: so that no index of one carries over to the other.
fn unflattened(terms: &Terms, term: &Term, lane: &Lane) -> Option<Lane> {
    let [Arg::Term { term: inner, reads, own }] = term.args.as_slice() else { return None };
    let (made, digits) = match term.along.as_slice() {
        [(digits, _)] if term.is(Own::Flat) && own.is_empty() => (term.base.len().checked_sub(1)? as u32, digits),
        _ => return None,
    };
    if digits.iter().any(|digit| terms.is_open(digit.extent)) {
        return None;
    }
    let own: Vec<Digit> = lane.rest.iter().flatten().filter(|digit| digit.axis == made).copied().collect();
    let offset = lane.at[made as usize];
    if own.iter().any(|digit| offset / digit.stride % digit.extent != 0) || !apart_from_each_other(digits, &own) {
        return None;
    }
    let common: Vec<usize> = term.alike().collect();
    let through = |digit: &Digit| match digit.axis {
        axis if axis == made => view::part(digits, digit.extent, digit.stride),
        REPEAT => Some(vec![*digit]),
        axis => Some(vec![Digit { axis: *common.get(axis as usize)? as u32, ..*digit }]),
    };
    let rest = lane.rest.iter().map(|axis| Some(axis.iter().map(through).collect::<Option<Vec<_>>>()?.concat()));
    let mut at = vec![0; term.over.len()];
    common.iter().zip(&lane.at).for_each(|(&axis, at_axis)| at[axis] = *at_axis);
    for (digit, index) in apart(digits, offset).into_iter().filter(|(digit, _)| digit.axis != REPEAT) {
        at[digit.axis as usize] += index * digit.stride;
    }
    let over = Lane { term: lane.term, at, rest: rest.collect::<Option<_>>()? };
    let all: Vec<usize> = (0..term.over.len()).collect();
    let mut found = carried(&over, &all, reads, *inner)?;
    found.at.resize(terms.get(*inner).base.len(), 0);
    Some(found)
}

/// Whether some digits of an axis, and those that the axis is made of, all begin and end at divisors of each other, and no two of the
/// former meet.
fn apart_from_each_other(digits: &[Digit], own: &[Digit]) -> bool {
    let mut borders = vec![1];
    for digit in digits.iter().rev() {
        borders.push(borders[borders.len() - 1] * digit.extent);
    }
    let mut own: Vec<(i64, i64)> = own.iter().map(|digit| (digit.stride, digit.stride * digit.extent)).collect();
    own.sort_unstable();
    let meet = own.windows(2).any(|pair| pair[0].1 > pair[1].0);
    borders.extend(own.into_iter().flat_map(|(from, to)| [from, to]));
    borders.sort_unstable();
    !meet && borders.windows(2).all(|pair| pair[1] % pair[0] == 0)
}

/// The axis along which a term brings places together, the last one.
fn made_axis(term: &Term) -> Option<u32> {
    let brings = match term.name() {
        Name::Model("Concat") => term.base.len() == term.over.len() + 1,
        Name::Own(Own::Pick | Own::Routed | Own::Slots) => term.along.len() == 1,
        Name::Model("Pad") => term.along.len() == 1 && term.attrs == b"constant",
        _ => false,
    };
    let kept = match term.name() {
        Name::Model("Concat") => term.over.len(),
        _ => term.alike().count(),
    };
    u32::try_from(kept).ok().filter(|_| brings && term.base.len() <= kept + 1)
}

fn reads(view: &View, axis: u32) -> bool {
    view.iter().flatten().any(|digit| digit.axis == axis)
}

/// Which index of the operand an index of the made axis is, or what lies there beside the operand.
fn inner_index(term: &Term, index: i64) -> Result<i64, Place> {
    let (digits, told) = &term.along[0];
    match (term.name(), told.as_slice()) {
        (Name::Model("Pad"), [before, _]) => {
            let index = index - before;
            if (0..view::extent(digits)).contains(&index) { Ok(index) } else { Err(Place::Zero) }
        }
        (Name::Own(Own::Slots), runs) => {
            let mut behind = 0;
            for run in runs.chunks_exact(2) {
                if (run[0]..run[0] + run[1]).contains(&index) {
                    return Ok(behind + index - run[0]);
                }
                behind += run[1];
            }
            Err(if term.attrs.is_empty() { Place::Zero } else { Place::Unknown })
        }
        (_, told) => usize::try_from(index).ok().and_then(|at| told.get(at).copied()).ok_or(Place::Unknown),
    }
}

/// An index of a list of digits, as an index of each.
fn apart(digits: &[Digit], mut index: i64) -> Vec<(Digit, i64)> {
    let mut list = Vec::new();
    for digit in digits.iter().rev() {
        list.push((*digit, index % digit.extent));
        index /= digit.extent;
    }
    list
}

/// What an operand reads along the common axes.
type Reads = [Option<(u32, i64)>];

/// The lane in the operand, over the common axes that the axes of the term are, and nothing of the made axis.
fn carried(lane: &Lane, common: &[usize], reads: &Reads, term: u32) -> Option<Lane> {
    let mut at = Vec::new();
    for (own, &axis) in common.iter().enumerate() {
        if let Some((axis, stride)) = *reads.get(axis)? {
            add(&mut at, axis, lane.at[own] * stride);
        }
    }
    let through = |digit: &Digit| -> Option<Digit> {
        if digit.axis == REPEAT {
            return Some(*digit);
        }
        Some(match *reads.get(*common.get(digit.axis as usize)?)? {
            Some((axis, stride)) => Digit { axis, extent: digit.extent, stride: digit.stride * stride },
            None => Digit::repeat(digit.extent),
        })
    };
    let rest = lane.rest.iter().map(|axis| Some(normal(axis.iter().map(through).collect::<Option<Vec<_>>>()?)));
    Some(Lane { term, at, rest: rest.collect::<Option<_>>()? })
}

fn add(at: &mut Vec<i64>, axis: u32, more: i64) {
    let axis = axis as usize;
    if at.len() <= axis {
        at.resize(axis + 1, 0);
    }
    at[axis] += more;
}

/// The lane in the operand of a term that acts along one axis, of which it is this index.
fn under(term: &Term, lane: &Lane, index: i64) -> Option<Lane> {
    let [Arg::Term { term: inner, reads, own }] = term.args.as_slice() else { return None };
    let common: Vec<usize> = term.alike().collect();
    let mut found = carried(lane, &common, reads, *inner).filter(|_| own.is_empty())?;
    for (digit, index) in apart(&term.along[0].0, index) {
        if digit.axis != REPEAT
            && let Some((axis, stride)) = *reads.get(digit.axis as usize)?
        {
            add(&mut found.at, axis, index * digit.stride * stride);
        }
    }
    Some(found)
}

/// The lane in that operand of a Concat whose index this is.
fn part(term: &Term, lane: &Lane, mut index: i64) -> Option<Lane> {
    let common: Vec<usize> = (0..term.over.len()).collect();
    for arg in &term.args {
        let own = match arg {
            Arg::Term { own, .. } => view::extent(own),
            Arg::Constant { own, .. } => own.iter().product(),
            _ => return None,
        };
        if index >= own {
            index -= own;
            continue;
        }
        let Arg::Term { term, reads, own } = arg else { return None };
        let mut found = carried(lane, &common, reads, *term)?;
        for (digit, index) in apart(own, index).into_iter().filter(|(digit, _)| digit.axis != REPEAT) {
            add(&mut found.at, digit.axis, index * digit.stride);
        }
        return Some(found);
    }
    None
}
