//! Along one axis: which places of the source go to which places of the destination, as few strided patterns.
//!
//! Both sides spell the axis in digits. The walk along its indices is cut wherever a digit of either side wraps; in between the
//! places on both sides grow by a constant step. Runs of the same length at constant distances become one pattern with another
//! dimension, and so on until nothing changes. Blocks that divide each other, blocks that do not, odd ends and segments all come
//! out as a short list this way, with no case of their own.

use smallvec::SmallVec;

use crate::order::{Digit, Segment};

/// More runs than this along an axis are not collected; a tensor with so many small blocks along one axis is beyond use.
const MOST_RUNS: usize = 1 << 20;

/// A dimension of a pattern: how often, and the distances in elements on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) count: usize,
    pub(crate) from: isize,
    pub(crate) to: isize,
}

/// Elements at equal distances from an index on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Where the first is, in elements.
    pub(crate) place: isize,
    pub(crate) count: usize,
    pub(crate) step: isize,
}

/// Some of the elements along an axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// Where the first is, in elements.
    pub(crate) from: isize,
    pub(crate) to: isize,
    pub(crate) steps: SmallVec<[Step; 4]>,
}

/// One side of an axis: its digits with their strides in memory, the finest first, and its segments.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    digits: Vec<(Digit, usize)>,
    segments: Vec<Segment>,
    slots: usize,
}

impl Side {
    /// The side of `axis`; `None` if its digits are no mixed radix, or its segments do not fit.
    pub(crate) fn new(digits: &[(Digit, usize)], segments: &[Segment], axis: usize, extent: usize) -> Option<Self> {
        let mut own: Vec<_> = digits.iter().copied().filter(|(digit, _)| digit.axis == axis).collect();
        own.sort_by_key(|(digit, _)| digit.stride);
        own.retain(|(digit, _)| digit.extent != 1);
        let mut slots = 1_usize;
        for (digit, _) in &own {
            if digit.stride != slots {
                return None;
            }
            slots = slots.checked_mul(digit.extent)?;
        }
        let segments = if segments.is_empty() { vec![Segment { length: extent, slots }] } else { segments.to_vec() };
        let sum = |of: fn(&Segment) -> usize| segments.iter().try_fold(0_usize, |sum, part| sum.checked_add(of(part)));
        let fits = segments.iter().all(|segment| segment.length <= segment.slots);
        (fits && sum(|part| part.length)? == extent && sum(|part| part.slots)? <= slots).then_some(Self {
            digits: own,
            segments,
            slots,
        })
    }

    /// Whether each index has a slot and each slot an index.
    pub(crate) fn is_full(&self) -> bool {
        self.segments.iter().map(|segment| segment.length).sum::<usize>() == self.slots
    }

    /// Where a slot is, in elements.
    fn place(&self, slot: usize) -> usize {
        self.digits.iter().map(|(digit, memory)| slot / digit.stride % digit.extent * memory).sum()
    }

    /// The finest digit's extent and stride in memory.
    fn finest(&self) -> (usize, usize) {
        self.digits.first().map_or((1, 0), |(digit, memory)| (digit.extent, *memory))
    }

    /// Slots until the finest digit wraps.
    fn until_wrap(&self, slot: usize) -> usize {
        let (extent, _) = self.finest();
        extent - slot % extent
    }

    /// The slot of an index, and how many indices from there on are in a row.
    fn slot(&self, index: usize) -> (usize, usize) {
        let (mut start, mut slot) = (0, 0);
        for segment in &self.segments {
            if index < start + segment.length {
                return (slot + index - start, start + segment.length - index);
            }
            start += segment.length;
            slot += segment.slots;
        }
        (slot, 1)
    }

    /// The longest run from an index on.
    pub(crate) fn run(&self, index: usize) -> Run {
        let (slot, left) = self.slot(index);
        let count = left.min(self.until_wrap(slot));
        Run { place: self.place(slot) as isize, count, step: self.finest().1 as isize }
    }

