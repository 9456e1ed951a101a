// @generated from schema/onnx-ml.proto; do not edit: `cargo run -p relayout-onnx --example generate_schema`
// writes it anew.

//! The fields of the messages that can hold a tensor, in the order of their numbers.
//!
//! Everything else is a leaf that prost encodes. What a tensor has for its data is the plan's to say.

use super::encode::{Placed, Sink, leaf, nested};
use super::plan::Plan;
use crate::error::Result;
use crate::proto::{
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    TrainingInfoProto,
};

pub(super) fn attribute_proto(s: &mut impl Sink, plan: &Plan<'_>, m: &AttributeProto) -> Result<()> {
    leaf!(s, string, optional, 1, m.name);
    leaf!(s, float, optional, 2, m.f);
    leaf!(s, int64, optional, 3, m.i);
    leaf!(s, bytes, optional, 4, m.s);
    nested!(s, plan, optional, 5, m.t, tensor_proto);
    nested!(s, plan, optional, 6, m.g, graph_proto);
    leaf!(s, float, repeated, 7, m.floats);
    leaf!(s, int64, repeated, 8, m.ints);
    leaf!(s, bytes, repeated, 9, m.strings);
    nested!(s, plan, repeated, 10, m.tensors, tensor_proto);
    nested!(s, plan, repeated, 11, m.graphs, graph_proto);
    leaf!(s, string, optional, 13, m.doc_string);
    leaf!(s, message, optional, 14, m.tp);
    leaf!(s, message, repeated, 15, m.type_protos);
    leaf!(s, int32, optional, 20, m.r#type);
    leaf!(s, string, optional, 21, m.ref_attr_name);
    nested!(s, plan, optional, 22, m.sparse_tensor, sparse_tensor_proto);
    nested!(s, plan, repeated, 23, m.sparse_tensors, sparse_tensor_proto);
    Ok(())
}

pub(super) fn node_proto(s: &mut impl Sink, plan: &Plan<'_>, m: &NodeProto) -> Result<()> {
    leaf!(s, string, repeated, 1, m.input);
    leaf!(s, string, repeated, 2, m.output);
    leaf!(s, string, optional, 3, m.name);
    leaf!(s, string, optional, 4, m.op_type);
    nested!(s, plan, repeated, 5, m.attribute, attribute_proto);
    leaf!(s, string, optional, 6, m.doc_string);
    leaf!(s, string, optional, 7, m.domain);
    leaf!(s, string, optional, 8, m.overload);
    leaf!(s, message, repeated, 9, m.metadata_props);
    leaf!(s, message, repeated, 10, m.device_configurations);
    Ok(())
}

pub(super) fn training_info_proto(s: &mut impl Sink, plan: &Plan<'_>, m: &TrainingInfoProto) -> Result<()> {
    nested!(s, plan, optional, 1, m.initialization, graph_proto);
    nested!(s, plan, optional, 2, m.algorithm, graph_proto);
    leaf!(s, message, repeated, 3, m.initialization_binding);
    leaf!(s, message, repeated, 4, m.update_binding);
    Ok(())
}

pub(super) fn model_proto(s: &mut impl Sink, plan: &Plan<'_>, m: &ModelProto) -> Result<()> {
    leaf!(s, int64, optional, 1, m.ir_version);
    leaf!(s, string, optional, 2, m.producer_name);
    leaf!(s, string, optional, 3, m.producer_version);
    leaf!(s, string, optional, 4, m.domain);
    leaf!(s, int64, optional, 5, m.model_version);
    leaf!(s, string, optional, 6, m.doc_string);
    nested!(s, plan, optional, 7, m.graph, graph_proto);
    leaf!(s, message, repeated, 8, m.opset_import);
    leaf!(s, message, repeated, 14, m.metadata_props);
    nested!(s, plan, repeated, 20, m.training_info, training_info_proto);
    nested!(s, plan, repeated, 25, m.functions, function_proto);
    leaf!(s, message, repeated, 26, m.configuration);
    Ok(())
}

pub(super) fn graph_proto(s: &mut impl Sink, plan: &Plan<'_>, m: &GraphProto) -> Result<()> {
    nested!(s, plan, repeated, 1, m.node, node_proto);
    leaf!(s, string, optional, 2, m.name);
    nested!(s, plan, repeated, 5, m.initializer, tensor_proto);
    leaf!(s, string, optional, 10, m.doc_string);
    leaf!(s, message, repeated, 11, m.input);
    leaf!(s, message, repeated, 12, m.output);
    leaf!(s, message, repeated, 13, m.value_info);
    leaf!(s, message, repeated, 14, m.quantization_annotation);
    nested!(s, plan, repeated, 15, m.sparse_initializer, sparse_tensor_proto);
    leaf!(s, message, repeated, 16, m.metadata_props);
    Ok(())
}

pub(super) fn tensor_proto(s: &mut impl Sink, plan: &Plan<'_>, m: &TensorProto) -> Result<()> {
    let placed = Placed::new(m, plan);
    leaf!(s, int64, repeated, 1, m.dims);
    leaf!(s, int32, optional, 2, m.data_type);
    leaf!(s, message, optional, 3, m.segment);
    leaf!(s, float, packed, 4, m.float_data);
    leaf!(s, int32, packed, 5, m.int32_data);
    leaf!(s, bytes, repeated, 6, m.string_data);
    leaf!(s, int64, packed, 7, m.int64_data);
    leaf!(s, string, optional, 8, m.name);
    s.optional_payload(9, m, placed.raw_data.as_ref())?;
    leaf!(s, double, packed, 10, m.double_data);
    leaf!(s, uint64, packed, 11, m.uint64_data);
    leaf!(s, string, optional, 12, m.doc_string);
    leaf!(s, message, repeated, 13, placed.external_data);
    leaf!(s, int32, optional, 14, placed.data_location);
    leaf!(s, message, repeated, 16, m.metadata_props);
    Ok(())
}

pub(super) fn sparse_tensor_proto(s: &mut impl Sink, plan: &Plan<'_>, m: &SparseTensorProto) -> Result<()> {
    nested!(s, plan, optional, 1, m.values, tensor_proto);
    nested!(s, plan, optional, 2, m.indices, tensor_proto);
    leaf!(s, int64, repeated, 3, m.dims);
    Ok(())
}

pub(super) fn function_proto(s: &mut impl Sink, plan: &Plan<'_>, m: &FunctionProto) -> Result<()> {
    leaf!(s, string, optional, 1, m.name);
    leaf!(s, string, repeated, 4, m.input);
    leaf!(s, string, repeated, 5, m.output);
    leaf!(s, string, repeated, 6, m.attribute);
    nested!(s, plan, repeated, 7, m.node, node_proto);
    leaf!(s, string, optional, 8, m.doc_string);
    leaf!(s, message, repeated, 9, m.opset_import);
    leaf!(s, string, optional, 10, m.domain);
    nested!(s, plan, repeated, 11, m.attribute_proto, attribute_proto);
    leaf!(s, message, repeated, 12, m.value_info);
    leaf!(s, string, optional, 13, m.overload);
    leaf!(s, message, repeated, 14, m.metadata_props);
    Ok(())
}
