// @generated from schema/onnx-ml.proto; do not edit: `cargo run -p relayout-onnx --example generate_schema`
// writes it anew.

//! The schema as data: every field of every message, by number.
//!
//! What is absent: reserved numbers. A file that uses one was written by a schema that no longer exists, and the field
//! is reported as unknown.

use super::Kind::{Bytes, Double, Enum, Float, Int32, Int64, Message, Str, Uint64};
use super::Label::{Optional, Packed, Repeated};
use super::{FieldDesc, Kind, Label, MessageDesc};
use crate::proto;

const fn field(number: u32, name: &'static str, label: Label, kind: Kind) -> FieldDesc {
    FieldDesc { number, name, label, kind }
}

pub(super) static ATTRIBUTE_PROTO: MessageDesc = MessageDesc {
    name: "AttributeProto",
    size: size_of::<proto::AttributeProto>(),
    fields: &[
        field(1, "name", Optional, Str),
        field(2, "f", Optional, Float),
        field(3, "i", Optional, Int64),
        field(4, "s", Optional, Bytes),
        field(5, "t", Optional, Message(&TENSOR_PROTO)),
        field(6, "g", Optional, Message(&GRAPH_PROTO)),
        field(7, "floats", Repeated, Float),
        field(8, "ints", Repeated, Int64),
        field(9, "strings", Repeated, Bytes),
        field(10, "tensors", Repeated, Message(&TENSOR_PROTO)),
        field(11, "graphs", Repeated, Message(&GRAPH_PROTO)),
        field(13, "doc_string", Optional, Str),
        field(14, "tp", Optional, Message(&TYPE_PROTO)),
        field(15, "type_protos", Repeated, Message(&TYPE_PROTO)),
        field(20, "type", Optional, Enum),
        field(21, "ref_attr_name", Optional, Str),
        field(22, "sparse_tensor", Optional, Message(&SPARSE_TENSOR_PROTO)),
        field(23, "sparse_tensors", Repeated, Message(&SPARSE_TENSOR_PROTO)),
    ],
};

pub(super) static VALUE_INFO_PROTO: MessageDesc = MessageDesc {
    name: "ValueInfoProto",
    size: size_of::<proto::ValueInfoProto>(),
    fields: &[
        field(1, "name", Optional, Str),
        field(2, "type", Optional, Message(&TYPE_PROTO)),
        field(3, "doc_string", Optional, Str),
        field(4, "metadata_props", Repeated, Message(&STRING_STRING_ENTRY_PROTO)),
    ],
};

pub(super) static NODE_PROTO: MessageDesc = MessageDesc {
    name: "NodeProto",
    size: size_of::<proto::NodeProto>(),
    fields: &[
        field(1, "input", Repeated, Str),
        field(2, "output", Repeated, Str),
        field(3, "name", Optional, Str),
        field(4, "op_type", Optional, Str),
        field(5, "attribute", Repeated, Message(&ATTRIBUTE_PROTO)),
        field(6, "doc_string", Optional, Str),
        field(7, "domain", Optional, Str),
        field(8, "overload", Optional, Str),
        field(9, "metadata_props", Repeated, Message(&STRING_STRING_ENTRY_PROTO)),
        field(10, "device_configurations", Repeated, Message(&NODE_DEVICE_CONFIGURATION_PROTO)),
    ],
};

pub(super) static INT_INT_LIST_ENTRY_PROTO: MessageDesc = MessageDesc {
    name: "IntIntListEntryProto",
    size: size_of::<proto::IntIntListEntryProto>(),
    fields: &[
        field(1, "key", Optional, Int64),
        field(2, "value", Repeated, Int64),
    ],
};

pub(super) static NODE_DEVICE_CONFIGURATION_PROTO: MessageDesc = MessageDesc {
    name: "NodeDeviceConfigurationProto",
    size: size_of::<proto::NodeDeviceConfigurationProto>(),
    fields: &[
        field(1, "configuration_id", Optional, Str),
        field(2, "sharding_spec", Repeated, Message(&SHARDING_SPEC_PROTO)),
        field(3, "pipeline_stage", Optional, Int32),
    ],
};

