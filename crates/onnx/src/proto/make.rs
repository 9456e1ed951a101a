//! Attributes of one value, made.

use super::{AttributeProto, TensorProto, attribute_proto::AttributeType};
use bytes::Bytes;

/// An integer as an attribute.
pub(crate) fn int_attribute(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), ..empty_attribute(name, AttributeType::Int) }
}

/// A list of integers as an attribute.
pub(crate) fn ints_attribute(name: &str, values: Vec<i64>) -> AttributeProto {
    AttributeProto { ints: values, ..empty_attribute(name, AttributeType::Ints) }
}

/// A list of floats as an attribute.
pub(crate) fn floats_attribute(name: &str, values: Vec<f32>) -> AttributeProto {
    AttributeProto { floats: values, ..empty_attribute(name, AttributeType::Floats) }
}

/// A text as an attribute.
pub(crate) fn string_attribute(name: &str, value: &str) -> AttributeProto {
    AttributeProto { s: Some(Bytes::copy_from_slice(value.as_bytes())), ..empty_attribute(name, AttributeType::String) }
}

/// A tensor as an attribute.
pub(crate) fn tensor_attribute(name: &str, tensor: TensorProto) -> AttributeProto {
    AttributeProto { t: Some(Box::new(tensor)), ..empty_attribute(name, AttributeType::Tensor) }
}

/// An attribute of this kind that has no value yet.
pub(crate) fn empty_attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.to_owned()), r#type: Some(kind as i32), ..AttributeProto::default() }
}
