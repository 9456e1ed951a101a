//! The ONNX Runtime library of this process.
//!
//! A process loads at most one library and makes at most one environment, and keeps both to its end: the runtime does
//! not support a second one. The path comes from the caller; nothing here reads the environment. Every call into the
//! binding goes through [`guarded`], because the binding panics where it takes an error for impossible. Log messages of
//! the runtime are dropped: what matters comes back as an error.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ort::environment::Environment;
use ort::logging::LogLevel;

use super::VerifyError;
use super::error::one_line;

/// The library and the environment of this process, once loaded.
static LOADED: Mutex<Option<Runtime>> = Mutex::new(None);

/// A loaded ONNX Runtime. Clones share it.
#[derive(Debug, Clone)]
pub struct Runtime {
    path: PathBuf,
    pub(super) environment: Environment,
}

impl Runtime {
    /// Loads the shared library at `path` (`libonnxruntime.so`, `.dylib` or `onnxruntime.dll`).
    ///
    /// A second call with the same library returns the same runtime; with another one it fails, as it does if the file
    /// is missing, is no ONNX Runtime, or is older than [`Runtime::oldest`].
    pub fn load(path: &Path) -> Result<Self, VerifyError> {
        let missing = || VerifyError::LibraryMissing { path: path.to_owned(), needed: Self::oldest() };
        // Resolved here, because the binding looks for a relative path beside the executable first.
        let resolved = path.canonicalize().map_err(|_| missing())?;
        if !resolved.is_file() {
            return Err(missing());
        }
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        match &*loaded {
            Some(runtime) if runtime.path == resolved => Ok(runtime.clone()),
            Some(runtime) => {
                Err(VerifyError::OtherLibraryLoaded { loaded: runtime.path.clone(), asked: path.to_owned() })
            }
            None => {
                let environment = guarded("loading the library", || create_environment(path, &resolved))?;
                Ok(loaded.insert(Self { path: resolved, environment }).clone())
            }
        }
    }

    /// The path of the library, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version, as the name of the library's file has it; what the build says of itself where it has none.
    pub fn version(&self) -> String {
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let numbers: Vec<&str> = name.split('.').filter(number).collect();
        if numbers.is_empty() { one_line(ort::info()) } else { numbers.join(".") }
    }

    /// The oldest version of ONNX Runtime that [`Runtime::load`] accepts, such as `1.31`.
    pub fn oldest() -> String {
        format!("1.{}", ort::MINOR_VERSION)
    }
}

fn create_environment(asked: &Path, resolved: &Path) -> Result<Environment, VerifyError> {
    let unusable = |reason: String| VerifyError::LibraryUnusable { path: asked.to_owned(), reason };
    let builder = ort::init_from(resolved).map_err(|error| {
        unusable(match error {
            ort::LoadDynamicError::BadVersion { version_str, .. } => {
                format!("it is version {version_str}, and {} or newer is needed", Runtime::oldest())
            }
            ort::LoadDynamicError::MissingApi { .. } => {
                "it is a library, but not ONNX Runtime (it exports no OrtGetApiBase)".to_owned()
            }
            other => one_line(&other.to_string()),
        })
    })?;
    let environment = builder
        .with_name("relayout")
        .with_telemetry(false)
        .with_logger(Arc::new(|_, _, _, _, _| {}))
        .build()
        .map_err(|error| unusable(one_line(&error.to_string())))?;
    environment.set_log_level(LogLevel::Fatal);
    Ok(environment)
}

/// Runs `work`, which calls the binding, and turns a panic of the binding into [`VerifyError::Binding`].
pub(super) fn guarded<T>(doing: &str, work: impl FnOnce() -> Result<T, VerifyError>) -> Result<T, VerifyError> {
    // Unwind safety: what `work` captured is dropped or read-only to the caller after a panic.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        Err(VerifyError::Binding { doing: doing.to_owned(), reason: panic_text(panic.as_ref()) })
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.map_or_else(|| "a panic without a message".to_owned(), one_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_binding_becomes_an_error_with_its_message() {
        let error = guarded("testing", || -> Result<(), VerifyError> { panic!("impossible\n  thing {}", 7) });
        let text = error.expect_err("it panicked").to_string();
        assert_eq!(text, "the binding to ONNX Runtime failed while testing: impossible thing 7");
    }
}
