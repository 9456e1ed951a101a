//! Opening models: what is read, what is found, and what is refused with which sentence.

use std::fs;

use crate::common::{models, raw, smallest, with_tensor};
use bytes::Bytes;
use proptest::prelude::*;
use prost::Message as _;
use relayout_onnx::error::Error;
use relayout_onnx::file::ModelFile;
use relayout_onnx::proto::{ModelProto, NodeProto};
use relayout_onnx::wire::{MAX_LISTED_UNKNOWN, WireType};

/// A field that is length-delimited.
fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    prost::encoding::encode_key(number, prost::encoding::WireType::LengthDelimited, &mut bytes);
    prost::encoding::encode_varint(content.len() as u64, &mut bytes);
    [&bytes, content].concat()
}

fn open(bytes: impl Into<Vec<u8>>) -> Result<ModelFile, Error> {
    ModelFile::from_bytes(Bytes::from(bytes.into()), None)
}

#[test]
fn a_real_model_has_no_unknown_fields() {
    for path in models() {
        let model = ModelFile::open(&path).unwrap();
        assert_eq!(model.unknown_fields, [], "{}", path.display());
        assert!(!model.proto.graph.unwrap().node.is_empty());
    }
}

#[test]
fn raw_data_is_a_slice_of_the_mapped_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.onnx");
    fs::write(&path, with_tensor(raw("w", vec![7; 100_000].into())).encode_to_vec()).unwrap();
    let model = ModelFile::open(&path).unwrap();
    let tensor = &model.proto.graph.as_ref().unwrap().initializer[0];
    let source = model.source.as_ptr_range();
    for bytes in [tensor.raw_data.clone().unwrap(), model.tensor_bytes(tensor).unwrap()] {
        assert_eq!(bytes.len(), 100_000);
        let slice = bytes.as_ptr_range();
        assert!(source.start <= slice.start && slice.end <= source.end);
    }
    // A slice outlives the model that it came from.
    let bytes = tensor.raw_data.clone().unwrap();
    drop(model);
    assert!(bytes.iter().all(|&byte| byte == 7));
}

#[test]
fn an_unknown_field_is_reported_with_its_place() {
    let node = |extra: &[u8]| field(1, &[&field(4, b"Relu"), extra].concat());
    let attribute = field(5, &[&field(1, b"a")[..], &[0xa5, 0x06, 1, 2, 3, 4]].concat());
    let last = node(&[field(5, b""), attribute].concat());
    let graph = [node(b""), node(b""), last].concat();
    let bytes = [&field(7, &graph)[..], &[0xf8, 0x07, 5]].concat();
    let model = open(bytes.clone()).unwrap();
    assert_eq!(model.unknown_count, 2);
    let found: Vec<String> = model.unknown_fields.iter().map(ToString::to_string).collect();
    let at = bytes.len() - 3 - 6;
    assert_eq!(
        found,
        [
            format!("graph.node[2].attribute[1]: field 100 of AttributeProto (32-bit) at byte {at}"),
            format!("model: field 127 of ModelProto (varint) at byte {}", bytes.len() - 3),
        ]
    );
}

#[test]
fn groups_are_unknown_fields_and_are_passed_over_whole() {
    // Field 31 as a group, with a group and a varint in it.
    let group = [0xfb, 0x01, 0x0b, 0x08, 1, 0x0c, 0xfc, 0x01];
    let model = open([&field(7, b"")[..], &group, &field(6, b"doc")].concat()).unwrap();
    let [unknown] = &model.unknown_fields[..] else { panic!("{:?}", model.unknown_fields) };
    assert_eq!((unknown.number, unknown.wire_type, unknown.offset), (31, WireType::Group, 2));
    assert_eq!(model.proto.doc_string(), "doc");
}

#[test]
fn unknown_fields_without_end_are_counted_but_not_listed() {
    let model = open([field(7, b""), [0xf8, 0x07, 5].repeat(5000)].concat()).unwrap();
    assert_eq!(model.unknown_count, 5000);
    assert_eq!(model.unknown_fields.len(), MAX_LISTED_UNKNOWN);
}

