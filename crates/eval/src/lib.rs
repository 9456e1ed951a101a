//! Evaluates ops on constants, with the bits that every runtime computes, or in f64.
//!
//! ```
//! use relayout_eval::{Binary, decode, encode};
//! use relayout_ir::dtype::DType;
//!
//! let numbers = |values: [f32; 2]| decode(DType::F32, &values.map(f32::to_le_bytes).concat());
//! let sum = Binary::named("Add").unwrap().apply(&numbers([0.1, 2.0])?, &numbers([0.2, 3.0])?)?;
//! assert_eq!(encode(&sum, DType::F32)?, [0.1_f32 + 0.2, 5.0].map(f32::to_le_bytes).concat());
//! # Ok::<(), String>(())
//! ```
//!
//! A [`Step`] is one op with its attributes; its operands are given later. [`Computed`] is a constant whose bytes are the result
//! of a step; they are computed when they are asked for. Arithmetic is done in the type in which the op does it, with one
//! rounding per op. Ops whose last bit depends on the library that computes them (Exp, Erf, sums, Pow where it rounds) are no steps.
//!
//! A [`Plan`] is several ops on constants, those that round among them. They are computed in f64, and what comes out is rounded once:
//! [`Rounded`] is a constant that is a part of a plan. So the bits are not those of some runtime; they are nearer to what the ops say.
//!
//! Absent: random numbers, pools, transposed convolutions. Of strings, complex numbers and elements that do not fill a byte only
//! views are evaluated.

mod affine;
mod arith;
mod numbers;
mod phased;
mod picked;
mod rounded;
mod shuffle;
mod source;
mod step;

pub use affine::{Affine, floats, reading};
pub use arith::{Binary, Unary};
pub use numbers::{Numbers, decode, encode};
pub use phased::Phased;
pub use picked::Picked;
pub use rounded::{Needs, Plan, Rounded};
pub use source::{Computed, Diagonal, Scaled, Split, Tapped, Widened, bytes_of};
pub use step::Step;

use bytes::Bytes;
use relayout_ir::dtype::DType;

/// A tensor with its bytes at hand, row-major.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub dims: Vec<usize>,
    /// Little-endian elements.
    pub bytes: Bytes,
}

impl Tensor {
    /// Bytes per element.
    ///
    /// # Errors
    /// For elements that do not fill whole bytes.
    pub fn width(&self) -> Result<usize, String> {
        width(self.dtype)
    }
}

/// Bytes per element of a type.
///
/// # Errors
/// For elements that do not fill whole bytes.
pub fn width(dtype: DType) -> Result<usize, String> {
    match dtype.bits() {
        Some(bits) if bits >= 8 => Ok(bits as usize / 8),
        _ => Err(format!("{dtype} elements do not fill whole bytes")),
    }
}

/// Extents as sizes.
fn extents(dims: &[i64]) -> Result<Vec<usize>, String> {
    dims.iter().map(|&d| usize::try_from(d).map_err(|_| format!("{d} is not an extent"))).collect()
}
