//! The op `Relayout` of domain `relayout` as an ONNX Runtime custom-op library: moves that a model file leaves to the runtime
//! run on the kernels of `relayout-codegen`.
//!
//! The shared library exports [`RegisterCustomOps`], which any ONNX Runtime from 1.18 on finds by name. Nothing of the runtime
//! is linked: its functions come from the table that it hands over. What the op's attributes mean is in `README.md` beside
//! this crate and, as code, in `contract`.
//!
//! - `contract` is the op as such: attributes, shapes, plans. Safe code that knows no runtime.
//! - `api` wraps the runtime's functions, so that what is called elsewhere is safe.
//! - `op` is the table of functions that the runtime calls, and `kernel` what they do. Nothing unwinds into the runtime.
//!
//! Threads are the session's. Large moves are shared by its intra-op pool, and in a session with one thread stay on that.

mod api;
mod contract;
mod error;
mod kernel;
mod op;

pub use op::RegisterCustomOps;
