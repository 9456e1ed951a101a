//! Types of values.

use crate::proto::{TensorShapeProto, TypeProto, tensor_shape_proto::dimension, type_proto};
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::types::{Shape, TensorType, Type};

/// The type that a file declares. Dims without a number or a name are anonymous, counted in `unknowns`.
pub fn type_of(proto: Option<&TypeProto>, unknowns: &mut u32) -> Type {
    match proto.and_then(|p| p.value.as_ref()) {
        None => Type::Unknown,
        Some(type_proto::Value::TensorType(t)) => Type::Tensor(TensorType {
            dtype: t.elem_type.and_then(DType::from_onnx),
            shape: t.shape.as_ref().map(|s| shape_of(s, unknowns)),
        }),
        Some(type_proto::Value::SequenceType(_)) => Type::Other("sequence".to_owned()),
        Some(type_proto::Value::MapType(_)) => Type::Other("map".to_owned()),
        Some(type_proto::Value::OptionalType(_)) => Type::Other("optional".to_owned()),
        Some(type_proto::Value::SparseTensorType(_)) => Type::Other("sparse tensor".to_owned()),
        Some(type_proto::Value::OpaqueType(_)) => Type::Other("opaque".to_owned()),
    }
}

fn shape_of(proto: &TensorShapeProto, unknowns: &mut u32) -> Shape {
    let mut unknown = || {
        *unknowns += 1;
        Dim::unknown(*unknowns)
    };
    proto
        .dim
        .iter()
        .map(|d| match &d.value {
            Some(dimension::Value::DimValue(n)) if *n >= 0 => Dim::from(*n),
            Some(dimension::Value::DimParam(name)) if !name.is_empty() => Dim::symbol(name),
            _ => unknown(),
        })
        .collect()
}
