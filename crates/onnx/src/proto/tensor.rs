//! Tensors: data in the file, in a typed field, or in another file.

use bytes::Bytes;

use super::StringStringEntryProto;

/// A tensor: dims, element type, and data in `raw_data`, in a field of its type, or in another file.
#[derive(Clone, prost::Message)]
pub struct TensorProto {
    /// Shape; none for a scalar.
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    /// Element type ([`tensor_proto::DataType`]).
    #[prost(int32, optional, tag = "2")]
    pub data_type: Option<i32>,
    /// Part of a larger tensor; no known writer uses it.
    #[prost(message, optional, tag = "3")]
    pub segment: Option<tensor_proto::Segment>,
    /// FLOAT elements; COMPLEX64 as pairs.
    #[prost(float, repeated, packed = "true", tag = "4")]
    pub float_data: Vec<f32>,
    /// Elements of at most 32 bits, narrow ones packed as the schema says.
    #[prost(int32, repeated, packed = "true", tag = "5")]
    pub int32_data: Vec<i32>,
    /// STRING elements.
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub string_data: Vec<Bytes>,
    /// INT64 elements.
    #[prost(int64, repeated, packed = "true", tag = "7")]
    pub int64_data: Vec<i64>,
    /// Name of the value.
    #[prost(string, optional, tag = "8")]
    pub name: Option<String>,
    /// Elements in fixed width, little-endian, as they lie in the file.
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub raw_data: Option<Bytes>,
    /// DOUBLE elements; COMPLEX128 as pairs.
    #[prost(double, repeated, packed = "true", tag = "10")]
    pub double_data: Vec<f64>,
    /// UINT32 and UINT64 elements.
    #[prost(uint64, repeated, packed = "true", tag = "11")]
    pub uint64_data: Vec<u64>,
    /// Documentation for people; Markdown is allowed.
    #[prost(string, optional, tag = "12")]
    pub doc_string: Option<String>,
    /// Where the data lies if `data_location` is EXTERNAL: location, offset, length, checksum.
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<StringStringEntryProto>,
    /// Inside or outside of this file ([`tensor_proto::DataLocation`]).
    #[prost(enumeration = "tensor_proto::DataLocation", optional, tag = "14")]
    pub data_location: Option<i32>,
    /// Named metadata; keys should be distinct.
    #[prost(message, repeated, tag = "16")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// The non-default elements of a tensor and where they are.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SparseTensorProto {
    /// The values, shape (NNZ).
    #[prost(message, optional, tag = "1")]
    pub values: Option<TensorProto>,
    /// Their indices, shape (NNZ) linear or (NNZ, rank).
    #[prost(message, optional, tag = "2")]
    pub indices: Option<TensorProto>,
    /// Shape of the dense tensor.
    #[prost(int64, repeated, packed = "false", tag = "3")]
    pub dims: Vec<i64>,
}

/// Types nested in the message of this name.
pub mod tensor_proto {
    /// Inside or outside of the file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
    #[repr(i32)]
    pub enum DataLocation {
        /// In `raw_data` or a typed field.
        Default = 0,
        /// Where `external_data` says.
        External = 1,
    }

    /// Element type of a tensor.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
    #[repr(i32)]
    pub enum DataType {
        /// Not said; never valid.
        Undefined = 0,
        /// 32-bit IEEE 754.
        Float = 1,
        /// Unsigned, 8 bits.
        Uint8 = 2,
        /// Signed, 8 bits.
        Int8 = 3,
        /// Unsigned, 16 bits.
        Uint16 = 4,
        /// Signed, 16 bits.
        Int16 = 5,
        /// Signed, 32 bits.
        Int32 = 6,
        /// Signed, 64 bits.
        Int64 = 7,
        /// A string of any length.
        String = 8,
        /// One byte, 0 or 1.
        Bool = 9,
        /// 16-bit IEEE 754.
        Float16 = 10,
        /// 64-bit IEEE 754.
        Double = 11,
        /// Unsigned, 32 bits.
        Uint32 = 12,
        /// Unsigned, 64 bits.
        Uint64 = 13,
        /// Two floats, real part first.
        Complex64 = 14,
        /// Two doubles, real part first.
        Complex128 = 15,
        /// The upper half of a 32-bit float.
        Bfloat16 = 16,
        /// 8 bits, 4 of exponent; NaN, no infinity.
        Float8e4m3fn = 17,
        /// 8 bits, 4 of exponent; NaN, no infinity, no negative zero.
        Float8e4m3fnuz = 18,
        /// 8 bits, 5 of exponent; NaN and infinity.
        Float8e5m2 = 19,
        /// 8 bits, 5 of exponent; NaN, no infinity, no negative zero.
        Float8e5m2fnuz = 20,
        /// Unsigned, 4 bits, two a byte, low half first.
        Uint4 = 21,
        /// Signed, 4 bits, two a byte, low half first.
        Int4 = 22,
        /// 4 bits, 2 of exponent, two a byte.
        Float4e2m1 = 23,
        /// 8 bits of exponent: a power of two.
        Float8e8m0 = 24,
        /// Unsigned, 2 bits, four a byte, lowest first.
        Uint2 = 25,
        /// Signed, 2 bits, four a byte, lowest first.
        Int2 = 26,
        /// 6 bits, 2 of exponent, four in three bytes.
        Float6e2m3 = 27,
        /// 6 bits, 3 of exponent, four in three bytes.
        Float6e3m2 = 28,
    }

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

    /// A range of a larger tensor's elements.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Segment {
        /// First element.
        #[prost(int64, optional, tag = "1")]
        pub begin: Option<i64>,
        /// One past the last.
        #[prost(int64, optional, tag = "2")]
        pub end: Option<i64>,
    }
}
