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
//! | folder | what it does |
//! |---|---|
//! | `files` | reads bytes into a model, and refuses what readers would read in more than one way |
//! | `standard` | says what the standard lets a node have |
//! | `terms` | what values are: terms, each stored once, under index maps |
//! | `ops` | the table of ops: which term an op makes of its operands |
//! | `lemmas` | equations over the reals, where terms differ |
//! | `graph` | walks a graph with its functions and bodies, and says of each value which term it is |
//! | `checks` | holds both graphs, and each claim of a proof, against each other |
//! | `finder` | says what is left to show of files that come without a proof |

mod certificate;
mod checks;
mod error;
mod files;
mod finder;
mod graph;
mod lemmas;
mod ops;
mod standard;
mod terms;
#[cfg(test)]
mod tests;

pub use certificate::{Claim, Proof};
pub use checks::agreed::{Agreed, Digits};
pub use checks::check::{prove, prove_contents};
pub use checks::hosts::Hosts;
pub use checks::verdict::Verdict;
pub use error::Error;
pub use files::contents::Contents;
pub use files::model::ReadingOf;
pub use finder::{AssumedReading, Gap, Link, SearchResult, UpToTypes, find, find_up_to_types, links, readings};
