//! The schema as data: every field of every message, by number.
//!
//! The walk reads this table, prost reads the attributes in [`crate::proto`]; a test holds both against the standard's own
//! schema file, so neither can miss a field alone. What is absent: reserved numbers. A file that uses one was written by a
//! schema that no longer exists, and the field is reported as unknown.

use super::Kind::{Bytes, Double, Enum, Float, Int32, Int64, Message, Str, Uint64};
use super::Label::{Optional, Packed, Repeated};
use super::{FieldDesc, Kind, Label, MessageDesc};
use crate::proto;

const fn field(number: u32, name: &'static str, label: Label, kind: Kind) -> FieldDesc {
    FieldDesc { number, name, label, kind }
}

pub(super) static MODEL: MessageDesc = MessageDesc {
    name: "ModelProto",
    size: size_of::<proto::ModelProto>(),
    fields: &[
        field(1, "ir_version", Optional, Int64),
        field(2, "producer_name", Optional, Str),
        field(3, "producer_version", Optional, Str),
        field(4, "domain", Optional, Str),
        field(5, "model_version", Optional, Int64),
        field(6, "doc_string", Optional, Str),
        field(7, "graph", Optional, Message(&GRAPH)),
        field(8, "opset_import", Repeated, Message(&OPERATOR_SET_ID)),
        field(14, "metadata_props", Repeated, Message(&STRING_STRING_ENTRY)),
        field(20, "training_info", Repeated, Message(&TRAINING_INFO)),
        field(25, "functions", Repeated, Message(&FUNCTION)),
        field(26, "configuration", Repeated, Message(&DEVICE_CONFIGURATION)),
    ],
};

pub(super) static OPERATOR_SET_ID: MessageDesc = MessageDesc {
    name: "OperatorSetIdProto",
    size: size_of::<proto::OperatorSetIdProto>(),
    fields: &[field(1, "domain", Optional, Str), field(2, "version", Optional, Int64)],
};

pub(super) static STRING_STRING_ENTRY: MessageDesc = MessageDesc {
    name: "StringStringEntryProto",
    size: size_of::<proto::StringStringEntryProto>(),
    fields: &[field(1, "key", Optional, Str), field(2, "value", Optional, Str)],
};

pub(super) static TRAINING_INFO: MessageDesc = MessageDesc {
    name: "TrainingInfoProto",
    size: size_of::<proto::TrainingInfoProto>(),
    fields: &[
        field(1, "initialization", Optional, Message(&GRAPH)),
        field(2, "algorithm", Optional, Message(&GRAPH)),
        field(3, "initialization_binding", Repeated, Message(&STRING_STRING_ENTRY)),
        field(4, "update_binding", Repeated, Message(&STRING_STRING_ENTRY)),
    ],
};

pub(super) static FUNCTION: MessageDesc = MessageDesc {
    name: "FunctionProto",
    size: size_of::<proto::FunctionProto>(),
    fields: &[
        field(1, "name", Optional, Str),
        field(4, "input", Repeated, Str),
        field(5, "output", Repeated, Str),
        field(6, "attribute", Repeated, Str),
        field(7, "node", Repeated, Message(&NODE)),
        field(8, "doc_string", Optional, Str),
        field(9, "opset_import", Repeated, Message(&OPERATOR_SET_ID)),
        field(10, "domain", Optional, Str),
        field(11, "attribute_proto", Repeated, Message(&ATTRIBUTE)),
        field(12, "value_info", Repeated, Message(&VALUE_INFO)),
        field(13, "overload", Optional, Str),
        field(14, "metadata_props", Repeated, Message(&STRING_STRING_ENTRY)),
    ],
};

pub(super) static GRAPH: MessageDesc = MessageDesc {
    name: "GraphProto",
    size: size_of::<proto::GraphProto>(),
    fields: &[
        field(1, "node", Repeated, Message(&NODE)),
        field(2, "name", Optional, Str),
        field(5, "initializer", Repeated, Message(&TENSOR)),
        field(10, "doc_string", Optional, Str),
        field(11, "input", Repeated, Message(&VALUE_INFO)),
        field(12, "output", Repeated, Message(&VALUE_INFO)),
        field(13, "value_info", Repeated, Message(&VALUE_INFO)),
        field(14, "quantization_annotation", Repeated, Message(&TENSOR_ANNOTATION)),
        field(15, "sparse_initializer", Repeated, Message(&SPARSE_TENSOR)),
        field(16, "metadata_props", Repeated, Message(&STRING_STRING_ENTRY)),
    ],
};

