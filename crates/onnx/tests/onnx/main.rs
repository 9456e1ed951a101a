//! Model files: read, imported, written.

mod common;
mod dialect;
mod external;
mod file;
mod given;
mod import;
mod inline;
#[cfg(feature = "onnx-protobuf")]
mod interop;
mod oracle;
mod python;
mod schema;
mod write;
