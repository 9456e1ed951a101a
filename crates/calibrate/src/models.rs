//! A table held against whole models: whether it ranks right what their decisions choose from, and what its mistakes cost.

use crate::CalibrateError;
use crate::cache::{Cache, Compared};
use crate::check::{CaseComparison, Check, spelled};
use crate::fastest::{COMPARED, Job, Teller, TuneStep};
use crate::tune::{Tuned, tune};
use relayout::optimize;
use relayout_targets::OrtCpu;
use relayout_targets::measured::{Case, ConvKernel, MeasuredCosts, Timed};
use relayout_verify::{ModelSource, Options, time_side_by_side};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// A kernel that runs in two ways: what tells it from others, and its name for people.
type Kernel = (String, String);

/// A table and a model.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ModelCheck {
    /// Kernels that the decision could run in two ways, both of which were timed.
    pub kernels: Check,
    /// The result of the built-in or given table in turns with the one that was decided with this machine's times; a ratio over 1 is what
    /// the table loses. `None` where both are the same file.
    pub regret: Option<Compared>,
    /// Kernels and moves that were timed now.
    pub timed: usize,
    /// Those that the cache knew.
    pub known: usize,
    /// Those that can't be timed by themselves.
    pub untimed: usize,
    /// Those for which there was no time.
    pub left: usize,
}

impl fmt::Display for ModelCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.kernels.line("kernels", |_| true))?;
        match &self.regret {
            Some(Compared { ratio, ratio_between: [low, high], control_between: [same, alike], .. }) => write!(
                f,
                "regret in time {:.2} % ({:.2} to {:.2}), the same file beside itself {:.2} to {:.2}",
                percent(*ratio),
                percent(*low),
                percent(*high),
                percent(*same),
                percent(*alike),
            )?,
            None => write!(f, "regret in time 0 %: both decide the same")?,
        }
        write!(f, "; {} kernels and moves timed, {} from the cache", self.timed, self.known)?;
        for (count, what) in [(self.untimed, "can't be timed by themselves"), (self.left, "left when the time was up")]
        {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

/// What a ratio is over 1.
fn percent(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}

/// Holds the table of a target against a model: what its decision can choose from is timed, with [`tune`], and the model is decided about
/// with these times. Both results then run in turns.
///
/// # Errors
/// As of [`tune`]; also if a result can't be written or run.
pub fn check_model(
    job: &Job<'_>,
    target: &OrtCpu,
    cache: &mut Cache,
    told: Teller<'_>,
) -> Result<ModelCheck, CalibrateError> {
    let tuned = tune(job.runtime, (job.model, job.options), target, cache, job.budget, told)?;
    let by_table = optimize(job.model, target, job.options)?;
    let by_times = optimize(job.model, &tuned.target, job.options)?;
    let regret = if by_table.graph().to_string() == by_times.graph().to_string() {
        None
    } else {
        if told(TuneStep::Runs).is_break() {
            return Err(CalibrateError::Stopped);
        }
        let mut running = Options::default();
        running.threads = usize::try_from(cache.host().threads).unwrap_or(1);
        let (table, times) = (by_table.to_bytes()?, by_times.to_bytes()?);
        let [table, times] = [&table, &times].map(|bytes| ModelSource::Bytes(bytes));
        Some(Compared::from(&time_side_by_side(job.runtime, table, times, job.inputs, &running, COMPARED)?))
    };
    let kernels = kernels(&tuned, target.costs());
    let Tuned { measured: timed, known, untimed, left, .. } = tuned;
    Ok(ModelCheck { kernels, regret, timed, known, untimed, left })
}

/// The kernels that were timed in two ways.
fn kernels(tuned: &Tuned, table: &MeasuredCosts) -> Check {
    let mut all: BTreeMap<Kernel, [Option<(Case, u64)>; 2]> = BTreeMap::new();
    for (case, ns) in tuned.target.costs().timed().into_iter().flat_map(Timed::times) {
        if let Some((kernel, other)) = kernel(case) {
            all.entry(kernel).or_default()[usize::from(other)] = Some((case.clone(), ns));
        }
    }
    let pairs = all.into_iter().filter_map(|((_, shape), [plain, other])| Some((shape, [plain?, other?])));
    let compared = pairs.filter_map(|(shape, pair)| {
        let [plain, other] = pair.each_ref().map(|(case, _)| table.ns(case));
        let other_name = match &pair[1].0 {
            Case::Conv(_, ConvKernel::BlockedFromNchw) => "blocked from NCHW",
            _ => "blocked",
        };
        let measured_ns = pair.map(|(_, ns)| ns);
        Some(CaseComparison { shape, other: other_name, measured_ns, predicted_ns: [plain?, other?] })
    });
    Check { comparisons: compared.collect() }
}

/// What tells the kernel that a case is of from others, its name for people, and whether it runs on blocks.
fn kernel(case: &Case) -> Option<(Kernel, bool)> {
    let both = |shape: &dyn fmt::Debug| (format!("{shape:?}"), format!("{shape:?}"));
    match case {
        Case::Conv(shape, form) => Some(((format!("{shape:?}"), spelled(shape)), *form != ConvKernel::Plain)),
        Case::Pool(pool, shape, blocked) => Some((both(&(pool, shape)), *blocked)),
        Case::Resize(scaling, shape, blocked) => Some((both(&(scaling, shape)), *blocked)),
        _ => None,
    }
}
