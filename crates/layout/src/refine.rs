//! Two layouts of one value: their common refinement, and the map between their storages.
//!
//! A relayout moves the digits of which both layouts are orders. [`Layout::common_refinement`] finds the coarsest such
//! digits, with the stride that each has on either side; a code generator drops, sorts and merges them as it likes.

use super::strided::{self, Part, Step};
use super::{BoundLayout, Layout, LayoutError, Refusal};
use crate::dim::Dim;

/// A digit that both layouts move as a whole. Its value at index `i` of the axis is
/// `i / part_div % part_extent / div % extent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefinedDigit {
    /// The logical axis.
    pub axis: usize,
    /// Where the part of the axis begins that the digit belongs to; most axes are one part.
    pub part_div: Dim,
    /// Values of the part: coordinates past it are pad.
    pub part_extent: Dim,
    /// Indices of the part that one step of the digit spans.
    pub div: Dim,
    /// Values of the digit. Digits of a part may span more than it has; then the last value of the outermost one is
    /// cut short.
    pub extent: Dim,
    /// Elements between neighbours in the left layout.
    pub left_stride: Dim,
    /// Elements between neighbours in the right layout.
    pub right_stride: Dim,
}

/// The common refinement of two layouts for a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refinement {
    /// Digits axis by axis, most significant first; axes of one element have none.
    pub digits: Vec<RefinedDigit>,
    /// Elements of the left storage, pad included.
    pub left_elems: Dim,
    /// Elements of the right storage, pad included.
    pub right_elems: Dim,
}

impl Layout {
    /// The coarsest digits of which both layouts are orders. An axis with the same unequal segments on both sides is
    /// refined by slots, pad included. Refused where digits overlap (blocks of 16 and of 24).
    pub fn common_refinement(&self, other: &Layout, shape: &[Dim]) -> Result<Refinement, Refusal> {
        let (left, right, slots) = self.over_slots(other, shape);
        if shape.contains(&Dim::ZERO) {
            return Ok(Refinement { digits: Vec::new(), left_elems: Dim::ZERO, right_elems: Dim::ZERO });
        }
        let left_parts = strided::parts_of(&left, &slots)?;
        let right_parts = strided::parts_of(&right, &slots)?;
        let mut digits = Vec::new();
        for (axis, (left, right)) in left_parts.into_iter().zip(right_parts).enumerate() {
            refine_axis(axis, left, right, &mut digits)?;
        }
        Ok(Refinement { digits, left_elems: self.storage_elems(shape)?, right_elems: other.storage_elems(shape)? })
    }

    /// Elements of the storage for a shape that may be symbolic.
    pub fn storage_elems(&self, shape: &[Dim]) -> Result<Dim, Refusal> {
        if shape.len() != self.rank() {
            return Err(LayoutError::RankMismatch { layout: self.rank(), shape: shape.len() }.into());
        }
        let mut elems = Dim::ONE;
        for (axis, extent) in shape.iter().enumerate() {
            let slots = if let Some(segments) = self.slot_map(axis) {
                Dim::from(segments.iter().map(|segment| segment.slots).sum::<u64>() as i64)
            } else {
                let block = Dim::from(self.block_of(axis) as i64);
                let blocks = extent.exact_div(&block).or_else(|| extent.ceil_div(block.as_const()?));
                blocks.and_then(|n| n.checked_mul(&block)).ok_or(Refusal::Overflow)?
            };
            elems = elems.checked_mul(&slots).ok_or(Refusal::Overflow)?;
        }
        Ok(elems)
    }

    /// Both without the slot maps that they share, over slots in place of indices.
    fn over_slots(&self, other: &Layout, shape: &[Dim]) -> (Layout, Layout, Vec<Dim>) {
        let (mut left, mut right, mut slots) = (self.clone(), other.clone(), shape.to_vec());
        for (axis, extent) in slots.iter_mut().enumerate() {
            let shared = self.slot_map(axis).filter(|map| Some(*map) == other.slot_map(axis));
            let fits = shared.filter(|map| extent.as_const() == Some(map.iter().map(|s| s.len).sum::<u64>() as i64));
            if let Some(map) = fits {
                *extent = Dim::from(map.iter().map(|segment| segment.slots).sum::<u64>() as i64);
                left = left.without_slot_map(axis);
                right = right.without_slot_map(axis);
            }
        }
        (left, right, slots)
    }
}

fn overlap(axis: usize, left: &Dim, right: &Dim) -> Refusal {
    Refusal::NoRefinement { axis, left: left.to_string(), right: right.to_string() }
}

