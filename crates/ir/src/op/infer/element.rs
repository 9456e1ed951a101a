//! Element types of results.

use super::InferContext;
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
