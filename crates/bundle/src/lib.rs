//! Bundles: an optimized model as a folder that a compiler can read without protobuf.
//!
//! ```no_run
//! use relayout_bundle::read_bundle;
//!
//! let bundle = read_bundle("model.bundle")?;
//! for file in &bundle.manifest.files {
//!     println!("{file:?}");
//! }
//! println!("{} bytes in all", bundle.bytes());
//! # Ok::<(), relayout_bundle::BundleError>(())
//! ```
//!
//! [`write_bundle`] writes the rewritten graph as JSON, the weights re-laid and padded as safetensors, the CUDA source and the
//! launch of every move that is left, and a manifest with the digest of each file. [`read_bundle`] reads such a folder and
//! checks that it holds together. `docs/bundle.md` says what each field means.
//!
//! A folder appears whole or not at all, and the same model and options give the same bytes.
//!
//! Absent: bodies of the dialect's functions; nodes of the dialect stay calls. Strings, sparse tensors, and calls of functions
//! that can't be written out are refused.

mod check;
mod convert;
mod error;
mod read;
mod schema;
mod weights;
mod write;

pub use error::BundleError;
pub use read::{Bundle, read_bundle};
pub use schema::{
    Attribute, BUNDLE_SCHEMA, BundleGraph, BundleManifest, BundleNode, BundleTensor, BundleValue, Extent, FileEntry,
    Scope,
};
pub use write::{bundle_place, check_target, write_bundle};

/// The manifest.
const MANIFEST: &str = "manifest.json";
/// The graph.
const GRAPH: &str = "graph.json";
/// The constants.
const WEIGHTS: &str = "weights.safetensors";
/// The folder of the kernels.
const KERNELS: &str = "kernels";

/// The files of a kernel: its source and its launch.
fn kernel_files(id: &str) -> [String; 2] {
    [format!("{KERNELS}/{id}.cu"), format!("{KERNELS}/{id}.json")]
}
