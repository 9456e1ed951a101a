//! Writing: files appear whole or not at all, payloads go where they should, and what is written reads back the same.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::common::{external, models, raw, with_tensor};
use bytes::Bytes;
use prost::Message as _;
use relayout_onnx::error::Error;
use relayout_onnx::external::is_external;
use relayout_onnx::file::ModelFile;
use relayout_onnx::proto::*;
use relayout_onnx::write::{
    Payloads, WriteOptions, WriteStats, copy_file_unchanged, copy_unchanged, write_model, write_model_to,
};
use tempfile::TempDir;

/// Bytes that differ from place to place.
fn pattern(length: usize, seed: u8) -> Bytes {
    (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8) ^ seed).collect()
}

fn with_tensors(tensors: Vec<TensorProto>) -> ModelProto {
    ModelProto {
        ir_version: Some(10),
        graph: Some(GraphProto { initializer: tensors, ..GraphProto::default() }),
        ..ModelProto::default()
    }
}

/// Writes `model` with prost and opens it, so that its payloads are slices of a mapping.
fn opened(path: &Path, model: &ModelProto) -> ModelFile {
    fs::write(path, model.encode_to_vec()).unwrap();
    ModelFile::open(path).unwrap()
}

fn initializers(model: &ModelFile) -> &[TensorProto] {
    &model.proto.graph.as_ref().unwrap().initializer
}

/// The data of all initializers of the model at `path`.
fn data(path: &Path) -> Vec<Bytes> {
    let model = ModelFile::open(path).unwrap();
    initializers(&model).iter().map(|tensor| model.tensor_bytes(tensor).unwrap()).collect()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn locations(path: &Path) -> Vec<String> {
    let model = ModelFile::open(path).unwrap();
    let entries = initializers(&model).iter().flat_map(|tensor| &tensor.external_data);
    entries.filter(|entry| entry.key() == "location").map(|entry| entry.value().to_owned()).collect()
}

#[test]
fn payloads_that_lie_in_the_input_are_copied_by_the_kernel_and_the_result_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let tensors = vec![
        raw("small", pattern(100, 1)),
        raw("large", pattern(200_001, 2)),
        raw("at the limit", pattern(65_536, 3)),
        raw("below", pattern(65_535, 4)),
    ];
    let input = opened(&dir.path().join("in.onnx"), &with_tensors(tensors));
    let mut changed = input.proto.clone();
    let graph = changed.graph.as_mut().unwrap();
    graph.name = Some("changed".to_owned());
    graph.initializer.push(raw("from elsewhere", pattern(100_000, 2)));
    let path = dir.path().join("out.onnx");
    let stats = write_model(&changed, &path, &WriteOptions::for_input(&input)).unwrap();
    let expected = changed.encode_to_vec();
    assert_eq!(stats.copied_bytes, 200_001 + 65_536);
    assert_eq!((stats.model_bytes, stats.data_bytes, stats.data_path), (expected.len() as u64, 0, None));
    assert!(fs::read(&path).unwrap() == expected);
    // Without the input everything goes through memory, with the same result.
    let stats = write_model(&changed, &path, &WriteOptions::default().sync(true)).unwrap();
    assert_eq!(stats.copied_bytes, 0);
    assert!(fs::read(&path).unwrap() == expected);
}

#[test]
fn a_model_may_replace_the_file_that_it_is_mapped_from() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.onnx");
    let input = opened(&path, &with_tensors(vec![raw("w", pattern(300_000, 5))]));
    let mut changed = input.proto.clone();
    changed.doc_string = Some("longer than before".to_owned());
    write_model(&changed, &path, &WriteOptions::for_input(&input)).unwrap();
    assert_eq!(data(&path), [pattern(300_000, 5)]);
    // The old mapping still has the old file.
    assert_eq!(input.source.len(), input.proto.encoded_len());
    assert_eq!(names(dir.path()), ["m.onnx"]);
}

