//! The form that every generated kernel is made from.
//!
//! A [`Movement`] is a loop nest without a body: axes in the order of the destination, with their strides in *bytes* on both sides,
//! and the word that one step moves. It is a plan seen by the generator: rows are widened to words of up to 16 bytes, wide units cut
//! down to them, and a blocked layout is a nest whose innermost channel digit may run past the channels that exist ([`Crop`]).
//!
//! Invariants: extents are above 1, but for the outer axis of a crop; `elem` is a power of two from 1 to 16; strides are multiples
//! of `elem`; without a crop the nest is dense on both sides.

use super::{BlockedPlan, CudaError, Direction};
use crate::{Class, Plan};

/// An axis with its strides in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) extent: usize,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// Two axes that are digits of one logical axis which ends before they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Crop {
    /// The axis that counts blocks.
    pub(super) outer: usize,
    /// The axis that counts inside a block.
    pub(super) inner: usize,
    /// How many indices exist: `outer * extent of inner + inner` is below.
    pub(super) limit: usize,
    /// True where the destination has the padding slots and is to be zero there; false where the source has them.
    pub(super) pads_destination: bool,
}

/// What has to be moved; see the module's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Movement {
    pub(super) elem: usize,
    pub(super) axes: Vec<Axis>,
    pub(super) crop: Option<Crop>,
    pub(super) source_bytes: usize,
    pub(super) destination_bytes: usize,
    /// What it is, for people: one line.
    pub(super) text: String,
    /// A word of letters and digits that tells it from others of the same extents.
    pub(super) tag: String,
}

impl Movement {
    /// The movement of a plan for buffers aligned to `alignment` bytes. A copy has no axes.
    pub(super) fn from_plan(plan: &Plan, alignment: usize) -> Result<Self, CudaError> {
        if plan.class() == Class::Nothing {
            return Err(CudaError::Empty);
        }
        let unit = plan.unit_bytes();
        let elem = unit.min(alignment);
        let mut input = Vec::with_capacity(plan.extents().len());
        let mut from = unit;
        for &extent in plan.extents().iter().rev() {
            input.push((extent, from));
            from *= extent;
        }
        input.reverse();
        let mut axes = Vec::with_capacity(input.len() + 1);
        if plan.class() != Class::Copy {
            let mut to = unit;
            for &(extent, from) in plan.perm().iter().rev().filter_map(|&axis| input.get(axis)) {
                axes.push(Axis { extent, from, to });
                to *= extent;
            }
            axes.reverse();
            if elem < unit {
                axes.push(Axis { extent: unit / elem, from: elem, to: elem });
            }
        }
        let tag = plan.perm().iter().map(ToString::to_string).collect::<Vec<_>>().join("_");
        let (bytes, text) = (plan.bytes(), plan.to_string());
        let mut movement = Self { elem, axes, crop: None, source_bytes: bytes, destination_bytes: bytes, text, tag };
        movement.widen(alignment);
        Ok(movement)
    }