pub(super) static SHARDING_SPEC_PROTO: MessageDesc = MessageDesc {
    name: "ShardingSpecProto",
    size: size_of::<proto::ShardingSpecProto>(),
    fields: &[
        field(1, "tensor_name", Optional, Str),
        field(2, "device", Repeated, Int64),
        field(3, "index_to_device_group_map", Repeated, Message(&INT_INT_LIST_ENTRY_PROTO)),
        field(4, "sharded_dim", Repeated, Message(&SHARDED_DIM_PROTO)),
    ],
};

pub(super) static SHARDED_DIM_PROTO: MessageDesc = MessageDesc {
    name: "ShardedDimProto",
    size: size_of::<proto::ShardedDimProto>(),
    fields: &[
        field(1, "axis", Optional, Int64),
        field(2, "simple_sharding", Repeated, Message(&SIMPLE_SHARDED_DIM_PROTO)),
    ],
};

pub(super) static SIMPLE_SHARDED_DIM_PROTO: MessageDesc = MessageDesc {
    name: "SimpleShardedDimProto",
    size: size_of::<proto::SimpleShardedDimProto>(),
    fields: &[
        field(1, "dim_value", Optional, Int64),
        field(2, "dim_param", Optional, Str),
        field(3, "num_shards", Optional, Int64),
    ],
};

pub(super) static TRAINING_INFO_PROTO: MessageDesc = MessageDesc {
    name: "TrainingInfoProto",
    size: size_of::<proto::TrainingInfoProto>(),
    fields: &[
        field(1, "initialization", Optional, Message(&GRAPH_PROTO)),
        field(2, "algorithm", Optional, Message(&GRAPH_PROTO)),
        field(3, "initialization_binding", Repeated, Message(&STRING_STRING_ENTRY_PROTO)),
        field(4, "update_binding", Repeated, Message(&STRING_STRING_ENTRY_PROTO)),
    ],
};

pub(super) static MODEL_PROTO: MessageDesc = MessageDesc {
    name: "ModelProto",
    size: size_of::<proto::ModelProto>(),
    fields: &[
        field(1, "ir_version", Optional, Int64),
        field(2, "producer_name", Optional, Str),
        field(3, "producer_version", Optional, Str),
        field(4, "domain", Optional, Str),
        field(5, "model_version", Optional, Int64),
        field(6, "doc_string", Optional, Str),
        field(7, "graph", Optional, Message(&GRAPH_PROTO)),
        field(8, "opset_import", Repeated, Message(&OPERATOR_SET_ID_PROTO)),
        field(14, "metadata_props", Repeated, Message(&STRING_STRING_ENTRY_PROTO)),
        field(20, "training_info", Repeated, Message(&TRAINING_INFO_PROTO)),
        field(25, "functions", Repeated, Message(&FUNCTION_PROTO)),
        field(26, "configuration", Repeated, Message(&DEVICE_CONFIGURATION_PROTO)),
    ],
};

pub(super) static DEVICE_CONFIGURATION_PROTO: MessageDesc = MessageDesc {
    name: "DeviceConfigurationProto",
    size: size_of::<proto::DeviceConfigurationProto>(),
    fields: &[
        field(1, "name", Optional, Str),
        field(2, "num_devices", Optional, Int32),
        field(3, "device", Repeated, Str),
    ],
};

pub(super) static STRING_STRING_ENTRY_PROTO: MessageDesc = MessageDesc {
    name: "StringStringEntryProto",
    size: size_of::<proto::StringStringEntryProto>(),
    fields: &[
        field(1, "key", Optional, Str),
        field(2, "value", Optional, Str),
    ],
};

