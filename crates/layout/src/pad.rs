//! What the pad slots of a value hold.
//!
//! A [`Lane`] is an element of the lattice `const(c) < interval[lo, hi] < any`; `any` includes infinities and NaN. The
//! image of a lane under an element-wise function is computed in `f64` and is sound for the element type given by a
//! [`LaneFormat`]: a result is `const` only where it is exact in every format (`relu(0) = 0`, `sigmoid(0) = 1/2`), an
//! interval is widened by the rounding error of the format, and what may exceed its largest value is `any`, because
//! it may have become an infinity. That is why "finite" alone is no element of the lattice: it is not closed.
//!
//! Absent: lanes that differ along an axis. One lane describes all pad slots of a value.

use std::fmt;

mod functions;

pub use functions::{BinaryFn, UnaryFn};

/// The range and precision of an element type, as far as pad slots need them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneFormat {
    /// Smallest value.
    pub min: f64,
    /// Largest finite value.
    pub max: f64,
    /// Largest relative error of one operation; 0 for integers.
    pub epsilon: f64,
    /// Whether the values are integers, which wrap and cannot be infinite.
    pub integer: bool,
}

impl LaneFormat {
    /// IEEE half precision.
    pub const F16: LaneFormat = LaneFormat::float(65504.0, 1.0 / 256.0);
    /// bfloat16.
    pub const BF16: LaneFormat = LaneFormat::float(3.38e38, 1.0 / 32.0);
    /// IEEE single precision.
    pub const F32: LaneFormat = LaneFormat::float(f32::MAX as f64, 1.0 / 1_048_576.0);
    /// IEEE double precision.
    pub const F64: LaneFormat = LaneFormat::float(f64::MAX, 1e-12);

    /// Function libraries err by a few units in the last place, hence the generous margins.
    const fn float(max: f64, epsilon: f64) -> LaneFormat {
        LaneFormat { min: -max, max, epsilon, integer: false }
    }

    /// A two's complement or unsigned integer of this many bits (at most 32: wider ones are not exact in `f64`, and
    /// are taken as 32).
    pub fn integer(bits: u32, signed: bool) -> LaneFormat {
        let bits = bits.clamp(1, 32);
        let span = (1u64 << bits) as f64;
        let (min, max) = if signed { (-span / 2.0, span / 2.0 - 1.0) } else { (0.0, span - 1.0) };
        LaneFormat { min, max, epsilon: 0.0, integer: true }
    }
}

/// What the pad slots of a value hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lane {
    /// Exactly this finite value in each of them.
    Const(f64),
    /// Some finite value between these, not the same in each.
    Interval {
        /// Smallest.
        lo: f64,
        /// Largest.
        hi: f64,
    },
    /// Anything, infinities and NaN included.
    Any,
}

impl Lane {
    /// Zeros: what a padded weight or a zero-filled buffer starts with.
    pub const ZERO: Lane = Lane::Const(0.0);

    /// The lane of one value; `Any` for an infinity or NaN. Negative zero counts as zero.
    pub fn constant(value: f64) -> Lane {
        if value.is_finite() { Lane::Const(value + 0.0) } else { Lane::Any }
    }

    /// The lane of values between two; `Any` unless both are finite, a constant if they are equal.
    #[allow(clippy::float_cmp, reason = "only equal ends make a constant")]
    pub fn interval(lo: f64, hi: f64) -> Lane {
        if !(lo.is_finite() && hi.is_finite() && lo <= hi) {
            Lane::Any
        } else if lo == hi {
            Lane::constant(lo)
        } else {
            Lane::Interval { lo: lo + 0.0, hi: hi + 0.0 }
        }
    }

    /// The smallest and largest value, unless anything is possible.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        match *self {
            Lane::Const(value) => Some((value, value)),
            Lane::Interval { lo, hi } => Some((lo, hi)),
            Lane::Any => None,
        }
    }

    /// The value, if it is known exactly.
    pub fn as_const(&self) -> Option<f64> {
        match *self {
            Lane::Const(value) => Some(value),
            Lane::Interval { .. } | Lane::Any => None,
        }
    }

    /// Whether the lane is exactly zero.
    pub fn is_zero(&self) -> bool {
        self.as_const() == Some(0.0)
    }

    /// Whether neither an infinity nor NaN is possible.
    pub fn is_finite(&self) -> bool {
        self.bounds().is_some()
    }

    /// Least upper bound: what is known of a slot that holds one or the other.
    #[must_use]
    pub fn join(self, other: Lane) -> Lane {
        match (self.bounds(), other.bounds()) {
            (Some((a, b)), Some((c, d))) => Lane::interval(a.min(c), b.max(d)),
            _ => Lane::Any,
        }
    }

    /// The lane of a result between two exact bounds, rounded to a format; `Any` where it may overflow.
    fn rounded(lo: f64, hi: f64, format: LaneFormat) -> Lane {
        let wide = |value: f64, sign: f64| value + sign * (value.abs() * format.epsilon + format.epsilon * 1e-3);
        let (lo, hi) = if format.integer { (lo.floor(), hi.ceil()) } else { (wide(lo, -1.0), wide(hi, 1.0)) };
        if lo >= format.min && hi <= format.max { Lane::interval(lo, hi) } else { Lane::Any }
    }

    /// The lane of an exact result; `Any` outside of the format.
    fn exact(value: f64, format: LaneFormat) -> Lane {
        if value >= format.min && value <= format.max { Lane::constant(value) } else { Lane::Any }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lane::Const(value) => write!(f, "const({value})"),
            Lane::Interval { lo, hi } => write!(f, "interval[{lo}, {hi}]"),
            Lane::Any => f.write_str("any"),
        }
    }
}
