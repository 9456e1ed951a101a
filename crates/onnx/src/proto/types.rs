//! Types and shapes of values.

/// The type of a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TypeProto {
    /// Which kind of type.
    #[prost(oneof = "type_proto::Value", tags = "1, 4, 5, 7, 8, 9")]
    pub value: Option<type_proto::Value>,
    /// What the whole stands for, by the standard's list.
    #[prost(string, optional, tag = "6")]
    pub denotation: Option<String>,
}

/// A shape, one dimension per axis.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorShapeProto {
    /// Dimensions, outermost first.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<tensor_shape_proto::Dimension>,
}

/// Types nested in the message of this name.
pub mod type_proto {
    /// Which kind of type.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Value {
        /// A tensor.
        #[prost(message, tag = "1")]
        TensorType(Tensor),
        /// A sequence.
        #[prost(message, tag = "4")]
        SequenceType(Sequence),
        /// A map.
        #[prost(message, tag = "5")]
        MapType(Map),
        /// A type that only its domain understands.
        #[prost(message, tag = "7")]
        OpaqueType(Opaque),
        /// A sparse tensor.
        #[prost(message, tag = "8")]
        SparseTensorType(SparseTensor),
        /// A value that may be absent.
        #[prost(message, tag = "9")]
        OptionalType(Optional),
    }

    /// Element type and shape of a tensor.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Tensor {
        /// Element type ([`tensor_proto::DataType`](crate::proto::tensor_proto::DataType)).
        #[prost(int32, optional, tag = "1")]
        pub elem_type: Option<i32>,
        /// Shape; absent if even the rank is unknown.
        #[prost(message, optional, tag = "2")]
        pub shape: Option<super::TensorShapeProto>,
    }

    /// A sequence of values of one type.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Sequence {
        /// Type of an element.
        #[prost(message, optional, boxed, tag = "1")]
        pub elem_type: Option<Box<super::TypeProto>>,
    }

    /// A map.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Map {
        /// Type of a key: an integer type or STRING.
        #[prost(int32, optional, tag = "1")]
        pub key_type: Option<i32>,
        /// Type of a value.
        #[prost(message, optional, boxed, tag = "2")]
        pub value_type: Option<Box<super::TypeProto>>,
    }

    /// A value that may be absent.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Optional {
        /// Type of the value.
        #[prost(message, optional, boxed, tag = "1")]
        pub elem_type: Option<Box<super::TypeProto>>,
    }

    /// Element type and shape of a sparse tensor.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct SparseTensor {
        /// Element type ([`tensor_proto::DataType`](crate::proto::tensor_proto::DataType)).
        #[prost(int32, optional, tag = "1")]
        pub elem_type: Option<i32>,
        /// Shape of the dense tensor.
        #[prost(message, optional, tag = "2")]
        pub shape: Option<super::TensorShapeProto>,
    }

    /// A type that only its domain understands.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Opaque {
        /// Domain; absent means the model's.
        #[prost(string, optional, tag = "1")]
        pub domain: Option<String>,
        /// Name in the domain.
        #[prost(string, optional, tag = "2")]
        pub name: Option<String>,
    }
}

/// Types nested in the message of this name.
pub mod tensor_shape_proto {
    /// A number, a symbol, or unknown.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Dimension {
        /// Size; absent if unknown.
        #[prost(oneof = "dimension::Value", tags = "1, 2")]
        pub value: Option<dimension::Value>,
        /// What the axis stands for, such as `DATA_BATCH`.
        #[prost(string, optional, tag = "3")]
        pub denotation: Option<String>,
    }

    /// Types nested in the message of this name.
    pub mod dimension {
        /// Size; absent if unknown.
        #[derive(Clone, PartialEq, prost::Oneof)]
        pub enum Value {
            /// A known size.
            #[prost(int64, tag = "1")]
            DimValue(i64),
            /// A symbol.
            #[prost(string, tag = "2")]
            DimParam(String),
        }
    }
}
