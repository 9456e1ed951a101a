//! Errors of this library. Every message names the file, node or tensor, and fits one line.

use relayout_onnx::export::ExportError;
use relayout_onnx::import::ImportError;
use relayout_solve::certificate::CertificateError;
use relayout_target_api::PassError;

/// An error of this library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file can't be read or written, or is no ONNX file.
    #[error(transparent)]
    File(#[from] relayout_onnx::error::Error),
    /// A file is ONNX, but not a valid model.
    #[error("{file}: {source}")]
    Import {
        /// The file.
        file: String,
        /// Every problem.
        source: ImportError,
    },
    /// A pass failed. The fault is the program's; nothing was written.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// The result can't be written as ONNX.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// An option that can't be had.
    #[error(transparent)]
    Request(#[from] crate::request::RequestError),
    /// Layouts of inputs and outputs that are not possible.
    #[error(transparent)]
    Io(#[from] crate::io::IoError),
    /// A file that was made for another target, or for other options of the same one, in operators that are not standard.
    #[error(
        "{file} was made for target {made_for}, so it can't be optimized for {asked}; optimize the model that it was made from"
    )]
    OtherTarget {
        /// The file.
        file: String,
        /// What it was made for.
        made_for: String,
        /// What was asked for.
        asked: String,
    },
    /// A graph for which no plan can be made.
    #[error(transparent)]
    Plan(#[from] crate::plan::PlanError),
    /// A certificate does not hold.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The result is not proved to compute what the model computes, and the caller wants no other.
    #[error("UNPROVED: {why}")]
    Unproved {
        /// What is not shown, and why not.
        why: String,
    },
    /// No value has this name where layouts are decided.
    #[error("there is no value `{name}` where layouts are decided: {why}")]
    UnknownValue {
        /// What was asked for.
        name: String,
        /// Where it may have gone.
        why: String,
    },
    /// No pass has this name.
    #[error("there is no pass `{name}`; the passes are {known}")]
    UnknownPass {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// No input has an open dim of this name.
    #[error("no input has an open dim `{name}`; {known}")]
    UnknownDim {
        /// What was named.
        name: String,
        /// What there is.
        known: String,
    },
}
