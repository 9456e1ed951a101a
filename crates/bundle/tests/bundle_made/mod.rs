//! A model made here: branches that both call a constant `w`, an infinity, a tensor in an attribute, elements of four bits.

use prost::Message;
use relayout_onnx::proto::attribute_proto::AttributeType;
use relayout_onnx::proto::tensor_shape_proto::{Dimension, dimension::Value as Extent};
use relayout_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, type_proto,
};

fn tensor(name: &str, data_type: i32, dims: &[i64], raw: &[u8]) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        data_type: Some(data_type),
        dims: dims.to_vec(),
        raw_data: Some(raw.to_vec().into()),
        ..TensorProto::default()
    }
}

fn floats(name: &str, values: [f32; 2]) -> TensorProto {
    let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    tensor(name, 1, &[2], &raw)
}

fn end(name: &str, elem_type: i32, dims: &[i64]) -> ValueInfoProto {
    let dim = |&n: &i64| Dimension { value: Some(Extent::DimValue(n)), ..Dimension::default() };
    let shape = Some(TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor = type_proto::Tensor { elem_type: Some(elem_type), shape };
    let ty = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..TypeProto::default() };
    ValueInfoProto { name: Some(name.to_owned()), r#type: Some(ty), ..ValueInfoProto::default() }
}

fn node(op: &str, inputs: &[&str], output: &str, attribute: Vec<AttributeProto>) -> NodeProto {
    NodeProto {
        op_type: Some(op.to_owned()),
        input: inputs.iter().map(|&name| name.to_owned()).collect(),
        output: vec![output.to_owned()],
        attribute,
        ..NodeProto::default()
    }
}

fn attribute(name: &str, ty: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.to_owned()), r#type: Some(ty as i32), ..AttributeProto::default() }
}

fn branch(name: &str, op: &str, result: &str, w: [f32; 2]) -> AttributeProto {
    let graph = GraphProto {
        name: Some(name.to_owned()),
        node: vec![node(op, &["x", "w"], result, vec![])],
        initializer: vec![floats("w", w)],
        output: vec![end(result, 1, &[2])],
        ..GraphProto::default()
    };
    AttributeProto { g: Some(Box::new(graph)), ..attribute(name, AttributeType::Graph) }
}

pub(crate) fn model() -> Vec<u8> {
    let fill = AttributeProto {
        t: Some(Box::new(tensor("", 1, &[1], &2.5_f32.to_le_bytes()))),
        ..attribute("value", AttributeType::Tensor)
    };
    let slope = AttributeProto { f: Some(f32::INFINITY), ..attribute("alpha", AttributeType::Float) };
    let branches = vec![branch("then_branch", "Add", "t", [1.0, 2.0]), branch("else_branch", "Mul", "e", [3.0, 4.0])];
    let graph = GraphProto {
        name: Some("made".to_owned()),
        node: vec![
            node("If", &["c"], "y", branches),
            node("LeakyRelu", &["y"], "z", vec![slope]),
            node("ConstantOfShape", &["s"], "f", vec![fill]),
            node("DequantizeLinear", &["q", "scale"], "d", vec![]),
        ],
        initializer: vec![tensor("q", 22, &[3], &[0x21, 0x0f]), tensor("scale", 1, &[], &0.5_f32.to_le_bytes())],
        input: vec![end("c", 9, &[]), end("x", 1, &[2]), end("s", 7, &[1])],
        output: vec![end("z", 1, &[2]), end("f", 1, &[4]), end("d", 1, &[3])],
        ..GraphProto::default()
    };
    let set = OperatorSetIdProto { domain: None, version: Some(21) };
    let model =
        ModelProto { ir_version: Some(10), opset_import: vec![set], graph: Some(graph), ..ModelProto::default() };
    model.encode_to_vec()
}
