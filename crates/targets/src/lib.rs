//! The built-in targets, a folder each: their forms, passes and costs.
//!
//! ```
//! use relayout_targets::{BUILTIN, builtin, parse};
//!
//! assert!(BUILTIN.contains(&"cuda-tensorcore"));
//! let target = builtin("onnx")?;
//! assert!(target.capabilities().standard);
//! assert!(builtin("tpu").is_err_and(|error| error.to_string().contains("the built-in ones are onnx")));
//! assert!(parse("mine.toml", "no table").is_err());
//! # Ok::<(), relayout_targets::TargetError>(())
//! ```
//!
//! | folder | targets |
//! |---|---|
//! | [`onnx`] | `onnx`, and a user's own data files of standard operators |
//! | [`functions`] | those whose files call functions of domain `relayout`: `nhwc`, `cuda-tensorcore`, `x86-avx512`, … |
//! | [`ort_cpu`] | `ort-cpu` |
//! | [`ort_nhwc`] | `ort-nhwc`, and data of the execution providers that it is for |
//!
//! `shared` has what several targets use: a target's folder imports that one and its own. [`measured`] is about tables of measured costs.
//!
//! Absent: files of models, and any measuring.

pub mod functions;
pub mod measured;
pub mod onnx;
pub mod ort_cpu;
pub mod ort_nhwc;
mod shared;

pub use functions::{FunctionTarget, gpu};
pub use onnx::DataTarget;
pub use ort_cpu::{Block, OnnxRuntime, OrtCpu, Release, threads_asked};
pub use ort_nhwc::providers::PROVIDERS;
pub use ort_nhwc::{OrtNhwc, Provider, SESSION_KEY, costs as device};

use relayout_target_api::Target;
use serde::Deserialize;

/// Names of the built-in targets.
pub const BUILTIN: &[&str] =
    &["onnx", "ort-cpu", "ort-nhwc", "nhwc", "cuda-tensorcore", "x86-avx512", "x86-avx2", "arm-neon", "cuda-dp4a"];

/// A target that can't be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// No built-in target of this name.
    #[error("there is no target `{name}`; the built-in ones are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The text is not a target.
    #[error("target file `{name}`: {why}")]
    Malformed {
        /// File or name.
        name: String,
        /// What is wrong, and where.
        why: String,
    },
}

/// A built-in target by name.
///
/// # Errors
/// [`TargetError::Unknown`].
pub fn builtin(name: &str) -> Result<Box<dyn Target>, TargetError> {
    let text = match name {
        "onnx" => onnx::DATA,
        "ort-cpu" => return Ok(Box::new(OrtCpu::new(Block::of_host())?)),
        "ort-nhwc" => return Ok(Box::new(OrtNhwc::of(Provider::of("qnn")?))),
        "nhwc" => include_str!("functions/nhwc.toml"),
        "cuda-tensorcore" => functions::CUDA_TENSORCORE,
        "x86-avx512" => include_str!("functions/x86-avx512.toml"),
        "x86-avx2" => include_str!("functions/x86-avx2.toml"),
        "arm-neon" => include_str!("functions/arm-neon.toml"),
        "cuda-dp4a" => include_str!("functions/cuda-dp4a.toml"),
        _ => return Err(TargetError::Unknown { name: name.to_owned(), known: BUILTIN.join(", ") }),
    };
    parse(name, text)
}

/// Target `onnx`, for one that is it and knows more.
fn standard() -> Result<DataTarget, TargetError> {
    DataTarget::parse("onnx", onnx::DATA)
}

/// The target that a data file describes. `name` is the file's, for errors.
///
/// # Errors
/// [`TargetError::Malformed`] with the place.
pub fn parse(name: &str, text: &str) -> Result<Box<dyn Target>, TargetError> {
    #[derive(Deserialize)]
    struct Head {
        dialect: Option<String>,
    }
    let malformed = |why: String| TargetError::Malformed { name: name.to_owned(), why };
    let head: Head = toml::from_str(text).map_err(|e| malformed(e.to_string()))?;
    match head.dialect.as_deref() {
        Some("relayout") => Ok(Box::new(FunctionTarget::parse(name, text)?)),
        Some("ort-cpu") => {
            Err(malformed("dialect `ort-cpu` is not described by data; use `--target ort-cpu`".to_owned()))
        }
        _ => Ok(Box::new(DataTarget::parse(name, text)?)),
    }
}