pub(super) static NODE: MessageDesc = MessageDesc {
    name: "NodeProto",
    size: size_of::<proto::NodeProto>(),
    fields: &[
        field(1, "input", Repeated, Str),
        field(2, "output", Repeated, Str),
        field(3, "name", Optional, Str),
        field(4, "op_type", Optional, Str),
        field(5, "attribute", Repeated, Message(&ATTRIBUTE)),
        field(6, "doc_string", Optional, Str),
        field(7, "domain", Optional, Str),
        field(8, "overload", Optional, Str),
        field(9, "metadata_props", Repeated, Message(&STRING_STRING_ENTRY)),
        field(10, "device_configurations", Repeated, Message(&NODE_DEVICE_CONFIGURATION)),
    ],
};

pub(super) static ATTRIBUTE: MessageDesc = MessageDesc {
    name: "AttributeProto",
    size: size_of::<proto::AttributeProto>(),
    fields: &[
        field(1, "name", Optional, Str),
        field(2, "f", Optional, Float),
        field(3, "i", Optional, Int64),
        field(4, "s", Optional, Bytes),
        field(5, "t", Optional, Message(&TENSOR)),
        field(6, "g", Optional, Message(&GRAPH)),
        field(7, "floats", Repeated, Float),
        field(8, "ints", Repeated, Int64),
        field(9, "strings", Repeated, Bytes),
        field(10, "tensors", Repeated, Message(&TENSOR)),
        field(11, "graphs", Repeated, Message(&GRAPH)),
        field(13, "doc_string", Optional, Str),
        field(14, "tp", Optional, Message(&TYPE)),
        field(15, "type_protos", Repeated, Message(&TYPE)),
        field(20, "type", Optional, Enum),
        field(21, "ref_attr_name", Optional, Str),
        field(22, "sparse_tensor", Optional, Message(&SPARSE_TENSOR)),
        field(23, "sparse_tensors", Repeated, Message(&SPARSE_TENSOR)),
    ],
};

pub(super) static VALUE_INFO: MessageDesc = MessageDesc {
    name: "ValueInfoProto",
    size: size_of::<proto::ValueInfoProto>(),
    fields: &[
        field(1, "name", Optional, Str),
        field(2, "type", Optional, Message(&TYPE)),
        field(3, "doc_string", Optional, Str),
        field(4, "metadata_props", Repeated, Message(&STRING_STRING_ENTRY)),
    ],
};

pub(super) static TENSOR_ANNOTATION: MessageDesc = MessageDesc {
    name: "TensorAnnotation",
    size: size_of::<proto::TensorAnnotation>(),
    fields: &[
        field(1, "tensor_name", Optional, Str),
        field(2, "quant_parameter_tensor_names", Repeated, Message(&STRING_STRING_ENTRY)),
    ],
};

pub(super) static TENSOR: MessageDesc = MessageDesc {
    name: "TensorProto",
    size: size_of::<proto::TensorProto>(),
    fields: &[
        field(1, "dims", Repeated, Int64),
        field(2, "data_type", Optional, Int32),
        field(3, "segment", Optional, Message(&SEGMENT)),
        field(4, "float_data", Packed, Float),
        field(5, "int32_data", Packed, Int32),
        field(6, "string_data", Repeated, Bytes),
        field(7, "int64_data", Packed, Int64),
        field(8, "name", Optional, Str),
        field(9, "raw_data", Optional, Bytes),
        field(10, "double_data", Packed, Double),
        field(11, "uint64_data", Packed, Uint64),
        field(12, "doc_string", Optional, Str),
        field(13, "external_data", Repeated, Message(&STRING_STRING_ENTRY)),
        field(14, "data_location", Optional, Enum),
        field(16, "metadata_props", Repeated, Message(&STRING_STRING_ENTRY)),
    ],
};

pub(super) static SPARSE_TENSOR: MessageDesc = MessageDesc {
    name: "SparseTensorProto",
    size: size_of::<proto::SparseTensorProto>(),
    fields: &[
        field(1, "values", Optional, Message(&TENSOR)),
        field(2, "indices", Optional, Message(&TENSOR)),
        field(3, "dims", Repeated, Int64),
    ],
};

pub(super) static SEGMENT: MessageDesc = MessageDesc {
    name: "TensorProto.Segment",
    size: size_of::<proto::tensor_proto::Segment>(),
    fields: &[field(1, "begin", Optional, Int64), field(2, "end", Optional, Int64)],
};

pub(super) static TYPE: MessageDesc = MessageDesc {
    name: "TypeProto",
    size: size_of::<proto::TypeProto>(),
    fields: &[
        field(1, "tensor_type", Optional, Message(&TYPE_TENSOR)),
        field(4, "sequence_type", Optional, Message(&TYPE_SEQUENCE)),
        field(5, "map_type", Optional, Message(&TYPE_MAP)),
        field(6, "denotation", Optional, Str),
        field(7, "opaque_type", Optional, Message(&TYPE_OPAQUE)),
        field(8, "sparse_tensor_type", Optional, Message(&TYPE_SPARSE_TENSOR)),
        field(9, "optional_type", Optional, Message(&TYPE_OPTIONAL)),
    ],
};

