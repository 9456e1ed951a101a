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
//! also runs the model and its results in turns. [`device`] measures on the device of an execution provider, through a Python that has it.
//! [`gpu`] is about another runtime: it says what a runner has to measure on a GPU.
//!
//! Absent: the date is not looked up. The caller gives it in the options.

mod cache;
mod cases;
mod check;
pub mod device;
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

use relayout_targets::measured::{Machine, MeasuredCosts, Measurement, Share, Spec, points_of, specs};
use relayout_verify::{Runtime, VerifyError};
use std::collections::{BTreeMap, BTreeSet};

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
    /// A Python does not run models on the device that was asked for.
    #[error("{why}")]
    Device {
        /// What it said.
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
    /// Numbers of threads per op that are measured, ascending; the first is that of a check, and where there are several it is one.
    pub threads: Vec<usize>,
    /// The processor's name, for the table.
    pub machine: String,
    /// The day, as in `2026-11-21`, for the table.
    pub date: String,
    /// Copies of a node in a model, at most: fewer measure worse.
    copies: u64,
    /// How far points of an axis lie apart of which grids have the times: 1 for all.
    step: usize,
}

impl CalibrateOptions {
    /// Runs enough for a table that others read, on one thread.
    pub fn new(machine: impl Into<String>, date: impl Into<String>) -> CalibrateOptions {
        let (machine, date) = (machine.into(), date.into());
        CalibrateOptions {
            passes: 4,
            rounds: 4,
            shapes: 240,
            threads: vec![1],
            machine,
            date,
            copies: timing::COPIES,
            step: 1,
        }
    }

    /// Fewer runs at fewer points, for a first look.
    #[must_use]
    pub fn quick(self) -> CalibrateOptions {
        CalibrateOptions { passes: 2, rounds: 3, shapes: 80, step: 2, ..self }
    }
}

/// What a calibration measured.
#[derive(Clone, Debug)]
pub struct Calibration {
    machine: Machine,
    measured: Vec<Measurement>,
    shares: BTreeMap<u64, Share>,
    /// Numbers of threads of which nothing is left, since other programs had the cores.
    busy: Vec<u64>,
}

impl Calibration {
    /// The text of the table.
    pub fn text(&self) -> String {
        MeasuredCosts::text(&self.machine, &self.measured, &self.shares)
    }

    /// The table.
    pub fn costs(&self) -> Result<MeasuredCosts, CalibrateError> {
        let table = MeasuredCosts::new(self.machine.clone(), self.measured.clone(), self.shares.clone());
        table.map_err(|why| CalibrateError::Table { why })
    }

    /// Without the numbers of threads on which other programs had the cores: not even large convolutions, which the runtime shares among
    /// threads, were faster than on one. What follows from other numbers is better than what such times say.
    #[must_use]
    pub fn without_busy(mut self) -> Calibration {
        let more = self.machine.threads.iter().skip(1).copied();
        self.busy.extend(more.filter(|threads| self.shares.get(threads).is_some_and(is_busy)));
        let Machine { threads, node_ns, off_percent, .. } = &mut self.machine;
        for busy in &self.busy {
            let Some(place) = threads.iter().position(|known| known == busy) else { continue };
            threads.remove(place);
            node_ns.remove(place);
            // There is none of the first number.
            off_percent.remove(place - 1);
            self.shares.remove(busy);
        }
        self
    }

    /// How far off the table is on more threads than the first number, for people, and which numbers could not be measured; nothing if one
    /// number was asked for.
    pub fn off(&self) -> Vec<String> {
        let Machine { threads, off_percent, .. } = &self.machine;
        let line = |(threads, percent): (&u64, &u64)| {
            format!(
                "on {threads} threads: half of the ops that were measured are within {percent} % of what the table says"
            )
        };
        let busy = |threads: &u64| {
            format!(
                "on {threads} threads: not measured, since not even large convolutions were faster than on one; other programs had the \
                 cores. The table says what follows from other numbers; measure again when nothing else runs"
            )
        };
        threads.iter().skip(1).zip(off_percent).map(line).chain(self.busy.iter().map(busy)).collect()
    }
}

/// Whether other programs had the cores when times on several threads were taken: the runtime shares large convolutions among threads.
fn is_busy(share: &Share) -> bool {
    LARGE.iter().all(|grid| share.serial.contains(*grid))
}

/// Grids whose long ops are shared among threads.
const LARGE: [&str; 3] = ["conv-blocked-pointwise", "conv-blocked-regular", "conv-plain-im2col"];

/// Points of a grid that are measured on more threads, about.
const FEW: usize = 8;

