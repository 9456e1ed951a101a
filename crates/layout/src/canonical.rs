//! One form per arrangement of the elements.
//!
//! Two layouts may spell the same storage: a size-1 axis may stand anywhere, digits that lie together are one, and pad
//! slots between two digits may belong to either of the axes. [`Layout::canonical`] picks one spelling:
//! - digits of one value are gone; digits that lie together are one;
//! - a size-1 axis stands before the next axis, and outermost where all before it are of size 1, so that plain row-major stays
//!   row-major;
//! - pad slots belong to the digit inside of them; inside of all digits, to the last size-1 axis, else the last axis.
//!
//! For constant extents two layouts then have equal forms iff they put every element at the same offset of a storage
//! of the same size: where pad is possible the form is derived from the offsets of each axis, not from the spelling.
//! (Two padded layouts keep their slot maps as spelled: those whose segments are cut across by a block, and those with
//! more than 65536 indices in all axes together. [`Layout::equivalent`] then still compares offsets.) Symbolic extents are taken to be anything, so only what holds
//! for all of them is merged.

use smallvec::SmallVec;

use super::blocks::{self, Block, Spelling};
use super::chain;
use super::{Factor, Layout, Segment};
use crate::dim::Dim;

/// Most indices, over all axes, that are listed to find a form.
const MAX_LISTED: u64 = 1 << 16;

/// Most digits that an axis is taken to have.
const MAX_CHAIN: usize = 64;

impl Layout {
    /// The one form of this arrangement for a shape: size-1 axes stand where row-major order has them, digits that lie together
    /// are one, pad slots belong to the digit inside of them. A layout that does not fit the shape is given back as it
    /// is.
    #[must_use]
    pub fn canonical(&self, shape: &[Dim]) -> Layout {
        if self.is_row_major() {
            return self.clone();
        }
        if shape.len() == self.rank() && shape.contains(&Dim::ZERO) {
            return Layout::row_major(self.rank());
        }
        let constant: Option<Vec<i64>> = shape.iter().map(Dim::as_const).collect();
        let listed = constant.filter(|extents| self.pads(extents)).and_then(|extents| form_of_offsets(self, &extents));
        listed.or_else(|| self.form_of_digits(shape)).unwrap_or_else(|| self.clone())
    }

    /// Whether storage has pad slots for these extents.
    fn pads(&self, extents: &[i64]) -> bool {
        !self.spelled.slots.is_empty()
            || extents.iter().enumerate().any(|(axis, extent)| {
                u64::try_from(*extent).is_ok_and(|extent| !extent.is_multiple_of(self.block_of(axis)))
            })
    }

    /// The form by merging digits, which needs no values: all there is to do where no slot is pad.
    fn form_of_digits(&self, shape: &[Dim]) -> Option<Layout> {
        let spelling = blocks::spell(self, shape).ok()?;
        let merged = spelling.into_iter().map(chain::merge).collect::<Result<_, _>>().ok()?;
        blocks::assemble(merged, shape).ok()
    }

    /// Whether both put every element of this shape at the same offset, in storage of the same size. With symbolic
    /// extents: whether that holds for all their values, as far as canonical forms tell.
    pub fn equivalent(&self, other: &Layout, shape: &[Dim]) -> bool {
        if self == other {
            return true;
        }
        if let Some(equal) = self.same_order(other, shape) {
            return equal;
        }
        let constant: Option<SmallVec<[i64; 6]>> = shape.iter().map(Dim::as_const).collect();
        // Forms take time to find, and most pairs that are asked about are a move.
        if constant.as_deref().is_some_and(|extents| plainly_differ(self, other, extents)) {
            return false;
        }
        if self.canonical(shape) == other.canonical(shape) {
            return true;
        }
        // Forms without pad are unique.
        match constant {
            Some(extents) if self.may_pad() || other.may_pad() => same_offsets(self, other, &extents),
            _ => false,
        }
    }
}

impl Layout {
    /// The same for two orders of whole axes, of which only those of size 1 have no place; `None` for other layouts, and where
    /// there is no element.
    fn same_order(&self, other: &Layout, shape: &[Dim]) -> Option<bool> {
        let fits = |layout: &Layout| layout.rank() == shape.len() && !layout.may_pad();
        if !fits(self) || !fits(other) || shape.contains(&Dim::ZERO) {
            return None;
        }
        let placed = |f: &&Factor| shape.get(usize::from(f.axis)).is_some_and(|dim| !dim.is_one());
        Some(self.factors().iter().filter(placed).eq(other.factors().iter().filter(placed)))
    }
}

/// Whether the size of the storage, or the place of the first step or the last index of an axis, tells them apart.
fn plainly_differ(left: &Layout, right: &Layout, shape: &[i64]) -> bool {
    // Without elements there is nothing to be placed.
    if shape.contains(&0) {
        return false;
    }
    let (Ok(left), Ok(right)) = (left.bind(shape), right.bind(shape)) else { return false };
    let differs = |axis, index| left.axis_offset(axis, index) != right.axis_offset(axis, index);
    left.storage_elems() != right.storage_elems()
        || left.shape().iter().enumerate().any(|(axis, extent)| differs(axis, 1) || differs(axis, extent - 1))
}