#[test]
fn a_deferred_payload_is_made_where_its_ticket_is() {
    let mut payloads = Payloads::new();
    let content = pattern(150_000, 6);
    let in_pieces = content.clone();
    let ticket =
        payloads.defer_with(150_000, move |out| in_pieces.chunks(999).try_for_each(|piece| out.write_all(piece)));
    // In an initializer and in a constant of a branch of an If.
    let deferred = TensorProto { dims: vec![150_000], ..raw("w", ticket) };
    let attribute = |value: TensorProto| AttributeProto { t: Some(Box::new(value)), ..AttributeProto::default() };
    let node = |attribute| NodeProto { attribute: vec![attribute], ..NodeProto::default() };
    let build = |tensor: &TensorProto| {
        let branch = GraphProto { node: vec![node(attribute(tensor.clone()))], ..GraphProto::default() };
        let branches = AttributeProto { graphs: vec![branch], ..AttributeProto::default() };
        let mut model = with_tensor(tensor.clone());
        model.graph.as_mut().unwrap().node.push(node(branches));
        model
    };
    let model = build(&deferred);
    let mut written = Vec::new();
    write_model_to(&model, &mut written, &WriteOptions::default().payloads(&payloads)).unwrap();
    assert!(written == build(&raw("w", content)).encode_to_vec());
}

#[test]
fn equal_bytes_are_not_a_ticket() {
    let mut payloads = Payloads::new();
    let ticket = payloads.defer_with(4, |out| out.write_all(b"made"));
    let model = with_tensor(raw("w", Bytes::copy_from_slice(&ticket)));
    let mut written = Vec::new();
    write_model_to(&model, &mut written, &WriteOptions::default().payloads(&payloads)).unwrap();
    assert!(written == model.encode_to_vec());
}

/// A model with one deferred payload of 100 bytes, written by `write`.
fn deferred(write: impl Fn(&mut dyn Write) -> io::Result<()> + Send + Sync + 'static) -> (ModelProto, Payloads) {
    let mut payloads = Payloads::new();
    let ticket = payloads.defer_with(100, write);
    (with_tensor(TensorProto { dims: vec![100], ..raw("w", ticket) }), payloads)
}

#[test]
fn an_error_leaves_the_old_output_and_no_unfinished_file() {
    let failing: [(&str, (ModelProto, Payloads)); 3] = [
        ("it ended 1 bytes early", deferred(|out| out.write_all(&[0; 99]))),
        ("it has more bytes than it announced", deferred(|out| out.write_all(&[0; 101]))),
        ("out of weights", deferred(|_| Err(io::Error::other("out of weights")))),
    ];
    for (expected, (model, payloads)) in failing {
        for inline_limit in [u64::MAX, 10] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("out.onnx");
            fs::write(&path, "old").unwrap();
            fs::write(dir.path().join("out.onnx.data"), "old data").unwrap();
            let mut model = model.clone();
            model.graph.as_mut().unwrap().initializer.push(raw("large", pattern(5000, 1)));
            let options = WriteOptions::default().payloads(&payloads).inline_limit(inline_limit);
            let sentence = write_model(&model, &path, &options).expect_err(expected).to_string();
            assert_eq!(sentence, format!("tensor \"w\": its data could not be made: {expected}"));
            assert_eq!(names(dir.path()), ["out.onnx", "out.onnx.data"]);
            assert_eq!(fs::read(&path).unwrap(), b"old");
            assert_eq!(fs::read(dir.path().join("out.onnx.data")).unwrap(), b"old data");
        }
    }
}

#[test]
fn a_deferred_payload_must_be_as_long_as_the_dims_say() {
    let (mut model, payloads) = deferred(|_| Ok(()));
    model.graph.as_mut().unwrap().initializer[0].dims = vec![99];
    let error = write_model_to(&model, &mut Vec::new(), &WriteOptions::default().payloads(&payloads)).unwrap_err();
    assert_eq!(error.to_string(), "tensor \"w\": dims and type need 99 bytes, its deferred payload has 100");
}