#[test]
fn what_is_not_a_model_is_refused_with_a_reason() {
    let cases: &[(&str, &[u8], &str)] = &[
        ("nothing", b"", "is empty"),
        ("text", b"hello\nworld\n", "a text file"),
        ("a Git LFS pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n", "git lfs pull"),
        ("gzip", b"\x1f\x8b\x08\x00\x00\x00", "gzip"),
        ("zip", b"PK\x03\x04\x14\x00", "zip archive"),
        ("ORT's format", b"\x24\x00\x00\x00ORTM\x00\x00", "ONNX Runtime's own format"),
        ("no graph", &[0x08, 0x08], "has no graph"),
        ("a bad key", &[0x08, 0x08, 0x07], "at byte 2 (model): this does not begin with a field"),
        ("field zero", &[0x00, 0x00], "at byte 0 (model): this does not begin with a field"),
        ("a number without end", &[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1], "longer than 64 bits"),
        ("a number above 64 bits", &[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2], "longer than 64 bits"),
        ("a graph of another kind", &[0x38, 1], "(graph): the field is varint, the schema has it as length-delimited"),
        ("bytes that are no text", &[0x12, 2, 0xff, 0xfe], "(producer_name): the text is not UTF-8"),
        ("a group that is not opened", &[0x08, 8, 0x0c], "a group is not closed"),
        ("a group that is not closed", &[0x3a, 2, 0xfb, 0x01], "a group is not closed"),
        ("another group's end", &[0xfb, 0x01, 0x14], "a group is not closed"),
        ("a cut graph", &[0x08, 8, 0x3a, 100, 0x12, 1, 0x67], "at byte 2, graph needs 100 more bytes, 3 are left"),
        ("a cut number", &[0x08], "at byte 0, ir_version needs 1 more bytes, 0 are left"),
        (
            "a node longer than its graph",
            &[0x3a, 2, 0x0a, 1, 0x32, 1, 0x67],
            "(graph.node): it needs 1 bytes, but the message around it has only 0 left",
        ),
        (
            "a huge length",
            &[0x3a, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
            "needs 18446744073709551615 more bytes",
        ),
        (
            "floats that are cut",
            &[0x3a, 7, 0x2a, 5, 0x22, 3, 0, 0, 0],
            "3 bytes are not a whole number of 4-byte elements",
        ),
    ];
    for (name, bytes, expected) in cases {
        let sentence = open(*bytes).expect_err(name).to_string();
        assert!(sentence.contains(expected), "{name}: {sentence}");
        assert!(ModelProto::decode(*bytes).is_err() || ["nothing", "no graph", "text"].contains(name), "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing.onnx");
    assert!(matches!(ModelFile::open(&missing), Err(Error::Read { path, .. }) if path == missing));
    let sentence = ModelFile::open(dir.path()).unwrap_err().to_string();
    assert!(sentence.ends_with("it is a directory, not a file"), "{sentence}");
    let empty = dir.path().join("empty.onnx");
    fs::write(&empty, b"").unwrap();
    assert!(matches!(ModelFile::open(&empty), Err(Error::Empty { .. })));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_and_a_device_is_refused() {
    use std::io::Write as _;
    let (reader, mut writer) = std::io::pipe().unwrap();
    let bytes = smallest();
    let thread = std::thread::spawn(move || writer.write_all(&bytes).unwrap());
    let fd = std::os::fd::AsRawFd::as_raw_fd(&reader);
    // The other end is closed when the thread is done, which ends the read.
    let model = ModelFile::open(format!("/proc/self/fd/{fd}")).unwrap();
    thread.join().unwrap();
    assert_eq!(model.source, smallest());
    assert!(matches!(ModelFile::open("/dev/zero"), Err(Error::NotAFile { .. })));
}

#[test]
fn the_folder_of_a_bare_name_is_the_current_one() {
    let model = ModelFile::open(&models()[0]).unwrap();
    assert_eq!(model.dir(), models()[0].parent());
    assert_eq!(model.path(), Some(&*models()[0]));
    assert_eq!(open(smallest()).unwrap().dir(), None);
}

#[test]
fn nesting_beyond_every_decoder_is_refused_as_such() {
    // graph.node.attribute.g.node... and so on.
    let deep = |levels: usize| {
        let numbers: Vec<u32> = std::iter::once(7).chain([1, 5, 6].into_iter().cycle()).take(levels).collect();
        numbers.iter().rev().fold(Vec::new(), |bytes, &number| field(number, &bytes))
    };
    open(deep(100)).unwrap();
    for levels in [101, 200, 5000] {
        let sentence = open(deep(levels)).unwrap_err().to_string();
        assert!(
            sentence.contains("nesting of messages is too deep: graph.node[0].attribute[0].g.node[0]"),
            "{sentence}"
        );
    }
    // Groups nest too, and end nowhere.
    assert!(matches!(open([field(7, b""), [0xfb, 0x01].repeat(1 << 20)].concat()), Err(Error::TooDeep { .. })));
}

#[test]
fn a_small_file_that_unfolds_into_much_is_refused() {
    // Two bytes a node, each of which is hundreds in memory.
    let nodes = field(7, &[0x0a, 0].repeat(1 << 20));
    let Err(Error::TooDense { bytes, decoded, .. }) = open(nodes) else { panic!("it was opened") };
    assert!(decoded > 100 * bytes && decoded >= (size_of::<NodeProto>() as u64) << 20);
    // One byte a dim, eight in memory: that is still within what a model may do.
    open(field(7, &field(5, &field(1, &vec![1; 1 << 20])))).unwrap();
}

#[test]
fn a_file_cut_anywhere_is_an_error_or_a_model_and_never_a_panic() {
    let whole = smallest();
    for length in 0..whole.len() {
        let cut = Bytes::from(whole[..length].to_vec());
        let opened = ModelFile::from_bytes(cut.clone(), None);
        let decoded = ModelProto::decode(cut).ok().and_then(|model| model.graph);
        assert_eq!(opened.is_ok(), decoded.is_some(), "cut at {length}: {opened:?}");
        if let Err(error @ Error::NotOnnx { .. }) = opened {
            panic!("cut at {length}, but the sentence does not say so: {error}");
        }
    }
}

#[test]
fn a_file_with_any_bit_flipped_is_judged_as_prost_judges_it() {
    let whole = smallest();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let bytes = Bytes::from(bytes);
        let opened = ModelFile::from_bytes(bytes.clone(), None);
        let decoded = ModelProto::decode(bytes).ok().filter(|model| model.graph.is_some());
        assert_eq!(opened.as_ref().ok().map(|model| &model.proto), decoded.as_ref(), "bit {bit}");
        for tensor in opened.iter().flat_map(|model| model.proto.tensors()) {
            // Whatever the tensor says now: bytes, missing or an error.
            let _ = opened.as_ref().unwrap().tensor_data(tensor);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_judged_as_prost_judges_them(bytes in prop::collection::vec(any::<u8>(), 1..200)) {
        // A graph in front, so that only what follows decides.
        let bytes = Bytes::from([&field(7, b"")[..], &bytes].concat());
        let opened = ModelFile::from_bytes(bytes.clone(), None);
        prop_assert_eq!(opened.is_ok(), ModelProto::decode(bytes).is_ok());
    }

    #[test]
    fn several_damages_at_once_are_judged_as_prost_judges_them(
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = smallest();
        for (index, value) in damages {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        let bytes = Bytes::from(bytes);
        let opened = ModelFile::from_bytes(bytes.clone(), None);
        let decoded = ModelProto::decode(bytes).ok().filter(|model| model.graph.is_some());
        prop_assert_eq!(opened.ok().map(|model| model.proto), decoded);
    }
}
