//! Why a model or a proof can't be read, and why a pair of models is not proved equal.

/// What went wrong before anything could be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file can't be read.
    #[error("{file}: {why}")]
    Read {
        /// The file.
        file: String,
        /// Why not.
        why: String,
    },
    /// The file has something that the checker does not read.
    #[error("the checker does not read {what}")]
    Unsupported {
        /// What that is.
        what: String,
    },
    /// The proof is no proof of this version.
    #[error("{file} is no proof: {why}")]
    Proof {
        /// The file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Error {
    /// Of a file that can't be read. The file's name stands in the message once.
    pub(crate) fn of_file(file: &str, error: &relayout_fsio::Error) -> Error {
        let why = match error {
            relayout_fsio::Error::Read { source, .. } => format!("cannot read it: {source}"),
            other => other.to_string().replace(&format!(" {file}"), " it"),
        };
        Error::Read { file: file.to_owned(), why }
    }
}
