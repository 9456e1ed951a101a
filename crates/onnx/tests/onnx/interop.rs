//! Models from the messages of onnx-protobuf and back.

use crate::common::{external, models, with_tensor};
use onnx_protobuf::ModelProto as Theirs;
use protobuf::Message as _;
use relayout_onnx::error::Error;
use relayout_onnx::file::ModelFile;
use relayout_onnx::proto::{AttributeProto, GraphProto, ModelProto, NodeProto};

#[test]
fn models_survive_both_ways_through_the_messages_of_onnx_protobuf() {
    for path in models() {
        let bytes = std::fs::read(&path).unwrap();
        let read = Theirs::parse_from_bytes(&bytes).unwrap();
        let model = ModelFile::from_bytes(bytes.into(), None).unwrap();
        let theirs = Theirs::try_from(&model).unwrap();
        assert!(theirs == read, "{}", path.display());
        let back = ModelFile::try_from(theirs.clone()).unwrap();
        // A zero that was written out is absent from their messages; to them nothing has changed.
        assert!(Theirs::try_from(&back).unwrap() == theirs, "{}", path.display());
        assert!(common_parts(&back) == common_parts(&model), "{}", path.display());
    }
}

/// Names, shapes and bytes of all tensors, and the ops with their inputs and outputs.
fn common_parts(model: &ModelFile) -> impl PartialEq + use<> {
    let tensors: Vec<_> = model.proto.tensors().into_iter().map(|t| (t.name().to_owned(), t.dims.clone())).collect();
    let graph = model.proto.graph.as_ref().unwrap();
    let nodes: Vec<_> =
        graph.node.iter().map(|n| (n.op_type().to_owned(), n.input.clone(), n.output.clone())).collect();
    let data: Vec<_> =
        model.proto.tensors().into_iter().map(|tensor| model.tensor_bytes(tensor).map_err(|e| e.to_string())).collect();
    (tensors, nodes, data)
}

#[test]
fn models_survive_both_ways_through_our_messages() {
    for path in models() {
        let model = ModelFile::open(&path).unwrap();
        let back = ModelFile::try_from(model.proto.clone()).unwrap();
        assert!(back.proto == model.proto, "{}", path.display());
        assert!(back.source == model.source, "{}", path.display());
    }
}

#[test]
fn fields_newer_than_the_other_schema_come_back() {
    let node = NodeProto { overload: Some("new".to_owned()), ..NodeProto::default() };
    let graph = GraphProto { node: vec![node], ..GraphProto::default() };
    let messages = ModelProto { graph: Some(graph), ..ModelProto::default() };
    let theirs = Theirs::try_from(&messages).unwrap();
    assert!(ModelFile::try_from(theirs).unwrap().proto == messages);
}

#[test]
fn references_to_external_data_stay_references() {
    let messages = with_tensor(external("w", 5, &[("location", "w.bin")]));
    let theirs = Theirs::try_from(&messages).unwrap();
    let model = ModelFile::try_from(theirs).unwrap();
    assert!(model.proto == messages);
    assert!(model.check_external().unwrap_err().to_string().contains("tensor \"w\": its data is missing"));
}

#[test]
fn messages_that_are_no_model_are_refused() {
    let error = ModelFile::try_from(Theirs::new()).unwrap_err();
    assert!(matches!(error, Error::Empty { .. }), "{error}");
    let error = ModelFile::try_from(ModelProto { ir_version: Some(8), ..ModelProto::default() }).unwrap_err();
    assert!(matches!(error, Error::NoGraph { .. }), "{error}");
    let theirs = Theirs { ir_version: 8, ..Theirs::new() };
    assert!(matches!(ModelFile::try_from(theirs).unwrap_err(), Error::NoGraph { .. }));
}

#[test]
fn messages_nested_too_deep_are_refused_on_both_ways() {
    let mut graph = GraphProto::default();
    for _ in 0..40 {
        let attribute = AttributeProto { g: Some(Box::new(graph)), ..AttributeProto::default() };
        let node = NodeProto { attribute: vec![attribute], ..NodeProto::default() };
        graph = GraphProto { node: vec![node], ..GraphProto::default() };
    }
    let messages = ModelProto { graph: Some(graph), ..ModelProto::default() };
    let error = Theirs::try_from(&messages).unwrap_err();
    assert!(matches!(error, Error::TooDeepToWrite { .. }), "{error}");
    let error = ModelFile::try_from(messages).unwrap_err();
    assert!(matches!(error, Error::TooDeepToWrite { .. }), "{error}");
    let mut theirs = onnx_protobuf::GraphProto::new();
    for _ in 0..40 {
        let attribute = onnx_protobuf::AttributeProto { g: Some(theirs).into(), ..Default::default() };
        let node = onnx_protobuf::NodeProto { attribute: vec![attribute], ..Default::default() };
        theirs = onnx_protobuf::GraphProto { node: vec![node], ..Default::default() };
    }
    let theirs = Theirs { graph: Some(theirs).into(), ..Default::default() };
    let error = ModelFile::try_from(theirs).unwrap_err();
    assert!(matches!(error, Error::TooDeep { .. }), "{error}");
}

#[test]
fn bytes_that_are_no_messages_are_refused_by_name() {
    let error = relayout_onnx::interop::onnx_protobuf_of(b"no model").unwrap_err();
    assert!(error.to_string().starts_with("the messages of onnx-protobuf cannot be read: "), "{error}");
}
