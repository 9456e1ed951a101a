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

use relayout_layout::{Factor, Layout, LayoutError, Segment as Slots};
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

    /// The order that a layout is for a shape.
    pub fn new(layout: &Layout, shape: &[i64]) -> Result<Self, LayoutError> {
        let number = |n: u64| usize::try_from(n).map_err(|_| LayoutError::TooLarge);
        let bound = layout.bind(shape)?;
        let digits = bound
            .factors()
            .iter()
            .map(|digit| Ok(Digit { axis: digit.axis, extent: number(digit.extent)?, stride: number(digit.div)? }));
        let digits = digits.collect::<Result<_, LayoutError>>()?;
        let segment = |run: &Slots| Ok(Segment { length: number(run.len)?, slots: number(run.slots)? });
        let map = |axis| layout.slot_map(axis).unwrap_or_default().iter().map(segment).collect();
        let mut segments = (0..layout.rank()).map(map).collect::<Result<Vec<Vec<_>>, LayoutError>>()?;
        if segments.iter().all(Vec::is_empty) {
            segments.clear();
        }
        Ok(Self { digits, segments })
    }

    /// The layout that the order is for a shape; an error where the digits of an axis do not spell it.
    pub fn layout(&self, shape: &[usize]) -> Result<Layout, LayoutError> {
        if shape.contains(&0) {
            return Ok(Layout::row_major(shape.len()));
        }
        let mut factors = Vec::with_capacity(self.digits.len());
        let mut maps = Vec::new();
        let digits = || self.digits.iter().filter(|digit| digit.extent != 1);
        for digit in digits() {
            let outermost = digits().all(|other| other.axis != digit.axis || other.stride <= digit.stride);
            let modulo = (!outermost).then_some(digit.extent as u64);
            let axis = u8::try_from(digit.axis).map_err(|_| LayoutError::RankTooLarge { rank: digit.axis })?;
            factors.push(Factor { axis, div: digit.stride as u64, modulo });
        }
        for (axis, &extent) in (0..=u8::MAX).zip(shape) {
            let own = digits().filter(|digit| digit.axis == usize::from(axis));
            let slots = own.fold(1_u64, |slots, digit| slots.saturating_mul(digit.extent as u64));
            if slots == 1 {
                factors.push(Factor::whole(axis));
            }
            let segments = self.segments.get(usize::from(axis)).map_or(&[][..], Vec::as_slice);
            let slots_of = |part: &Segment| Slots { len: part.length as u64, slots: part.slots as u64 };
            let mut map: Vec<_> = segments.iter().map(slots_of).collect();
            if map.is_empty() {
                map.push(Slots { len: extent as u64, slots });
            }
            let used: u64 = map.iter().map(|run| run.slots).sum();
            map.iter_mut().next_back().into_iter().for_each(|last| last.slots += slots.saturating_sub(used));
            maps.push((axis, map));
        }
        Layout::new(shape.len(), factors, maps)
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

/// Strides in elements of dense axes or digits of these extents, outermost first.
pub(crate) fn dense_strides(extents: impl DoubleEndedIterator<Item = usize>) -> Vec<usize> {
    let mut span = 1_usize;
    // Where the product does not fit, whoever asks has refused it, or there are no elements.
    let outwards = extents.rev().map(|extent| {
        let next = span.saturating_mul(extent);
        std::mem::replace(&mut span, next)
    });
    let mut strides: Vec<usize> = outwards.collect();
    strides.reverse();
    strides
}

#[cfg(test)]
mod tests {
    use super::{Digit, Order};
    use relayout_layout::Layout;

    #[test]
    fn a_layout_is_an_order_and_back() {
        let shape = [2, 20, 3, 5];
        for text in ["NCHW", "NHWC", "NCHW16c", "N H W C[20:24]", "N H W C[10:16,10:16]", "N C[12:16,8:16]/16 H W C%16"]
        {
            let layout: Layout = text.parse().expect("a layout");
            let order = Order::new(&layout, &shape.map(|extent| extent as i64)).expect("it fits");
            assert_eq!(order.layout(&shape), Ok(layout), "{text}");
        }
        assert_eq!(
            Order::new(&"NCHW16c".parse().expect("a layout"), &[2, 20, 3, 5]),
            Ok(Order::blocked(&shape, 1, 16))
        );
    }

    #[test]
    fn digits_that_spell_no_axis_are_no_layout() {
        let digit = |axis, extent, stride| Digit { axis, extent, stride };
        for digits in [vec![], vec![digit(1, 4, 1)], vec![digit(0, 3, 1)], vec![digit(0, 2, 1), digit(0, 2, 1)]] {
            assert!(Order { digits, segments: Vec::new() }.layout(&[4]).is_err());
        }
    }
}
