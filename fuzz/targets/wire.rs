//! Bytes as a model file: the walk over the wire format and the decoder agree, and what was decoded is encoded and decoded alike.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use relayout_fuzz::memory::{Bound, bounded};
use relayout_onnx::file::ModelFile;
use relayout_onnx::prost::Message as _;
use relayout_onnx::proto::ModelProto;

/// `relayout_onnx::file` refuses a file that unfolds into more than 64 bytes for each of its own beyond 64 MiB. A vector that grows
/// has twice what it needs, and while it grows the old one is there too.
const BOUND: Bound = Bound { per_byte: 256, free: 192 << 20 };

fuzz_target!(|data: &[u8]| bounded(&BOUND, data.len(), || run(data)));

fn run(data: &[u8]) {
    let file = match ModelFile::from_bytes(Bytes::copy_from_slice(data), None) {
        Ok(file) => file,
        Err(error) => return assert!(!error.to_string().contains('\n'), "{error}"),
    };
    let written = file.proto.encode_to_vec();
    let read = ModelFile::from_bytes(written.into(), None).expect("what was encoded is a model");
    assert!(read.proto == file.proto, "another model after a round trip");
    assert!(ModelProto::decode(data).is_ok_and(|proto| proto == file.proto));
    let _ = file.check_external();
    for tensor in file.proto.graph.iter().flat_map(|graph| &graph.initializer) {
        let _ = file.tensor_data(tensor);
    }
}
