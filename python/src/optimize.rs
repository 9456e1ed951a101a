//! Optimizing: a model in, a result that Python keeps.

use crate::failure::{Failure, Kind};
use crate::settings::{Settings, sizes};
use crate::source::{Source, place};
use crate::tune::tuned;
use crate::verify;
use crate::worker::{self, Reporter};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use relayout::targets::OrtCpu;
use relayout_calibrate::{Fastest, KEPT, Tuning};
use relayout_html::{Measured, PageKind, optimized_page};
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
    /// How it was tuned, if it was.
    tuned: Option<Arc<Tuned>>,
}

/// What a page about a tuned model is made with.
struct Tuned {
    /// The target with the costs that were measured; `None` where costs stay what they are.
    measured: Option<OrtCpu>,
    least_gain: u64,
    tuning: Tuning,
}

/// What is done beside optimizing.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wanted {
    /// Where the result is written to.
    output: Option<PathBuf>,
    /// Where both models are run, if the result is to be verified.
    verify: Option<verify::Place>,
    /// The library of ONNX Runtime that a model is tuned in, if that is wanted.
    tune: Option<PathBuf>,
}

impl Wanted {
    /// Steps beside the passes: to read, to look again, and what is wanted.
    fn steps(&self) -> usize {
        2 + [self.tune.is_some(), self.verify.is_some(), self.output.is_some()]
            .into_iter()
            .map(usize::from)
            .sum::<usize>()
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
    let request = settings.request()?;
    request.check_tuning()?;
    let target = request.target()?;
    let options = reporter.watched(request.checked_options());
    let passes = relayout::passes::passes(target.as_ref())?.len();
    reporter.step("reading", 0, passes);
    let (model, options) = request.fixed(source.open()?, options)?;
    let mut done = 2;
    let (made, tuned) = match &wanted.tune {
        Some(library) => {
            reporter.step("tuning", done, passes);
            done += 1;
            let Fastest { measured, options, result, tuning, .. } =
                tuned(library, (&source, &model), &request, reporter)?;
            (result, Some(Arc::new(Tuned { measured, least_gain: options.least_gain, tuning })))
        }
        None => match &wanted.output {
            Some(path) => (relayout::Optimized::for_file(&model, target.as_ref(), &options, path)?, None),
            None => (relayout::optimize(&model, target.as_ref(), &options)?, None),
        },
    };
    if let Some(place) = &wanted.verify {
        reporter.step("verifying", done, passes);
        reporter.check()?;
        verify::same_results(&source, &made, place, sizes(&request))?;
        done += 1;
    }
    let beside = request.side_files((&model, target.as_ref(), &options), &made)?;
    if let Some(path) = &wanted.output {
        reporter.step("writing", done, passes);
        reporter.check()?;
        source.write(&made, path)?;
        done += 1;
    }
    beside.commit()?;
    reporter.step("done", done, passes);
    Ok(Optimized { made: Arc::new(made), source: Arc::new(source), tuned })
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

    /// Why the result is not proved, if it was checked and is not.
    fn unproved(&self) -> Option<String> {
        self.made.report().proof.as_ref()?.why.clone()
    }

    /// What was gained, in a sentence.
    fn summary(&self) -> String {
        self.made.report().line()
    }

    /// The report for people.
    fn explanation(&self) -> String {
        self.made.report().explain().trim_end().to_owned()
    }

    /// What was measured to tune the model, as JSON and in a sentence; `None` if it was not tuned.
    fn tuning(&self) -> PyResult<Option<(String, String)>> {
        let Some(Tuned { tuning, .. }) = self.tuned.as_deref() else { return Ok(None) };
        let json = serde_json::to_string(tuning).map_err(|e| Python::attach(|py| Failure::from(e).raised(py)))?;
        Ok(Some((json, tuning.to_string())))
    }

    /// The report about the model and the result, as an HTML page that needs no network. The model is decided about once more, with
    /// prices of moves.
    fn page(&self, py: Python<'_>, settings: Settings) -> PyResult<String> {
        let (source, tuned) = (Arc::clone(&self.source), self.tuned.clone());
        worker::run(py, None, 1, move |reporter| {
            let request = settings.request()?;
            let given = request.target()?;
            let tuned = tuned.as_deref();
            let measured = tuned.and_then(|tuned| tuned.measured.as_ref());
            let target = measured.map_or(given.as_ref(), |target| target);
            let options = reporter.watched(request.checked_options()).price_moves(PRICED_MOVES).keep_decided();
            let options = options.least_gain(tuned.map_or(0, |tuned| tuned.least_gain));
            let model = source.open()?;
            let made = match tuned {
                Some(Tuned { tuning, .. }) if tuning.slower => relayout::unchanged(&model, target, KEPT),
                _ => relayout::optimize(&model, target, &options)?,
            };
            let name = match source.as_ref() {
                Source::File(path) => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
                Source::Memory(_) => source.label(),
            };
            let times = tuned.and_then(|Tuned { tuning, .. }| Some((tuning.times?, tuning.how())));
            let times = times.map(|(t, how)| Measured::new((t.before_ms * 1e6) as u64, (t.after_ms * 1e6) as u64, how));
            let page = optimized_page(PageKind::Optimize, &name, &model, target, &options, &made, times.as_ref());
            Ok(page?.html()?)
        })
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
