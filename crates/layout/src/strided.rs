//! Axes as strided digits: what is left of a layout when only offsets matter.
//!
//! An axis is a list of [`Part`]s, most significant first: its index is the mixed-radix number of the parts' values. A
//! part is one or more [`Step`]s: the value within it is written in digits, and each digit times its stride adds to the
//! offset. A part of several steps is one that its blocks do not divide (20 channels by 16), so it cannot be taken
//! apart. Pad slots are in the strides only.

use smallvec::{SmallVec, smallvec};

use super::blocks::{self, Spelling};
use super::chain::{self, Link};
use super::{Layout, Refusal};
use crate::dim::Dim;

/// A digit and what one step of it adds to the offset, in elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// Values of the digit. That of the outermost step of a part follows from the part.
    pub(super) extent: Dim,
    pub(super) stride: Dim,
}

/// A part of a tensor, as the [module](self) describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) valid: Dim,
    pub(super) steps: SmallVec<[Step; 2]>,
}

impl Part {
    pub(super) fn plain(valid: Dim, stride: Dim) -> Part {
        Part { valid: valid.clone(), steps: smallvec![Step { extent: valid, stride }] }
    }

    pub(super) fn is_plain(&self) -> bool {
        self.steps.len() == 1
    }

    /// Cuts `need` values off the inner end: (outer, inner); `None` where no digit ends there.
    pub(super) fn cut(mut self, need: &Dim) -> Option<(Part, Part)> {
        let outer = self.valid.exact_div(need)?;
        let mut open = need.clone();
        let mut taken: SmallVec<[Step; 2]> = SmallVec::new();
        while !open.is_one() {
            let step = self.steps.pop()?;
            if self.steps.is_empty() {
                // The outermost step is linear without end, so any boundary fits.
                let stride = open.checked_mul(&step.stride)?;
                self.steps.push(Step { extent: outer.clone(), stride });
                taken.push(Step { extent: open, stride: step.stride });
                break;
            }
            if let Some(rest) = open.exact_div(&step.extent) {
                open = rest;
                taken.push(step);
            } else {
                let extent = step.extent.exact_div(&open)?;
                let stride = open.checked_mul(&step.stride)?;
                taken.push(Step { extent: open, stride: step.stride });
                self.steps.push(Step { extent, stride });
                break;
            }
        }
        taken.reverse();
        if let [only] = self.steps.as_mut_slice() {
            only.extent = outer.clone();
        }
        let inner = Part { valid: need.clone(), steps: taken };
        Some((Part { valid: outer, steps: self.steps }, inner))
    }
}

/// The parts of every axis of a layout for a shape, merged where strides continue. Refused for unequal segments.
pub(super) fn parts_of(layout: &Layout, shape: &[Dim]) -> Result<Vec<Vec<Part>>, Refusal> {
    let spelling = blocks::spell(layout, shape)?;
    if let Some(axis) = spelling.iter().position(|blocks| blocks.iter().any(|block| block.segments.is_some())) {
        return Err(Refusal::CutsSegments { axis });
    }
    let strides = strides_of(&spelling).ok_or(Refusal::Overflow)?;
    let mut axes = Vec::with_capacity(spelling.len());
    for blocks in spelling {
        let mut parts = Vec::with_capacity(blocks.len());
        for block in blocks.into_iter().filter(|block| !block.valid.is_one()) {
            let mut steps: SmallVec<[Step; 2]> = SmallVec::new();
            for digit in block.digits {
                let step = Step { extent: digit.extent, stride: strides[digit.place.0 as usize].clone() };
                let span = step.extent.checked_mul(&step.stride);
                match steps.last_mut().filter(|outer| Some(&outer.stride) == span.as_ref()) {
                    Some(outer) => {
                        outer.extent = outer.extent.checked_mul(&step.extent).ok_or(Refusal::Overflow)?;
                        outer.stride = step.stride;
                    }
                    None => steps.push(step),
                }
            }
            let plain = steps.len() == 1;
            let mut part = Part { valid: block.valid, steps };
            if plain {
                part.steps[0].extent = part.valid.clone();
            }
            parts.push(part);
        }
        axes.push(chain::merge(parts)?);
    }
    Ok(axes)
}

/// Strides by place; the places are numbered without gaps.
fn strides_of(spelling: &Spelling) -> Option<Vec<Dim>> {
    let mut digits: Vec<_> = spelling.iter().flatten().flat_map(|block| &block.digits).collect();
    digits.sort_by_key(|digit| digit.place);
    let mut strides = vec![Dim::ONE; digits.len()];
    let mut span = Dim::ONE;
    for (at, digit) in digits.iter().enumerate().rev() {
        strides[at] = span.clone();
        span = span.checked_mul(&digit.extent)?;
    }
    Some(strides)
}

impl Link for Part {
    fn values(&self) -> &Dim {
        &self.valid
    }

    /// A plain part continues the one before it where the strides continue.
    fn join(&mut self, next: &Part) -> Result<bool, Refusal> {
        let ([inner], Some(outer)) = (next.steps.as_slice(), self.steps.last_mut()) else { return Ok(false) };
        if next.valid.checked_mul(&inner.stride).as_ref() != Some(&outer.stride) {
            return Ok(false);
        }
        self.valid = self.valid.checked_mul(&next.valid).ok_or(Refusal::Overflow)?;
        outer.extent = outer.extent.checked_mul(&next.valid).ok_or(Refusal::Overflow)?;
        outer.stride = inner.stride.clone();
        Ok(true)
    }
}