fn same_offsets(left: &Layout, right: &Layout, shape: &[i64]) -> bool {
    let (Ok(left), Ok(right)) = (left.bind(shape), right.bind(shape)) else { return false };
    left.storage_elems() == right.storage_elems()
        && left.shape().iter().enumerate().all(|(axis, extent)| {
            (0..*extent).all(|index| left.axis_offset(axis, index) == right.axis_offset(axis, index))
        })
}

/// The form of what the offsets alone say; `None` where the extents are too long to list or the offsets are no
/// mixed-radix number of any slots.
fn form_of_offsets(layout: &Layout, shape: &[i64]) -> Option<Layout> {
    let bound = layout.bind(shape).ok()?;
    if bound.shape().iter().sum::<u64>() > MAX_LISTED {
        return None;
    }
    let mut chains: Vec<Vec<Reach>> = Vec::with_capacity(shape.len());
    for (axis, extent) in bound.shape().iter().enumerate() {
        let offsets: Vec<u64> = (0..*extent).map(|index| bound.axis_offset(axis, index)).collect::<Option<_>>()?;
        chains.push(chain_of(&offsets)?);
    }
    let mut reaches: Vec<&mut Reach> = chains.iter_mut().flatten().collect();
    reaches.sort_by_key(|reach| std::cmp::Reverse(reach.stride));
    let mut around = bound.storage_elems();
    for (place, reach) in reaches.iter_mut().enumerate() {
        if reach.stride == 0 || !around.is_multiple_of(reach.stride) {
            return None;
        }
        (reach.slots, reach.place) = (around / reach.stride, place as u32);
        around = reach.stride;
    }
    let innermost = reaches.len() as u32;
    let mut spelling: Spelling = Vec::with_capacity(shape.len());
    for (chain, extent) in chains.iter().zip(bound.shape()) {
        spelling.push(block_of_chain(chain, *extent)?);
    }
    if around > 1 {
        // Pad inside of all digits.
        let owner = shape.iter().rposition(|extent| *extent == 1).unwrap_or(shape.len().saturating_sub(1));
        spelling.get_mut(owner)?.push(Block::of_slots(1, &[(around, innermost)], None));
    }
    let dims: Vec<Dim> = shape.iter().map(|extent| Dim::from(*extent)).collect();
    let form = blocks::assemble(spelling, &dims).ok()?;
    same_offsets(layout, &form, shape).then_some(form)
}

/// A digit as seen in the offsets of an axis: from index `div` on, steps of `stride`.
struct Reach {
    div: u64,
    stride: u64,
    slots: u64,
    place: u32,
}

/// The digits of an axis, most significant first: each begins where the ones inside of it stop telling the offsets.
/// `None` above [`MAX_CHAIN`] digits: those are no digits but a list.
fn chain_of(offsets: &[u64]) -> Option<Vec<Reach>> {
    let mut chain: Vec<Reach> = Vec::new();
    for (index, offset) in offsets.iter().enumerate().skip(1) {
        if tell(&chain, index as u64) != *offset {
            if chain.len() == MAX_CHAIN {
                return None;
            }
            chain.insert(0, Reach { div: index as u64, stride: *offset, slots: 0, place: 0 });
        }
    }
    Some(chain)
}

fn tell(chain: &[Reach], index: u64) -> u64 {
    let mut rest = index;
    let mut offset = 0;
    for reach in chain {
        offset += rest / reach.div * reach.stride;
        rest %= reach.div;
    }
    offset
}

/// The slots that a chain spells, as one block.
fn block_of_chain(chain: &[Reach], extent: u64) -> Option<Vec<Block>> {
    if chain.is_empty() {
        return Some(Vec::new());
    }
    let slot = |index: u64| {
        let (mut rest, mut slot) = (index, 0u64);
        for reach in chain {
            slot = slot * reach.slots + rest / reach.div;
            rest %= reach.div;
        }
        slot
    };
    let total: u64 = chain.iter().map(|reach| reach.slots).product();
    let mut segments: Vec<Segment> = vec![Segment { len: 1, slots: 1 }];
    for index in 1..extent {
        let step = slot(index).checked_sub(slot(index - 1)).filter(|step| *step > 0)?;
        match segments.last_mut() {
            Some(last) if step == 1 => {
                last.len += 1;
                last.slots += 1;
            }
            last => {
                last?.slots += step - 1;
                segments.push(Segment { len: 1, slots: 1 });
            }
        }
    }
    if let Some(last) = segments.last_mut() {
        last.slots += total.checked_sub(slot(extent - 1) + 1)?;
    }
    let digits: SmallVec<[(u64, u32); 4]> = chain.iter().map(|reach| (reach.slots, reach.place)).collect();
    Some(vec![Block::of_slots(extent, &digits, Some(segments))])
}
