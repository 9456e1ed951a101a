//! Checks proofs that one ONNX model computes what another one computes.

mod align;
mod certificate;
mod check;
mod digest;
mod error;
mod eval;
mod flat;
mod lemma;
mod model;
mod ops;
mod term;
#[cfg(test)]
mod tests;
mod value;
mod view;
mod wire;

pub use certificate::{Claim, Proof};
pub use check::{Verdict, prove};
pub use error::Error;
