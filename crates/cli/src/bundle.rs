//! `relayout optimize --emit bundle` and `relayout check-bundle`.

use crate::args::{self, Emit};
use crate::commands::is_stdout;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::terminal::{json, quiet, say, say_json};
use relayout::kernels::KernelOptions;
use relayout::{Optimized, Target};
use relayout_bundle::{Bundle, bundle_place, check_target, read_bundle, write_bundle};
use std::path::Path;

/// What can be known to be wrong before a model is optimized.
pub(crate) fn check_call(a: &args::Optimize, target: &dyn Target) -> Result<(), Failure> {
    match (a.output.emit, a.output.arch) {
        (Emit::Onnx, None) => Ok(()),
        (Emit::Onnx, Some(_)) => {
            Err(Failure::usage("--arch is an option of --emit bundle; a model file has no kernels"))
        }
        (Emit::Bundle, _) if a.output.out.as_deref().is_some_and(is_stdout) => {
            Err(Failure::usage("a bundle is several files; name a folder for them, not stdout"))
        }
        (Emit::Bundle, _) => check_target(target).map_err(Failure::usage),
    }
}

/// Whether a bundle can go there, seen before a model is optimized.
pub(crate) fn check_place(out: &Path) -> Result<(), Failure> {
    bundle_place(out).map(drop).map_err(Failure::model)
}

/// Writes an optimized model as a bundle.
pub(crate) fn write(a: &args::Optimize, out: &Path, optimized: &Optimized) -> Result<(), Failure> {
    let mut options = KernelOptions::default();
    options.arch = a.output.arch.unwrap_or(options.arch);
    let dims = a.decide.dims.iter();
    let options = dims.fold(options, |options, (name, size)| options.dim(name, *size));
    write_bundle(optimized, out, &options).map(drop).map_err(Failure::model)
}

/// `relayout check-bundle`
pub(crate) fn check_bundle(a: &args::CheckBundle) -> Result<(), Failure> {
    let progress = Progress::start(format!("checking {}", a.dir.display()));
    let bundle = read_bundle(&a.dir).map_err(Failure::model)?;
    drop(progress);
    match (json(), quiet()) {
        (true, _) => say_json(&described(&bundle)),
        (false, true) => Ok(()),
        (false, false) => say(&summary(&bundle)),
    }
}

/// One line.
fn summary(bundle: &Bundle) -> String {
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let scope = &bundle.graph.scope;
    let without = match bundle.manifest.moves_without_kernel {
        0 => String::new(),
        n => format!(" and {n} without a kernel"),
    };
    format!(
        "{}: {}, {}, {}{without}, {} bytes, for target {}",
        bundle.dir().display(),
        plural(scope.all_nodes(), "node"),
        plural(scope.all_constants(), "constant"),
        plural(bundle.manifest.moves, "move"),
        bundle.bytes(),
        bundle.manifest.target
    )
}

/// The bundle as JSON, for programs.
fn described(bundle: &Bundle) -> serde_json::Value {
    let scope = &bundle.graph.scope;
    serde_json::json!({
        "bundle": bundle.dir().display().to_string(), "target": bundle.manifest.target, "nodes": scope.all_nodes(),
        "constants": scope.all_constants(), "moves": bundle.manifest.moves,
        "moves_without_kernel": bundle.manifest.moves_without_kernel, "bytes": bundle.bytes(),
    })
}
