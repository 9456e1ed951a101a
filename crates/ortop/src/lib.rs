//! The op `Relayout` of domain `relayout` as an ONNX Runtime custom-op library. The moves that a model file has left then run on
//! the kernels of `relayout-codegen`.
//!
//! The shared library exports [`RegisterCustomOps`], which any ONNX Runtime from 1.18 on finds by name. The library does not link
//! the runtime: it gets the runtime's functions in a table. `README.md` of this crate says what the op's attributes mean;
//! `contract` has it as code.
//!
//! - `contract` is the op itself: attributes, shapes, plans. It is safe code that knows no runtime.
//! - `api` wraps the runtime's functions, so that other modules call safe functions only.
//! - `op` is the table of functions that the runtime calls, and `kernel` has their bodies. Nothing unwinds into the runtime.
//!
//! Threads are the session's: its intra-op pool shares large moves. In a session with one thread they stay on that thread.

mod api;
mod contract;
mod error;
mod kernel;
mod op;

pub use op::RegisterCustomOps;
