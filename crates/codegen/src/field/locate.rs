//! From the index of an element to its place, and from place to place in the order of memory.
//!
//! Where stride and extent of a digit are powers of two it is taken by a shift and a mask, else by a division. Invariant: the
//! digits of each axis are a mixed radix with a slot for each index, as [`crate::relayout()`] checks it too.

use crate::order::{Digit, Order};
use crate::pattern::Side;

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
    /// The locator of an order whose digits from the one at `depth` on are all `wide` times as far apart, but those after it.
    ///
    /// That is the order of a group of `wide` fields with the field as digit number `depth`. `None` if the order does not
    /// spell the shape, or has segments.
    pub(super) fn new(shape: &[usize], order: &Order, depth: usize, wide: usize) -> Option<Self> {
        if !order.segments.is_empty() || order.digits.iter().any(|digit| digit.axis >= shape.len()) {
            return None;
        }
        let mut memory = 1_usize;
        let mut parts: Vec<Part> = Vec::with_capacity(order.digits.len());
        let mut plain: Vec<(Digit, usize)> = Vec::new();
        for (at, digit) in order.digits.iter().enumerate().rev() {
            if at + 1 == depth {
                memory = memory.checked_mul(wide)?;
            }
            plain.push((*digit, memory));
            parts.push(part(*digit, memory));
            memory = memory.checked_mul(digit.extent)?;
        }
        parts.reverse();
        let spelled = |(axis, &extent): (usize, &usize)| Side::new(&plain, &[], axis, extent).is_some();
        shape.iter().enumerate().all(spelled).then(|| Self { shape: shape.to_vec(), parts })
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

fn part(digit: Digit, memory: usize) -> Part {
    let Digit { axis, extent, stride } = digit;
    let bits = extent.is_power_of_two() && stride.is_power_of_two();
    let take = if bits { Take::Bits { shift: stride.trailing_zeros(), mask: extent - 1 } } else { Take::Divide };
    Part { axis, take, extent, stride, memory }
}
