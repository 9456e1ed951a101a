//! The whole file: model, operator sets, functions and training.

use super::{AttributeProto, DeviceConfigurationProto, GraphProto, NodeProto, ValueInfoProto};

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
