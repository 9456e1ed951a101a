//! What files say of tensors and axes beside the graph follows values that are stored otherwise, or is dropped with a note.

use crate::declared::{node, port};
use prost::Message as _;
use relayout::{Model, Options, optimize, target};
use relayout_onnx::proto::{
    DeviceConfigurationProto, GraphProto, ModelProto, NodeDeviceConfigurationProto, NodeProto, OperatorSetIdProto,
    ShardedDimProto, ShardingSpecProto, StringStringEntryProto, TensorAnnotation, TensorProto,
};

/// Says along which axis a tensor of a node is cut.
fn cut(mut node: NodeProto, specified: &[(&str, i64)]) -> NodeProto {
    let spec = |&(name, axis): &(&str, i64)| ShardingSpecProto {
        tensor_name: Some(name.to_owned()),
        device: vec![0, 1],
        sharded_dim: vec![ShardedDimProto { axis: Some(axis), ..ShardedDimProto::default() }],
        ..ShardingSpecProto::default()
    };
    node.device_configurations = vec![NodeDeviceConfigurationProto {
        configuration_id: Some("two".to_owned()),
        sharding_spec: specified.iter().map(spec).collect(),
        ..NodeDeviceConfigurationProto::default()
    }];
    node
}

fn quantized(tensor: &str, scale: &str) -> TensorAnnotation {
    let parameter = StringStringEntryProto { key: Some("SCALE_TENSOR".to_owned()), value: Some(scale.to_owned()) };
    TensorAnnotation { tensor_name: Some(tensor.to_owned()), quant_parameter_tensor_names: vec![parameter] }
}

fn floats(name: &str, count: i64) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        dims: vec![count],
        data_type: Some(1),
        float_data: vec![0.5; usize::try_from(count).expect("a small count")],
        ..TensorProto::default()
    }
}

/// Two ops between Transposes.
fn annotated() -> ModelProto {
    let graph = GraphProto {
        name: Some("g".to_owned()),
        node: vec![
            cut(node("Transpose", "", "x", "t", Some([0, 2, 3, 1])), &[("x", 1)]),
            cut(node("Relu", "", "t", "r", None), &[("t", -1), ("r", 1)]),
            node("Sigmoid", "", "r", "q", None),
            node("Sin", "", "q", "p", None),
            node("Transpose", "", "p", "y", Some([0, 3, 1, 2])),
        ],
        initializer: vec![floats("one", 1), floats("three", 3)],
        input: vec![port("x", &[1, 3, 4, 5])],
        output: vec![port("y", &[1, 3, 4, 5])],
        quantization_annotation: vec![
            quantized("x", "one"),
            quantized("t", "one"),
            quantized("r", "one"),
            quantized("q", "three"),
        ],
        ..GraphProto::default()
    };
    ModelProto {
        ir_version: Some(11),
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(17) }],
        graph: Some(graph),
        configuration: vec![DeviceConfigurationProto {
            name: Some("two".to_owned()),
            num_devices: Some(2),
            ..DeviceConfigurationProto::default()
        }],
        ..ModelProto::default()
    }
}

#[test]
fn annotations_follow_values_whose_axes_are_permuted_or_are_dropped_with_a_note() {
    let target = target("onnx").expect("it is built in");
    let model = Model::from_bytes(annotated().encode_to_vec().into(), None).expect("it opens");
    let outcome = optimize(&model, target.as_ref(), &Options::default().strict()).expect("it is optimized");
    let result = ModelProto::decode(&outcome.to_bytes().expect("it is written")[..]).expect("a model");
    let graph = result.graph.expect("a graph");
    let relu = graph.node.iter().find(|n| n.op_type() == "Relu").expect("it stays");
    let specified: Vec<(&str, i64)> = relu
        .device_configurations
        .iter()
        .flat_map(|c| &c.sharding_spec)
        .map(|spec| (spec.tensor_name(), spec.sharded_dim[0].axis()))
        .collect();
    assert_eq!(specified, [("x", 1), ("r", 2)], "channels and rows, where they are now");
    let kept: Vec<&str> = graph.quantization_annotation.iter().map(TensorAnnotation::tensor_name).collect();
    assert_eq!(kept, ["x", "r"]);
    let notes = &outcome.report().notes;
    for want in [
        "2 of 4 quantization annotations were dropped, the first that of `t`",
        "1 of 3 sharding specifications were dropped, the first that of Transpose `t`",
    ] {
        assert!(notes.iter().any(|note| note == want), "{notes:?}");
    }
}

#[test]
fn annotations_of_what_did_not_change_stay_without_a_note() {
    let mut model = annotated();
    let graph = model.graph.as_mut().expect("a graph");
    graph.node.drain(..1);
    graph.node.pop();
    graph.node[0].input[0] = "x".to_owned();
    graph.node[2].output[0] = "y".to_owned();
    let bytes = model.encode_to_vec();
    let target = target("onnx").expect("it is built in");
    let model = Model::from_bytes(bytes.clone().into(), None).expect("it opens");
    let outcome = optimize(&model, target.as_ref(), &Options::default()).expect("it is optimized");
    assert!(outcome.to_bytes().expect("it is written") == bytes);
    assert_eq!(outcome.report().notes, [] as [&str; 0]);
}
