//! Which result to take on this machine: the model and what is made of it run in turns.

use crate::CalibrateError;
use crate::cache::{Cache, Compared, Pair};
use crate::device::Candidate;
use crate::tune::{Tuned, tune};
use relayout::{Model, Optimized, Options, Target, optimize, unchanged};
use relayout_targets::OrtCpu;
use relayout_verify::{Inputs, ModelSource, Options as Running, PluginProvider, RunTimes, Runtime, time_side_by_side};
use serde::Serialize;
use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// How long both models run in turns, each time they are compared.
pub(crate) const COMPARED: Duration = Duration::from_secs(3);

/// How many percent of its cost a region must gain to be kept, one after the other until the result is not slower.
pub(crate) const DEMANDS: [u64; 3] = [0, 5, 20];

/// What a report says of a model for which no result is fast enough.
pub const KEPT: &str = "no result ran as fast as the model on this machine";

/// A model that is tuned, and how it runs.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// What runs it.
    pub runtime: &'a Runtime,
    /// The model.
    pub model: &'a Model,
    /// The model as the runtime takes it.
    pub source: ModelSource<'a>,
    /// What is asked of the optimizer.
    pub options: &'a Options,
    /// What the model and its results are fed.
    pub inputs: &'a Inputs,
    /// For how long kernels are timed at most.
    pub budget: Duration,
}

/// What a model is tuned for.
#[derive(Clone, Copy)]
pub enum Subject<'a> {
    /// Costs are nanoseconds of kernels and moves, which are timed first.
    Kernels(&'a OrtCpu),
    /// Costs stay what they are.
    Whole {
        /// What decides.
        target: &'a dyn Target,
        /// What runs the model and its results; ONNX Runtime's CPU provider alone without one.
        provider: Option<&'a PluginProvider>,
    },
}

/// Where tuning is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TuneStep {
    /// Kernels and moves are timed.
    Kernels {
        /// How many are known.
        done: usize,
        /// How many were asked about.
        of: usize,
    },
    /// The model and a result run in turns.
    Runs,
}

/// The observer of tuning, which may stop it.
pub type Teller<'a> = &'a mut dyn FnMut(TuneStep) -> ControlFlow<()>;

/// A result that is not slower than its model on this machine.
#[non_exhaustive]
pub struct Fastest {
    /// The target with the costs that were measured; `None` where costs stay what they are.
    pub measured: Option<OrtCpu>,
    /// What was asked of the optimizer for it.
    pub options: Options,
    /// The result.
    pub result: Optimized,
    /// What was measured.
    pub tuning: Tuning,
}

/// What was measured to tune a model.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Tuning {
    /// Kernels and moves that were timed now.
    pub timed: usize,
    /// Those that the cache knew.
    pub known: usize,
    /// Those that can't be timed by themselves.
    pub untimed: usize,
    /// Those for which there was no time.
    pub left: usize,
    /// Percent of its cost that a region had to gain to be kept.
    pub least_gain: u64,
    /// Whether all results that were tried ran slower than the model.
    pub slower: bool,
    /// Threads per op.
    pub threads: u64,
    /// The runtime and its version.
    pub runtime: String,
    /// The library of the execution provider that ran both, or its name and its device, and what it was told; `None` for the CPU's.
    pub provider: Option<String>,
    /// The cache, unless it is in memory only.
    pub cache: Option<PathBuf>,
    /// How both ran. `None` where the result is the model itself.
    pub times: Option<Compared>,
    /// The option of the sessions in which the result ran, where one decides how a provider runs.
    pub session: Option<String>,
    /// All files that ran on a device in turns, before the two of `times` did.
    pub candidates: Vec<Candidate>,
}

/// The result that is not slower than the model with the fewest changes given back. For a target with measured costs these are measured
/// first, with [`tune`]. Each result runs in turns with the model, twice: the runs that choose are not those that are reported. How
/// results compared is kept in the cache.
///
/// # Errors
/// As of [`tune`]; also if a result can't be written or run.
pub fn fastest(
    job: &Job<'_>,
    subject: Subject<'_>,
    cache: &mut Cache,
    told: Teller<'_>,
) -> Result<Fastest, CalibrateError> {
    if let Subject::Whole { provider: Some(provider), .. } = subject {
        provider.check(job.runtime)?;
    }
    let tuned = match subject {
        Subject::Kernels(target) => Some(tune(job.runtime, (job.model, job.options), target, cache, job.budget, told)?),
        Subject::Whole { .. } => None,
    };
    let (target, provider): (&dyn Target, _) = match (&tuned, subject) {
        (Some(tuned), _) => (&tuned.target, None),
        (None, Subject::Whole { target, provider }) => (target, provider),
        (None, Subject::Kernels(target)) => (target, None),
    };
    let Chosen { result, options, times, slower } = job.chosen((target, provider), cache, told)?;
    let count = |of: fn(&Tuned) -> usize| tuned.as_ref().map_or(0, of);
    let host = cache.host();
    let tuning = Tuning {
        timed: count(|t| t.measured),
        known: count(|t| t.known),
        untimed: count(|t| t.untimed),
        left: count(|t| t.left),
        least_gain: options.least_gain,
        slower,
        threads: host.threads,
        runtime: host.runtime.clone(),
        provider: provider.map(ToString::to_string),
        cache: cache.path().map(Into::into),
        times,
        session: None,
        candidates: Vec::new(),
    };
    Ok(Fastest { measured: tuned.map(|tuned| tuned.target), options, result, tuning })
}

