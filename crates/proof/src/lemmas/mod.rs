//! Equations over the reals by which terms that differ compute the same.

pub(crate) mod halves;
pub(crate) mod interpolation;
mod known;
pub(crate) mod real;
pub(crate) mod scales;
