//! Bytes as numbers, in the type in which ops compute: halves in f32, integers of up to 64 bits in i64.

use super::width;
use half::{bf16, f16};
use relayout_ir::dtype::DType;

/// Elements of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// Of f32, f16 and bf16.
    F32(Vec<f32>),
    /// Of f64.
    F64(Vec<f64>),
    /// Of integers and booleans; 64-bit unsigned ones are not taken.
    Int(Vec<i64>),
}

impl Numbers {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Numbers::F32(v) => v.len(),
            Numbers::F64(v) => v.len(),
            Numbers::Int(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Floats, widened.
    pub fn floats(&self) -> Option<Vec<f64>> {
        match self {
            Numbers::F32(v) => Some(v.iter().map(|&x| f64::from(x)).collect()),
            Numbers::F64(v) => Some(v.clone()),
            Numbers::Int(_) => None,
        }
    }
}

/// Reads elements of this type.
///
/// # Errors
/// For types that are not taken and buffers that end within an element.
pub fn decode(dtype: DType, bytes: &[u8]) -> Result<Numbers, String> {
    let width = width(dtype)?;
    if !bytes.len().is_multiple_of(width) {
        return Err(format!("{} bytes are not whole {dtype} elements", bytes.len()));
    }
    let each = bytes.chunks_exact(width);
    // The chunks are as long as the arrays, so that nothing is padded here.
    Ok(match dtype {
        DType::F32 => Numbers::F32(each.map(|c| f32::from_le_bytes(array(c))).collect()),
        DType::F16 => Numbers::F32(each.map(|c| f16::from_le_bytes(array(c)).to_f32()).collect()),
        DType::BF16 => Numbers::F32(each.map(|c| bf16::from_le_bytes(array(c)).to_f32()).collect()),
        DType::F64 => Numbers::F64(each.map(|c| f64::from_le_bytes(array(c))).collect()),
        DType::I64 => Numbers::Int(each.map(|c| i64::from_le_bytes(array(c))).collect()),
        DType::I32 => Numbers::Int(each.map(|c| i64::from(i32::from_le_bytes(array(c)))).collect()),
        DType::U32 => Numbers::Int(each.map(|c| i64::from(u32::from_le_bytes(array(c)))).collect()),
        DType::I16 => Numbers::Int(each.map(|c| i64::from(i16::from_le_bytes(array(c)))).collect()),
        DType::U16 => Numbers::Int(each.map(|c| i64::from(u16::from_le_bytes(array(c)))).collect()),
        DType::I8 => Numbers::Int(each.map(|c| i64::from(i8::from_le_bytes(array(c)))).collect()),
        DType::U8 => Numbers::Int(each.map(|c| i64::from(u8::from_le_bytes(array(c)))).collect()),
        DType::Bool => Numbers::Int(each.map(|c| i64::from(c != [0])).collect()),
        _ => return Err(format!("{dtype} elements are not computed with")),
    })
}

#[inline]
fn array<const N: usize>(chunk: &[u8]) -> [u8; N] {
    chunk.try_into().unwrap_or([0; N])
}

/// Writes elements of this type. Floats are rounded once, integers keep their low bits.
///
/// # Errors
/// If the numbers are not those in which the type computes.
pub fn encode(numbers: &Numbers, dtype: DType) -> Result<Vec<u8>, String> {
    Ok(match (numbers, dtype) {
        (Numbers::F32(v), DType::F32) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        (Numbers::F32(v), DType::F16) => v.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect(),
        (Numbers::F32(v), DType::BF16) => v.iter().flat_map(|&x| bf16::from_f32(x).to_le_bytes()).collect(),
        (Numbers::F64(v), DType::F64) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        // Rounded from f64 to the type at once: what a fold computes in f64 is rounded once.
        (Numbers::F64(v), DType::F32) => v.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect(),
        (Numbers::F64(v), DType::F16) => v.iter().flat_map(|&x| f16::from_f64(x).to_le_bytes()).collect(),
        (Numbers::F64(v), DType::BF16) => v.iter().flat_map(|&x| bf16::from_f64(x).to_le_bytes()).collect(),
        (Numbers::Int(v), DType::Bool) => v.iter().map(|&i| u8::from(i != 0)).collect(),
        (Numbers::Int(v), DType::I64 | DType::I32 | DType::U32 | DType::I16 | DType::U16 | DType::I8 | DType::U8) => {
            let width = width(dtype)?;
            v.iter().flat_map(|i| i.to_le_bytes().into_iter().take(width)).collect()
        }
        _ => return Err(format!("these are not {dtype} elements")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_every_type_survive_a_round_trip() {
        use DType::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32};
        for dtype in [F32, F64, F16, BF16, I64, I32, U32, I16, U16, I8, U8, Bool] {
            let width = width(dtype).unwrap();
            let bytes: Vec<u8> =
                (0..4 * width).map(|i| if dtype == Bool { (i % 2) as u8 } else { 61 + i as u8 }).collect();
            let numbers = decode(dtype, &bytes).unwrap();
            assert_eq!((numbers.len(), encode(&numbers, dtype)), (4, Ok(bytes)), "{dtype}");
        }
        assert!(decode(DType::F32, &[0; 5]).is_err());
        assert!(decode(DType::I4, &[0]).is_err());
    }
}