#[test]
fn a_stream_that_fails_is_an_error_of_writing() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (model, payloads) = deferred(|out| out.write_all(&[0; 100]));
    let error = write_model_to(&model, &mut Full, &WriteOptions::default().payloads(&payloads)).unwrap_err();
    assert!(matches!(error, Error::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull));
    // Also where a payload's source meets it first.
    let mut payloads = Payloads::new();
    let ticket = payloads.defer_with(1 << 20, |out| out.write_all(&vec![0; 1 << 20]));
    let model = with_tensor(TensorProto { dims: vec![1 << 20], ..raw("w", ticket) });
    let error = write_model_to(&model, &mut Full, &WriteOptions::default().payloads(&payloads)).unwrap_err();
    assert!(matches!(error, Error::Write { .. }), "{error}");
}

#[test]
fn a_stream_that_fails_once_is_an_error_whatever_was_written_then() {
    /// Has no room for the first write, and then some again.
    struct Once(bool);
    impl Write for Once {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let full = std::mem::take(&mut self.0);
            if full { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(bytes.len()) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    // The writer's buffer of 64 KiB is full in front of each byte of the second tensor in turn.
    for length in (64 << 10) - 64..64 << 10 {
        let model = with_tensors(vec![raw("w", pattern(length, 1)), raw("x", pattern(16, 2))]);
        let error = write_model_to(&model, &mut Once(true), &WriteOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Write { .. }), "{length}: {error}");
    }
}

#[test]
fn a_model_over_the_limit_gets_its_weights_in_a_data_file() {
    let dir = tempfile::tempdir().unwrap();
    let tied = pattern(70_000, 1);
    let mut payloads = Payloads::new();
    let ticket = payloads.defer_with(2000, |out| out.write_all(&pattern(2000, 7)));
    let model = with_tensors(vec![
        raw("a", tied.clone()),
        raw("tiny", pattern(1023, 2)),
        TensorProto { dims: vec![2000], ..raw("deferred", ticket) },
        raw("tied to a", tied.clone()),
        raw("b", pattern(4096, 3)),
        raw("c", pattern(1024, 4)),
    ]);
    let path = dir.path().join("big.onnx");
    let options = WriteOptions::default().payloads(&payloads).inline_limit(50_000);
    let stats = write_model(&model, &path, &options).unwrap();
    assert_eq!(stats.data_path.as_deref(), Some(&*dir.path().canonicalize().unwrap().join("big.onnx.data")));
    assert_eq!(names(dir.path()), ["big.onnx", "big.onnx.data"]);
    assert_eq!(fs::metadata(&path).unwrap().len(), stats.model_bytes);
    assert_eq!(fs::metadata(dir.path().join("big.onnx.data")).unwrap().len(), stats.data_bytes);

    let expected = [tied.clone(), pattern(1023, 2), pattern(2000, 7), tied, pattern(4096, 3), pattern(1024, 4)];
    assert_eq!(data(&path), expected);
    let written = ModelFile::open(&path).unwrap();
    let offsets: Vec<Option<u64>> = initializers(&written)
        .iter()
        .map(|tensor| Some(tensor.external_data.iter().find(|entry| entry.key() == "offset")?.value().parse().unwrap()))
        .collect();
    // 70000 bytes are 18 pages; the tied tensor has no place of its own.
    assert_eq!(offsets, [Some(0), None, Some(18 * 4096), Some(0), Some(19 * 4096), Some(20 * 4096)]);
    assert_eq!(stats.data_bytes, 20 * 4096 + 1024);

    // The same model, the same bytes.
    let first = (fs::read(&path).unwrap(), fs::read(dir.path().join("big.onnx.data")).unwrap());
    write_model(&model, &path, &options).unwrap();
    assert!(first == (fs::read(&path).unwrap(), fs::read(dir.path().join("big.onnx.data")).unwrap()));
}

#[test]
fn a_model_under_the_limit_leaves_a_data_file_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("m.onnx.data"), "someone's").unwrap();
    let stats =
        write_model(&with_tensor(raw("w", pattern(9000, 0))), dir.path().join("m.onnx"), &WriteOptions::default());
    assert_eq!(stats.unwrap().data_path, None);
    assert_eq!(fs::read(dir.path().join("m.onnx.data")).unwrap(), b"someone's");
}