/// Measures a table: every point on the first number of threads, and on others a few points of each grid. `progress` hears how many of how
/// many measurements are done.
///
/// # Errors
/// [`CalibrateError`].
pub fn calibrate(
    runtime: &Runtime,
    options: &CalibrateOptions,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Calibration, CalibrateError> {
    let block = timing::block(runtime)?;
    let specs = specs();
    let all: Vec<Vec<Vec<u64>>> = specs.iter().map(|spec| points_of(&axes(spec, options.step))).collect();
    let few: Vec<Vec<usize>> = all.iter().map(|points| few_of(points.len())).collect();
    let [every, some] = [all.iter().map(Vec::len).sum::<usize>(), few.iter().map(Vec::len).sum()];
    let passes = options.passes.max(1);
    let total = passes * (every + options.threads.len().saturating_sub(1) * some);
    let mut machine = Machine {
        machine: options.machine.clone(),
        date: options.date.clone(),
        runtime: format!("ONNX Runtime {}", runtime.version()),
        threads: options.threads.iter().map(|&threads| threads as u64).collect(),
        block,
        node_ns: Vec::new(),
        off_percent: Vec::new(),
        derived: None,
    };
    let (mut before, mut measured, mut shares) = (0, Vec::new(), BTreeMap::new());
    for (turn, &threads) in options.threads.iter().enumerate() {
        let bench = Bench::new(runtime, options, block).on_threads(threads);
        machine.node_ns.push(bench.node_ns()?);
        let of = |((spec, points), few): ((&Spec, &Vec<Vec<u64>>), &Vec<usize>)| -> Vec<Chain> {
            let places = points.iter().enumerate().filter(|(at, _)| turn == 0 || few.contains(at));
            places.map(|(_, point)| vec![spec.case(point, block)]).collect()
        };
        let chains: Vec<Chain> = specs.iter().zip(&all).zip(&few).flat_map(of).collect();
        let times = bench.times(&chains, &mut |done, _| {
            // The start of one is the end of the one before it.
            if done + before == 0 || done > 0 {
                progress(before + done, total);
            }
        })?;
        before += passes * chains.len();
        if turn == 0 {
            measured = grids(&specs, options.step, times);
        } else {
            let (share, off) = compared(&machine, (&measured, &few), times);
            shares.insert(threads as u64, share);
            machine.off_percent.push(off);
        }
    }
    let calibration = Calibration { machine, measured, shares, busy: Vec::new() };
    calibration.costs()?;
    Ok(calibration)
}

/// The points of a grid's axes, so far apart, the last among them.
fn axes(spec: &Spec, step: usize) -> Vec<Vec<u64>> {
    let kept = |points: &Vec<u64>| {
        let last = points.len().saturating_sub(1);
        let kept = points.iter().enumerate().filter(|(at, _)| at.is_multiple_of(step) || *at == last);
        kept.map(|(_, &point)| point).collect()
    };
    spec.axes.iter().map(|(_, points)| kept(points)).collect()
}

/// Places of a few among so many points, spread over them.
fn few_of(count: usize) -> Vec<usize> {
    let step = (count as f64 / FEW as f64).max(1.0);
    (0..FEW.min(count))
        .map(|at| (at as f64 * step) as usize)
        .chain(count.checked_sub(1))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// Of a grid, what its ops take on one thread and on several, in nanoseconds without what a node takes anyhow.
type Pairs = Vec<(f64, f64)>;

/// What the last number of threads leaves of times on the first, by a few points of each grid, and how far half of these are off by it, in
/// percent: each by the share that the other half of the points says.
fn compared(machine: &Machine, (measured, few): (&[Measurement], &[Vec<usize>]), times: Vec<f64>) -> (Share, u64) {
    let mut times = times.into_iter();
    let [one, more] = [machine.node_ns.first(), machine.node_ns.last()].map(|ns| ns.copied().unwrap_or(1) as f64);
    let own = |ns: f64, node: f64| (ns - node).max(ns / 10.0);
    let of = |(grid, few): (&Measurement, &Vec<usize>)| -> Pairs {
        let alone = few.iter().map(|&place| grid.ns.get(place).copied().unwrap_or(1) as f64);
        alone.zip(times.by_ref()).map(|(alone, ns)| (own(alone, one), own(ns, more))).collect()
    };
    let points: Vec<Pairs> = measured.iter().zip(few).map(of).collect();
    let names = || measured.iter().map(|grid| grid.name.as_str());
    let share = |points: &[Pairs]| Share::of(names().zip(points.iter().cloned()));
    let halves = [0, 1].map(|half| -> Vec<Pairs> {
        let of = |pairs: &Pairs| pairs.iter().rev().skip(half).step_by(2).copied().collect();
        points.iter().map(of).collect()
    });
    let off = |half: usize| {
        let [asked, held] = [&halves[half], &halves[1 - half]];
        let share = share(asked);
        let off = |(name, pairs): (&str, &Pairs)| -> Vec<f64> {
            pairs
                .iter()
                .map(|&(alone, ns)| ((more + alone * share.part(name, alone)) / (more + ns) - 1.0).abs())
                .collect()
        };
        names().zip(held).flat_map(off).collect::<Vec<f64>>()
    };
    let mut off: Vec<f64> = [0, 1].into_iter().flat_map(off).collect();
    off.sort_by(f64::total_cmp);
    let middle = off.get(off.len() / 2).copied().unwrap_or_default();
    (share(&points), (100.0 * middle).round() as u64)
}

/// Times as the grids that they are of.
fn grids(specs: &[Spec], step: usize, times: Vec<f64>) -> Vec<Measurement> {
    let mut times = times.into_iter();
    let grid = |spec: &Spec| {
        let axes = axes(spec, step);
        let count = axes.iter().map(Vec::len).product();
        Measurement {
            name: spec.name.clone(),
            axes: spec.axes.iter().zip(axes).map(|((name, _), points)| ((*name).to_owned(), points)).collect(),
            ns: times.by_ref().take(count).map(|ns| ns.round().max(1.0) as u64).collect(),
        }
    };
    specs.iter().map(grid).collect()
}
