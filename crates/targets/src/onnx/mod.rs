//! Target `onnx`: a data file of standard operators.

pub use crate::shared::data::DataTarget;

/// The data of target `onnx`.
pub(crate) const DATA: &str = include_str!("onnx.toml");
