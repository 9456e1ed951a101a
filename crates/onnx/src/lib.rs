//! ONNX files to and from the relayout graph: the only crate that knows protobuf.
//!
//! - [`mod@file`] opens a model and [`mod@write`] writes one, both without copying weights.
//! - [`import`] makes a graph of messages, and [`export`] makes messages of a graph.
//! - [`inline`] writes out calls of a model's own functions and puts them back.
//! - [`dialect`] has the functions of domain `relayout`.

pub mod dialect;
pub mod error;
pub mod export;
pub mod external;
pub mod file;
pub mod import;
pub mod inline;
pub mod interop;
pub mod proto;
pub mod wire;
pub mod write;

#[cfg(feature = "onnx-protobuf")]
pub use onnx_protobuf;
#[cfg(feature = "prost")]
pub use prost;
