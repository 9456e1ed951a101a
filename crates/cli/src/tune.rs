//! `relayout optimize --tune`: what this model's kernels take on this machine, and whether the result is faster.

use crate::args;
use crate::calibrate::{check_place, machine, threads};
use crate::commands::{asked_cpu, is_stdio, of_library, open, random_inputs, runtime};
use crate::failure::Failure;
use crate::inputs::Job;
use crate::progress::Progress;
use crate::terminal::tell as tell_people;
use relayout::targets::OrtCpu;
use relayout::{Model, Optimized, Options, Report, optimize, unchanged};
use relayout_calibrate::{Cache, Compared, Host, Pair, Tuned, tune};
use relayout_html::Measured;
use relayout_verify::{Inputs, ModelSource, RunTimes, Runtime, time_side_by_side};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long both models run in turns, each time they are compared.
const COMPARED: Duration = Duration::from_secs(3);

/// How many percent of its cost a region must gain to be kept, one after the other until the result is not slower.
const DEMANDS: [u64; 3] = [0, 5, 20];

/// What a report says of a model for which no result is fast enough.
const KEPT: &str = "left as it is: no result ran as fast as the model on this machine";

/// How long the model and the result run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Tuning {
    /// Kernels and moves that were timed now, that the cache knew, that can't be timed by themselves, and that there was no time for.
    timed: usize,
    known: usize,
    untimed: usize,
    left: usize,
    /// Percent of its cost that a region had to gain to be kept.
    least_gain: u64,
    /// Whether all results that were tried ran slower than the model.
    slower: bool,
    threads: usize,
    runtime: String,
    cache: PathBuf,
    /// None where the result is the model itself.
    times: Option<Compared>,
}

/// A model, what became of it with the costs of this machine, and what was measured.
pub(crate) struct TunedModel {
    pub(crate) model: Model,
    pub(crate) result: Optimized,
    pub(crate) target: OrtCpu,
    pub(crate) record: Tuning,
}

/// That the target can be tuned, and nothing is asked for that does not know the times of this machine.
pub(crate) fn check_call(a: &args::Optimize) -> Result<(), Failure> {
    if a.tuning.tune && a.output.certificate.is_some() {
        let why = "a certificate is about costs that others can look up, and those of --tune are this machine's";
        return Err(Failure::usage(format!("{why}; leave out one of --certificate and --tune")));
    }
    if !a.tuning.tune || (a.decide.target_file.is_none() && a.decide.target == "ort-cpu") {
        return Ok(());
    }
    let asked =
        a.decide.target_file.as_ref().map_or_else(|| a.decide.target.clone(), |path| path.display().to_string());
    Err(Failure::usage(format!("--tune is an option of target `ort-cpu`, not of `{asked}`: add --target ort-cpu")))
}

/// Measures, decides, and holds the result against the model.
pub(crate) fn tuned(a: &args::Optimize, job: &Job, options: &Options) -> Result<TunedModel, Failure> {
    let target = asked_cpu(&a.decide)?;
    let runtime = runtime()?;
    let model = open(&job.model)?;
    let threads = threads(a.tuning.threads);
    let host = Host::new(machine(), flags(), format!("ONNX Runtime {}", runtime.version()), threads as u64);
    let path = place(a, &host)?;
    let (mut cache, damaged) = Cache::open(&path, host).map_err(Failure::model)?;
    if let Some(aside) = damaged {
        let (path, aside) = (path.display(), aside.display());
        tell_people(&format!("{path} was damaged, or of another version, and is now {aside}; a new one is begun\n"));
    }
    let bar = Progress::start("timing kernels");
    let mut progress = |at: relayout_calibrate::Tuning| {
        bar.tell(format!("timing kernels for {}: {} of {}", job.model.display(), at.done, at.of));
    };
    let budget = Duration::from_secs(a.tuning.tune_seconds);
    let tuned =
        tune(&runtime, (&model, options), &target, &mut cache, budget, &mut progress).map_err(Failure::model)?;
    drop(bar);
    let inputs = random_inputs(&a.decide);
    let versions = Versions { runtime: &runtime, model: &model, job, options, inputs, threads };
    let Chosen { target, result, times, least_gain, slower } = versions.fastest(&tuned, &mut cache)?;
    let Tuned { measured: timed, known, untimed, left, .. } = tuned;
    let runtime = runtime.version();
    let record = Tuning { timed, known, untimed, left, least_gain, slower, threads, runtime, cache: path, times };
    Ok(TunedModel { model, result, target, record })
}

/// The results to choose from.
struct Versions<'a> {
    runtime: &'a Runtime,
    model: &'a Model,
    job: &'a Job,
    options: &'a Options,
    inputs: Inputs,
    threads: usize,
}

/// One of them.
struct Chosen {
    target: OrtCpu,
    result: Optimized,
    /// None for the model itself.
    times: Option<Compared>,
    least_gain: u64,
    slower: bool,
}

