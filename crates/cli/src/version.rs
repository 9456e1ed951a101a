//! What `relayout --version` says beside the version: what bug reports need.

use crate::commands::{runtime, runtime_library};
use crate::terminal::escaped;
use relayout::codegen::Isa;

/// Version, target, features, instruction sets, ONNX Runtime, one per line.
pub(crate) fn long() -> String {
    let sets: Vec<&str> = Isa::available().iter().map(|isa| isa.name()).collect();
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let text = format!(
        "{}\ntarget: {}\nbuild: {build}\nfeatures: {FEATURES}\ninstruction sets: {}\nONNX Runtime: {}",
        env!("CARGO_PKG_VERSION"),
        env!("RELAYOUT_TARGET"),
        sets.join(", "),
        onnx_runtime(),
    );
    escaped(&text).into_owned()
}

/// The features that this program was built with. It has none that can be left out.
const FEATURES: &str = "verify, calibrate, bundle, kernels";

/// The version that `verify` would load and where it is, or why there is none.
fn onnx_runtime() -> String {
    let Ok(library) = runtime_library() else { return "not found; needed by verify and calibrate".to_owned() };
    match runtime() {
        Ok(loaded) => format!("{} in {}", loaded.version(), library.display()),
        Err(failure) => failure.message().unwrap_or_default().to_owned(),
    }
}
