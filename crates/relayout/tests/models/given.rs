//! Models whose external data a function gives: the same as with the data in them.

use bytes::Bytes;
use prost::Message as _;
use relayout::passes::{Progress, passes};
use relayout::target::PassError;
use relayout::{Error, Model, Options, optimize, target};
use relayout_onnx::file::ModelFile;
use relayout_onnx::proto::tensor_proto::DataLocation;
use relayout_onnx::proto::{ModelProto, StringStringEntryProto};
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A model with its weights, 4 MB of them.
fn whole() -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/demo/tf_unet.onnx")).unwrap()
}

/// The same with its weights in three files.
fn apart() -> (Bytes, BTreeMap<String, Bytes>) {
    let mut messages = ModelProto::decode(&whole()[..]).unwrap();
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let tensors = messages.graph.iter_mut().flat_map(|graph| &mut graph.initializer);
    for (i, tensor) in tensors.enumerate() {
        let Some(data) = tensor.raw_data.take_if(|data| data.len() >= 64) else { continue };
        let location = format!("weights/{}.bin", i % 3);
        let file = files.entry(location.clone()).or_default();
        file.resize(file.len().next_multiple_of(16), 0);
        let entries = [("location", location), ("offset", file.len().to_string()), ("length", data.len().to_string())];
        file.extend_from_slice(&data);
        tensor.external_data =
            entries.map(|(key, value)| StringStringEntryProto { key: Some(key.to_owned()), value: Some(value) }).into();
        tensor.data_location = Some(DataLocation::External as i32);
    }
    let files: BTreeMap<String, Bytes> = files.into_iter().map(|(name, file)| (name, file.into())).collect();
    assert_eq!(files.len(), 3);
    (messages.encode_to_vec().into(), files)
}

fn optimized_bytes(model: &Model) -> Vec<u8> {
    optimize(model, target("onnx").unwrap().as_ref(), &Options::default()).unwrap().to_bytes().unwrap()
}

#[test]
fn a_model_over_three_files_is_optimized_as_the_whole_one() {
    let (bytes, files) = apart();
    assert!(bytes.len() < 1 << 20);
    let mut asked = Vec::new();
    let model = Model::from_bytes_with(bytes, |location| {
        asked.push(location.to_owned());
        files.get(location).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    })
    .unwrap();
    asked.sort();
    assert_eq!(asked, ["weights/0.bin", "weights/1.bin", "weights/2.bin"]);
    let expected = optimized_bytes(&Model::from_bytes(whole().into(), None).unwrap());
    assert!(optimized_bytes(&model) == expected);

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.onnx");
    let target = target("onnx").unwrap();
    optimize(&model, target.as_ref(), &Options::default()).unwrap().write(&path).unwrap();
    let (written, expected) = (ModelFile::open(&path).unwrap(), ModelFile::from_bytes(expected.into(), None).unwrap());
    assert!(written.has_external_data());
    for (ours, theirs) in written.proto.tensors().into_iter().zip(expected.proto.tensors()) {
        assert!(written.tensor_bytes(ours).unwrap() == expected.tensor_bytes(theirs).unwrap(), "{}", ours.name());
    }
}

#[test]
fn a_result_in_parts_is_the_whole_one_and_shares_what_did_not_change() {
    let (bytes, files) = apart();
    let model = Model::from_bytes_with(bytes, |location| Ok(files[location].clone())).unwrap();
    let optimized = optimize(&model, target("onnx").unwrap().as_ref(), &Options::default()).unwrap();
    let parts = optimized.to_parts(8).unwrap();
    assert!(parts.model.len() < 1 << 17 && parts.data.len() > 10, "{} and {}", parts.model.len(), parts.data.len());
    let shared = |data: &Bytes| files.values().any(|file| file.as_ptr_range().contains(&data.as_ptr()));
    let new = parts.data.iter().filter(|(_, data)| !shared(data)).count();
    assert!(new > 0 && new < parts.data.len() / 2, "{new} of {} are new", parts.data.len());
    let parts_of: BTreeMap<String, Bytes> = parts.data.into_iter().collect();
    let again = Model::from_bytes_with(parts.model.into(), |location| Ok(parts_of[location].clone())).unwrap();
    assert!(optimized_bytes(&again) == optimized.to_bytes().unwrap());
}

#[test]
fn whoever_watches_a_run_hears_of_each_pass_and_can_stop_it() {
    let model = Model::from_bytes(whole().into(), None).unwrap();
    let target = target("onnx").unwrap();
    let heard: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let ears = Arc::clone(&heard);
    let watched = Options::default().watch(move |at| {
        ears.lock().unwrap().push(at);
        ControlFlow::Continue(())
    });
    optimize(&model, target.as_ref(), &watched).unwrap();
    let heard = std::mem::take(&mut *heard.lock().unwrap());
    let first: Vec<&str> = heard.iter().filter(|at| at.round == 0).map(|at| at.pass).collect();
    assert_eq!(first, passes(target.as_ref()).unwrap());
    assert!(heard.iter().any(|at| at.round == 1) && heard.iter().all(|at| at.of == first.len()));

    let stopped = Options::default().watch(|at| match at.pass {
        "assign" => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    let error = optimize(&model, target.as_ref(), &stopped).unwrap_err();
    assert!(matches!(error, Error::Pass(PassError::Stopped { pass: "assign" })), "{error}");
}

#[test]
fn a_file_that_is_too_short_is_an_error_that_names_the_tensor() {
    let (bytes, files) = apart();
    let error = Model::from_bytes_with(bytes, |location| Ok(files[location].slice(..100))).unwrap_err().to_string();
    assert!(error.starts_with("tensor \"") && error.contains(" are not all in weights/"), "{error}");
    assert!(error.contains(".bin, which has 100"), "{error}");
}

#[test]
fn a_model_with_missing_data_is_opened_and_not_written() {
    let (bytes, _) = apart();
    let model = Model::from_bytes_with(bytes, |_| Err(io::ErrorKind::NotFound.into())).unwrap();
    assert!(!model.print().is_empty());
    let optimized = optimize(&model, target("onnx").unwrap().as_ref(), &Options::default()).unwrap();
    let error = optimized.to_bytes().unwrap_err().to_string();
    assert!(error.contains("its data is missing: the caller has no weights/"), "{error}");
}
