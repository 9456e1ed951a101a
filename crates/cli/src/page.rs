//! Reports as HTML pages.

use crate::commands::{ReportFile, is_stdout, of_library, runtime};
use crate::failure::Failure;
use relayout::{Audit, Model, Options, Target};
use relayout_html::{Measured, Page, audit_page};
use relayout_verify::{Inputs, ModelSource, time_side_by_side};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// For how many moves a report says what it would take for them to go.
const PRICED_MOVES: usize = 32;

/// How long both models run, in turns, to be timed.
const TIMED: Duration = Duration::from_secs(2);

/// What the optimizer is asked for a report that says why moves are left, and for its page.
pub(crate) fn wanted(options: Options) -> Options {
    options.price_moves(PRICED_MOVES).keep_decided()
}

/// A page on its way to its place.
pub(crate) struct PageFile {
    file: ReportFile,
    on_stdout: bool,
}

impl PageFile {
    /// Makes the page; nothing is in its place yet.
    pub(crate) fn new(path: &Path, page: &Page) -> Result<PageFile, Failure> {
        let file = ReportFile::new(path, page.html().map_err(Failure::model)?)?;
        Ok(PageFile { file, on_stdout: is_stdout(path) })
    }

    /// Puts it in its place. Says whether that is stdout, where nothing else belongs then.
    pub(crate) fn commit(self) -> Result<bool, Failure> {
        self.file.commit()?;
        Ok(self.on_stdout)
    }
}

/// What a page calls a model: the name of its file. Where it lies is nobody's business to whom the page is sent.
pub(crate) fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// What a page calls several models: the names of their files, or their paths where two names are the same.
pub(crate) fn names(paths: &[&Path]) -> Vec<String> {
    let short: Vec<String> = paths.iter().map(|path| name(path)).collect();
    let apart = short.iter().collect::<BTreeSet<_>>().len() == paths.len();
    if apart { short } else { paths.iter().map(|path| path.display().to_string()).collect() }
}

/// The page about one audited model, or two side by side.
pub(crate) fn of_audits(
    path: &Path,
    audited: &[(&Path, Model, Audit)],
    target: &dyn Target,
    options: &Options,
) -> Result<PageFile, Failure> {
    let names = names(&audited.iter().map(|(path, ..)| *path).collect::<Vec<_>>());
    let list: Vec<(&str, &Model, &Audit)> =
        names.iter().zip(audited).map(|(name, (_, model, audit))| (name.as_str(), model, audit)).collect();
    PageFile::new(path, &audit_page(target, options, &list).map_err(of_library)?)
}

/// How long a model and its result run in ONNX Runtime, in turns, on one thread.
pub(crate) fn times(a: ModelSource<'_>, b: ModelSource<'_>, inputs: &Inputs) -> Result<Measured, Failure> {
    let runtime = runtime()?;
    let times = time_side_by_side(&runtime, a, b, inputs, &relayout_verify::Options::default(), TIMED)
        .map_err(Failure::model)?;
    let how = format!(
        "medians of {} rounds in turns, in ONNX Runtime {} with all its rewrites, on one thread; before over after {}, \
         before beside itself {}, with 95 % intervals",
        times.runs,
        runtime.version(),
        times.ratio,
        times.control
    );
    Ok(Measured::new(times.a_ns, times.b_ns, how))
}
