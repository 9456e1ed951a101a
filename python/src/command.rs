//! The command line.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command line with these words, the first of which is its name; gives the exit status. The process is to end with it.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, words: Vec<OsString>) -> PyResult<u8> {
    // What runs models of others in a process of its own starts this again.
    let python: OsString = py.import("sys")?.getattr("executable")?.extract()?;
    relayout_cli::started_by(vec![python, "-m".into(), "relayout".into()]);
    Ok(py.detach(|| relayout_cli::run(words)))
}
