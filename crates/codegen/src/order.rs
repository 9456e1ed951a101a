//! How a tensor lies in memory, as far as moving it needs to know: digits and slots.
//!
//! An *order* is a list of digits, outermost first, densely packed. A digit is a part of a logical axis in mixed radix: the
//! element with index `x` along the axis has the digit `x / stride % extent`. `NCHW16c` is `N, C/16, H, W, C%16`, the two digits of
//! C being `(axis 1, extent C/16, stride 16)` and `(axis 1, extent 16, stride 1)`.
//!
//! Digits spell *slots*: an axis may have more of them than elements. By default index `x` is in slot `x` and the slots after
//! the last are padding; [`Segment`]s put stretches of indices elsewhere, such as 58+58 channels in 64+64 slots.
//!
//! Invariant, checked when a move is planned: the digits of an axis, from the finest on, have strides that are the products of
//! the extents before, and their product is its slots.

use serde::{Deserialize, Serialize};

/// A part of an axis, see the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Digit {
    /// The logical axis.
    pub axis: usize,
    /// How many values it has.
    pub extent: usize,
    /// The step along the axis from one value to the next.
    pub stride: usize,
}

/// Indices that are neighbours, and the slots they begin in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Segment {
    /// How many indices it has.
    pub length: usize,
    /// How many slots it takes; not fewer.
    pub slots: usize,
}

/// How a tensor lies in memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Order {
    /// Outermost first; innermost has a memory stride of one element.
    pub digits: Vec<Digit>,
    /// For each axis its segments in the order of its indices; none for one segment. May be shorter than there are axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<Vec<Segment>>,
}

impl Order {
    /// Row-major.
    #[must_use]
    pub fn dense(shape: &[usize]) -> Self {
        Self::permuted(shape, &(0..shape.len()).collect::<Vec<_>>())
    }

    /// The axes in the order of `perm`, outermost first; what `perm` leaves out or repeats is refused later.
    #[must_use]
    pub fn permuted(shape: &[usize], perm: &[usize]) -> Self {
        let digit = |&axis: &usize| Digit { axis, extent: shape.get(axis).copied().unwrap_or(0), stride: 1 };
        Self { digits: perm.iter().map(digit).collect(), segments: Vec::new() }
    }

    /// Row-major with the last digit of `axis` at the very inside: of `NCHW` and axis 1, `NCHWc` in blocks of `block`.
    ///
    /// A last block that is not full is padded.
    #[must_use]
    pub fn blocked(shape: &[usize], axis: usize, block: usize) -> Self {
        let mut order = Self::dense(shape);
        let block = block.max(1);
        for digit in order.digits.iter_mut().filter(|digit| digit.axis == axis) {
            *digit = Digit { axis, extent: digit.extent.div_ceil(block), stride: block };
        }
        order.digits.push(Digit { axis, extent: block, stride: 1 });
        order
    }

    /// Elements that it has room for, padding included; `None` where they are more than a `usize` counts.
    #[must_use]
    pub fn slots(&self) -> Option<usize> {
        if self.digits.iter().any(|digit| digit.extent == 0) {
            return Some(0);
        }
        self.digits.iter().try_fold(1_usize, |slots, digit| slots.checked_mul(digit.extent))
    }
}
