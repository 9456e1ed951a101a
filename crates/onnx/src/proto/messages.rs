// @generated from schema/onnx-ml.proto; do not edit: `cargo run -p relayout-onnx --example generate_schema`
// writes it anew.

//! The messages of an ONNX file, field by field as the standard's schema has them.

use bytes::Bytes;

use super::equal::{same_bytes, same_doubles, same_floats};

/// A named attribute: one of the value fields is set, and `type` says which.
#[derive(Clone, prost::Message)]
pub struct AttributeProto {
    /// Name.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// A float.
    #[prost(float, optional, tag = "2")]
    pub f: Option<f32>,
    /// An integer.
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    /// A string, UTF-8 by convention only.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub s: Option<Bytes>,
    /// A tensor.
    #[prost(message, optional, boxed, tag = "5")]
    pub t: Option<Box<TensorProto>>,
    /// A graph: the body of an If, Loop or Scan.
    #[prost(message, optional, boxed, tag = "6")]
    pub g: Option<Box<GraphProto>>,
    /// Floats.
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub floats: Vec<f32>,
    /// Integers.
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    /// Strings.
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub strings: Vec<Bytes>,
    /// Tensors.
    #[prost(message, repeated, tag = "10")]
    pub tensors: Vec<TensorProto>,
    /// Graphs.
    #[prost(message, repeated, tag = "11")]
    pub graphs: Vec<GraphProto>,
    /// Documentation for people; Markdown is allowed.
    #[prost(string, optional, tag = "13")]
    pub doc_string: Option<String>,
    /// A type.
    #[prost(message, optional, boxed, tag = "14")]
    pub tp: Option<Box<TypeProto>>,
    /// Types.
    #[prost(message, repeated, tag = "15")]
    pub type_protos: Vec<TypeProto>,
    /// Which field holds the value ([`attribute_proto::AttributeType`]).
    #[prost(enumeration = "attribute_proto::AttributeType", optional, tag = "20")]
    pub r#type: Option<i32>,
    /// In a function body: the function's attribute that this one takes its value from.
    #[prost(string, optional, tag = "21")]
    pub ref_attr_name: Option<String>,
    /// A sparse tensor.
    #[prost(message, optional, boxed, tag = "22")]
    pub sparse_tensor: Option<Box<SparseTensorProto>>,
    /// Sparse tensors.
    #[prost(message, repeated, tag = "23")]
    pub sparse_tensors: Vec<SparseTensorProto>,
}

impl PartialEq for AttributeProto {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.f.map(f32::to_bits) == other.f.map(f32::to_bits)
            && self.i == other.i
            && same_bytes(self.s.as_ref(), other.s.as_ref())
            && self.t == other.t
            && self.g == other.g
            && same_floats(&self.floats, &other.floats)
            && self.ints == other.ints
            && self.strings == other.strings
            && self.tensors == other.tensors
            && self.graphs == other.graphs
            && self.doc_string == other.doc_string
            && self.tp == other.tp
            && self.type_protos == other.type_protos
            && self.r#type == other.r#type
            && self.ref_attr_name == other.ref_attr_name
            && self.sparse_tensor == other.sparse_tensor
            && self.sparse_tensors == other.sparse_tensors
    }
}

/// Types nested in the message of this name.
pub mod attribute_proto {
    /// Which field of an attribute holds its value.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
    #[repr(i32)]
    pub enum AttributeType {
        /// Not said: files before IR version 2.
        Undefined = 0,
        /// `f`.
        Float = 1,
        /// `i`.
        Int = 2,
        /// `s`.
        String = 3,
        /// `t`.
        Tensor = 4,
        /// `g`.
        Graph = 5,
        /// `floats`.
        Floats = 6,
        /// `ints`.
        Ints = 7,
        /// `strings`.
        Strings = 8,
        /// `tensors`.
        Tensors = 9,
        /// `graphs`.
        Graphs = 10,
        /// `sparse_tensor`.
        SparseTensor = 11,
        /// `sparse_tensors`.
        SparseTensors = 12,
        /// `tp`.
        TypeProto = 13,
        /// `type_protos`.
        TypeProtos = 14,
    }
}

/// Name and type of a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ValueInfoProto {
    /// Name of the value.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// Its type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
    /// Documentation for people; Markdown is allowed.
    #[prost(string, optional, tag = "3")]
    pub doc_string: Option<String>,
    /// Named metadata; keys should be distinct.
    #[prost(message, repeated, tag = "4")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// One use of an operator or a function.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeProto {
    /// Values read; an empty name is an absent optional input.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Values written; an empty name is an unused output.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// Name of the node; may be absent.
    #[prost(string, optional, tag = "3")]
    pub name: Option<String>,
    /// Operator or function.
    #[prost(string, optional, tag = "4")]
    pub op_type: Option<String>,
    /// Attributes; names are distinct.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// Documentation for people; Markdown is allowed.
    #[prost(string, optional, tag = "6")]
    pub doc_string: Option<String>,
    /// Domain of `op_type`; absent or empty is the ONNX standard.
    #[prost(string, optional, tag = "7")]
    pub domain: Option<String>,
    /// Overload of the function called.
    #[prost(string, optional, tag = "8")]
    pub overload: Option<String>,
    /// Named metadata; keys should be distinct.
    #[prost(message, repeated, tag = "9")]
    pub metadata_props: Vec<StringStringEntryProto>,
    /// Placement on several devices.
    #[prost(message, repeated, tag = "10")]
    pub device_configurations: Vec<NodeDeviceConfigurationProto>,
}

