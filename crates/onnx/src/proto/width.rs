//! How wide the elements of a tensor are.

use super::tensor_proto::DataType;

impl DataType {
    /// Bits of one element as `raw_data` holds it; `None` for STRING and UNDEFINED, which have no fixed width.
    pub const fn bits(self) -> Option<u64> {
        Some(match self {
            Self::Undefined | Self::String => return None,
            Self::Uint2 | Self::Int2 => 2,
            Self::Uint4 | Self::Int4 | Self::Float4e2m1 => 4,
            Self::Float6e2m3 | Self::Float6e3m2 => 6,
            Self::Uint8
            | Self::Int8
            | Self::Bool
            | Self::Float8e4m3fn
            | Self::Float8e4m3fnuz
            | Self::Float8e5m2
            | Self::Float8e5m2fnuz
            | Self::Float8e8m0 => 8,
            Self::Uint16 | Self::Int16 | Self::Float16 | Self::Bfloat16 => 16,
            Self::Float | Self::Int32 | Self::Uint32 => 32,
            Self::Int64 | Self::Double | Self::Uint64 | Self::Complex64 => 64,
            Self::Complex128 => 128,
        })
    }
}
