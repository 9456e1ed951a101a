//! prost's attributes against the table.

use std::collections::BTreeMap;

use prost::Message as _;
use prost::encoding::{WireType as Wire, encode_key, encode_varint};

use super::{FieldDesc, Kind, Label, MessageDesc, schema, walk};
use crate::proto::ModelProto;

/// Every message that the model can hold, with the fields that lead to it.
fn reachable() -> BTreeMap<&'static str, (&'static MessageDesc, Vec<u32>)> {
    let mut found = BTreeMap::from([(schema::MODEL_PROTO.name, (&schema::MODEL_PROTO, Vec::new()))]);
    let mut open = vec![&schema::MODEL_PROTO];
    while let Some(desc) = open.pop() {
        let path = found[desc.name].1.clone();
        for field in desc.fields {
            if let Kind::Message(inner) = field.kind
                && !found.contains_key(inner.name)
            {
                let path = path.iter().copied().chain([field.number]).collect();
                found.insert(inner.name, (inner, path));
                open.push(inner);
            }
        }
    }
    found
}

fn delimited(number: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(number, Wire::LengthDelimited, &mut bytes);
    encode_varint(content.len() as u64, &mut bytes);
    bytes.extend_from_slice(content);
    bytes
}

/// The canonical encoding of `field` with values that are not the default.
fn example(field: &FieldDesc) -> Vec<u8> {
    let key = |wire| {
        let mut bytes = Vec::new();
        encode_key(field.number, wire, &mut bytes);
        bytes
    };
    let (one, wire): (&[u8], _) = match field.kind {
        Kind::Int32 | Kind::Int64 | Kind::Uint64 | Kind::Enum => (&[1], Wire::Varint),
        Kind::Float => (&[0, 0, 0x80, 0x3f], Wire::ThirtyTwoBit),
        Kind::Double => (&[0, 0, 0, 0, 0, 0, 0xf0, 0x3f], Wire::SixtyFourBit),
        Kind::Str | Kind::Bytes => (b"\x01x", Wire::LengthDelimited),
        Kind::Message(_) => (&[0], Wire::LengthDelimited),
    };
    match field.label {
        Label::Optional => [key(wire), one.to_vec()].concat(),
        Label::Repeated => [key(wire), one.to_vec()].concat().repeat(2),
        Label::Packed => delimited(field.number, &one.repeat(2)),
    }
}

/// Each field of the table by itself, inside of the messages that lead to it.
fn examples() -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for (desc, path) in reachable().into_values() {
        for field in desc.fields {
            let bytes = path.iter().rev().fold(example(field), |inner, &number| delimited(number, &inner));
            found.push((format!("{}.{}", desc.name, field.name), bytes));
        }
    }
    found
}

#[test]
fn prost_keeps_every_field_of_the_table_in_its_canonical_encoding() {
    for (name, bytes) in examples() {
        let decoded = ModelProto::decode(&bytes[..]).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(decoded.encode_to_vec(), bytes, "{name}");
    }
}

#[test]
fn the_walk_knows_every_field_of_the_table() {
    for (name, bytes) in examples() {
        let walk = walk(&bytes).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(walk.unknown, [], "{name}");
    }
}

#[test]
fn the_walk_accepts_what_prost_accepts() {
    // Packed where the schema has it unpacked, and the other way round.
    let dims_packed = delimited(7, &delimited(5, &delimited(1, &[1, 2, 3])));
    let floats_unpacked = delimited(7, &delimited(5, &[0x25, 0, 0, 0x80, 0x3f]));
    for bytes in [dims_packed, floats_unpacked] {
        let tensor = &ModelProto::decode(&bytes[..]).unwrap().graph.unwrap().initializer[0];
        assert_eq!(tensor.dims.len() + tensor.float_data.len(), if tensor.dims.is_empty() { 1 } else { 3 });
        assert_eq!(walk(&bytes).unwrap().unknown, []);
    }
}

/// Groups and messages around `inner`, `levels` deep: a graph in an attribute of a node of a graph and so on.
fn nested(levels: usize, inner: &[u8]) -> Vec<u8> {
    let numbers = std::iter::once(7).chain([1, 5, 6].into_iter().cycle());
    let numbers: Vec<u32> = numbers.take(levels).collect();
    numbers.iter().rev().fold(inner.to_vec(), |bytes, &number| delimited(number, &bytes))
}

#[test]
fn the_walk_and_prost_agree_on_how_deep_is_too_deep() {
    // Field 15 of any of these messages as an unknown group; name or `f` or so as a known scalar.
    let unknown_varint = &[0xf8, 0x7f, 1][..];
    let unknown_group = &[0xfb, 0x7f, 0xf8, 0x7f, 1, 0xfc, 0x7f][..];
    for inner in [&[][..], unknown_varint, unknown_group] {
        for levels in 95..104 {
            let bytes = nested(levels, inner);
            let prost = ModelProto::decode(&bytes[..]).is_ok();
            assert_eq!(walk(&bytes).is_ok(), prost, "{levels} levels around {inner:?}");
            assert_eq!(prost, levels + usize::from(!inner.is_empty()) + usize::from(inner.len() > 3) <= 100);
        }
    }
}
