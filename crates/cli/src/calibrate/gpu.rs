//! `relayout calibrate --target cuda-tensorcore`: the runner measures, in a process of its own with PyTorch.

use super::python;
use crate::args;
use crate::failure::Failure;
use crate::progress::Progress;
use relayout::targets::gpu::Points;
use relayout_calibrate::gpu::GpuRequest;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Rounds of each case.
const ROUNDS: usize = 20;
/// Rounds for a first look.
const QUICK_ROUNDS: usize = 5;

/// The text of a table.
pub(super) fn table(a: &args::Calibrate, date: &str) -> Result<String, Failure> {
    let runner = runner(a)?;
    let python = python(a);
    let points = if a.device == "cpu" { Points::Few } else { Points::Whole };
    let request = GpuRequest::new(points, if a.quick { QUICK_ROUNDS } else { ROUNDS }).map_err(Failure::model)?;
    let folder = tempfile::Builder::new().prefix("relayout-").tempdir().map_err(Failure::model)?;
    for (name, text) in request.files() {
        let path = folder.path().join(name);
        let put = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        put.map_err(|e| Failure::model(format!("cannot write {}: {e}", path.display())))?;
    }
    let bar = Progress::start(format!("measuring with {}", python.display()));
    measure(&python, runner, folder.path(), &a.device)?;
    drop(bar);
    let answer = folder.path().join("times.json");
    let text = fs::read_to_string(&answer)
        .map_err(|e| Failure::model(format!("the runner in {} left no times: {e}", runner.display())))?;
    Ok(request.table(&text, date).map_err(Failure::model)?.text())
}

/// Has the runner measure what the folder asks for.
fn measure(python: &Path, runner: &Path, folder: &Path, device: &str) -> Result<(), Failure> {
    let mut command = Command::new(python);
    command.arg(runner).arg("calibrate").arg(folder).args(["--device", device]);
    let done = command.output().map_err(|e| {
        let python = python.display();
        Failure::model(format!("cannot start {python}: {e}; name a Python that has PyTorch with --python"))
    })?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let why = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
    Err(Failure::model(format!(
        "nothing was measured: {}; without --costs target cuda-tensorcore keeps its built-in ones, whose source `relayout targets` says",
        why.trim_start_matches("runner: ")
    )))
}

/// The folder of the runner. It is not looked for where the program happens to be started: what is found is run.
fn runner(a: &args::Calibrate) -> Result<&Path, Failure> {
    let Some(folder) = &a.runner else {
        return Err(Failure::usage(
            "target cuda-tensorcore is measured by the runner in tools/runner of relayout's source; name that folder with --runner",
        ));
    };
    if folder.join("__main__.py").is_file() {
        return Ok(folder);
    }
    Err(Failure::usage(format!("there is no runner in {}", folder.display())))
}