/// A key and a list.
#[derive(Clone, PartialEq, prost::Message)]
pub struct IntIntListEntryProto {
    /// The key.
    #[prost(int64, optional, tag = "1")]
    pub key: Option<i64>,
    /// The list.
    #[prost(int64, repeated, packed = "false", tag = "2")]
    pub value: Vec<i64>,
}

/// How one node is spread over a configuration's devices.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeDeviceConfigurationProto {
    /// Name of the [`DeviceConfigurationProto`].
    #[prost(string, optional, tag = "1")]
    pub configuration_id: Option<String>,
    /// How its inputs and outputs are cut.
    #[prost(message, repeated, tag = "2")]
    pub sharding_spec: Vec<ShardingSpecProto>,
    /// Pipeline stage.
    #[prost(int32, optional, tag = "3")]
    pub pipeline_stage: Option<i32>,
}

/// How one input or output is cut or repeated over devices.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ShardingSpecProto {
    /// The input or output.
    #[prost(string, optional, tag = "1")]
    pub tensor_name: Option<String>,
    /// Devices, or groups of them.
    #[prost(int64, repeated, packed = "false", tag = "2")]
    pub device: Vec<i64>,
    /// Groups: an entry's key in `device` stands for all its devices.
    #[prost(message, repeated, tag = "3")]
    pub index_to_device_group_map: Vec<IntIntListEntryProto>,
    /// How each axis is cut.
    #[prost(message, repeated, tag = "4")]
    pub sharded_dim: Vec<ShardedDimProto>,
}

/// How one axis is cut.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ShardedDimProto {
    /// The axis; negative counts from the last.
    #[prost(int64, optional, tag = "1")]
    pub axis: Option<i64>,
    /// The cuts; several if the axis is a fusion of several.
    #[prost(message, repeated, tag = "2")]
    pub simple_sharding: Vec<SimpleShardedDimProto>,
}

/// N blocks in M shards.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SimpleShardedDimProto {
    /// N; absent if unknown.
    #[prost(oneof = "simple_sharded_dim_proto::Dim", tags = "1, 2")]
    pub dim: Option<simple_sharded_dim_proto::Dim>,
    /// M.
    #[prost(int64, optional, tag = "3")]
    pub num_shards: Option<i64>,
}

/// Types nested in the message of this name.
pub mod simple_sharded_dim_proto {
    /// N; absent if unknown.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Dim {
        /// A known N.
        #[prost(int64, tag = "1")]
        DimValue(i64),
        /// A symbolic N.
        #[prost(string, tag = "2")]
        DimParam(String),
    }
}

/// Initialization and one training step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrainingInfoProto {
    /// Graph without inputs that computes initial tensors.
    #[prost(message, optional, tag = "1")]
    pub initialization: Option<GraphProto>,
    /// Graph of one training step; sees the inference graph's values.
    #[prost(message, optional, tag = "2")]
    pub algorithm: Option<GraphProto>,
    /// Initializer name to the output of `initialization` that sets it.
    #[prost(message, repeated, tag = "3")]
    pub initialization_binding: Vec<StringStringEntryProto>,
    /// Initializer name to the output of `algorithm` that updates it.
    #[prost(message, repeated, tag = "4")]
    pub update_binding: Vec<StringStringEntryProto>,
}

/// The top of a file: a graph, the functions it calls and what they rely on.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ModelProto {
    /// Version of this schema that the writer used.
    #[prost(int64, optional, tag = "1")]
    pub ir_version: Option<i64>,
    /// Tool that wrote the model.
    #[prost(string, optional, tag = "2")]
    pub producer_name: Option<String>,
    /// Version of that tool.
    #[prost(string, optional, tag = "3")]
    pub producer_version: Option<String>,
    /// Reverse domain name of the model, with `model_version` and the graph's name its identity.
    #[prost(string, optional, tag = "4")]
    pub domain: Option<String>,
    /// Version of the graph.
    #[prost(int64, optional, tag = "5")]
    pub model_version: Option<i64>,
    /// Documentation for people; Markdown is allowed.
    #[prost(string, optional, tag = "6")]
    pub doc_string: Option<String>,
    /// The graph that inference evaluates.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// Operator sets that the graph's nodes bind to.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// Named metadata; keys should be distinct.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringStringEntryProto>,
    /// How to train the model; empty for inference.
    #[prost(message, repeated, tag = "20")]
    pub training_info: Vec<TrainingInfoProto>,
    /// Functions local to the model, unique by (domain, name, overload).
    #[prost(message, repeated, tag = "25")]
    pub functions: Vec<FunctionProto>,
    /// Device configurations that nodes refer to.
    #[prost(message, repeated, tag = "26")]
    pub configuration: Vec<DeviceConfigurationProto>,
}

