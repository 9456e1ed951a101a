//! Constants: dims, element type and bytes that stay where they are (a slice of the mapped file) until export writes them.
//!
//! A relayout of a constant is a note, [`Constant::pending`], which export executes while it streams the bytes out. Bytes that
//! are not there (weights stripped from a file) are a state, and an error only where somebody needs them.

use crate::dim::{Dim, element_count};
use crate::dtype::DType;
use crate::layout::Layout;
use crate::types::Type;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// Where the bytes of a constant come from when they are asked for.
pub trait ConstSource: fmt::Debug + Send + Sync {
    /// Little-endian elements in row-major order of the dims, 4-bit types packed low nibble first.
    ///
    /// # Errors
    /// A sentence that names the tensor and says why its bytes cannot be had.
    fn bytes(&self) -> Result<Bytes, String>;

    /// Whether the bytes exist, found out without reading them.
    fn is_available(&self) -> bool {
        true
    }

    /// Whether the elements have to lie as they do: nobody can put them in another order.
    fn is_fixed(&self) -> bool {
        false
    }

    /// Whether the bytes are made when they are asked for, and take memory from then on: who only writes them asks last.
    fn is_computed(&self) -> bool {
        false
    }

    /// How many bytes there are, if that takes no work to say.
    fn at_hand(&self) -> Option<usize> {
        None
    }

    /// How many sources are computed from one another for these bytes, each on the stack of the one that asks for it.
    fn depth(&self) -> usize {
        0
    }

    /// The same numbers as float32, where they are halves that were computed with more digits and rounded at the end.
    fn before_rounding(&self) -> Option<Arc<dyn ConstSource>> {
        None
    }
}

/// A tensor whose contents are known at compile time.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Element type.
    pub dtype: DType,
    /// Extents in the order in which they are stored.
    pub dims: Vec<i64>,
    /// The contents.
    pub source: Arc<dyn ConstSource>,
    /// What is still to be done to the source's bytes so that they are this constant's.
    pub pending: Option<Box<Repack>>,
}

/// A move that export executes on the bytes of a constant. Pad slots of the result are zeros.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Repack {
    /// Extents of the source, which is row-major.
    pub extents: Vec<i64>,
    /// How the axes of the source lie in the result.
    pub to: Layout,
}

#[derive(Debug)]
struct Inline(Bytes);

impl ConstSource for Inline {
    fn bytes(&self) -> Result<Bytes, String> {
        Ok(self.0.clone())
    }

