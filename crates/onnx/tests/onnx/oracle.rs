//! Our encoding against an independent decoder, and ours against its encoding. The independent one reads the schema's proto3
//! form, to which a zero is the same as absence; where that matters it is said.

use crate::common::{Choices, models};
use bytes::Bytes;
use onnx_protobuf as oracle;
use proptest::prelude::*;
use prost::Message as _;
use protobuf::Message as _;
use relayout_onnx::file::ModelFile;
use relayout_onnx::proto::ModelProto;
use relayout_onnx::write::{WriteOptions, write_model_to};

fn written(model: &ModelProto) -> Vec<u8> {
    let mut bytes = Vec::new();
    let stats = write_model_to(model, &mut bytes, &WriteOptions::default()).unwrap();
    assert_eq!(stats.model_bytes, bytes.len() as u64);
    bytes
}

#[test]
fn real_models_mean_the_same_to_both_decoders() {
    for path in models() {
        let file = std::fs::read(&path).unwrap();
        let theirs = oracle::ModelProto::parse_from_bytes(&file).unwrap();
        let ours = ModelFile::open(&path).unwrap().proto;
        let reread = oracle::ModelProto::parse_from_bytes(&written(&ours)).unwrap();
        assert!(theirs == reread, "{}", path.display());
        // Explicit zeros are lost on the way through the other one; it must not see a difference itself.
        let back = ModelProto::decode(&theirs.write_to_bytes().unwrap()[..]).unwrap();
        let reread = oracle::ModelProto::parse_from_bytes(&written(&back)).unwrap();
        assert!(theirs == reread, "{}", path.display());
    }
}

#[test]
fn real_models_are_in_the_canonical_encoding_already() {
    // Their writers are protobuf's own C++ ones; so the order of fields and the packing are theirs too.
    for path in models() {
        assert!(written(&ModelFile::open(&path).unwrap().proto) == std::fs::read(&path).unwrap(), "{}", path.display());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_model_is_written_as_prost_encodes_it(choices in prop::collection::vec(any::<u8>(), 0..3000)) {
        let model = Choices::of(&choices).model();
        let bytes = model.encode_to_vec();
        prop_assert!(written(&model) == bytes);
        prop_assert!(ModelProto::decode(Bytes::from(bytes)).unwrap() == model);
    }

    #[test]
    fn any_model_survives_the_other_decoder(choices in prop::collection::vec(any::<u8>(), 0..3000)) {
        let model = Choices::without_defaults(&choices).model();
        let theirs = oracle::ModelProto::parse_from_bytes(&written(&model)).unwrap();
        // Fields newer than the oracle's schema come back from its store of unknown fields.
        prop_assert!(ModelProto::decode(&theirs.write_to_bytes().unwrap()[..]).unwrap() == model);
    }

    #[test]
    fn any_model_with_a_graph_opens_without_unknown_fields(choices in prop::collection::vec(any::<u8>(), 0..3000)) {
        let model = Choices::of(&choices).model();
        let opened = ModelFile::from_bytes(model.encode_to_vec().into(), None);
        if model.graph.is_some() {
            let opened = opened.unwrap();
            prop_assert_eq!(&opened.unknown_fields, &[]);
            prop_assert!(opened.proto == model);
        } else {
            prop_assert!(opened.is_err());
        }
    }
}