/// A model with data in `weights.bin`, one small tensor there, and one whose data is gone.
fn external_model(dir: &Path) -> ModelFile {
    fs::write(dir.join("weights.bin"), pattern(300_000, 8)).unwrap();
    let at = |name, offset: &str, length: u64| {
        external(name, length, &[("location", "weights.bin"), ("offset", offset), ("length", &length.to_string())])
    };
    let tensors = vec![
        at("a", "0", 200_000),
        at("small", "200000", 10),
        external("gone", 5000, &[("location", "out.onnx.data")]),
        raw("own", pattern(3000, 9)),
    ];
    opened(&dir.join("in.onnx"), &with_tensors(tensors))
}

#[test]
fn references_stay_when_the_output_is_beside_the_input() {
    let dir = tempfile::tempdir().unwrap();
    let input = external_model(dir.path());
    let path = dir.path().join("out.onnx");
    let stats = write_model(&input.proto, &path, &WriteOptions::for_input(&input)).unwrap();
    assert!(fs::read(&path).unwrap() == input.source);
    assert_eq!(stats.data_path, None);
    assert_eq!(names(dir.path()), ["in.onnx", "out.onnx", "weights.bin"]);
}

#[test]
fn a_changed_weight_of_a_model_with_external_data_goes_to_a_data_file_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let input = external_model(dir.path());
    let mut payloads = Payloads::new();
    let mut changed = input.proto.clone();
    let tensors = &mut changed.graph.as_mut().unwrap().initializer;
    tensors.remove(2);
    tensors.push(TensorProto {
        dims: vec![2000],
        ..raw("new", payloads.defer_with(2000, |out| out.write_all(&pattern(2000, 7))))
    });
    let path = dir.path().join("out.onnx");
    write_model(&changed, &path, &WriteOptions::for_input(&input).payloads(&payloads)).unwrap();
    assert_eq!(locations(&path), ["weights.bin", "weights.bin", "out.onnx.data"]);
    assert_eq!(data(&path)[3], pattern(2000, 7));
}

#[test]
fn referenced_data_is_copied_when_the_output_goes_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let input = external_model(dir.path());
    let other = tempfile::tempdir().unwrap();
    let path = other.path().join("out.onnx");
    let stats = write_model(&input.proto, &path, &WriteOptions::for_input(&input)).unwrap();
    // The dangling reference must not find another tensor's bytes: the data file takes another name.
    assert_eq!(names(other.path()), ["out.onnx", "out.onnx.1.data"]);
    assert_eq!(locations(&path), ["out.onnx.1.data", "out.onnx.data"]);
    assert_eq!(stats.copied_bytes, 200_000);
    let written = ModelFile::open(&path).unwrap();
    let tensors = initializers(&written);
    let whole = pattern(300_000, 8);
    assert_eq!(written.tensor_bytes(&tensors[0]).unwrap(), whole[..200_000]);
    // Too small for a reference: it is in the model now.
    assert!(!is_external(&tensors[1]) && tensors[1].external_data.is_empty());
    assert_eq!(written.tensor_bytes(&tensors[1]).unwrap(), whole[200_000..200_010]);
    assert!(written.tensor_bytes(&tensors[2]).is_err());
    assert_eq!(tensors[3], initializers(&input)[3]);
}

#[test]
fn replacing_a_model_and_its_data_file_at_once_keeps_every_byte() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.onnx");
    fs::write(dir.path().join("m.onnx.data"), pattern(100_000, 1)).unwrap();
    let kept = external("kept", 60_000, &[("location", "m.onnx.data"), ("offset", "7"), ("length", "60000")]);
    let input = opened(&path, &with_tensors(vec![kept]));
    let mut payloads = Payloads::new();
    let mut changed = input.proto.clone();
    let new = raw("new", payloads.defer_with(5000, |out| out.write_all(&pattern(5000, 2))));
    changed.graph.as_mut().unwrap().initializer.push(TensorProto { dims: vec![5000], ..new });
    write_model(&changed, &path, &WriteOptions::for_input(&input).payloads(&payloads)).unwrap();
    assert_eq!(data(&path), [pattern(100_000, 1).slice(7..60_007), pattern(5000, 2)]);
    // Under a name of its own, so that the pair is whole at any moment; the old one is gone.
    assert_eq!(names(dir.path()), ["m.onnx", "m.onnx.1.data"]);
    assert_eq!(locations(&path), ["m.onnx.1.data", "m.onnx.1.data"]);
}

