//! Models that are chains of very many things: none takes more stack for it than a thread of a test has.

use prost::Message as _;
use relayout::{Model, Options, optimize, target};
use relayout_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use relayout_onnx::proto::{
    FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, type_proto,
};

/// Extents of everything: large enough that constants are not computed before they are written.
const SHAPE: [i64; 2] = [130, 130];

fn node(domain: &str, op: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        domain: Some(domain.to_owned()),
        op_type: Some(op.to_owned()),
        input: inputs.iter().map(ToString::to_string).collect(),
        output: vec![output.to_owned()],
        ..NodeProto::default()
    }
}

fn value(name: &str) -> ValueInfoProto {
    let dim = |size: i64| Dimension { value: Some(dimension::Value::DimValue(size)), ..Dimension::default() };
    let shape = Some(TensorShapeProto { dim: SHAPE.map(dim).to_vec() });
    let tensor = type_proto::Value::TensorType(type_proto::Tensor { elem_type: Some(1), shape });
    let ty = TypeProto { value: Some(tensor), ..TypeProto::default() };
    ValueInfoProto { name: Some(name.to_owned()), r#type: Some(ty), ..ValueInfoProto::default() }
}

/// Optimizes a model of these nodes, from `x` and the constant `w` to `y`; what is written.
fn optimized(nodes: Vec<NodeProto>, functions: Vec<FunctionProto>) -> ModelProto {
    let elements = usize::try_from(SHAPE[0] * SHAPE[1]).expect("a few");
    let weights = TensorProto {
        name: Some("w".to_owned()),
        dims: SHAPE.to_vec(),
        data_type: Some(1),
        raw_data: Some(1.5_f32.to_le_bytes().repeat(elements).into()),
        ..TensorProto::default()
    };
    let graph = GraphProto {
        name: Some("g".to_owned()),
        node: nodes,
        input: vec![value("x")],
        output: vec![value("y")],
        initializer: vec![weights],
        ..GraphProto::default()
    };
    let import =
        |(domain, version): (&str, i64)| OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version) };
    let opset_import = [("", 17), ("f", 1)].map(import).to_vec();
    let proto =
        ModelProto { ir_version: Some(8), graph: Some(graph), opset_import, functions, ..ModelProto::default() };
    let model = Model::from_bytes(proto.encode_to_vec().into(), None).expect("a model");
    let target = target("onnx").expect("it is built in");
    let result = optimize(&model, target.as_ref(), &Options::default()).expect("it is optimized");
    ModelProto::decode(&*result.to_bytes().expect("it is written")).expect("a model")
}

#[test]
fn constants_that_are_computed_from_one_another_are_computed_whatever_their_number() {
    const NUMBER: usize = 6_001;
    let name = |i: usize| if i == 0 { "w".to_owned() } else { format!("v{i}") };
    let mut nodes: Vec<NodeProto> = (0..NUMBER).map(|i| node("", "Neg", &[&name(i)], &name(i + 1))).collect();
    nodes.push(node("", "Add", &["x", &name(NUMBER)], "y"));
    let written = optimized(nodes, Vec::new()).graph.expect("a graph");
    assert_eq!(written.node.len(), 1);
    let first = written.initializer[0].raw_data.as_ref().expect("bytes")[..4].to_vec();
    assert_eq!(first, (-1.5_f32).to_le_bytes());
}

#[test]
fn a_chain_of_functions_is_left_as_it_is() {
    const LAST: usize = 5_000;
    let function = |i: usize| {
        let body =
            if i == LAST { node("", "Relu", &["x"], "y") } else { node("f", &format!("f{}", i + 1), &["x"], "y") };
        let import =
            |domain: &str, version| OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version) };
        FunctionProto {
            name: Some(format!("f{i}")),
            domain: Some("f".to_owned()),
            input: vec!["x".to_owned()],
            output: vec!["y".to_owned()],
            node: vec![body],
            opset_import: vec![import("", 17), import("f", 1)],
            ..FunctionProto::default()
        }
    };
    let written = optimized(vec![node("f", "f0", &["x"], "y")], (0..=LAST).map(function).collect());
    assert_eq!(written.functions.len(), LAST + 1);
}