pub(super) static TENSOR_ANNOTATION: MessageDesc = MessageDesc {
    name: "TensorAnnotation",
    size: size_of::<proto::TensorAnnotation>(),
    fields: &[
        field(1, "tensor_name", Optional, Str),
        field(2, "quant_parameter_tensor_names", Repeated, Message(&STRING_STRING_ENTRY_PROTO)),
    ],
};

pub(super) static GRAPH_PROTO: MessageDesc = MessageDesc {
    name: "GraphProto",
    size: size_of::<proto::GraphProto>(),
    fields: &[
        field(1, "node", Repeated, Message(&NODE_PROTO)),
        field(2, "name", Optional, Str),
        field(5, "initializer", Repeated, Message(&TENSOR_PROTO)),
        field(10, "doc_string", Optional, Str),
        field(11, "input", Repeated, Message(&VALUE_INFO_PROTO)),
        field(12, "output", Repeated, Message(&VALUE_INFO_PROTO)),
        field(13, "value_info", Repeated, Message(&VALUE_INFO_PROTO)),
        field(14, "quantization_annotation", Repeated, Message(&TENSOR_ANNOTATION)),
        field(15, "sparse_initializer", Repeated, Message(&SPARSE_TENSOR_PROTO)),
        field(16, "metadata_props", Repeated, Message(&STRING_STRING_ENTRY_PROTO)),
    ],
};

pub(super) static TENSOR_PROTO: MessageDesc = MessageDesc {
    name: "TensorProto",
    size: size_of::<proto::TensorProto>(),
    fields: &[
        field(1, "dims", Repeated, Int64),
        field(2, "data_type", Optional, Int32),
        field(3, "segment", Optional, Message(&TENSOR_PROTO_SEGMENT)),
        field(4, "float_data", Packed, Float),
        field(5, "int32_data", Packed, Int32),
        field(6, "string_data", Repeated, Bytes),
        field(7, "int64_data", Packed, Int64),
        field(8, "name", Optional, Str),
        field(9, "raw_data", Optional, Bytes),
        field(10, "double_data", Packed, Double),
        field(11, "uint64_data", Packed, Uint64),
        field(12, "doc_string", Optional, Str),
        field(13, "external_data", Repeated, Message(&STRING_STRING_ENTRY_PROTO)),
        field(14, "data_location", Optional, Enum),
        field(16, "metadata_props", Repeated, Message(&STRING_STRING_ENTRY_PROTO)),
    ],
};

pub(super) static TENSOR_PROTO_SEGMENT: MessageDesc = MessageDesc {
    name: "TensorProto.Segment",
    size: size_of::<proto::tensor_proto::Segment>(),
    fields: &[
        field(1, "begin", Optional, Int64),
        field(2, "end", Optional, Int64),
    ],
};

pub(super) static SPARSE_TENSOR_PROTO: MessageDesc = MessageDesc {
    name: "SparseTensorProto",
    size: size_of::<proto::SparseTensorProto>(),
    fields: &[
        field(1, "values", Optional, Message(&TENSOR_PROTO)),
        field(2, "indices", Optional, Message(&TENSOR_PROTO)),
        field(3, "dims", Repeated, Int64),
    ],
};

pub(super) static TENSOR_SHAPE_PROTO: MessageDesc = MessageDesc {
    name: "TensorShapeProto",
    size: size_of::<proto::TensorShapeProto>(),
    fields: &[
        field(1, "dim", Repeated, Message(&TENSOR_SHAPE_PROTO_DIMENSION)),
    ],
};

pub(super) static TENSOR_SHAPE_PROTO_DIMENSION: MessageDesc = MessageDesc {
    name: "TensorShapeProto.Dimension",
    size: size_of::<proto::tensor_shape_proto::Dimension>(),
    fields: &[
        field(1, "dim_value", Optional, Int64),
        field(2, "dim_param", Optional, Str),
        field(3, "denotation", Optional, Str),
    ],
};

