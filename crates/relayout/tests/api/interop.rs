//! Models from messages and back, with the features `prost` and `onnx-protobuf`.

use relayout::onnx_protobuf::{self, Message as _};
use relayout::prost::Message as _;
use relayout::{Model, Options, optimize, proto, target};
use std::path::{Path, PathBuf};

/// Real models, and what the example of the README is made of, which has its weights.
fn files() -> Vec<PathBuf> {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let entries = std::fs::read_dir(testdata.join("models")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "onnx")).collect();
    files.push(testdata.join("demo/tf_unet.onnx"));
    files.sort();
    assert!(files.len() > 10);
    files
}

fn open(path: &Path) -> Model {
    Model::from_bytes(std::fs::read(path).unwrap().into(), None).unwrap()
}

#[test]
fn a_model_goes_through_prost_messages_without_a_change() {
    for path in files() {
        let model = open(&path);
        let messages = proto::ModelProto::from(&model);
        assert!(messages.encode_to_vec() == model.bytes(), "{}", path.display());
        let back = Model::try_from(messages).unwrap();
        assert!(back.bytes() == model.bytes(), "{}", path.display());
        assert!(back.print() == model.print(), "{}", path.display());
    }
}

#[test]
fn a_model_goes_through_messages_of_onnx_protobuf_and_means_the_same() {
    for path in files() {
        let model = open(&path);
        let messages = onnx_protobuf::ModelProto::try_from(&model).unwrap();
        assert!(messages == onnx_protobuf::ModelProto::parse_from_bytes(model.bytes()).unwrap(), "{}", path.display());
        let back = Model::try_from(messages).unwrap();
        assert!(back.print() == model.print(), "{}", path.display());
    }
}

#[test]
fn messages_in_messages_out() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/demo/tf_unet.onnx");
    let target = target("onnx").unwrap();
    let model = Model::try_from(proto::ModelProto::decode(&std::fs::read(path).unwrap()[..]).unwrap()).unwrap();
    let optimized = optimize(&model, target.as_ref(), &Options::default()).unwrap();
    let bytes = optimized.to_bytes().unwrap();
    assert!(bytes != model.bytes(), "nothing was optimized");
    assert!(proto::ModelProto::try_from(&optimized).unwrap().encode_to_vec() == bytes);
    let theirs = onnx_protobuf::ModelProto::try_from(&optimized).unwrap();
    assert!(theirs == onnx_protobuf::ModelProto::parse_from_bytes(&bytes).unwrap());
}

#[test]
fn messages_that_are_no_model_are_refused() {
    let error = Model::try_from(proto::ModelProto::default()).unwrap_err();
    assert_eq!(error.to_string(), "<bytes> is empty, not an ONNX model");
    let theirs = onnx_protobuf::ModelProto { ir_version: 8, ..Default::default() };
    let error = Model::try_from(theirs).unwrap_err();
    assert_eq!(error.to_string(), "<bytes> has no graph: it is empty, or not an ONNX model");
    let node = proto::NodeProto { op_type: Some("Relu".to_owned()), ..Default::default() };
    let graph = proto::GraphProto { node: vec![node], ..Default::default() };
    let messages = proto::ModelProto { graph: Some(graph), ir_version: Some(8), ..Default::default() };
    assert!(matches!(Model::try_from(messages).unwrap_err(), relayout::Error::Import { .. }));
}
