//! Messages of ONNX models that tests write: tensors, types, attributes and nodes.

#![allow(dead_code, reason = "each test file uses its part")]

use bytes::Bytes;
use relayout_onnx::proto::{
    AttributeProto, GraphProto, NodeProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
    attribute_proto::AttributeType, tensor_proto::DataType, tensor_shape_proto, type_proto,
};
use std::collections::BTreeMap;

/// A node that makes this constant.
pub(crate) fn constant_node(tensor: TensorProto) -> NodeProto {
    let output = tensor.name.clone().unwrap_or_default();
    let value = AttributeProto {
        name: Some("value".into()),
        t: Some(Box::new(tensor)),
        r#type: Some(AttributeType::Tensor as i32),
        ..AttributeProto::default()
    };
    node("Constant", vec![], vec![output], vec![value])
}

/// A node that makes a list of integers.
pub(crate) fn list_node(name: &str, list: &[i64]) -> NodeProto {
    let data = list.iter().flat_map(|v| v.to_le_bytes()).collect();
    constant_node(tensor(name, DataType::Int64, &[list.len() as i64], data))
}

/// A node without a name.
pub(crate) fn node(op: &str, inputs: Vec<String>, outputs: Vec<String>, attributes: Vec<AttributeProto>) -> NodeProto {
    let op_type = Some(op.to_owned());
    NodeProto { op_type, input: inputs, output: outputs, attribute: attributes, ..NodeProto::default() }
}

/// A tensor of these bytes.
pub(crate) fn tensor(name: &str, dtype: DataType, dims: &[i64], data: Vec<u8>) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        dims: dims.to_vec(),
        data_type: Some(dtype as i32),
        raw_data: Some(Bytes::from(data)),
        ..TensorProto::default()
    }
}

/// Name and type of a value; `symbols`: names of extents, by axis; `said`: the shape is declared.
pub(crate) fn info(
    name: &str,
    dtype: DataType,
    shape: &[i64],
    symbols: &BTreeMap<usize, &str>,
    said: bool,
) -> ValueInfoProto {
    use tensor_shape_proto::{Dimension, dimension};
    let dim = |(axis, &d): (usize, &i64)| Dimension {
        value: Some(match symbols.get(&axis) {
            Some(&symbol) => dimension::Value::DimParam(symbol.to_owned()),
            None => dimension::Value::DimValue(d),
        }),
        ..Dimension::default()
    };
    let shape = said.then(|| TensorShapeProto { dim: shape.iter().enumerate().map(dim).collect() });
    let tensor = type_proto::Tensor { elem_type: Some(dtype as i32), shape };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)), denotation: None }),
        ..ValueInfoProto::default()
    }
}

/// An attribute that is an integer.
pub(crate) fn int(name: &str, value: i64) -> AttributeProto {
    let ty = Some(AttributeType::Int as i32);
    AttributeProto { name: Some(name.into()), i: Some(value), r#type: ty, ..AttributeProto::default() }
}

/// An attribute that lists integers.
pub(crate) fn ints(name: &str, list: &[i64]) -> AttributeProto {
    let ty = Some(AttributeType::Ints as i32);
    AttributeProto { name: Some(name.into()), ints: list.to_vec(), r#type: ty, ..AttributeProto::default() }
}

/// An attribute that is a graph.
pub(crate) fn body(
    name: &str,
    node: Vec<NodeProto>,
    input: Vec<ValueInfoProto>,
    output: Vec<ValueInfoProto>,
) -> AttributeProto {
    let graph = GraphProto { name: Some(name.into()), node, input, output, ..GraphProto::default() };
    let ty = Some(AttributeType::Graph as i32);
    AttributeProto { name: Some(name.into()), g: Some(Box::new(graph)), r#type: ty, ..AttributeProto::default() }
}

/// An attribute that is a number.
pub(crate) fn float(name: &str, value: f32) -> AttributeProto {
    let ty = Some(AttributeType::Float as i32);
    AttributeProto { name: Some(name.into()), f: Some(value), r#type: ty, ..AttributeProto::default() }
}

/// An attribute that is text.
pub(crate) fn text(name: &str, value: &str) -> AttributeProto {
    let ty = Some(AttributeType::String as i32);
    let s = Some(Bytes::copy_from_slice(value.as_bytes()));
    AttributeProto { name: Some(name.into()), s, r#type: ty, ..AttributeProto::default() }
}
