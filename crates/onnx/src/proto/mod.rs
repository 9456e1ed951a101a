//! The messages of an ONNX file, field by field as the standard's schema (onnx 1.23, IR version 14) has them.
//!
//! Hand-written for prost, so that `bytes` fields are [`bytes::Bytes`]: decoding from a `Bytes` copies no weight, a tensor's
//! `raw_data` is a slice of the file. Every optional scalar is an `Option`: absent and zero stay different, and what was read
//! is written back as it was. Repeated numbers are packed exactly where the schema says so, and prost writes fields by number:
//! encoding what was decoded gives the canonical encoding, but for a type that is optional, sparse or opaque *and* has a
//! denotation, which prost puts last; no reader minds. Names and nesting follow `prost-build`.
//!
//! What is absent: unknown fields. prost drops them; [`crate::wire`] finds them.

mod device;
mod equal;
mod graph;
pub(crate) mod make;
mod model;
mod tensor;
mod types;
mod visit;

pub use device::{
    DeviceConfigurationProto, IntIntListEntryProto, NodeDeviceConfigurationProto, ShardedDimProto, ShardingSpecProto,
    SimpleShardedDimProto, simple_sharded_dim_proto,
};
pub use graph::{AttributeProto, GraphProto, NodeProto, TensorAnnotation, ValueInfoProto, attribute_proto};
pub use model::{FunctionProto, ModelProto, OperatorSetIdProto, StringStringEntryProto, TrainingInfoProto};
pub use tensor::{SparseTensorProto, TensorProto, tensor_proto};
pub use types::{TensorShapeProto, TypeProto, tensor_shape_proto, type_proto};