    /// Stretches of slots without an index: start and length.
    fn gaps(&self) -> Vec<(usize, usize)> {
        let mut gaps = Vec::new();
        let mut slot = 0;
        for segment in &self.segments {
            gaps.push((slot + segment.length, segment.slots - segment.length));
            slot += segment.slots;
        }
        gaps.push((slot, self.slots - slot));
        gaps.retain(|&(_, length)| length > 0);
        gaps
    }
}

/// All elements of an axis of `extent` indices, given the runs of both sides; `None` where they are too many.
///
/// An axis that is walked backwards on one side goes element by element: movements know no negative strides.
pub(crate) fn moves(from: impl Fn(usize) -> Run, to: impl Fn(usize) -> Run, extent: usize) -> Option<Vec<Pattern>> {
    let mut runs = Vec::new();
    let mut index = 0;
    while index < extent {
        let (source, target) = (from(index), to(index));
        let backwards = source.step < 0 || target.step < 0;
        let count = if backwards { 1 } else { source.count.min(target.count).min(extent - index) };
        let step = Step { count, from: source.step, to: target.step };
        runs.push(pattern(source.place, target.place, step));
        index += count;
        if runs.len() > MOST_RUNS {
            return None;
        }
    }
    Some(compressed(runs))
}

/// The slots of a side that have an index, as places of the destination.
pub(crate) fn used(side: &Side) -> Option<Vec<Pattern>> {
    let mut runs = Vec::new();
    let mut slot = 0;
    for segment in &side.segments {
        stretch(side, slot, segment.length, &mut runs)?;
        slot += segment.slots;
    }
    Some(compressed(runs))
}

/// The slots of a side that have none.
pub(crate) fn unused(side: &Side) -> Option<Vec<Pattern>> {
    let mut runs = Vec::new();
    for (start, length) in side.gaps() {
        stretch(side, start, length, &mut runs)?;
    }
    Some(compressed(runs))
}

/// All slots of a side.
pub(crate) fn all(side: &Side) -> Option<Vec<Pattern>> {
    let mut runs = Vec::new();
    stretch(side, 0, side.slots, &mut runs)?;
    Some(compressed(runs))
}

fn stretch(side: &Side, start: usize, length: usize, runs: &mut Vec<Pattern>) -> Option<()> {
    let (mut slot, end) = (start, start + length);
    while slot < end {
        let count = side.until_wrap(slot).min(end - slot);
        runs.push(pattern(0, side.place(slot) as isize, Step { count, from: 0, to: side.finest().1 as isize }));
        slot += count;
        if runs.len() > MOST_RUNS {
            return None;
        }
    }
    Some(())
}

fn pattern(from: isize, to: isize, step: Step) -> Pattern {
    let steps = if step.count == 1 { SmallVec::new() } else { SmallVec::from_slice(&[step]) };
    Pattern { from, to, steps }
}

/// The same elements in fewer patterns.
fn compressed(mut patterns: Vec<Pattern>) -> Vec<Pattern> {
    loop {
        let before = patterns.len();
        let mut fewer: Vec<Pattern> = Vec::with_capacity(before);
        let mut rest = patterns.as_slice();
        while let Some(first) = rest.first() {
            let count = progression(rest);
            let mut joint = first.clone();
            if let (true, Some(second)) = (count > 1, rest.get(1)) {
                joint.steps.insert(0, Step { count, from: second.from - first.from, to: second.to - first.to });
            }
            fewer.push(joint);
            rest = &rest[count..];
        }
        patterns = fewer;
        if patterns.len() == before {
            return patterns;
        }
    }
}

/// How many patterns from the first on are alike and equally far apart.
fn progression(patterns: &[Pattern]) -> usize {
    let [first, second, ..] = patterns else { return patterns.len() };
    let ahead = |a: isize, b: isize| b.checked_sub(a).filter(|distance| *distance >= 0);
    let distance = |a: &Pattern, b: &Pattern| Some((ahead(a.from, b.from)?, ahead(a.to, b.to)?));
    let wanted = distance(first, second);
    let alike = |pair: &[Pattern]| match pair {
        [a, b] => a.steps == b.steps && wanted.is_some() && distance(a, b) == wanted,
        _ => false,
    };
    1 + patterns.windows(2).take_while(|pair| alike(pair)).count()
}