impl Versions<'_> {
    /// The result that is not slower with the fewest changes given back, and how long it runs.
    fn fastest(&self, tuned: &Tuned, cache: &mut Cache) -> Result<Chosen, Failure> {
        for least_gain in DEMANDS {
            let target = tuned.target.clone().demanding(least_gain);
            let result = optimize(self.model, &target, self.options).map_err(of_library)?;
            if !result.report().changed {
                return Ok(Chosen { target, result, times: None, least_gain, slower: least_gain > 0 });
            }
            let bytes = result.to_bytes().map_err(of_library)?;
            if let times @ Some(_) = self.compared(&bytes, cache)? {
                return Ok(Chosen { target, result, times, least_gain, slower: false });
            }
        }
        let target = tuned.target.clone();
        let result = unchanged(self.model, &target, KEPT);
        Ok(Chosen { target, result, times: None, least_gain: 0, slower: true })
    }

    /// How a result and the model ran in turns; `None` where the result was slower. What the cache knows is not measured again.
    fn compared(&self, result: &[u8], cache: &mut Cache) -> Result<Option<Compared>, Failure> {
        let fed = format!("{:?} {COMPARED:?}", self.inputs);
        let pair = Pair::of(self.model.bytes(), result, &fed);
        if let Some(known) = cache.compared(&pair) {
            return Ok(known);
        }
        // What chooses are not the runs that are reported: chance chooses what looks better than it is.
        let compared = if self.times(result)?.is_slower() {
            None
        } else {
            Some(self.times(result)?).filter(|times| !times.is_slower()).as_ref().map(Compared::from)
        };
        cache.keep(&pair, compared).map_err(Failure::model)?;
        Ok(compared)
    }

    fn times(&self, result: &[u8]) -> Result<RunTimes, Failure> {
        let _bar = Progress::start(format!("running {} and its result in turns", self.job.model.display()));
        let model = match &self.job.model {
            path if is_stdio(path) => ModelSource::Bytes(self.model.bytes()),
            path => ModelSource::Path(path),
        };
        time_side_by_side(self.runtime, model, ModelSource::Bytes(result), &self.inputs, self.threads, COMPARED)
            .map_err(Failure::model)
    }
}

impl Tuning {
    /// The times, for a page.
    pub(crate) fn measured(&self) -> Option<Measured> {
        let Compared { before_ms, after_ms, pairs, .. } = self.times?;
        let how = format!(
            "medians of {pairs} runs each, in turns, in ONNX Runtime {} with all its rewrites, on {}",
            self.runtime,
            counted(self.threads)
        );
        Some(Measured::new((before_ms * 1e6) as u64, (after_ms * 1e6) as u64, how))
    }
}

fn counted(count: usize) -> String {
    if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.times {
            Some(t) => {
                let [[a, b], [c, d], [low, high]] = [t.before_between_ms, t.after_between_ms, t.ratio_between];
                let [same, alike] = t.control_between;
                write!(
                    f,
                    "tuned: {:.2} ms ({a:.2} to {b:.2}) -> {:.2} ms ({c:.2} to {d:.2}), {:.3} times as fast ({low:.3} to {high:.3}), \
                     {} rounds on {}, the model beside itself {same:.3} to {alike:.3}",
                    t.before_ms,
                    t.after_ms,
                    t.ratio,
                    t.pairs,
                    counted(self.threads)
                )?;
            }
            None if self.slower => write!(f, "tuned: no result ran as fast as the model, which stays as it was")?,
            None => write!(f, "tuned: nothing gains at these times, so the model stays as it was")?,
        }
        write!(f, "; {} kernels and moves timed, {} from the cache", self.timed, self.known)?;
        for (count, what) in [(self.untimed, "can't be timed by themselves"), (self.left, "left when the time was up")]
        {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        if self.least_gain > 0 && self.times.is_some() {
            write!(f, "; what gains less than {} % was given back", self.least_gain)?;
        }
        Ok(())
    }
}

/// A report for programs, with what was measured.
pub(crate) fn report(report: &Report, tuning: Option<&Tuning>) -> serde_json::Result<String> {
    let Some(tuning) = tuning else { return serde_json::to_string_pretty(report) };
    let mut value = serde_json::to_value(report)?;
    tell(&mut value, Some(tuning));
    serde_json::to_string_pretty(&value)
}

/// Adds what was measured to an object for programs.
pub(crate) fn tell(object: &mut serde_json::Value, tuning: Option<&Tuning>) {
    if let (Some(tuning), Some(object)) = (tuning, object.as_object_mut()) {
        object.insert("tuning".to_owned(), serde_json::json!(tuning));
    }
}

/// The cache that is named, or the one of this host among the user's caches, whose folder is made.
fn place(a: &args::Optimize, host: &Host) -> Result<PathBuf, Failure> {
    if let Some(path) = &a.tuning.tune_cache {
        check_place(path)?;
        return Ok(path.clone());
    }
    let named = |variable: &str| std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    let caches = named("XDG_CACHE_HOME")
        .or_else(|| named("LOCALAPPDATA"))
        .or_else(|| named("HOME").map(|home| home.join(".cache")))
        .ok_or_else(|| Failure::usage("there is no folder for caches: name a file with --tune-cache"))?;
    let folder = caches.join("relayout");
    std::fs::create_dir_all(&folder)
        .map_err(|e| Failure::model(format!("cannot make {}: {e}; name a file with --tune-cache", folder.display())))?;
    Ok(folder.join(host.file_name()))
}

/// The instruction sets that kernels are chosen by, as the system calls them.
fn flags() -> String {
    let info = std::fs::read_to_string(Path::new("/proc/cpuinfo")).unwrap_or_default();
    let line = info.lines().find(|line| line.starts_with("flags") || line.starts_with("Features")).unwrap_or_default();
    let vector = |flag: &&str| {
        ["avx", "fma", "f16c", "sse4", "amx", "vnni", "asimd", "sve", "fp16", "bf16", "i8mm"]
            .iter()
            .any(|set| flag.contains(set))
    };
    let mut flags: Vec<&str> = line.split_whitespace().filter(vector).collect();
    flags.sort_unstable();
    flags.join(" ")
}
