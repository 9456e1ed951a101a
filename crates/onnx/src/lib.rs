//! ONNX files to and from the relayout graph: the only crate that knows protobuf.
//!
//! ```
//! use relayout_onnx::file::ModelFile;
//! use relayout_onnx::import::import;
//! use std::sync::Arc;
//!
//! // A model with a graph of the name `g` and nothing else: field 7 has the graph, its field 2 the name.
//! let bytes: &[u8] = &[0x08, 8, 0x42, 4, 0x0a, 0, 0x10, 17, 0x3a, 3, 0x12, 1, b'g'];
//! let file = Arc::new(ModelFile::from_bytes(bytes.into(), None)?);
//! let model = import(&file).unwrap();
//! assert_eq!((model.graph.name.as_str(), model.opsets[""]), ("g", 17));
//! assert!(ModelFile::from_bytes(b"no model".as_slice().into(), None).is_err());
//! # Ok::<(), relayout_onnx::error::Error>(())
//! ```
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
pub mod reference;
pub mod wire;
pub mod write;

#[cfg(feature = "onnx-protobuf")]
pub use onnx_protobuf;
#[cfg(feature = "prost")]
pub use prost;
