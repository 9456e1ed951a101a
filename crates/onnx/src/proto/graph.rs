//! Graphs: nodes, attributes and the names and types of values.

use bytes::Bytes;

use super::{NodeDeviceConfigurationProto, SparseTensorProto, StringStringEntryProto, TensorProto, TypeProto};

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
