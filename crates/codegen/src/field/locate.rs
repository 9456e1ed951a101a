//! From the index of an element to its place, and from place to place in the order of memory.
//!
//! Where stride and extent of a digit are powers of two it is taken by a shift and a mask, else by a division. Invariant: the
//! digits of each axis are a mixed radix with a slot for each index, as a view without segments has them.

use relayout_layout::storage::{StorageView, ViewFactor};

/// A digit, and what a step of it is in memory, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    axis: usize,
    take: Take,
    extent: usize,
    /// Along the axis.
    stride: usize,
    memory: usize,
}

/// How a digit is taken from an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Take {
    /// Both are powers of two.
    Bits {
        /// The power that the stride is.
        shift: u32,
        /// One less than the extent.
        mask: usize,
    },
    /// They are not.
    Divide,
}

/// Where the elements of a field are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Locator {
    shape: Vec<usize>,
    /// Outermost first.
    parts: Vec<Part>,
}

impl Locator {
    /// The locator of a view, but for its offset.
    pub(super) fn new(view: &StorageView) -> Self {
        let mut parts: Vec<Part> = view.factors().iter().map(part).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.memory));
        Self { shape: view.shape().iter().map(|&extent| extent as usize).collect(), parts }
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The place of an index of the shape.
    #[inline]
    pub(super) fn offset(&self, index: &[usize]) -> usize {
        let digit = |part: &Part| {
            let index = index.get(part.axis).copied().unwrap_or(0);
            let digit = match part.take {
                Take::Bits { shift, mask } => index >> shift & mask,
                Take::Divide => index / part.stride % part.extent,
            };
            digit * part.memory
        };
        self.parts.iter().map(digit).sum()
    }

    /// All indices of the shape with their places, from the first place on.
    pub(super) fn walk<const R: usize>(&self) -> impl Iterator<Item = ([usize; R], usize)> + use<'_, R> {
        let slots = self.parts.iter().map(|part| part.extent).product::<usize>();
        let element = move |slot: usize| {
            let (mut index, mut offset, mut rest) = ([0; R], 0, slot);
            for part in self.parts.iter().rev() {
                let digit = rest % part.extent;
                rest /= part.extent;
                offset += digit * part.memory;
                *index.get_mut(part.axis)? += digit * part.stride;
            }
            let inside = index.iter().zip(&self.shape).all(|(index, extent)| index < extent);
            inside.then_some((index, offset))
        };
        (0..slots).filter_map(element)
    }
}

/// Digits of an order count forwards, so nothing is negative.
fn part(factor: &ViewFactor) -> Part {
    let (extent, stride, memory) = (factor.extent as usize, factor.div as usize, factor.stride as usize);
    let bits = extent.is_power_of_two() && stride.is_power_of_two();
    let take = if bits { Take::Bits { shift: stride.trailing_zeros(), mask: extent - 1 } } else { Take::Divide };
    Part { axis: factor.axis, take, extent, stride, memory }
}
