//! Optimizing: a model in, a result that Python keeps.

use crate::failure::{Failure, Kind};
use crate::settings::Settings;
use crate::source::{Source, place};
use crate::verify;
use crate::worker::{self, Reporter};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use relayout_html::{PageKind, optimized_page};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// For how many moves a page says what it would take for them to go.
const PRICED_MOVES: usize = 32;

/// What was made of a model. `relayout.Optimized` has one.
#[pyclass(frozen, module = "relayout._relayout")]
pub(crate) struct Optimized {
    made: Arc<relayout::Optimized>,
    source: Arc<Source>,
}

/// What is done beside optimizing.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wanted {
    /// Where the result is written to.
    output: Option<PathBuf>,
    /// The library of ONNX Runtime, if the result is to be verified.
    verify: Option<PathBuf>,
    /// For how many of the moves that are left the report says what it would take for them to go.
    price_moves: usize,
}

impl Wanted {
    /// Steps beside the passes: to read, to look again, and what is wanted.
    fn steps(&self) -> usize {
        2 + usize::from(self.verify.is_some()) + usize::from(self.output.is_some())
    }
}

/// Optimizes a model. `progress` is called with what is done next, how many steps are done, and of how many.
#[pyfunction]
pub(crate) fn optimize(
    py: Python<'_>,
    source: Source,
    settings: Settings,
    wanted: Wanted,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Optimized> {
    let steps = wanted.steps();
    worker::run(py, progress, steps, move |reporter| optimized(source, &settings, &wanted, reporter))
}

fn optimized(source: Source, settings: &Settings, wanted: &Wanted, reporter: &Reporter) -> Result<Optimized, Failure> {
    let target = settings.target()?;
    let options = reporter.watched(settings.options()?).price_moves(wanted.price_moves);
    let passes = relayout::passes::passes(target.as_ref())?.len();
    reporter.step("reading", 0, passes);
    let model = source.open()?;
    let made = relayout::optimize(&model, target.as_ref(), &options)?;
    let mut done = 2;
    if let Some(library) = &wanted.verify {
        reporter.step("verifying", done, passes);
        reporter.check()?;
        verify::same_results(&source, &made, library, settings.sizes()?)?;
        done += 1;
    }
    if let Some(path) = &wanted.output {
        reporter.step("writing", done, passes);
        reporter.check()?;
        source.write(&made, path)?;
        done += 1;
    }
    reporter.step("done", done, passes);
    Ok(Optimized { made: Arc::new(made), source: Arc::new(source) })
}

/// The report about a model and its result, as an HTML page that needs no network.
#[pyfunction]
pub(crate) fn page(py: Python<'_>, source: Source, settings: Settings) -> PyResult<String> {
    worker::run(py, None, 1, move |reporter| {
        let target = settings.target()?;
        let options = reporter.watched(settings.options()?).price_moves(PRICED_MOVES).keep_decided();
        let model = source.open()?;
        let made = relayout::optimize(&model, target.as_ref(), &options)?;
        let name = match &source {
            Source::File(path) => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            Source::Memory(_) => source.label(),
        };
        Ok(optimized_page(PageKind::Optimize, &name, &model, target.as_ref(), &options, &made, None)?.html()?)
    })
}

#[pymethods]
impl Optimized {
    /// Whether the model changed.
    fn changed(&self) -> bool {
        self.made.report().changed
    }

    /// The report as JSON.
    fn report(&self) -> PyResult<String> {
        serde_json::to_string(self.made.report()).map_err(|e| Python::attach(|py| Failure::from(e).raised(py)))
    }

    /// What was gained, in a sentence.
    fn summary(&self) -> String {
        self.made.report().summary()
    }

    /// The report for people.
    fn explanation(&self) -> String {
        self.made.report().explain().trim_end().to_owned()
    }

    /// Writes the model to a file. Data that would exceed what a file may have goes beside it.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let (made, source) = (Arc::clone(&self.made), Arc::clone(&self.source));
        worker::run(py, None, 1, move |_| source.write(&made, &path))
    }

    /// The bytes of the model, with all data in them.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let made = Arc::clone(&self.made);
        let bytes = worker::run(py, None, 1, move |_| Ok(made.to_bytes()?))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The bytes of the model without its data of at least `smallest` bytes, and that data: its location in the bytes, and the name of
    /// the part that it is of the model that came in, or new bytes.
    fn parts<'py>(&self, py: Python<'py>, smallest: u64) -> PyResult<(Bound<'py, PyBytes>, Vec<Part<'py>>)> {
        let made = Arc::clone(&self.made);
        let parts = worker::run(py, None, 1, move |_| Ok(made.to_parts(smallest)?))?;
        let known = match self.source.as_ref() {
            Source::Memory(memory) => memory.places(),
            Source::File(_) => BTreeMap::new(),
        };
        let part = |(location, data): (String, bytes::Bytes)| match known.get(&place(&data)) {
            Some(name) => (location, Some((*name).to_owned()), None),
            None => (location, None, Some(PyBytes::new(py, &data))),
        };
        Ok((PyBytes::new(py, &parts.model), parts.data.into_iter().map(part).collect()))
    }
}

/// A location, the name of the part that came in, and new bytes if it is none.
type Part<'py> = (String, Option<String>, Option<Bound<'py, PyBytes>>);

/// A folder for files that are gone when the call returns.
pub(crate) fn scratch() -> Result<tempfile::TempDir, Failure> {
    tempfile::tempdir().map_err(|e| Failure::new(Kind::File, format!("cannot make a temporary folder: {e}")))
}
