//! The command line.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command line with these words, the first of which is its name; gives the exit status. The process is to end with it.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| relayout_cli::run(words))
}
