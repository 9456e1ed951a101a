//! Typed fields to bytes: `float_data` and its siblings hold the elements one by one, everything else here wants them as
//! `raw_data` would hold them.
//!
//! Counts are checked before anything is allocated, so what is allocated is at most eight times what was decoded.

use bytes::Bytes;
use relayout_ir::dim;

use crate::error::TensorFault;
use crate::proto::TensorProto;
use crate::proto::tensor_proto::DataType;

/// Elements of a tensor: the product of its dims, 1 for a scalar.
pub fn element_count(dims: &[i64]) -> Result<u64, TensorFault> {
    let shape = || dims.to_vec();
    if let Some(&dim) = dims.iter().find(|&&dim| dim < 0) {
        return Err(TensorFault::NegativeDim { dims: shape(), dim });
    }
    dim::element_count(dims.iter().copied()).ok_or_else(|| TensorFault::TooManyElements { dims: shape() })
}

/// Bytes of a tensor's elements as `raw_data` holds them; elements narrower than a byte are packed without gaps.
pub fn byte_length(tensor: &TensorProto) -> Result<u64, TensorFault> {
    let bits = data_type(tensor)?.bits().ok_or(TensorFault::Strings)?;
    let bits = element_count(&tensor.dims)?.checked_mul(bits);
    bits.map(|bits| bits.div_ceil(8)).ok_or_else(|| TensorFault::TooManyElements { dims: tensor.dims.clone() })
}

fn data_type(tensor: &TensorProto) -> Result<DataType, TensorFault> {
    let code = tensor.data_type();
    match DataType::try_from(code) {
        Ok(DataType::Undefined) | Err(_) => Err(TensorFault::DataType { code }),
        Ok(known) => Ok(known),
    }
}

/// The data of a tensor that is not external: `length` bytes.
pub(super) fn inline_bytes(tensor: &TensorProto, length: u64) -> Result<Bytes, TensorFault> {
    // An empty raw_data beside typed elements is what some writers leave; the elements are meant.
    let raw = tensor.raw_data.as_ref().filter(|raw| !raw.is_empty() || length == 0);
    if let Some(raw) = raw {
        return exact(length, raw.clone(), "raw_data");
    }
    let count = element_count(&tensor.dims)?;
    match data_type(tensor)? {
        DataType::Undefined | DataType::String => Err(TensorFault::Strings),
        DataType::Float => floats(tensor, count, 1),
        DataType::Complex64 => floats(tensor, count, 2),
        DataType::Double => doubles(tensor, count, 1),
        DataType::Complex128 => doubles(tensor, count, 2),
        DataType::Int64 => {
            check("int64_data", tensor.int64_data.len(), count)?;
            Ok(tensor.int64_data.iter().flat_map(|value| value.to_le_bytes()).collect())
        }
        DataType::Uint64 => {
            check("uint64_data", tensor.uint64_data.len(), count)?;
            Ok(tensor.uint64_data.iter().flat_map(|value| value.to_le_bytes()).collect())
        }
        DataType::Uint32 => uint32(tensor, count),
        DataType::Bool => {
            check("int32_data", tensor.int32_data.len(), count)?;
            Ok(tensor.int32_data.iter().map(|&value| u8::from(value != 0)).collect())
        }
        DataType::Uint4 | DataType::Int4 | DataType::Float4e2m1 => narrow(tensor, count.div_ceil(2), 8),
        DataType::Uint2 | DataType::Int2 => narrow(tensor, count.div_ceil(4), 8),
        DataType::Float6e2m3 | DataType::Float6e3m2 => six_bits(tensor, count),
        DataType::Uint8
        | DataType::Int8
        | DataType::Float8e4m3fn
        | DataType::Float8e4m3fnuz
        | DataType::Float8e5m2
        | DataType::Float8e5m2fnuz
        | DataType::Float8e8m0 => narrow(tensor, count, 8),
        DataType::Uint16 | DataType::Int16 | DataType::Float16 | DataType::Bfloat16 => narrow(tensor, count, 16),
        DataType::Int32 => narrow(tensor, count, 32),
    }
}

fn exact(expected: u64, bytes: Bytes, place: &str) -> Result<Bytes, TensorFault> {
    let found = bytes.len() as u64;
    if found == expected { Ok(bytes) } else { Err(TensorFault::Length { expected, found, place: place.to_owned() }) }
}

fn check(field: &'static str, found: usize, expected: u64) -> Result<(), TensorFault> {
    let found = found as u64;
    if found == expected { Ok(()) } else { Err(TensorFault::Count { field, expected, found }) }
}

fn floats(tensor: &TensorProto, count: u64, parts: u64) -> Result<Bytes, TensorFault> {
    check("float_data", tensor.float_data.len(), count.saturating_mul(parts))?;
    Ok(tensor.float_data.iter().flat_map(|value| value.to_le_bytes()).collect())
}

fn doubles(tensor: &TensorProto, count: u64, parts: u64) -> Result<Bytes, TensorFault> {
    check("double_data", tensor.double_data.len(), count.saturating_mul(parts))?;
    Ok(tensor.double_data.iter().flat_map(|value| value.to_le_bytes()).collect())
}

fn uint32(tensor: &TensorProto, count: u64) -> Result<Bytes, TensorFault> {
    check("uint64_data", tensor.uint64_data.len(), count)?;
    let mut bytes = Vec::with_capacity(tensor.uint64_data.len() * 4);
    for &value in &tensor.uint64_data {
        let value = u32::try_from(value).map_err(|_| TensorFault::Value { value: value.to_string(), bits: 32 })?;
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    Ok(bytes.into())
}

/// `entries` values of `int32_data`, each stored in `bits` (8, 16 or 32). A value may be written signed or unsigned: writers
/// differ, and the bits are the same.
fn narrow(tensor: &TensorProto, entries: u64, bits: u32) -> Result<Bytes, TensorFault> {
    check("int32_data", tensor.int32_data.len(), entries)?;
    let mut bytes = Vec::with_capacity(tensor.int32_data.len() * (bits as usize / 8));
    for &value in &tensor.int32_data {
        let wide = i64::from(value);
        if wide < -(1 << (bits - 1)) || wide >= 1 << bits {
            return Err(TensorFault::Value { value: value.to_string(), bits });
        }
        bytes.extend(value.to_le_bytes().into_iter().take(bits as usize / 8));
    }
    Ok(bytes.into())
}

/// One 6-bit element per entry, to four in three bytes, lowest first.
fn six_bits(tensor: &TensorProto, count: u64) -> Result<Bytes, TensorFault> {
    check("int32_data", tensor.int32_data.len(), count)?;
    let mut bytes = Vec::with_capacity(tensor.int32_data.len().div_ceil(4) * 3);
    for group in tensor.int32_data.chunks(4) {
        let mut word = 0u32;
        for (place, &value) in group.iter().enumerate() {
            let element = u32::try_from(value).ok().filter(|&element| element < 64);
            let element = element.ok_or_else(|| TensorFault::Value { value: value.to_string(), bits: 6 })?;
            word |= element << (6 * place);
        }
        bytes.extend(word.to_le_bytes().into_iter().take((group.len() * 6).div_ceil(8)));
    }
    Ok(bytes.into())
}
