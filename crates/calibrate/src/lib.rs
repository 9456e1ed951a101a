//! Measures what ops cost in ONNX Runtime on this machine, and checks how well a table of such costs predicts.
//!
//! ```no_run
//! use relayout_calibrate::{CalibrateOptions, calibrate};
//! use relayout_verify::Runtime;
//! use std::path::Path;
//!
//! let runtime = Runtime::load(Path::new("libonnxruntime.so"))?;
//! let options = CalibrateOptions::new("a desktop", "2026-11-23").quick();
//! let table = calibrate(&runtime, &options, &mut |done, all| eprintln!("{done} of {all}"))?;
//! std::fs::write("mine.costs.toml", table.text())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`calibrate`] runs the op of every point of every grid that [`relayout_targets::measured`] needs. [`check`] takes shapes that
//! are in no grid and runs each in the forms that a decision chooses from. It says how often the table ranks them right, and how
//! much time is lost by following it; [`check_model`] says so of a model. [`tune`] measures for one model what its decision asks about, and [`fastest`]
//! also runs the model and its results in turns. [`gpu`] is about another runtime: it says what a runner has to measure on a GPU.
//!
//! Absent: the date is not looked up. The caller gives it in the options.

mod cache;
mod cases;
mod check;
mod fastest;
pub mod gpu;
mod host;
mod models;
mod shapes;
mod sketch;
#[cfg(test)]
mod tests;
mod timing;
mod tune;

use relayout_targets::measured::{Machine, MeasuredCosts, Measurement, Spec, points_of, specs};
use relayout_verify::{Runtime, VerifyError};

use timing::{Bench, Chain};

pub use cache::{Cache, Compared, Pair};
pub use check::{CaseComparison, Check, check};
pub use fastest::{Fastest, Job, KEPT, Subject, Teller, TuneStep, Tuning, fastest};
pub use host::{Host, processor};
pub use models::{ModelCheck, check_model};
pub use relayout_cache::cache_folder;
pub use tune::{Tuned, tune};

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// The runtime can't load or run a model.
    #[error(transparent)]
    Runtime(#[from] VerifyError),
    /// A model can't be written.
    #[error(transparent)]
    Write(#[from] relayout_onnx::error::Error),
    /// A constant would not fit.
    #[error("a tensor of dims {dims:?} is too large to measure")]
    TooLarge {
        /// Its dims.
        dims: Vec<u64>,
    },
    /// An op that this version can't make a model of.
    #[error("there is no model of {case}")]
    NoModel {
        /// The op.
        case: String,
    },
    /// The runtime has no blocked kernels on this machine.
    #[error("ONNX Runtime has no blocked kernels on this machine, and target `ort-cpu` is about nothing else: {why}")]
    NoBlocks {
        /// What it said.
        why: String,
    },
    /// What was measured is no table.
    #[error("what was measured is not a table: {why}; try again on a machine with less load")]
    Table {
        /// What is wrong.
        why: String,
    },
    /// A runner did not answer what it was asked.
    #[error("the runner's answer can't be used: {why}; take both from one version of relayout")]
    Answer {
        /// What is wrong.
        why: String,
    },
    /// The model can't be optimized.
    #[error(transparent)]
    Model(#[from] relayout::Error),
    /// The observer of the work stopped it.
    #[error("stopped by the caller")]
    Stopped,
    /// A cache of times can't be read or written.
    #[error("{why}")]
    Cache {
        /// What went wrong, with its file.
        why: String,
    },
    /// A cache of times was measured elsewhere.
    #[error("the times in {path} are those of another host: `{theirs}` there, `{ours}` here; name another file, or remove it", path = path.display())]
    OtherHost {
        /// The cache.
        path: std::path::PathBuf,
        /// What it says.
        theirs: String,
        /// What this host says.
        ours: String,
    },
    /// The table, or the target that is tuned, is about other blocks than this machine has.
    #[error(
        "costs are wanted for blocks of {table} channels, and ONNX Runtime has blocks of {machine} on this machine"
    )]
    OtherBlock {
        /// Of the table or the target.
        table: u64,
        /// Of this machine.
        machine: u64,
    },
}

/// How to measure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CalibrateOptions {
    /// How often everything is measured from the start, at different moments.
    pub passes: usize,
    /// Runs of each op that are timed in a pass.
    pub rounds: usize,
    /// Convolutions that a check draws.
    pub shapes: usize,
    /// Threads per op.
    pub threads: usize,
    /// The processor's name, for the table.
    pub machine: String,
    /// The day, as in `2026-11-21`, for the table.
    pub date: String,
    /// Copies of a node in a model, at most: fewer measure worse.
    copies: u64,
}

impl CalibrateOptions {
    /// Runs enough for a table that others read, on one thread.
    pub fn new(machine: impl Into<String>, date: impl Into<String>) -> CalibrateOptions {
        let (machine, date) = (machine.into(), date.into());
        CalibrateOptions { passes: 4, rounds: 4, shapes: 240, threads: 1, machine, date, copies: timing::COPIES }
    }

    /// Fewer runs, for a first look.
    #[must_use]
    pub fn quick(self) -> CalibrateOptions {
        CalibrateOptions { passes: 2, rounds: 3, shapes: 80, ..self }
    }
}

/// What a calibration measured.
#[derive(Clone, Debug)]
pub struct Calibration {
    machine: Machine,
    grids: Vec<Measurement>,
}

impl Calibration {
    /// The text of the table.
    pub fn text(&self) -> String {
        MeasuredCosts::text(&self.machine, &self.grids)
    }

    /// The table.
    pub fn costs(&self) -> Result<MeasuredCosts, CalibrateError> {
        MeasuredCosts::new(self.machine.clone(), self.grids.clone()).map_err(|why| CalibrateError::Table { why })
    }
}

/// Measures a table. `progress` hears how many of how many measurements are done.
pub fn calibrate(
    runtime: &Runtime,
    options: &CalibrateOptions,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Calibration, CalibrateError> {
    let block = timing::block(runtime)?;
    let bench = Bench::new(runtime, options, block);
    let node_ns = bench.node_ns()?;
    let specs = specs();
    let mut chains: Vec<Chain> = Vec::new();
    for spec in &specs {
        chains.extend(points(spec).iter().map(|point| vec![spec.case(point, block)]));
    }
    let mut times = bench.times(&chains, progress)?.into_iter();
    let grids = specs.iter().map(|spec| Measurement {
        name: spec.name.clone(),
        axes: spec.axes.iter().map(|(name, points)| ((*name).to_owned(), points.clone())).collect(),
        ns: times.by_ref().take(points(spec).len()).map(|ns| ns.round().max(1.0) as u64).collect(),
    });
    let grids = grids.collect();
    let machine = Machine {
        machine: options.machine.clone(),
        date: options.date.clone(),
        runtime: format!("ONNX Runtime {}", runtime.version()),
        threads: options.threads as u64,
        block,
        node_ns,
    };
    let calibration = Calibration { machine, grids };
    calibration.costs()?;
    Ok(calibration)
}

fn points(spec: &Spec) -> Vec<Vec<u64>> {
    let axes: Vec<Vec<u64>> = spec.axes.iter().map(|(_, points)| points.clone()).collect();
    points_of(&axes)
}