    /// The movement of a blocked layout for buffers aligned to `alignment` bytes.
    pub(super) fn from_blocked(plan: &BlockedPlan, alignment: usize) -> Result<Self, CudaError> {
        let &BlockedPlan { direction, batch, channels, spatial, block, elem_bytes } = plan;
        if !(2..=64).contains(&block) || !elem_bytes.is_power_of_two() || elem_bytes > 16 {
            return Err(CudaError::Block { block, elem_bytes });
        }
        let blocks = channels.div_ceil(block);
        let bytes = |channels: usize| {
            [channels, spatial, elem_bytes].iter().try_fold(batch, |bytes, &by| bytes.checked_mul(by))
        };
        let padded = blocks.checked_mul(block).and_then(bytes).filter(|&bytes| isize::try_from(bytes).is_ok());
        let (Some(plain), Some(padded)) = (bytes(channels), padded) else {
            return Err(CudaError::TooLarge { count: u128::from(u64::MAX) });
        };
        if plain == 0 {
            return Err(CudaError::Empty);
        }
        let elem = elem_bytes.min(alignment);
        let pixel = elem_bytes;
        // Strides of image, channel block, channel in it, and pixel.
        let plain_strides = [channels * spatial * pixel, block * spatial * pixel, spatial * pixel, pixel];
        let blocked_strides = [blocks * spatial * block * pixel, spatial * block * pixel, pixel, block * pixel];
        let extents = [batch, blocks, block, spatial];
        let pack = direction == Direction::Pack;
        let (from, to) = if pack { (plain_strides, blocked_strides) } else { (blocked_strides, plain_strides) };
        let axis = |at: usize| Axis { extent: extents[at], from: from[at], to: to[at] };
        let mut axes = vec![axis(0), axis(1)];
        axes.extend(if pack { [axis(3), axis(2)] } else { [axis(2), axis(3)] });
        let inner = if pack { 3 } else { 2 };
        let crop = (channels % block != 0).then_some(Crop { outer: 1, inner, limit: channels, pads_destination: pack });
        if elem < elem_bytes {
            axes.push(Axis { extent: elem_bytes / elem, from: elem, to: elem });
        }
        let verb = if pack { "pack" } else { "unpack" };
        let text = plan.to_string();
        let (source_bytes, destination_bytes) = if pack { (plain, padded) } else { (padded, plain) };
        let tag = format!("{verb}{block}");
        let mut movement = Self { elem, axes, crop, source_bytes, destination_bytes, text, tag };
        movement.drop_ones();
        movement.merge();
        // Which axes are left shows in the order that they have in the source.
        for axis in movement.by_source() {
            movement.tag.push('_');
            movement.tag.push_str(&axis.to_string());
        }
        Ok(movement)
    }

    /// Axes in the order of the source, innermost first.
    pub(super) fn by_source(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.axes.len()).collect();
        order.sort_by_key(|&axis| (self.axes[axis].from, std::cmp::Reverse(axis)));
        order
    }

    /// Axes in the order of the destination, innermost first.
    pub(super) fn by_destination(&self) -> Vec<usize> {
        (0..self.axes.len()).rev().collect()
    }

    /// Widens the word where the innermost axis stays innermost, as far as its row and the alignment allow.
    fn widen(&mut self, alignment: usize) {
        let Some(&last) = self.axes.last() else { return };
        if last.from != self.elem || last.to != self.elem {
            return;
        }
        let row = last.extent * self.elem;
        let word = (1 << row.trailing_zeros().min(4)).min(alignment);
        let extent = row / word;
        self.axes.pop();
        if extent > 1 {
            self.axes.push(Axis { extent, from: word, to: word });
        }
        self.elem = word;
    }

    /// Axes of one element go, unless a crop counts by them.
    fn drop_ones(&mut self) {
        for at in (0..self.axes.len()).rev() {
            let cropped = self.crop.is_some_and(|crop| crop.outer == at || crop.inner == at);
            if self.axes[at].extent == 1 && !cropped {
                self.axes.remove(at);
                if let Some(crop) = &mut self.crop {
                    crop.outer -= usize::from(crop.outer > at);
                    crop.inner -= usize::from(crop.inner > at);
                }
            }
        }
    }

    /// Neighbours that travel together become one; a nest with a crop stays as it is.
    fn merge(&mut self) {
        if self.crop.is_some() {
            return;
        }
        let mut merged: Vec<Axis> = Vec::with_capacity(self.axes.len());
        for &axis in &self.axes {
            match merged.last_mut() {
                Some(outer) if outer.from == axis.from * axis.extent && outer.to == axis.to * axis.extent => {
                    *outer = Axis { extent: outer.extent * axis.extent, ..axis };
                }
                _ => merged.push(axis),
            }
        }
        if let [only] = merged.as_slice()
            && only.from == only.to
        {
            merged.clear();
        }
        self.axes = merged;
    }
}
