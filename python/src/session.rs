//! What a session of ONNX Runtime is to load in place of a model.

use crate::failure::{Failure, Kind};
use crate::worker;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use relayout::Numerics;
use relayout::machine::{Equipment, fitting};
use relayout_cache::{Load, ModelCache, ModelInput, StartOptions, prepare};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What is known of a session.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Session {
    /// The version of the runtime.
    runtime: String,
    /// Its build, and what else tells sessions apart.
    told: String,
    /// Execution providers, as the runtime calls them.
    providers: Vec<String>,
    /// Threads of an op; 0 for as many as the runtime takes by itself.
    threads: u64,
    exact: bool,
    /// The folder of the cache, if not that of the user.
    cache: Option<PathBuf>,
    /// For how many seconds a start waits; for as long as it takes where nothing is said.
    patience: Option<f64>,
}

impl Session {
    fn options(&self) -> Result<StartOptions, Failure> {
        let mut equipment = Equipment::of_this_machine().with_runtime(self.runtime.as_str());
        if self.threads > 0 {
            equipment.threads = self.threads;
        }
        let patience = self.patience.map(Duration::try_from_secs_f64).transpose();
        let patience = patience.map_err(|e| Failure::new(Kind::Option, format!("patience: {e}")))?;
        let options = StartOptions::new(fitting(&equipment.with_session_providers(&self.providers)));
        let options = options.session(self.told.as_str()).patience(patience);
        Ok(if self.exact { options.numerics(Numerics::Exact) } else { options })
    }
}

/// What to load, and what became of the start.
#[pyclass(frozen, module = "relayout._relayout")]
pub(crate) struct Prepared(Mutex<relayout_cache::Prepared>);

/// Says what a session is to load in place of the model of a file.
#[pyfunction]
pub(crate) fn prepared(py: Python<'_>, path: PathBuf, session: Session) -> PyResult<Prepared> {
    worker::run(py, None, 1, move |_| {
        let cache = session.cache.clone().map(ModelCache::new).or_else(ModelCache::of_user);
        let prepared = prepare(ModelInput::File(&path), &session.options()?, cache.as_ref());
        Ok(Prepared(Mutex::new(prepared)))
    })
}

#[pymethods]
impl Prepared {
    /// The file or the bytes that are to be loaded; neither for the model as it is.
    fn load<'py>(&self, py: Python<'py>) -> (Option<PathBuf>, Option<Bound<'py, PyBytes>>) {
        let prepared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &prepared.load {
            Load::File(path) => (Some(path.clone()), None),
            Load::Bytes(bytes) => (None, Some(PyBytes::new(py, bytes))),
            _ => (None, None),
        }
    }

    /// Notes that the runtime refused it.
    fn refused(&self, why: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).refused(why);
    }

    /// What became of the start, in a line.
    fn outcome(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).outcome.to_string()
    }
}
