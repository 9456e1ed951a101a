//! Verifying: two models run in ONNX Runtime, and their outputs are compared.

use crate::failure::{Failure, Kind};
use crate::optimize::scratch;
use crate::source::Source;
use crate::worker;
use pyo3::prelude::*;
use relayout_verify::{Answer, CheckOptions, CheckResult, Inputs, ModelSource, Near, Runtime, check};
use std::path::{Path, PathBuf};

/// How two models are compared: a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Comparing {
    /// The library of ONNX Runtime.
    library: PathBuf,
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
    let runtime = Runtime::load(&how.library)?;
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
    on_disk(a, |a| on_disk(b, |b| Ok(check(&runtime, a, b, &inputs, &options, &mut |_| {})?)))
}

fn size((name, text): &(String, String)) -> Result<(String, i64), Failure> {
    let size = text.parse::<relayout::Size>();
    let size = size.map_err(|why| Failure::new(Kind::Option, format!("dims: {name}: {why}")))?;
    Ok((name.clone(), size.typical()))
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
    library: &Path,
    dims: Vec<(String, i64)>,
) -> Result<(), Failure> {
    if !made.report().changed {
        return Ok(());
    }
    let runtime = Runtime::load(library)?;
    let folder = scratch()?;
    let result = folder.path().join("the result.onnx");
    made.write(&result)?;
    let inputs = Inputs::Random { seed: 0, dims: dims.into_iter().collect() };
    let options = CheckOptions::default();
    let verdict = on_disk(source, |model| {
        Ok(check(&runtime, model, ModelSource::Path(&result), &inputs, &options, &mut |_| {})?)
    })?;
    if verdict.holds() {
        return Ok(());
    }
    let how = if verdict.answer == Answer::Differs { "differs from" } else { "can't be compared with" };
    let text = format!("the result {how} {}: {verdict}; nothing was written", source.label());
    Err(Failure::new(Kind::Difference, text))
}