/// A result, and how it was found.
struct Chosen {
    result: Optimized,
    options: Options,
    times: Option<Compared>,
    slower: bool,
}

impl Job<'_> {
    fn chosen(
        &self,
        (target, provider): (&dyn Target, Option<&PluginProvider>),
        cache: &mut Cache,
        told: Teller<'_>,
    ) -> Result<Chosen, CalibrateError> {
        for demand in DEMANDS {
            let options = self.options.clone().least_gain(demand.max(self.options.least_gain));
            let result = optimize(self.model, target, &options)?;
            if !result.report().changed {
                return Ok(Chosen { result, options, times: None, slower: demand > 0 });
            }
            if let times @ Some(_) = self.compared((&result.to_bytes()?, provider), cache, told)? {
                return Ok(Chosen { result, options, times, slower: false });
            }
        }
        let result = unchanged(self.model, target, KEPT).chosen_as(self.options);
        Ok(Chosen { result, options: self.options.clone(), times: None, slower: true })
    }

    /// How a result and the model ran in turns; `None` where the result was slower. What the cache knows is not measured again.
    fn compared(
        &self,
        (result, provider): (&[u8], Option<&PluginProvider>),
        cache: &mut Cache,
        told: Teller<'_>,
    ) -> Result<Option<Compared>, CalibrateError> {
        let on = provider.map_or_else(String::new, |provider| format!(" on {provider}"));
        let fed = format!("{:?} {COMPARED:?}{on}", self.inputs);
        let pair = Pair::new(self.model.bytes(), result, &fed);
        if let Some(known) = cache.compared(&pair) {
            return Ok(known);
        }
        let mut running = Running::default();
        running.threads = usize::try_from(cache.host().threads).unwrap_or(1);
        running.provider = provider.cloned();
        let mut times = || -> Result<RunTimes, CalibrateError> {
            if told(TuneStep::Runs).is_break() {
                return Err(CalibrateError::Stopped);
            }
            let result = ModelSource::Bytes(result);
            Ok(time_side_by_side(self.runtime, self.source, result, self.inputs, &running, COMPARED)?)
        };
        // What chooses are not the runs that are reported: chance chooses what looks better than it is.
        let compared = if times()?.is_slower() {
            None
        } else {
            Some(times()?).filter(|times| !times.is_slower()).as_ref().map(Compared::from)
        };
        cache.keep(&pair, compared)?;
        Ok(compared)
    }
}

fn counted(count: u64) -> String {
    if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") }
}

impl Tuning {
    /// How times were taken, for people.
    pub fn how(&self) -> String {
        let pairs = self.times.map_or(0, |times| times.pairs);
        let (runtime, threads, provider) = (&self.runtime, counted(self.threads), self.on_provider());
        format!("medians of {pairs} rounds in turns, in {runtime} with all its rewrites, on {threads}{provider}")
    }

    fn on_provider(&self) -> String {
        let session = self.session.as_ref().map_or_else(String::new, |option| format!(", the result with {option}"));
        // A plugin is named by its library.
        let on = if self.candidates.is_empty() { "on the provider of" } else { "on" };
        self.provider.as_ref().map_or_else(String::new, |provider| format!(", {on} {provider}{session}"))
    }

    /// How all files ran among which one was chosen, in words; nothing if there were only two.
    fn among(&self) -> String {
        let of = |candidate: &Candidate| {
            let what = if candidate.optimized { "result" } else { "as exported" };
            let session = candidate.session.as_ref().map_or_else(String::new, |option| format!(" with {option}"));
            let ms = candidate.ms.map_or_else(|| "other results".to_owned(), |ms| format!("{ms:.3} ms"));
            format!("{what}{session} {ms}")
        };
        let all: Vec<String> = self.candidates.iter().map(of).collect();
        if all.len() > 2 { format!("; all in turns: {}", all.join(", ")) } else { String::new() }
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.times {
            Some(t) => {
                let [[a, b], [c, d], [low, high]] = [t.before_between_ms, t.after_between_ms, t.ratio_between];
                let [same, alike] = t.control_between;
                let shown = if low <= 1.0 && high >= 1.0 { ": no difference is shown" } else { "" };
                write!(
                    f,
                    "tuned: {:.2} ms ({a:.2} to {b:.2}) -> {:.2} ms ({c:.2} to {d:.2}), {:.3} times as fast ({low:.3} to {high:.3}{shown}), \
                     {} rounds on {}, the model beside itself {same:.3} to {alike:.3}{}",
                    t.before_ms,
                    t.after_ms,
                    t.ratio,
                    t.pairs,
                    counted(self.threads),
                    self.on_provider()
                )?;
            }
            None if self.slower => write!(f, "tuned: no result ran as fast as the model, which stays as it was")?,
            None => write!(f, "tuned: nothing gains at these times, so the model stays as it was")?,
        }
        let kernels = [
            (self.timed, "kernels and moves timed"),
            (self.known, "from the cache"),
            (self.untimed, "can't be timed by themselves"),
            (self.left, "left when the time was up"),
        ];
        // For a target whose costs stay what they are there are none at all.
        let none = kernels.iter().all(|&(count, _)| count == 0);
        for (index, (count, what)) in kernels.into_iter().enumerate() {
            if count > 0 || (index < 2 && !none) {
                write!(f, "{} {count} {what}", if index == 0 { ";" } else { "," })?;
            }
        }
        if self.least_gain > 0 && self.times.is_some() {
            write!(f, "; what gains less than {} % was given back", self.least_gain)?;
        }
        f.write_str(&self.among())
    }
}
