//! Evaluating ops on constants, with the bits that a runtime gets.
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
//! A [`Step`] is one op with everything but its operands known; [`Computed`] is a constant whose bytes are a step's result,
//! made when they are asked for. Arithmetic is done in the type in which the op does it, one rounding per op.
//!
//! Absent: ops whose last bit depends on the library that computes them (Exp, Erf, sums, Pow where it rounds), strings, complex numbers and
//! elements that do not fill a byte, of which only views are taken.

mod affine;
mod arith;
mod numbers;
mod picked;
mod shuffle;
mod source;
mod step;

pub use affine::{Affine, floats, reading};
pub use arith::{Binary, Unary};
pub use numbers::{Numbers, decode, encode};
pub use picked::Picked;
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
