//! The price of a choice.
//!
//! A [`Cost`] is whole units of whatever somebody counts (nanoseconds, bytes) in a `u64`. It is an integer because sums of
//! floats depend on their order, and the same input must give the same bytes. Addition saturates, so a sum never wraps to a small
//! number. The top value is reserved: [`Cost::INFINITE`] means that there is no such way, and stays infinite whatever is added.
//! Finite costs whose sum reaches the top (584 years of nanoseconds) become infinite too.
//!
//! Absent on purpose: subtraction. A solver that needs differences widens first.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// A price in whole units of any kind: nanoseconds in relayout. Sums saturate: finite costs whose sum reaches the top become infinite,
/// and infinity absorbs.
///
/// Serializes as a plain integer, infinity as `u64::MAX`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(u64);

impl Cost {
    /// Nothing to pay.
    pub const ZERO: Self = Self(0);
    /// Not available at any price; greater than every finite cost.
    pub const INFINITE: Self = Self(u64::MAX);

    /// A finite cost of `units`; `u64::MAX` is taken, and means [`Cost::INFINITE`].
    #[must_use]
    pub const fn new(units: u64) -> Self {
        Self(units)
    }

    /// The units, `u64::MAX` for infinity.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether this is a price that can be paid.
    #[must_use]
    pub const fn is_finite(self) -> bool {
        self.0 != u64::MAX
    }
}

impl Cost {
    /// `n` times this cost.
    #[must_use]
    pub const fn times(self, n: u64) -> Self {
        if self.is_finite() { Self(self.0.saturating_mul(n)) } else { self }
    }

    /// This many percent of this cost, rounded down.
    #[must_use]
    pub fn percent(self, percent: u64) -> Self {
        if !self.is_finite() {
            return self;
        }
        Self((u128::from(self.0) * u128::from(percent) / 100).try_into().unwrap_or(u64::MAX))
    }
}

impl From<u64> for Cost {
    fn from(units: u64) -> Self {
        Self(units)
    }
}

impl Add for Cost {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_finite() { fmt::Display::fmt(&self.0, f) } else { f.pad("infinite") }
    }
}

#[cfg(test)]
mod tests {
    use super::Cost;

    #[test]
    fn addition_saturates_and_infinity_absorbs() {
        assert_eq!(Cost::new(2) + Cost::new(3), Cost::new(5));
        assert_eq!(Cost::INFINITE + Cost::new(1), Cost::INFINITE);
        assert_eq!(Cost::INFINITE + Cost::INFINITE, Cost::INFINITE);
        assert_eq!(Cost::new(u64::MAX - 1) + Cost::new(1), Cost::INFINITE);
        assert_eq!([1, 2, 3].map(Cost::new).into_iter().sum::<Cost>(), Cost::new(6));
    }

    #[test]
    fn infinity_is_above_every_finite_cost_and_prints_as_a_word() {
        assert!(Cost::new(u64::MAX - 1) < Cost::INFINITE);
        assert!(Cost::new(u64::MAX - 1).is_finite());
        assert_eq!(format!("{} {:>10}", Cost::new(7), Cost::INFINITE), "7   infinite");
    }
}
