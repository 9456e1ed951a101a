//! The library of custom ops in ONNX Runtime.

#[path = "../common/mod.rs"]
mod common;
mod moves;
mod runtime;