/// A set of devices that a model may be spread over.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeviceConfigurationProto {
    /// Name that nodes refer to.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// Number of devices.
    #[prost(int32, optional, tag = "2")]
    pub num_devices: Option<i32>,
    /// Names of the devices; none or `num_devices`.
    #[prost(string, repeated, tag = "3")]
    pub device: Vec<String>,
}

/// A key and a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StringStringEntryProto {
    /// The key.
    #[prost(string, optional, tag = "1")]
    pub key: Option<String>,
    /// The value.
    #[prost(string, optional, tag = "2")]
    pub value: Option<String>,
}

/// Quantization parameters of a tensor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorAnnotation {
    /// The tensor annotated.
    #[prost(string, optional, tag = "1")]
    pub tensor_name: Option<String>,
    /// Role (`SCALE_TENSOR`, `ZERO_POINT_TENSOR`) to the tensor that holds it.
    #[prost(message, repeated, tag = "2")]
    pub quant_parameter_tensor_names: Vec<StringStringEntryProto>,
}

/// Nodes in topological order, the values that enter and leave, and the constants.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GraphProto {
    /// The nodes, in topological order.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// Name of the graph.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Constants, and defaults of inputs of the same name.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// Documentation for people; Markdown is allowed.
    #[prost(string, optional, tag = "10")]
    pub doc_string: Option<String>,
    /// What enters.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// What leaves.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
    /// Types of values in between.
    #[prost(message, repeated, tag = "13")]
    pub value_info: Vec<ValueInfoProto>,
    /// Scales and zero points of tensors.
    #[prost(message, repeated, tag = "14")]
    pub quantization_annotation: Vec<TensorAnnotation>,
    /// Constants stored sparse; named by `values.name`.
    #[prost(message, repeated, tag = "15")]
    pub sparse_initializer: Vec<SparseTensorProto>,
    /// Named metadata; keys should be distinct.
    #[prost(message, repeated, tag = "16")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

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

impl PartialEq for TensorProto {
    fn eq(&self, other: &Self) -> bool {
        self.dims == other.dims
            && self.data_type == other.data_type
            && self.segment == other.segment
            && same_floats(&self.float_data, &other.float_data)
            && self.int32_data == other.int32_data
            && self.string_data == other.string_data
            && self.int64_data == other.int64_data
            && self.name == other.name
            && same_bytes(self.raw_data.as_ref(), other.raw_data.as_ref())
            && same_doubles(&self.double_data, &other.double_data)
            && self.uint64_data == other.uint64_data
            && self.doc_string == other.doc_string
            && self.external_data == other.external_data
            && self.data_location == other.data_location
            && self.metadata_props == other.metadata_props
    }
}

/// Types nested in the message of this name.
pub mod tensor_proto {
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

    /// Inside or outside of the file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
    #[repr(i32)]
    pub enum DataLocation {
        /// In `raw_data` or a typed field.
        Default = 0,
        /// Where `external_data` says.
        External = 1,
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

/// A shape, one dimension per axis.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorShapeProto {
    /// Dimensions, outermost first.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<tensor_shape_proto::Dimension>,
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

/// An operator set: domain and version.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OperatorSetIdProto {
    /// Domain; absent or empty is the ONNX standard.
    #[prost(string, optional, tag = "1")]
    pub domain: Option<String>,
    /// Version within the domain.
    #[prost(int64, optional, tag = "2")]
    pub version: Option<i64>,
}

/// A function local to the model: its nodes replace a call.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FunctionProto {
    /// Name, matched with a node's `op_type`.
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    /// Formal inputs.
    #[prost(string, repeated, tag = "4")]
    pub input: Vec<String>,
    /// Formal outputs.
    #[prost(string, repeated, tag = "5")]
    pub output: Vec<String>,
    /// Attributes without a default.
    #[prost(string, repeated, tag = "6")]
    pub attribute: Vec<String>,
    /// The body.
    #[prost(message, repeated, tag = "7")]
    pub node: Vec<NodeProto>,
    /// Documentation for people; Markdown is allowed.
    #[prost(string, optional, tag = "8")]
    pub doc_string: Option<String>,
    /// Operator sets that the body binds to.
    #[prost(message, repeated, tag = "9")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// Domain that the function belongs to.
    #[prost(string, optional, tag = "10")]
    pub domain: Option<String>,
    /// Attributes with their defaults.
    #[prost(message, repeated, tag = "11")]
    pub attribute_proto: Vec<AttributeProto>,
    /// Types of values in the body.
    #[prost(message, repeated, tag = "12")]
    pub value_info: Vec<ValueInfoProto>,
    /// Tells functions of one domain and name apart.
    #[prost(string, optional, tag = "13")]
    pub overload: Option<String>,
    /// Named metadata; keys should be distinct.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringStringEntryProto>,
}