fn refine_axis(
    axis: usize,
    mut left: Vec<Part>,
    mut right: Vec<Part>,
    digits: &mut Vec<RefinedDigit>,
) -> Result<(), Refusal> {
    let mut found: Vec<RefinedDigit> = Vec::new();
    let mut part_div = Dim::ONE;
    while let (Some(mut a), Some(mut b)) = (left.pop(), right.pop()) {
        let clash = overlap(axis, &a.valid, &b.valid);
        if a.valid != b.valid {
            let (wide, narrow, stack) =
                if a.valid.exact_div(&b.valid).is_some() { (&mut a, &b, &mut left) } else { (&mut b, &a, &mut right) };
            let (outer, inner) = wide.clone().cut(&narrow.valid).ok_or(clash)?;
            stack.push(outer);
            *wide = inner;
        }
        let extent = a.valid.clone();
        refine_part(axis, &part_div, a, b, &mut found)?;
        part_div = part_div.checked_mul(&extent).ok_or(Refusal::Overflow)?;
    }
    digits.extend(found.into_iter().rev());
    Ok(())
}

/// Digits of one part, least significant first.
fn refine_part(
    axis: usize,
    part_div: &Dim,
    mut left: Part,
    mut right: Part,
    found: &mut Vec<RefinedDigit>,
) -> Result<(), Refusal> {
    let part_extent = left.valid.clone();
    let mut div = Dim::ONE;
    while let (Some(mut a), Some(mut b)) = (left.steps.pop(), right.steps.pop()) {
        let (a_outer, b_outer) = (left.steps.is_empty(), right.steps.is_empty());
        let clash = overlap(axis, &a.extent, &b.extent);
        let mut extent = a.extent.clone();
        match (a_outer, b_outer) {
            // What is left of the part; a pad slot of a block needs no step of its own.
            (true, true) => extent = div_up(&part_extent, &div).ok_or(Refusal::Overflow)?,
            (true, false) => {
                extent = b.extent.clone();
                left.steps.push(beyond(&a, &extent, Dim::ONE).ok_or(Refusal::Overflow)?);
            }
            (false, true) => right.steps.push(beyond(&b, &extent, Dim::ONE).ok_or(Refusal::Overflow)?),
            (false, false) if a.extent == b.extent => {}
            (false, false) => {
                let (wide, narrow, stack) = if a.extent.exact_div(&b.extent).is_some() {
                    (&mut a, &b, &mut left.steps)
                } else {
                    (&mut b, &a, &mut right.steps)
                };
                extent = narrow.extent.clone();
                let rest = wide.extent.exact_div(&extent).ok_or(clash)?;
                stack.push(beyond(wide, &extent, rest).ok_or(Refusal::Overflow)?);
            }
        }
        found.push(RefinedDigit {
            axis,
            part_div: part_div.clone(),
            part_extent: part_extent.clone(),
            div: div.clone(),
            extent: extent.clone(),
            left_stride: a.stride,
            right_stride: b.stride,
        });
        div = div.checked_mul(&extent).ok_or(Refusal::Overflow)?;
    }
    Ok(())
}

/// The outer rest of a step after `inner` of its values.
fn beyond(step: &Step, inner: &Dim, extent: Dim) -> Option<Step> {
    Some(Step { extent, stride: inner.checked_mul(&step.stride)? })
}

fn div_up(extent: &Dim, div: &Dim) -> Option<Dim> {
    extent.exact_div(div).or_else(|| extent.ceil_div(div.as_const()?))
}

/// Where the element at an offset of one storage lies in another: the map that a relayout carries out.
///
/// Maps over one shape form a groupoid: [`IndexMap::inverse`] undoes, [`IndexMap::then`] composes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexMap {
    from: BoundLayout,
    to: BoundLayout,
}

impl IndexMap {
    /// The map from the storage of `from` to the storage of `to`, for one shape.
    pub fn new(from: &Layout, to: &Layout, shape: &[i64]) -> Result<IndexMap, LayoutError> {
        Ok(IndexMap { from: from.bind(shape)?, to: to.bind(shape)? })
    }

    /// The map from logical row-major indices to the storage of `to`.
    pub fn to_storage(to: &Layout, shape: &[i64]) -> Result<IndexMap, LayoutError> {
        IndexMap::new(&Layout::row_major(shape.len()), to, shape)
    }

    /// Where the element at `offset` goes; `None` for a pad slot and past the end.
    pub fn apply(&self, offset: u64) -> Option<u64> {
        self.to.offset(&self.from.coordinate(offset)?)
    }

    /// The way back.
    #[must_use]
    pub fn inverse(&self) -> IndexMap {
        IndexMap { from: self.to.clone(), to: self.from.clone() }
    }

    /// First this, then `next`; `None` unless `next` starts in the storage that this one ends in.
    pub fn then(&self, next: &IndexMap) -> Option<IndexMap> {
        (self.to == next.from).then(|| IndexMap { from: self.from.clone(), to: next.to.clone() })
    }

    /// The storages at both ends.
    pub fn ends(&self) -> (&BoundLayout, &BoundLayout) {
        (&self.from, &self.to)
    }

    /// Offsets of the source for the slots of the destination, in order; `None` for pad slots.
    pub fn gather(&self) -> impl Iterator<Item = Option<u64>> + '_ {
        (0..self.to.storage_elems()).map(|slot| self.from.offset(&self.to.coordinate(slot)?))
    }
}
