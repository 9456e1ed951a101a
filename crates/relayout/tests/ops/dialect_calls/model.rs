//! Models of one node, and what they give.

use super::Array;
use crate::common::runtime;
use prost::Message;
use relayout_ir::dim::Dim;
use relayout_ir::layout::Layout;
use relayout_onnx::dialect::{self, Relayout};
use relayout_onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorShapeProto, TypeProto,
    ValueInfoProto, attribute_proto::AttributeType, tensor_shape_proto::Dimension, tensor_shape_proto::dimension,
    type_proto,
};
use relayout_verify::{Level, ModelSource, run};

fn attribute(name: &str, r#type: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.to_owned()), r#type: Some(r#type as i32), ..AttributeProto::default() }
}

pub(crate) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), ..attribute(name, AttributeType::Ints) }
}

pub(crate) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), ..attribute(name, AttributeType::Int) }
}

pub(crate) fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { f: Some(value), ..attribute(name, AttributeType::Float) }
}

pub(crate) fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto { s: Some(value.as_bytes().to_vec().into()), ..attribute(name, AttributeType::String) }
}

fn declared(name: &str, elem_type: i32, dims: Vec<dimension::Value>) -> ValueInfoProto {
    let dim = |value| Dimension { value: Some(value), denotation: None };
    let shape = Some(TensorShapeProto { dim: dims.into_iter().map(dim).collect() });
    let tensor = type_proto::Tensor { elem_type: Some(elem_type), shape };
    let value = Some(type_proto::Value::TensorType(tensor));
    let r#type = Some(TypeProto { value, ..TypeProto::default() });
    ValueInfoProto { name: Some(name.to_owned()), r#type, ..ValueInfoProto::default() }
}

/// A model of one node: its inputs by name, those marked as constants as initializers; output `y` of an element type and a rank;
/// dims are numbers or symbols.
pub(crate) fn single(
    node: NodeProto,
    inputs: &[(String, Array, bool)],
    result: (i32, usize),
    opset: i64,
    symbolic: bool,
) -> ModelProto {
    let of = |name: &str, array: &Array| {
        // A list has to say how many entries it has.
        let symbolic = symbolic && array.shape.len() > 1;
        let dim = |(i, &d): (usize, &i64)| {
            if symbolic { dimension::Value::DimParam(format!("{name}_{i}")) } else { dimension::Value::DimValue(d) }
        };
        declared(name, array.onnx_type(), array.shape.iter().enumerate().map(dim).collect())
    };
    let (elem_type, rank) = result;
    let unknown = (0..rank).map(|i| dimension::Value::DimParam(format!("y_{i}"))).collect();
    let graph = GraphProto {
        name: Some("one".to_owned()),
        node: vec![node],
        input: inputs.iter().filter(|(_, _, constant)| !constant).map(|(name, a, _)| of(name, a)).collect(),
        initializer: inputs
            .iter()
            .filter(|(_, _, constant)| *constant)
            .map(|(name, a, _)| a.initializer(name))
            .collect(),
        output: vec![declared("y", elem_type, unknown)],
        ..GraphProto::default()
    };
    let imports =
        |domain: &str, version| OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version) };
    ModelProto {
        ir_version: Some(dialect::FIRST_IR_VERSION),
        opset_import: vec![imports("", opset)],
        graph: Some(graph),
        ..ModelProto::default()
    }
}

/// The model with a function of the dialect.
pub(crate) fn with_function(mut model: ModelProto, function: FunctionProto) -> ModelProto {
    let domain = Some(dialect::DOMAIN.to_owned());
    model.opset_import.push(OperatorSetIdProto { domain, version: Some(dialect::VERSION) });
    model.functions.push(function);
    model
}

/// What a model gives for its inputs that are no constants.
pub(crate) fn checked(model: &ModelProto, inputs: &[(String, Array, bool)], level: Level) -> Result<Array, String> {
    let feeds: Vec<_> = inputs.iter().filter(|(_, _, constant)| !constant).map(|(name, a, _)| a.tensor(name)).collect();
    let bytes = model.encode_to_vec();
    let results = run(runtime(), ModelSource::Bytes(&bytes), &feeds, level).map_err(|e| e.to_string())?;
    results.first().map(Array::from_tensor).ok_or_else(|| "the model has no result".to_owned())
}

/// The model of a move.
pub(crate) fn moved(relayout: &Relayout, x: &Array, to: &Layout, symbolic: bool, opset: i64) -> ModelProto {
    let node = NodeProto { input: vec!["x".to_owned()], output: vec!["y".to_owned()], ..relayout.call() };
    let inputs = [("x".to_owned(), x.clone(), false)];
    let model = single(node, &inputs, (x.onnx_type(), to.factors().len()), opset, symbolic);
    with_function(model, relayout.function(opset).unwrap())
}

/// Numbers as dims.
pub(crate) fn dims(shape: &[i64]) -> Vec<Dim> {
    shape.iter().map(|&d| Dim::from(d)).collect()
}