#[test]
fn data_that_another_model_refers_to_stays_when_a_model_beside_it_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("m.onnx.data"), pattern(9000, 1)).unwrap();
    let shared = external("shared", 9000, &[("location", "m.onnx.data")]);
    let old = with_tensors(vec![shared]);
    opened(&dir.path().join("m.onnx"), &old);
    let input = opened(&dir.path().join("in.onnx"), &old);
    let path = dir.path().join("m.onnx");
    let mut payloads = Payloads::new();
    let mut changed = input.proto.clone();
    let new = raw("new", payloads.defer_with(5000, |out| out.write_all(&pattern(5000, 2))));
    changed.graph.as_mut().unwrap().initializer.push(TensorProto { dims: vec![5000], ..new });
    write_model(&changed, &path, &WriteOptions::for_input(&input).payloads(&payloads)).unwrap();
    assert_eq!(data(&path), [pattern(9000, 1), pattern(5000, 2)]);
    assert_eq!(data(&dir.path().join("in.onnx")), [pattern(9000, 1)]);
}

#[test]
fn an_input_that_was_rewritten_in_place_is_an_error_and_nothing_is_written() {
    // The model itself, or its data.
    for rewritten in ["in.onnx", "weights.bin"] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("weights.bin"), pattern(300_000, 8)).unwrap();
        let tensors = vec![external("a", 300_000, &[("location", "weights.bin")]), raw("own", pattern(3000, 9))];
        let input = opened(&dir.path().join("in.onnx"), &with_tensors(tensors));
        input.check_external().unwrap();
        // Longer than the steps in which file systems tell the time.
        std::thread::sleep(std::time::Duration::from_millis(50));
        let place = dir.path().join(rewritten);
        let mut bytes = fs::read(&place).unwrap();
        let last = bytes.last_mut().unwrap();
        *last = last.wrapping_add(1);
        // The length stays.
        let mut file = fs::File::options().write(true).open(&place).unwrap();
        file.write_all(&bytes).unwrap();
        drop(file);
        let other = tempfile::tempdir().unwrap();
        let out = other.path().join("out.onnx");
        let options = WriteOptions::for_input(&input);
        let mut errors = vec![write_model(&input.proto, &out, &options).unwrap_err()];
        errors.push(write_model_to(&input.proto, &mut Vec::new(), &options).unwrap_err());
        if rewritten == "in.onnx" {
            errors.push(copy_unchanged(&input, &out).unwrap_err());
        }
        for error in errors {
            assert!(matches!(&error, Error::Changed { path } if path.ends_with(rewritten)), "{error}");
        }
        assert!(names(other.path()).is_empty());
    }
}

#[cfg(unix)]
#[test]
fn data_that_a_link_connects_with_a_replaced_file_is_saved() {
    // The data file's name is a link to the data, or the reference is a link to the data file.
    for (file, link, location) in
        [("weights.bin", "m.onnx.data", "./m.onnx.data"), ("m.onnx.data", "weights.bin", "weights.bin")]
    {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.onnx");
        fs::write(dir.path().join(file), pattern(60_000, 1)).unwrap();
        std::os::unix::fs::symlink(file, dir.path().join(link)).unwrap();
        let kept = external("kept", 60_000, &[("location", location)]);
        let input = opened(&path, &with_tensors(vec![raw("own", pattern(5000, 2)), kept]));
        write_model(&input.proto, &path, &WriteOptions::for_input(&input).inline_limit(100)).unwrap();
        assert_eq!(data(&path), [pattern(5000, 2), pattern(60_000, 1)], "{location}");
        assert_eq!(locations(&path), ["m.onnx.1.data", "m.onnx.1.data"]);
    }
}

