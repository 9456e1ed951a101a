//! ONNX files.
