//! What can go wrong with a bundle. Every message names the file, node or tensor, and fits one line.

use relayout::Error;
use relayout_fsio::PlaceError;
use std::io;
use std::path::PathBuf;

/// Why a bundle can't be written, or why a folder is none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The model can't be exported.
    #[error(transparent)]
    Model(#[from] Error),
    /// The folder can't be written.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A target or a model of which no bundle can be made.
    #[error("{0}")]
    Refused(String),
    /// Something in a model that a bundle has no place for.
    #[error("{what}: {why}")]
    CannotExpress {
        /// The node or the tensor.
        what: String,
        /// Why a bundle can't express it, and what would help.
        why: String,
    },
    /// A file of a bundle can't be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A folder that is no bundle, or a bundle that is damaged.
    #[error("{}: {why}", path.display())]
    Broken {
        /// The folder, or the file in it.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}
