//! Large quantized constants that were looked at, and what they stand for.

use crate::terms::value::Value;

/// What quantized numbers are told: the numbers of the constants that are their scales and zero points.
pub(crate) type Told = (u8, u32, Option<u32>);

/// Quantized numbers with scales along an axis, and what they stand for.
#[derive(Clone, Debug)]
pub(crate) struct Quantized {
    pub(crate) told: Told,
    /// `None` for one scale.
    pub(crate) axis: Option<usize>,
    pub(crate) x: Value,
    pub(crate) y: Value,
}
