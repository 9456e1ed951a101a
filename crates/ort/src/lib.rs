//! Sessions of ONNX Runtime that run optimized models: the session builder of the crate [`ort`], with relayout and a cache in front.
//!
//! [`Builder`] has the methods of ort's `SessionBuilder` and ends in the same calls. When a session is made it asks
//! [`relayout::machine::fitting`] what suits the provider, the threads and this machine, and loads an optimized model in place of the
//! one that is named. The first start of a model optimizes it, has the result proved as `relayout optimize` does, and keeps it; later
//! starts load what was kept.
//!
//! ```no_run
//! use ort::session::builder::GraphOptimizationLevel;
//!
//! # fn main() -> ort::Result<()> {
//! let environment = ort::init().build()?;
//! let mut builder = relayout_ort::Builder::new(&environment)?
//!     .with_optimization_level(GraphOptimizationLevel::Level3)?
//!     .with_intra_threads(2)?
//!     .on_start(|start| eprintln!("{start}"));
//! let session = builder.commit_from_file("model.onnx")?;
//! # let _ = session;
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! - Where the session would load without relayout, it loads: when anything goes wrong, the model is loaded as it is, and
//!   [`Builder::outcome`] says why. A result that is not proved is not used.
//! - A start waits at most two seconds for the optimizer ([`Builder::patience`]). Then the model is loaded as it is, and a thread of this
//!   process makes the optimized one for the next start. [`Builder::prepare`] makes it ahead of time.
//! - Inputs and outputs keep their names, types and shapes. Results differ by rounding at most; [`Builder::exact`] keeps each bit.
//! - What the session is given apart from the model, as initializers in memory are, and the level
//!   [`Disable`](ort::session::builder::GraphOptimizationLevel::Disable) have the model loaded as it is.
//!
//! What is kept, and how, is the business of [`relayout_cache`].
//!
//! Absent: models from addresses, and the editor of models. [`Builder::into_inner`] gives ort's builder for these.

#![allow(clippy::result_large_err, reason = "the setters of ort answer so, and so do closures that call them")]

mod builder;
mod passed_on;
mod setting;

pub use builder::{Builder, SessionFacts};
pub use relayout_cache::{Making, ModelCache, StartKind, StartOutcome};
pub use setting::SettingRefused;

/// What the setters of [`Builder`] answer.
pub type BuilderResult = Result<Builder, SettingRefused>;
