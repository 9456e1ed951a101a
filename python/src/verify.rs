//! Verifying: two models run in ONNX Runtime, and their outputs are compared.

use crate::failure::{Failure, Kind};
use crate::optimize::scratch;
use crate::source::Source;
use crate::worker;
use pyo3::prelude::*;
use relayout_verify::{Answer, CheckOptions, CheckResult, Inputs, ModelSource, Near, Runtime, check, check_apart};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where models are run.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Place {
    /// The library of ONNX Runtime.
    library: PathBuf,
    /// What starts the command line in a process of its own; without it they are run in this one, which a model can end.
    command: Option<Vec<OsString>>,
}

/// How two models are compared: a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Comparing {
    /// Where they are run.
    place: Place,
    /// A file of inputs that `numpy.savez` wrote.
    inputs: Option<PathBuf>,
    seed: u64,
    rounds: u32,
    dims: Vec<(String, String)>,
    custom_ops: Vec<PathBuf>,
    /// The largest error of an element that holds, relative to the elements around it.
    rms: Option<f64>,
    /// Whether outputs must be equal.
    exact: bool,
}

/// Compares two models. Gives the comparison as JSON, the same for people, and whether it holds.
#[pyfunction]
pub(crate) fn verify(py: Python<'_>, a: Source, b: Source, how: Comparing) -> PyResult<(String, String, bool)> {
    worker::run(py, None, 1, move |_| {
        let verdict = compared(&a, &b, &how)?;
        Ok((serde_json::to_string(&verdict)?, verdict.to_string(), verdict.holds()))
    })
}

fn compared(a: &Source, b: &Source, how: &Comparing) -> Result<CheckResult, Failure> {
    let inputs = match &how.inputs {
        Some(path) => Inputs::Npz(path.clone()),
        None => Inputs::Random { seed: how.seed, dims: how.dims.iter().map(size).collect::<Result<_, _>>()? },
    };
    let mut options = CheckOptions::default();
    options.near = match (how.exact, how.rms) {
        (true, _) => Near::Exact,
        (false, Some(most)) => Near::Within(most),
        (false, None) => Near::Noise,
    };
    options.rounds = how.rounds;
    options.custom_ops.clone_from(&how.custom_ops);
    how.place.check(a, b, &inputs, &options)
}

impl Place {
    /// Compares two models.
    fn check(&self, a: &Source, b: &Source, inputs: &Inputs, options: &CheckOptions) -> Result<CheckResult, Failure> {
        let Some(command) = &self.command else {
            let runtime = Runtime::load(&self.library)?;
            return on_disk(a, |a| on_disk(b, |b| Ok(check(&runtime, a, b, inputs, options, &mut |_| {})?)));
        };
        let folders = [scratch()?, scratch()?];
        let [in_a, in_b] = [(a, &folders[0]), (b, &folders[1])].map(|(source, folder)| file_of(source, folder.path()));
        let (in_a, in_b) = (in_a?, in_b?);
        let found = check_apart(command, &self.library, [&in_a, &in_b], inputs, options);
        // Nobody knows the files of models in memory.
        found.map_err(|error| Failure::from(error).naming([(&in_a, a.label()), (&in_b, b.label())]))
    }
}

fn size((name, text): &(String, String)) -> Result<(String, i64), Failure> {
    let size = text.parse::<relayout::Size>();
    let size = size.map_err(|why| Failure::new(Kind::Option, format!("dims: {name}: {why}")))?;
    Ok((name.clone(), size.typical()))
}

/// The file of a model; one in memory is written to this folder.
fn file_of(source: &Source, folder: &Path) -> Result<PathBuf, Failure> {
    match source {
        Source::Memory(memory) if memory.parts.is_empty() && memory.folder.is_none() => {
            let path = folder.join("model.onnx");
            let written = std::fs::write(&path, &memory.model);
            written.map_err(|e| Failure::new(Kind::File, format!("cannot write {}: {e}", path.display())))?;
            Ok(path)
        }
        Source::Memory(memory) => memory.write(folder),
        Source::File(path) => on_disk(source, |_| Ok(path.clone())),
    }
}

/// Calls with a model as the runtime takes it: what has data outside of its bytes is written to a temporary folder.
pub(crate) fn on_disk<T>(
    source: &Source,
    work: impl FnOnce(ModelSource<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    match source {
        Source::File(path) if path.is_dir() => {
            Err(Failure::new(Kind::File, format!("cannot read {}: it is a directory, not a file", path.display())))
        }
        Source::File(path) if !path.exists() => {
            let why = format!("cannot read {}: there is no such file", path.display());
            Err(Failure::new(Kind::MissingFile, why))
        }
        Source::File(path) => work(ModelSource::Path(path)),
        Source::Memory(memory) if memory.parts.is_empty() && memory.folder.is_none() => {
            work(ModelSource::Bytes(&memory.model))
        }
        Source::Memory(memory) => {
            let folder = scratch()?;
            work(ModelSource::Path(&memory.write(folder.path())?))
        }
    }
}

/// That a result computes what its model does.
pub(crate) fn same_results(
    source: &Source,
    made: &relayout::Optimized,
    place: &Place,
    dims: Vec<(String, i64)>,
) -> Result<(), Failure> {
    if !made.report().changed {
        return Ok(());
    }
    let folder = scratch()?;
    let result = folder.path().join("the result.onnx");
    made.write(&result)?;
    let inputs = Inputs::Random { seed: 0, dims: dims.into_iter().collect() };
    let verdict = place.check(source, &Source::File(result), &inputs, &CheckOptions::default())?;
    if verdict.holds() {
        return Ok(());
    }
    let how = if verdict.answer == Answer::Differs { "differs from" } else { "can't be compared with" };
    let text = format!("the result {how} {}: {verdict}; nothing was written", source.label());
    Err(Failure::new(Kind::Difference, text))
}