#[test]
fn an_input_that_was_replaced_is_still_written_from_its_mapping() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in.onnx");
    let input = opened(&path, &with_tensors(vec![raw("w", pattern(300_000, 5))]));
    let before = input.source.to_vec();
    fs::write(dir.path().join("other"), vec![0; before.len()]).unwrap();
    fs::rename(dir.path().join("other"), &path).unwrap();
    let stats = write_model(&input.proto, dir.path().join("out.onnx"), &WriteOptions::for_input(&input)).unwrap();
    assert_eq!(stats.copied_bytes, 0);
    assert!(fs::read(dir.path().join("out.onnx")).unwrap() == before);
    assert_eq!(copied(&dir, &input).copied_bytes, 0);
}

#[test]
fn data_in_the_model_file_that_is_replaced_is_saved() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.onnx");
    let model =
        with_tensors(vec![external("odd", 2000, &[("location", "m.onnx"), ("offset", "5"), ("length", "2000")])]);
    let mut bytes = model.encode_to_vec();
    let doc = ModelProto { doc_string: Some("x".repeat(3000)), ..ModelProto::default() };
    bytes.extend(doc.encode_to_vec());
    fs::write(&path, &bytes).unwrap();
    let input = ModelFile::open(&path).unwrap();
    write_model(&input.proto, &path, &WriteOptions::for_input(&input)).unwrap();
    assert_eq!(data(&path), [&bytes[5..2005]]);
    assert_eq!(locations(&path), ["m.onnx.data"]);
}

#[test]
fn a_reference_that_leaves_the_folder_is_not_followed_by_the_writer() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(dir.path().join("secret"), [1; 2000]).unwrap();
    let input = opened(&inner.join("in.onnx"), &with_tensor(external("w", 2000, &[("location", "../secret")])));
    let elsewhere = dir.path().join("out.onnx");
    let error = write_model(&input.proto, &elsewhere, &WriteOptions::for_input(&input)).unwrap_err();
    assert!(error.to_string().contains("leaves the model's folder"), "{error}");
    write_model_to(&input.proto, &mut Vec::new(), &WriteOptions::for_input(&input)).unwrap_err();
    // Beside the input the reference is only repeated.
    let beside = inner.join("out.onnx");
    write_model(&input.proto, &beside, &WriteOptions::for_input(&input)).unwrap();
    assert!(fs::read(beside).unwrap() == input.source);
}

#[test]
fn a_stream_gets_external_data_into_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let input = external_model(dir.path());
    let mut written = Vec::new();
    write_model_to(&input.proto, &mut written, &WriteOptions::for_input(&input)).unwrap();
    let model = ModelFile::from_bytes(written.into(), None).unwrap();
    assert_eq!(model.tensor_bytes(&initializers(&model)[0]).unwrap(), pattern(300_000, 8)[..200_000]);
    assert_eq!(initializers(&model)[2], initializers(&input)[2]);
    let options = WriteOptions::for_input(&input).inline_limit(100_000);
    let error = write_model_to(&input.proto, &mut Vec::new(), &options).unwrap_err();
    assert!(matches!(error, Error::TooLarge { bytes, .. } if bytes > 200_000));
}

#[test]
fn a_model_that_no_reader_could_follow_is_not_written() {
    let mut graph = GraphProto::default();
    for _ in 0..40 {
        let attribute = AttributeProto { g: Some(Box::new(graph)), ..AttributeProto::default() };
        graph = GraphProto {
            node: vec![NodeProto { attribute: vec![attribute], ..NodeProto::default() }],
            ..GraphProto::default()
        };
    }
    let model = ModelProto { graph: Some(graph), ..ModelProto::default() };
    let error = write_model_to(&model, &mut Vec::new(), &WriteOptions::default()).unwrap_err();
    assert!(matches!(error, Error::TooDeepToWrite { limit: 100 }));
}