pub(super) static TYPE_TENSOR: MessageDesc = MessageDesc {
    name: "TypeProto.Tensor",
    size: size_of::<proto::type_proto::Tensor>(),
    fields: &[field(1, "elem_type", Optional, Int32), field(2, "shape", Optional, Message(&TENSOR_SHAPE))],
};

pub(super) static TYPE_SEQUENCE: MessageDesc = MessageDesc {
    name: "TypeProto.Sequence",
    size: size_of::<proto::type_proto::Sequence>(),
    fields: &[field(1, "elem_type", Optional, Message(&TYPE))],
};

pub(super) static TYPE_MAP: MessageDesc = MessageDesc {
    name: "TypeProto.Map",
    size: size_of::<proto::type_proto::Map>(),
    fields: &[field(1, "key_type", Optional, Int32), field(2, "value_type", Optional, Message(&TYPE))],
};

pub(super) static TYPE_OPTIONAL: MessageDesc = MessageDesc {
    name: "TypeProto.Optional",
    size: size_of::<proto::type_proto::Optional>(),
    fields: &[field(1, "elem_type", Optional, Message(&TYPE))],
};

pub(super) static TYPE_SPARSE_TENSOR: MessageDesc = MessageDesc {
    name: "TypeProto.SparseTensor",
    size: size_of::<proto::type_proto::SparseTensor>(),
    fields: &[field(1, "elem_type", Optional, Int32), field(2, "shape", Optional, Message(&TENSOR_SHAPE))],
};

pub(super) static TYPE_OPAQUE: MessageDesc = MessageDesc {
    name: "TypeProto.Opaque",
    size: size_of::<proto::type_proto::Opaque>(),
    fields: &[field(1, "domain", Optional, Str), field(2, "name", Optional, Str)],
};

pub(super) static TENSOR_SHAPE: MessageDesc = MessageDesc {
    name: "TensorShapeProto",
    size: size_of::<proto::TensorShapeProto>(),
    fields: &[field(1, "dim", Repeated, Message(&DIMENSION))],
};

pub(super) static DIMENSION: MessageDesc = MessageDesc {
    name: "TensorShapeProto.Dimension",
    size: size_of::<proto::tensor_shape_proto::Dimension>(),
    fields: &[
        field(1, "dim_value", Optional, Int64),
        field(2, "dim_param", Optional, Str),
        field(3, "denotation", Optional, Str),
    ],
};

pub(super) static DEVICE_CONFIGURATION: MessageDesc = MessageDesc {
    name: "DeviceConfigurationProto",
    size: size_of::<proto::DeviceConfigurationProto>(),
    fields: &[
        field(1, "name", Optional, Str),
        field(2, "num_devices", Optional, Int32),
        field(3, "device", Repeated, Str),
    ],
};

pub(super) static NODE_DEVICE_CONFIGURATION: MessageDesc = MessageDesc {
    name: "NodeDeviceConfigurationProto",
    size: size_of::<proto::NodeDeviceConfigurationProto>(),
    fields: &[
        field(1, "configuration_id", Optional, Str),
        field(2, "sharding_spec", Repeated, Message(&SHARDING_SPEC)),
        field(3, "pipeline_stage", Optional, Int32),
    ],
};

pub(super) static SHARDING_SPEC: MessageDesc = MessageDesc {
    name: "ShardingSpecProto",
    size: size_of::<proto::ShardingSpecProto>(),
    fields: &[
        field(1, "tensor_name", Optional, Str),
        field(2, "device", Repeated, Int64),
        field(3, "index_to_device_group_map", Repeated, Message(&INT_INT_LIST_ENTRY)),
        field(4, "sharded_dim", Repeated, Message(&SHARDED_DIM)),
    ],
};

pub(super) static SHARDED_DIM: MessageDesc = MessageDesc {
    name: "ShardedDimProto",
    size: size_of::<proto::ShardedDimProto>(),
    fields: &[field(1, "axis", Optional, Int64), field(2, "simple_sharding", Repeated, Message(&SIMPLE_SHARDED_DIM))],
};

pub(super) static SIMPLE_SHARDED_DIM: MessageDesc = MessageDesc {
    name: "SimpleShardedDimProto",
    size: size_of::<proto::SimpleShardedDimProto>(),
    fields: &[
        field(1, "dim_value", Optional, Int64),
        field(2, "dim_param", Optional, Str),
        field(3, "num_shards", Optional, Int64),
    ],
};

pub(super) static INT_INT_LIST_ENTRY: MessageDesc = MessageDesc {
    name: "IntIntListEntryProto",
    size: size_of::<proto::IntIntListEntryProto>(),
    fields: &[field(1, "key", Optional, Int64), field(2, "value", Repeated, Int64)],
};
