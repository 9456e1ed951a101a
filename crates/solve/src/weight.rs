//! The number that the solvers add and compare: a cost and, below it, a count of changes.
//!
//! Among assignments of equal cost the one with the fewest variables off state 0 wins, since state 0 is the one that keeps the
//! input as it was. Both objectives live in one integer, `cost * 2^32 + changes`, so that every solver breaks ties exactly and
//! none has to know about them. A problem has fewer than 2^32 variables, hence the count never spills into the cost.
//!
//! It is signed because cost shifting moves amounts between factors. Finite magnitudes stay below 2^96 for each factor; 2^24
//! factors are the limit up to which no sum comes near [`Weight::INFINITE`].

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use crate::Cost;

/// How far a cost is shifted to make room for the count of changes.
const SHIFT: u32 = 32;

/// A cost with its tie-break; infinity absorbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Weight(i128);

impl Weight {
    pub(super) const ZERO: Self = Self(0);
    /// Above every sum of finite weights.
    pub(super) const INFINITE: Self = Self(1 << 122);
    /// One variable that left state 0.
    pub(super) const CHANGE: Self = Self(1);

    pub(super) fn is_finite(self) -> bool {
        self.0 < Self::INFINITE.0
    }

    /// `self - other`; an infinite `self` stays infinite. `other` must be finite.
    pub(super) fn minus(self, other: Self) -> Self {
        if self.is_finite() { Self(self.0 - other.0) } else { self }
    }

    /// The raw number, for capacities of a flow.
    pub(super) fn raw(self) -> i128 {
        self.0
    }

    pub(super) fn from_raw(raw: i128) -> Self {
        if raw >= Self::INFINITE.0 { Self::INFINITE } else { Self(raw) }
    }

    /// The cost without the tie-break, rounded down, so that a lower bound stays one.
    pub(super) fn cost(self) -> Cost {
        u64::try_from((self.0 >> SHIFT).max(0)).map_or(Cost::INFINITE, Cost::new)
    }
}

impl From<Cost> for Weight {
    fn from(cost: Cost) -> Self {
        if cost.is_finite() { Self(i128::from(cost.get()) << SHIFT) } else { Self::INFINITE }
    }
}

impl Add for Weight {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        if self.is_finite() && other.is_finite() { Self(self.0 + other.0) } else { Self::INFINITE }
    }
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Weight {
    fn sum<I: Iterator<Item = Self>>(weights: I) -> Self {
        weights.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cost, Weight};

    #[test]
    fn the_count_of_changes_orders_equal_costs_only() {
        let five = Weight::from(Cost::new(5));
        let four_changed = Weight::from(Cost::new(4)) + Weight::CHANGE;
        assert!(five < five + Weight::CHANGE);
        assert!(four_changed < five);
        assert_eq!((five + Weight::CHANGE).cost(), Cost::new(5));
        assert_eq!(five.minus(four_changed).cost(), Cost::ZERO);
    }

    #[test]
    fn infinity_absorbs_and_survives_subtraction() {
        let infinite = Weight::from(Cost::INFINITE);
        assert!(!(infinite + Weight::CHANGE).is_finite());
        assert_eq!(infinite.minus(Weight::CHANGE), Weight::INFINITE);
        assert_eq!(infinite.cost(), Cost::INFINITE);
        let large = Weight::from(Cost::new(u64::MAX - 1));
        assert_eq!((large + large).cost(), Cost::INFINITE);
    }
}
