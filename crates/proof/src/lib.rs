//! Checks proofs that one ONNX model computes what another one computes. It shares no code with the optimizer that wrote them.
//!
//! ```no_run
//! use relayout_proof::{Proof, prove};
//! use std::path::Path;
//!
//! let proof = Proof::open(Path::new("out.json"))?;
//! let verdict = prove(Path::new("model.onnx"), Path::new("out.onnx"), &proof)?;
//! println!("{verdict}");
//! # Ok::<(), relayout_proof::Error>(())
//! ```
//!
//! Both graphs are read into terms and index maps (`eval`, `term`, `view`); `ops` is the table of ops, and `check` holds each claim
//! of a proof against them. `finder` says what is left to show of files that come without a proof.

mod agreed;
mod align;
mod certificate;
mod check;
mod constants;
mod contents;
mod decode;
mod defaults;
mod error;
mod eval;
mod finder;
mod flat;
mod hosts;
mod lanes;
mod lemma;
mod loops;
mod model;
mod opaque;
mod ops;
mod real;
mod routed;
mod scans;
mod schema;
mod sets;
mod sizes;
mod slots;
mod sparse;
mod strided;
mod symbolic;
mod tensors;
mod term;
#[cfg(test)]
mod tests;
mod typed;
mod untouched;
mod valid;
mod value;
mod verdict;
mod view;
mod wide;
mod wire;

pub use agreed::{Agreed, Digits};
pub use certificate::{Claim, Proof};
pub use check::{prove, prove_contents};
pub use contents::Contents;
pub use error::Error;
pub use finder::{Found, Gap, UpToTypes, find, find_up_to_types};
pub use hosts::Hosts;
pub use verdict::Verdict;
