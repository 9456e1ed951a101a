//! External data that the caller gives by location.

use std::io;

use crate::common::external;
use bytes::Bytes;
use relayout_onnx::error::{Error, TensorFault};
use relayout_onnx::external::TensorData;
use relayout_onnx::file::ModelFile;
use relayout_onnx::proto::{GraphProto, ModelProto, TensorProto};
use relayout_onnx::write::{WriteOptions, write_model, write_model_to};

use prost::Message as _;

fn model(tensors: Vec<TensorProto>) -> ModelProto {
    let graph = GraphProto { initializer: tensors, ..GraphProto::default() };
    ModelProto { graph: Some(graph), ..ModelProto::default() }
}

/// Opens a model of these tensors with 100 bytes, counting up, at every location.
fn open(tensors: Vec<TensorProto>) -> Result<ModelFile, Error> {
    ModelFile::from_bytes_with(model(tensors).encode_to_vec().into(), |_| Ok((0..100).collect::<Vec<u8>>().into()))
}

/// What is wrong with the tensor `w`, and the whole sentence.
fn fault(entries: &[(&str, &str)], length: u64) -> (TensorFault, String) {
    let error = open(vec![external("w", length, entries)]).unwrap_err();
    let text = error.to_string();
    match error {
        Error::Tensor { tensor, fault } if tensor == "w" => (fault, text),
        other => panic!("{other}"),
    }
}

/// Three tensors at two locations.
fn tensors() -> Vec<TensorProto> {
    vec![
        external("a", 2000, &[("location", "one.bin"), ("offset", "8")]),
        external("b", 3000, &[("location", "deep/two.bin"), ("length", "3000")]),
        external("c", 8, &[("location", "one.bin"), ("length", "8")]),
    ]
}

fn content(location: &str) -> Bytes {
    let first = if location == "one.bin" { 1 } else { 2 };
    (0..4000u32).map(|i| (i % 251) as u8 ^ first).collect::<Vec<u8>>().into()
}

fn bytes_of(model: &ModelFile) -> Vec<Bytes> {
    model.proto.tensors().into_iter().map(|tensor| model.tensor_bytes(tensor).unwrap()).collect()
}

fn expected() -> Vec<Bytes> {
    let (one, two) = (content("one.bin"), content("deep/two.bin"));
    vec![one.slice(8..2008), two.slice(..3000), one.slice(..8)]
}

#[test]
fn each_location_is_asked_for_once_and_each_tensor_gets_its_range() {
    let mut asked = Vec::new();
    let model = ModelFile::from_bytes_with(model(tensors()).encode_to_vec().into(), |location| {
        asked.push(location.to_owned());
        Ok(content(location))
    })
    .unwrap();
    assert_eq!(asked, ["one.bin", "deep/two.bin"]);
    assert_eq!(bytes_of(&model), expected());
}

#[test]
fn what_is_written_has_the_data_with_it() {
    let source: Bytes = model(tensors()).encode_to_vec().into();
    let model = ModelFile::from_bytes_with(source, |location| Ok(content(location))).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.onnx");
    let stats = write_model(&model.proto, &path, &WriteOptions::for_input(&model)).unwrap();
    assert!(stats.data_path.is_some());
    assert_eq!(bytes_of(&ModelFile::open(&path).unwrap()), expected());

    let mut stream = Vec::new();
    write_model_to(&model.proto, &mut stream, &WriteOptions::for_input(&model)).unwrap();
    let read = ModelFile::from_bytes(stream.into(), None).unwrap();
    assert!(!read.has_external_data());
    assert_eq!(bytes_of(&read), expected());
}

#[test]
fn data_that_the_caller_does_not_have_is_missing_and_no_error() {
    let source: Bytes = model(tensors()).encode_to_vec().into();
    let model = ModelFile::from_bytes_with(source, |location| match location {
        "one.bin" => Ok(content(location)),
        _ => Err(io::ErrorKind::NotFound.into()),
    })
    .unwrap();
    let tensors = model.proto.tensors();
    assert!(matches!(model.tensor_data(tensors[0]), Ok(TensorData::Inline(_))));
    let error = model.check_external().unwrap_err().to_string();
    assert_eq!(error, "tensor \"b\": its data is missing: the caller has no deep/two.bin");
}

#[test]
fn an_error_of_the_caller_names_the_tensor_and_the_location() {
    let source: Bytes = model(tensors()).encode_to_vec().into();
    let error = ModelFile::from_bytes_with(source, |_| Err(io::Error::other("the store is closed"))).unwrap_err();
    assert_eq!(error.to_string(), "tensor \"a\": cannot read one.bin: the store is closed");
}

#[test]
fn ranges_are_checked_against_the_data_and_the_dims() {
    let (found, text) = fault(&[("location", "x"), ("offset", "96")], 5);
    assert!(matches!(found, TensorFault::OutsideFile { offset: 96, length: 5, size: 100, .. }), "{found:?}");
    assert_eq!(text, "tensor \"w\": bytes 96+5 are not all in x, which has 100; is the file whole?");
    let (found, _) = fault(&[("location", "x"), ("offset", "18446744073709551615"), ("length", "5")], 5);
    assert!(matches!(found, TensorFault::OutsideFile { offset: u64::MAX, .. }), "{found:?}");
    let (found, text) = fault(&[("location", "x"), ("length", "6")], 5);
    assert_eq!(found, TensorFault::Length { expected: 5, found: 6, place: "x".to_owned() });
    assert_eq!(text, "tensor \"w\": dims and type need 5 bytes, x has 6");
    let (found, _) = fault(&[("location", "x"), ("offset", "-1")], 5);
    assert_eq!(found, TensorFault::ExternalNumber { key: "offset", text: "-1".to_owned() });
    assert_eq!(fault(&[("offset", "1")], 5).0, TensorFault::NoLocation);
}

#[test]
fn a_location_outside_of_the_folder_is_refused_before_the_caller_is_asked() {
    for location in ["/etc/passwd", "../w.bin", "a/../../w.bin"] {
        let tensor = external("w", 5, &[("location", location)]);
        let source: Bytes = model(vec![tensor]).encode_to_vec().into();
        let error = ModelFile::from_bytes_with(source, |location| panic!("asked for {location}")).unwrap_err();
        assert!(matches!(&error, Error::Tensor { fault: TensorFault::LeavesFolder { .. }, .. }), "{error}");
    }
}
