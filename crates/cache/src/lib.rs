//! Keeps optimized models on disk, so that a program optimizes a model once and starts fast from then on.
//!
//! A host that loads models asks [`prepare`] what to load in place of a model: an optimized file of the cache, bytes, or the model as it
//! is. It always gets an answer, with a [`StartOutcome`] that says what was done and why. Nothing here is an error: where no cache can be
//! written the model is optimized in memory, and where that takes too long or fails the model is loaded as it is.
//!
//! ```no_run
//! use relayout::machine::{Equipment, fitting};
//! use relayout_cache::{Load, ModelCache, ModelInput, StartOptions, prepare};
//!
//! let equipment = Equipment::of_this_machine().with_runtime("1.31.1");
//! let options = StartOptions::new(fitting(&equipment)).session("ONNX Runtime 1.31.1, all optimizations");
//! let cache = ModelCache::of_user();
//! let prepared = prepare(ModelInput::File("model.onnx".as_ref()), &options, cache.as_ref());
//! eprintln!("{}", prepared.outcome);
//! match &prepared.load {
//!     Load::File(path) => println!("load {} in its place", path.display()),
//!     Load::Bytes(bytes) => println!("load these {} bytes in its place", bytes.len()),
//!     _ => println!("load the model"),
//! }
//! ```
//!
//! # What is promised
//!
//! - An entry is named by a digest of the model with all its data, the versions of this library and of the runtime, the target with block,
//!   threads and provider, and the options. What differs in any of them never meets.
//! - A model's digest is remembered with the device, inode, size and times of its files, so that a start does not read 100 MB to find it.
//!   Files that changed within the last two seconds are not remembered.
//! - Folders are the user's alone. An entry is believed if its files are those that were written, by the same facts; else their
//!   digests decide. A damaged entry is made anew.
//! - An entry appears whole or not at all, and one process makes it at a time. What a process left that was killed is removed by the next.
//! - The least recently used entries go when there are more bytes than [`ModelCache::most_bytes`] says.
//! - A start waits for an entry no longer than [`StartOptions::patience`] says. Then it gets the model as it is, and a thread of this
//!   process goes on with the entry.
//!
//! The environment is read by [`cache_folder`] and [`ModelCache::of_user`] only.

mod digest;
mod entry;
mod folder;
mod known;
mod make;
mod outcome;
mod prepare;
mod stamp;

pub use folder::{ModelCache, cache_folder};
pub use outcome::{StartKind, StartOutcome};
pub use prepare::{Load, Making, ModelInput, Prepared, StartOptions, prepare};