    fn at_hand(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

#[derive(Debug)]
struct Missing(String);

impl ConstSource for Missing {
    fn bytes(&self) -> Result<Bytes, String> {
        Err(self.0.clone())
    }

    fn is_available(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct Fixed(String);

impl ConstSource for Fixed {
    fn bytes(&self) -> Result<Bytes, String> {
        Err(self.0.clone())
    }

    fn is_available(&self) -> bool {
        false
    }

    fn is_fixed(&self) -> bool {
        true
    }
}

/// An element as often as it is in a tensor. Its bytes are made when they are asked for, so that extents may be any numbers.
#[derive(Debug)]
struct Filled {
    element: Vec<u8>,
    count: usize,
}

impl ConstSource for Filled {
    fn bytes(&self) -> Result<Bytes, String> {
        let size = self.element.len().checked_mul(self.count).filter(|&size| isize::try_from(size).is_ok());
        size.map(|_| self.element.repeat(self.count).into())
            .ok_or_else(|| format!("{} elements are too many", self.count))
    }

    fn is_computed(&self) -> bool {
        true
    }
}

impl Constant {
    /// A constant with its bytes at hand: little-endian, row-major.
    pub fn inline(dtype: DType, dims: Vec<i64>, bytes: Bytes) -> Constant {
        Constant { dtype, dims, source: Arc::new(Inline(bytes)), pending: None }
    }

    /// A constant whose bytes are not there; `why` says so to whoever needs them.
    pub fn missing(dtype: DType, dims: Vec<i64>, why: String) -> Constant {
        Constant { dtype, dims, source: Arc::new(Missing(why)), pending: None }
    }

    /// A constant that is stored in a way that has no order of elements; `why` says so to whoever needs them.
    pub fn fixed(dtype: DType, dims: Vec<i64>, why: String) -> Constant {
        Constant { dtype, dims, source: Arc::new(Fixed(why)), pending: None }
    }

    /// Whether its elements can be put in another order when it is written: not those of texts or of 6 bits, or stored sparse. Those of
    /// 2 bits where all extents are fours: ONNX Runtime 1.31 is wrong about products with others that nothing turns.
    pub fn can_move(&self) -> bool {
        let fits = match self.dtype.bits() {
            Some(2) => self.dims.iter().all(|dim| dim % 4 == 0),
            bits => bits.is_some_and(|bits| bits == 4 || bits >= 8),
        };
        fits && !self.source.is_fixed()
    }

    /// A vector of 64-bit integers.
    pub fn ints(values: &[i64]) -> Constant {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Constant::inline(DType::I64, vec![values.len() as i64], bytes.into())
    }

    /// 32-bit floats in row-major order.
    pub fn floats(numbers: impl IntoIterator<Item = f64>, dims: &[i64]) -> Constant {
        let bytes: Vec<u8> = numbers.into_iter().flat_map(|x| (x as f32).to_le_bytes()).collect();
        Constant::inline(DType::F32, dims.to_vec(), bytes.into())
    }

    /// The same number everywhere, 64 bits wide for float64 and 32 bits for any other element type.
    pub fn filled(dtype: DType, dims: &[i64], number: f64) -> Constant {
        let count = element_count(dims.iter().map(|&n| u64::try_from(n).unwrap_or(0))).and_then(|n| n.try_into().ok());
        let element = match dtype {
            DType::F64 => number.to_le_bytes().to_vec(),
            _ => (number as f32).to_le_bytes().to_vec(),
        };
        let source = Arc::new(Filled { element, count: count.unwrap_or(usize::MAX) });
        Constant { dtype, dims: dims.to_vec(), source, pending: None }
    }

    /// The type of its value.
    pub fn ty(&self) -> Type {
        Type::tensor(self.dtype, self.dims.iter().map(|&d| Dim::from(d)).collect())
    }

    /// Number of elements; `None` on overflow or a negative extent.
    pub fn elems(&self) -> Option<u64> {
        element_count(self.dims.iter().copied())
    }

    /// Size in bytes; `None` for strings and on overflow.
    pub fn size_bytes(&self) -> Option<u64> {
        self.dtype.bytes(self.elems()?)
    }

    /// How many bytes its source has at hand, and how many the type and the shape need, if these are not the same.
    pub fn missized(&self) -> Option<(u64, u64)> {
        let has = self.source.at_hand().filter(|_| self.pending.is_none())? as u64;
        self.size_bytes().filter(|&needs| needs != has).map(|needs| (has, needs))
    }

    /// Contents as integers, for integer and boolean constants of at most `limit` elements whose bytes are there.
    pub fn to_ints(&self, limit: usize) -> Option<Vec<i64>> {
        let width = match self.dtype {
            DType::I64 | DType::U64 => 8,
            DType::I32 | DType::U32 => 4,
            DType::I16 | DType::U16 => 2,
            DType::I8 | DType::U8 | DType::Bool => 1,
            _ => return None,
        };
        self.few_bytes(limit)?.chunks_exact(width).map(|c| int_of(self.dtype, c)).collect()
    }

    /// Contents as numbers, for constants of 16-bit or wider floats of at most `limit` elements whose bytes are there.
    pub fn to_floats(&self, limit: usize) -> Option<Vec<f64>> {
        let width = match self.dtype {
            DType::F64 => 8,
            DType::F32 => 4,
            DType::F16 | DType::BF16 => 2,
            _ => return None,
        };
        self.few_bytes(limit)?.chunks_exact(width).map(|c| float_of(self.dtype, c)).collect()
    }

    /// Whether every byte is there and zero.
    pub fn is_zero(&self) -> bool {
        let there = self.pending.is_none() && self.source.is_available();
        there && self.source.bytes().is_ok_and(|bytes| bytes.iter().all(|&b| b == 0))
    }

    /// The bytes of at most `limit` elements, if they are there and as many as they should be.
    fn few_bytes(&self, limit: usize) -> Option<Bytes> {
        if self.pending.is_some() || self.elems()? > limit as u64 {
            return None;
        }
        self.source.bytes().ok().filter(|bytes| Some(bytes.len() as u64) == self.size_bytes())
    }
}

fn float_of(dtype: DType, le: &[u8]) -> Option<f64> {
    Some(match dtype {
        DType::F64 => f64::from_le_bytes(le.try_into().ok()?),
        DType::F32 => f64::from(f32::from_le_bytes(le.try_into().ok()?)),
        DType::F16 => half::f16::from_le_bytes(le.try_into().ok()?).to_f64(),
        _ => half::bf16::from_le_bytes(le.try_into().ok()?).to_f64(),
    })
}

fn int_of(dtype: DType, le: &[u8]) -> Option<i64> {
    Some(match dtype {
        DType::I64 => i64::from_le_bytes(le.try_into().ok()?),
        DType::U64 => i64::try_from(u64::from_le_bytes(le.try_into().ok()?)).ok()?,
        DType::I32 => i64::from(i32::from_le_bytes(le.try_into().ok()?)),
        DType::U32 => i64::from(u32::from_le_bytes(le.try_into().ok()?)),
        DType::I16 => i64::from(i16::from_le_bytes(le.try_into().ok()?)),
        DType::U16 => i64::from(u16::from_le_bytes(le.try_into().ok()?)),
        DType::I8 => i64::from(i8::from_le_bytes(le.try_into().ok()?)),
        DType::U8 | DType::Bool => i64::from(*le.first()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_any_width_are_read_and_short_buffers_are_not() {
        assert_eq!(Constant::ints(&[3, -1]).to_ints(64), Some(vec![3, -1]));
        let c = Constant::inline(DType::I16, vec![2], Bytes::from_static(&[255, 255, 1, 0]));
        assert_eq!(c.to_ints(64), Some(vec![-1, 1]));
        assert_eq!(c.to_ints(1), None);
        let short = Constant::inline(DType::I64, vec![2], Bytes::from_static(&[0; 8]));
        assert_eq!(short.to_ints(64), None);
    }

    #[test]
    fn floats_of_any_width_are_read_and_integers_are_not() {
        let half: Vec<u8> = half::f16::from_f32(0.5).to_le_bytes().to_vec();
        assert_eq!(Constant::inline(DType::F16, vec![1], half.into()).to_floats(4), Some(vec![0.5]));
        let two = Constant::floats([2.0, 1.5], &[2]);
        assert_eq!((two.to_floats(2), two.to_floats(1)), (Some(vec![2.0, 1.5]), None));
        assert_eq!(Constant::ints(&[1]).to_floats(4), None);
        assert_eq!([Constant::filled(DType::F64, &[2], 0.0), two].map(|c| c.is_zero()), [true, false]);
    }

    #[test]
    fn what_is_filled_takes_no_memory_before_it_is_read() {
        let bytes = |dims: &[i64]| Constant::filled(DType::F32, dims, 1.5).source.bytes();
        assert_eq!(bytes(&[2]).unwrap(), [1.5f32.to_le_bytes(); 2].concat());
        assert!(bytes(&[1 << 62, 4, 0]).unwrap().is_empty() && bytes(&[-1]).unwrap().is_empty());
        assert_eq!(Constant::filled(DType::F32, &[1 << 50], 0.0).elems(), Some(1 << 50));
        assert!(bytes(&[1 << 62]).is_err() && bytes(&[1 << 62, 4]).is_err());
    }

    #[test]
    fn sizes_that_overflow_are_no_sizes() {
        let c = Constant::missing(DType::F32, vec![1 << 62, 4], "stripped".into());
        assert_eq!(c.elems(), None);
        assert_eq!(Constant::missing(DType::F32, vec![-1], String::new()).elems(), None);
        assert!(!c.source.is_available());
    }
}
