//! What can go wrong before two models are compared.
//!
//! A difference between the models is not an error: it is in the [`Comparison`](super::Comparison). An error means that
//! there is nothing to compare. Messages are one line each, name the file, the tensor or the library, and say what
//! would help.

use std::borrow::Cow;
use std::path::PathBuf;

/// Why [`verify`](super::verify) or [`run`](super::run) has no result.
#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum VerifyError {
    /// There is no file at the path of the runtime library.
    #[error(
        "no ONNX Runtime library at `{path}`: give the path of libonnxruntime.so (.dylib, .dll) of version {needed} or newer"
    )]
    LibraryMissing {
        /// The path as it was given.
        path: PathBuf,
        /// The oldest version that is accepted.
        needed: String,
    },
    /// The file is there but is not an ONNX Runtime that can be used.
    #[error("cannot load ONNX Runtime from `{path}`: {reason}")]
    LibraryUnusable {
        /// The path as it was given.
        path: PathBuf,
        /// What the loader, or the version check, said.
        reason: String,
    },
    /// A process holds one runtime library for its whole life, and it is another one.
    #[error(
        "this process already uses the ONNX Runtime at `{loaded}`, so it cannot load `{asked}`: one library per process"
    )]
    OtherLibraryLoaded {
        /// The library in use.
        loaded: PathBuf,
        /// The library that was asked for.
        asked: PathBuf,
    },
    /// A library of custom ops cannot be registered.
    #[error(
        "cannot register the custom ops of `{path}`: {reason}; give a shared library that exports RegisterCustomOps, built for \
         this version of ONNX Runtime or an older one"
    )]
    CustomOps {
        /// The path as it was given.
        path: PathBuf,
        /// What the system or the runtime said.
        reason: String,
    },
    /// The library of an execution provider cannot be used.
    #[error(
        "cannot run models on the execution provider of `{path}`: {reason}; give a plugin library of ONNX Runtime, built for this \
         version or an older one, on a machine that has its device"
    )]
    Provider {
        /// The path as it was given.
        path: PathBuf,
        /// What the system or the runtime said.
        reason: String,
    },
    /// A model cannot be loaded by the runtime.
    #[error("ONNX Runtime cannot load {model}: {reason}")]
    Load {
        /// The model's path, or what it is if it came as bytes.
        model: String,
        /// What the runtime said.
        reason: String,
    },
    /// A model was loaded but its execution failed.
    #[error("ONNX Runtime cannot run {model}: {reason}")]
    Run {
        /// The model's path, or what it is if it came as bytes.
        model: String,
        /// What the runtime said.
        reason: String,
    },
    /// A model that was loaded does not run on sizes that nobody said.
    #[error(
        "ONNX Runtime cannot run {model}: {reason}; nothing says how large {assumed} are, so that was assumed: say other sizes ({example})"
    )]
    Sizes {
        /// The model's path, or what it is if it came as bytes.
        model: String,
        /// What the runtime said.
        reason: String,
        /// The sizes that were assumed: `sequence=64, N=2`.
        assumed: String,
        /// How they are said.
        example: String,
    },
    /// An input or an output has a type that cannot be made or compared.
    #[error("{what} of {model} has type {found}: {help}")]
    Unsupported {
        /// The model's path, or what it is if it came as bytes.
        model: String,
        /// Which input or output.
        what: String,
        /// The type as the runtime spells it.
        found: String,
        /// What is supported instead.
        help: Cow<'static, str>,
    },
    /// A size was given for what is no open dimension of an input.
    #[error("no input of {model} has an open dimension `{name}`; its open dimensions are: {known}")]
    UnknownDim {
        /// The model's path, or what it is if it came as bytes.
        model: String,
        /// The name that was given.
        name: String,
        /// The names that exist, separated by commas, or `none`.
        known: String,
    },
    /// An input's shape has a negative dimension or too many elements.
    #[error("input `{input}` would have shape {shape:?}: {reason}")]
    BadShape {
        /// The name of the input.
        input: String,
        /// The shape that was asked for.
        shape: Vec<i64>,
        /// What is wrong with it.
        reason: Cow<'static, str>,
    },
    /// A tensor was made of a shape and of data that do not belong together.
    #[error("tensor `{name}` of shape {shape:?} has {elements} elements of data")]
    ShapeDataMismatch {
        /// The name of the tensor.
        name: String,
        /// Its shape.
        shape: Vec<i64>,
        /// The number of elements given.
        elements: usize,
    },
    /// The file of input arrays cannot be read.
    #[error("cannot read `{path}`: {reason}; it must be a file written by numpy.savez")]
    Npz {
        /// The path of the file.
        path: PathBuf,
        /// What the reader said.
        reason: String,
    },
    /// An array in the file of inputs cannot be read.
    #[error("cannot read array `{array}` of `{path}`: {reason}")]
    NpzArray {
        /// The path of the file.
        path: PathBuf,
        /// The name of the array.
        array: String,
        /// What is wrong with it, and what would be right.
        reason: String,
    },
    /// The file of input arrays lacks one that the model needs.
    #[error("`{path}` has no array `{input}`, an input of {model}; its arrays are: {known}")]
    NpzLacks {
        /// The path of the file.
        path: PathBuf,
        /// The name of the input.
        input: String,
        /// The model's path, or what it is if it came as bytes.
        model: String,
        /// The names in the file, separated by commas, or `none`.
        known: String,
    },
    /// What a model says of the order of its inputs and outputs can't be read, or is not so.
    #[error("what {model} says of its inputs and outputs in `relayout.io` can't be followed: {reason}")]
    Io {
        /// The model's path, or what it is if it came as bytes.
        model: String,
        /// What is wrong.
        reason: String,
    },
    /// The process that was to run the models can't be started, or ended without an answer.
    #[error("{reason}")]
    Apart {
        /// What happened, and what was being done.
        reason: String,
    },
    /// The binding to the runtime panicked where it should have returned an error.
    #[error("the binding to ONNX Runtime failed while {doing}: {reason}")]
    Binding {
        /// What was being done.
        doing: String,
        /// The panic's message.
        reason: String,
    },
}

/// `text` on one line, for messages of the runtime that span several.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Names separated by commas, or `none`.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