#[cfg(unix)]
#[test]
fn a_new_file_has_the_permissions_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("plain"), "").unwrap();
    let mode = |name: &str| fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
    let model = with_tensor(raw("w", pattern(5000, 1)));
    write_model(&model, dir.path().join("m.onnx"), &WriteOptions::default().inline_limit(100)).unwrap();
    copy_file_unchanged(dir.path().join("m.onnx"), dir.path().join("copy")).unwrap();
    for name in ["m.onnx", "m.onnx.data", "copy"] {
        assert_eq!(mode(name), mode("plain"), "{name}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_an_output_is_followed_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("real")).unwrap();
    fs::write(dir.path().join("real/m.onnx"), "old").unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink("real/m.onnx", &link).unwrap();
    let model = with_tensor(raw("w", pattern(10, 1)));
    write_model(&model, &link, &WriteOptions::default()).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read(dir.path().join("real/m.onnx")).unwrap() == model.encode_to_vec());
}

#[test]
fn a_place_where_no_file_can_be_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let model = with_tensor(raw("w", pattern(10, 1)));
    let write = |path: PathBuf| write_model(&model, path, &WriteOptions::default()).unwrap_err();
    assert!(write(dir.path().to_owned()).to_string().ends_with("is a directory"));
    assert!(matches!(write(dir.path().join("no/such/folder.onnx")), Error::Write { .. }));
    assert!(matches!(write(PathBuf::new()), Error::Write { .. }));
}

#[cfg(unix)]
#[test]
fn a_device_is_written_to_and_not_replaced() {
    use std::os::unix::fs::FileTypeExt as _;
    let model = with_tensor(raw("w", pattern(10, 1)));
    let stats = write_model(&model, "/dev/null", &WriteOptions::default()).unwrap();
    assert_eq!(stats.model_bytes, model.encoded_len() as u64);
    copy_file_unchanged(&models()[0], "/dev/null").unwrap();
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

fn copied(dir: &TempDir, input: &ModelFile) -> WriteStats {
    let path = dir.path().join("copy.onnx");
    let stats = copy_unchanged(input, &path).unwrap();
    assert!(fs::read(path).unwrap() == input.source);
    stats
}

#[test]
fn an_unchanged_copy_has_every_byte_of_the_input() {
    let dir = tempfile::tempdir().unwrap();
    for path in models() {
        // Twice: beside nothing and over a file. From a mapping and from memory.
        let input = ModelFile::open(&path).unwrap();
        let length = input.source.len() as u64;
        let stats = copied(&dir, &input);
        assert_eq!((stats.model_bytes, stats.copied_bytes), (length, length));
        let in_memory = ModelFile::from_bytes(Bytes::from(fs::read(&path).unwrap()), None).unwrap();
        let stats = copied(&dir, &in_memory);
        assert_eq!((stats.model_bytes, stats.copied_bytes), (length, 0));
    }
    // Bytes that prost would not write, and bytes that are no model.
    let odd =
        [&with_tensor(raw("w", pattern(10, 1))).encode_to_vec()[..], &[0xf8, 0x07, 5], &[0x08, 0x81, 0x00]].concat();
    copied(&dir, &ModelFile::from_bytes(odd.into(), None).unwrap());
    fs::write(dir.path().join("any"), "thing").unwrap();
    copy_file_unchanged(dir.path().join("any"), dir.path().join("copy")).unwrap();
    assert_eq!(fs::read(dir.path().join("copy")).unwrap(), b"thing");
    assert_eq!(names(dir.path()), ["any", "copy", "copy.onnx"]);
}

#[test]
fn copying_a_file_onto_itself_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.onnx");
    let input = opened(&path, &with_tensor(raw("w", pattern(10, 1))));
    let hard = dir.path().join("hard");
    fs::hard_link(&path, &hard).unwrap();
    let written = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let before = written(&path);
    for itself in [&path, &hard, &dir.path().join("./m.onnx")] {
        assert_eq!(copy_unchanged(&input, itself).unwrap(), WriteStats::default());
    }
    assert_eq!(written(&path), before);
    // Still one file: neither name was replaced.
    assert_eq!(names(dir.path()), ["hard", "m.onnx"]);
    drop(input);
    fs::write(&path, "x").unwrap();
    assert_eq!(fs::read(&hard).unwrap(), b"x");
}