pub(super) static TYPE_PROTO: MessageDesc = MessageDesc {
    name: "TypeProto",
    size: size_of::<proto::TypeProto>(),
    fields: &[
        field(1, "tensor_type", Optional, Message(&TYPE_PROTO_TENSOR)),
        field(4, "sequence_type", Optional, Message(&TYPE_PROTO_SEQUENCE)),
        field(5, "map_type", Optional, Message(&TYPE_PROTO_MAP)),
        field(6, "denotation", Optional, Str),
        field(7, "opaque_type", Optional, Message(&TYPE_PROTO_OPAQUE)),
        field(8, "sparse_tensor_type", Optional, Message(&TYPE_PROTO_SPARSE_TENSOR)),
        field(9, "optional_type", Optional, Message(&TYPE_PROTO_OPTIONAL)),
    ],
};

pub(super) static TYPE_PROTO_TENSOR: MessageDesc = MessageDesc {
    name: "TypeProto.Tensor",
    size: size_of::<proto::type_proto::Tensor>(),
    fields: &[
        field(1, "elem_type", Optional, Int32),
        field(2, "shape", Optional, Message(&TENSOR_SHAPE_PROTO)),
    ],
};

pub(super) static TYPE_PROTO_SEQUENCE: MessageDesc = MessageDesc {
    name: "TypeProto.Sequence",
    size: size_of::<proto::type_proto::Sequence>(),
    fields: &[
        field(1, "elem_type", Optional, Message(&TYPE_PROTO)),
    ],
};

pub(super) static TYPE_PROTO_MAP: MessageDesc = MessageDesc {
    name: "TypeProto.Map",
    size: size_of::<proto::type_proto::Map>(),
    fields: &[
        field(1, "key_type", Optional, Int32),
        field(2, "value_type", Optional, Message(&TYPE_PROTO)),
    ],
};

pub(super) static TYPE_PROTO_OPTIONAL: MessageDesc = MessageDesc {
    name: "TypeProto.Optional",
    size: size_of::<proto::type_proto::Optional>(),
    fields: &[
        field(1, "elem_type", Optional, Message(&TYPE_PROTO)),
    ],
};

pub(super) static TYPE_PROTO_SPARSE_TENSOR: MessageDesc = MessageDesc {
    name: "TypeProto.SparseTensor",
    size: size_of::<proto::type_proto::SparseTensor>(),
    fields: &[
        field(1, "elem_type", Optional, Int32),
        field(2, "shape", Optional, Message(&TENSOR_SHAPE_PROTO)),
    ],
};

pub(super) static TYPE_PROTO_OPAQUE: MessageDesc = MessageDesc {
    name: "TypeProto.Opaque",
    size: size_of::<proto::type_proto::Opaque>(),
    fields: &[
        field(1, "domain", Optional, Str),
        field(2, "name", Optional, Str),
    ],
};

pub(super) static OPERATOR_SET_ID_PROTO: MessageDesc = MessageDesc {
    name: "OperatorSetIdProto",
    size: size_of::<proto::OperatorSetIdProto>(),
    fields: &[
        field(1, "domain", Optional, Str),
        field(2, "version", Optional, Int64),
    ],
};

pub(super) static FUNCTION_PROTO: MessageDesc = MessageDesc {
    name: "FunctionProto",
    size: size_of::<proto::FunctionProto>(),
    fields: &[
        field(1, "name", Optional, Str),
        field(4, "input", Repeated, Str),
        field(5, "output", Repeated, Str),
        field(6, "attribute", Repeated, Str),
        field(7, "node", Repeated, Message(&NODE_PROTO)),
        field(8, "doc_string", Optional, Str),
        field(9, "opset_import", Repeated, Message(&OPERATOR_SET_ID_PROTO)),
        field(10, "domain", Optional, Str),
        field(11, "attribute_proto", Repeated, Message(&ATTRIBUTE_PROTO)),
        field(12, "value_info", Repeated, Message(&VALUE_INFO_PROTO)),
        field(13, "overload", Optional, Str),
        field(14, "metadata_props", Repeated, Message(&STRING_STRING_ENTRY_PROTO)),
    ],
};
