//! `relayout kernels`: CUDA kernels for the moves that a model has left, in a folder of their own.
//!
//! The folder appears whole or not at all: it is written under another name beside its place and renamed.

use crate::args;
use crate::commands::{is_stdout, of_library, open, target};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::terminal::{json, quiet, say, say_json};
use relayout::codegen::cuda::Arch;
use relayout::fsio::{Place, PlaceError};
use relayout::kernels::{KernelOptions, Kernels};
use relayout::optimize as optimize_model;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// `relayout kernels`
pub(crate) fn kernels(a: &args::Kernels) -> Result<(), Failure> {
    if is_stdout(&a.out) {
        return Err(Failure::usage("the kernels are several files; name a folder for them, not stdout"));
    }
    let request = a.decide.request();
    let target = target(&request)?;
    let place = Place::new(&a.out, |_, names| may_replace(names, a.force)).map_err(Failure::model)?;
    let progress = Progress::start(format!("optimizing {}", a.model.display()));
    let model = open(&a.model)?;
    let optimized = optimize_model(&model, target.as_ref(), &request.options()).map_err(of_library)?;
    drop(progress);
    let wanted = a
        .decide
        .dims
        .iter()
        .fold(KernelOptions::default().arch(a.arch), |options, (name, size)| options.dim(name, *size));
    let made = relayout::kernels(optimized.graph(), &wanted);
    let files = made.files().map_err(Failure::model)?;
    let put = |fresh: &Path| {
        let failed = |e: std::io::Error| PlaceError::new(&a.out, e.to_string());
        files.iter().try_for_each(|(name, text)| fs::write(fresh.join(name), text)).map_err(failed)
    };
    if !a.dry_run {
        place.write(put).map_err(Failure::model)?;
    }
    match (json(), quiet()) {
        (true, _) => say_json(&made.manifest),
        (false, true) => Ok(()),
        (false, false) if a.dry_run => say(&format!("would write {}", summary(&made, &a.out))),
        (false, false) => say(&summary(&made, &a.out)),
    }
}

/// An architecture by its name.
pub(crate) fn arch(text: &str) -> Result<Arch, String> {
    let known = || Arch::ALL.iter().map(|arch| arch.as_str()).collect::<Vec<_>>().join(", ");
    let found = Arch::ALL.iter().copied().find(|arch| arch.as_str() == text);
    found.ok_or_else(|| format!("there is no `{text}`; say one of {}", known()))
}

/// One line, and one more for each move without a kernel.
fn summary(made: &Kernels, place: &Path) -> String {
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let manifest = &made.manifest;
    let mut text = format!(
        "{}, {} in {}",
        plural(manifest.moves.len(), "move"),
        plural(manifest.kernels.len(), "kernel"),
        place.display()
    );
    for without in made.without() {
        let why = without.why.as_deref().unwrap_or_default();
        // Writing to a string does not fail.
        let _ = write!(text, "\nno kernel for `{}`: {why}", without.result);
    }
    text
}

/// Why what stands in a folder has to stay.
fn may_replace(names: &[String], force: bool) -> Result<(), String> {
    if !force {
        return Err("the folder is not empty; --force replaces what an earlier run wrote there".to_owned());
    }
    // What somebody else put there is not ours to take away.
    let ours = |name: &String| [".cu", ".json"].iter().any(|end| name.ends_with(end));
    let manifest = names.iter().any(|name| name == "manifest.json");
    match names.iter().find(|name| !ours(name) || !manifest) {
        Some(foreign) => Err(format!("it has `{foreign}`, which this command did not write; name another folder")),
        None => Ok(()),
    }
}
