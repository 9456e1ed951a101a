//! Element types of results, and small constants read as numbers.

use super::InferContext;
use crate::constant::Constant;
use crate::dtype::DType;
use crate::types::{Shape, TensorType, Type};

/// A tensor type as far as it is known.
pub(in crate::op) fn typed(dtype: Option<DType>, shape: Option<Shape>) -> Type {
    Type::Tensor(TensorType { dtype, shape })
}

/// A tensor of truth values.
pub(in crate::op) fn boolean(shape: Option<Shape>) -> Type {
    typed(Some(DType::Bool), shape)
}

/// Element type that these operands share.
///
/// # Errors
/// If two of them are known to differ.
pub(in crate::op) fn same_dtype(
    ctx: &InferContext<'_>,
    slots: impl IntoIterator<Item = usize>,
) -> Result<Option<DType>, String> {
    let mut found: Option<DType> = None;
    for slot in slots {
        match (found, ctx.dtype(slot)) {
            (Some(a), Some(b)) if a != b => return Err(format!("operands are of unequal element types {a} and {b}")),
            (None, dtype) => found = dtype,
            _ => {}
        }
    }
    Ok(found)
}

/// Elements of a constant of floats, if there are at most `limit` and its bytes are there.
pub(in crate::op) fn floats(constant: &Constant, limit: usize) -> Option<Vec<f64>> {
    if constant.pending.is_some() || constant.elems()? > limit as u64 {
        return None;
    }
    let width = match constant.dtype {
        DType::F64 => 8,
        DType::F32 => 4,
        DType::F16 | DType::BF16 => 2,
        _ => return None,
    };
    let bytes = constant.source.bytes().ok()?;
    if bytes.len() as u64 != constant.size_bytes()? {
        return None;
    }
    let float = |le: &[u8]| -> Option<f64> {
        Some(match constant.dtype {
            DType::F64 => f64::from_le_bytes(le.try_into().ok()?),
            DType::F32 => f64::from(f32::from_le_bytes(le.try_into().ok()?)),
            DType::F16 => half::f16::from_le_bytes(le.try_into().ok()?).to_f64(),
            _ => half::bf16::from_le_bytes(le.try_into().ok()?).to_f64(),
        })
    };
    bytes.chunks_exact(width).map(float).collect()
}

/// Integers of an operand, or of the attribute that older versions used in its place; `None` if neither is given or the
/// operand is not known.
pub(in crate::op) fn small_ints(ctx: &InferContext<'_>, slot: usize, attr: &str) -> Option<Vec<i64>> {
    if ctx.has(slot) { ctx.ints(slot) } else { ctx.node.ints(attr).map(<[i64]>::to_vec) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_of_any_width_are_read_and_integers_are_not() {
        let half: Vec<u8> = half::f16::from_f32(0.5).to_le_bytes().to_vec();
        assert_eq!(floats(&Constant::inline(DType::F16, vec![1], half.into()), 4), Some(vec![0.5]));
        let single: Vec<u8> = [2.0f32, 1.5].iter().flat_map(|x| x.to_le_bytes()).collect();
        let constant = Constant::inline(DType::F32, vec![2], single.into());
        assert_eq!(floats(&constant, 2), Some(vec![2.0, 1.5]));
        assert_eq!(floats(&constant, 1), None);
        assert_eq!(floats(&Constant::ints(&[1]), 4), None);
    }
}
