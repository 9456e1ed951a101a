//! `relayout verify`, and `optimize --verify`: whether two models compute the same, in ONNX Runtime.
//!
//! The runtime runs in a process of its own, which is this program started once more: a model that ends it gives a message and no crash.

use crate::args;
use crate::commands::{is_stdio, of_library, plugin, random_inputs, runtime_library, target};
use crate::failure::Failure;
use crate::page;
use crate::progress::Progress;
use crate::terminal::{json, remark, say, say_json};
use relayout::{Model, Optimized, unchanged};
use relayout_html::Measured;
use relayout_verify::{Answer, CheckOptions, CheckResult, Inputs, ModelSource, Near, check_apart};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

/// How this program is started, where that is not the file of this process.
static STARTED_BY: OnceLock<Vec<OsString>> = OnceLock::new();

/// See [`crate::started_by`].
pub(crate) fn set_started_by(words: Vec<OsString>) {
    // The first word holds.
    let _ = STARTED_BY.set(words);
}

/// `relayout verify`
pub(crate) fn verify(a: &args::Verify) -> Result<(), Failure> {
    for path in [&a.a, &a.b] {
        if path.is_dir() {
            return Err(Failure::model(format!("cannot read {}: it is a directory, not a file", path.display())));
        }
        if !path.is_file() {
            return Err(Failure::model(format!("cannot read {}: there is no such file", path.display())));
        }
    }
    let inputs = match &a.inputs {
        Some(path) => Inputs::Npz(path.clone()),
        None => Inputs::Random {
            seed: a.seed,
            dims: a.dims.iter().map(|(name, size)| (name.clone(), size.typical())).collect(),
        },
    };
    let mut options = CheckOptions::default();
    options.near = match (a.exact, a.rms) {
        (true, _) => Near::Exact,
        (false, Some(rms)) => Near::Within(rms),
        (false, None) => Near::Noise,
    };
    options.rounds = a.rounds;
    options.custom_ops.clone_from(&a.custom_ops);
    options.provider = plugin(&a.provider);
    let verdict = checked(&a.a, &a.b, &inputs, &options)?;
    if json() {
        say_json(&verdict)?;
    } else {
        say(&verdict.to_string())?;
    }
    let (a, b) = (a.a.display(), a.b.display());
    match verdict.answer {
        Answer::Equal | Answer::Near => Ok(()),
        Answer::NotCompared => {
            let why = "not everything could be compared";
            Err(Failure::Check(format!("nothing in {a} and {b} differs, but {why}; give other inputs with --inputs")))
        }
        _ => Err(Failure::Check(format!("{a} and {b} do not compute the same"))),
    }
}

/// Two files on random inputs.
pub(crate) fn on_random_inputs(a: &Path, b: &Path) -> Result<CheckResult, Failure> {
    let inputs = Inputs::Random { seed: 0, dims: BTreeMap::new() };
    let mut options = CheckOptions::default();
    options.confirmed = true;
    checked(a, b, &inputs, &options)
}

/// That a result computes what its model does; if `timed`, also how long each of them runs, unless both are the same.
pub(crate) fn same_results(
    a: &args::Optimize,
    path: &Path,
    model: &Model,
    optimized: &Optimized,
    timed: bool,
) -> Result<Option<Measured>, Failure> {
    if !optimized.report().changed {
        remark(|| format!("{}: the result is the model, so there is nothing to verify", path.display()));
        return Ok(None);
    }
    let folder = tempfile::tempdir().map_err(|e| Failure::model(format!("no room for a temporary folder: {e}")))?;
    let result = folder.path().join("result.onnx");
    optimized.write(&result).map_err(of_library)?;
    let original = if is_stdio(path) || a.output.fix_sizes {
        let copy = folder.path().join("model.onnx");
        let target = target(&a.request())?;
        unchanged(model, target.as_ref(), "").write(&copy).map_err(of_library)?;
        copy
    } else {
        path.to_owned()
    };
    let inputs = match &a.checks.feeds {
        Some(path) => Inputs::Npz(path.clone()),
        None => random_inputs(&a.decide, model),
    };
    let verdict = checked(&original, &result, &inputs, &CheckOptions::default())?;
    let path = path.display();
    match verdict.answer {
        Answer::Equal | Answer::Near if timed => {
            page::times(ModelSource::Path(&original), ModelSource::Path(&result), &inputs).map(Some)
        }
        Answer::Equal | Answer::Near => Ok(None),
        Answer::NotCompared => {
            let help = "look at it with `relayout verify --inputs FILE.npz`";
            Err(Failure::Check(format!(
                "the result can't be compared with {path}: {verdict}; nothing was written; {help}"
            )))
        }
        _ => Err(Failure::Check(format!("the result differs from {path}: {verdict}; nothing was written"))),
    }
}

/// Asks another process.
fn checked(a: &Path, b: &Path, inputs: &Inputs, options: &CheckOptions) -> Result<CheckResult, Failure> {
    // What keeps it from starting is said without one.
    let library = runtime_library()?;
    remark(|| format!("ONNX Runtime in {}", library.display()));
    let progress = Progress::start("running both models");
    let words = match STARTED_BY.get() {
        Some(words) => words.clone(),
        None => vec![std::env::current_exe().map_err(Failure::model)?.into_os_string()],
    };
    let found = check_apart(&words, &library, [a, b], inputs, options);
    drop(progress);
    found.map_err(Failure::model)
}
