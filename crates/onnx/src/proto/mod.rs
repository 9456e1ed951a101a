//! The messages of an ONNX file, field by field as the standard's schema (onnx 1.23, IR version 14) has them.
//!
//! They are generated from the schema (`schema/README.md`) for prost, so that `bytes` fields are [`bytes::Bytes`]: decoding from a
//! `Bytes` copies no weight, a tensor's `raw_data` is a slice of the file. Every optional scalar is an `Option`: absent and zero stay
//! different, and what was read is written back as it was. Repeated numbers are packed exactly where the schema says so, and prost
//! writes fields by number: encoding what was decoded gives the canonical encoding, but for a type that is optional, sparse or opaque
//! *and* has a denotation, which prost puts last; no reader minds. Names and nesting follow `prost-build`.
//!
//! What is absent: unknown fields. prost drops them; [`crate::wire`] finds them.

mod bodies;
mod equal;
pub(crate) mod make;
#[rustfmt::skip]
mod messages;
#[rustfmt::skip]
mod visit;
mod width;

pub use messages::*;
