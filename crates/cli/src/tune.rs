//! `relayout optimize --tune`: what this model's kernels take on this machine, and whether the result is faster.

use crate::args;
use crate::calibrate::check_place;
use crate::commands::{asked_cpu, asked_name, is_stdio, open, plugin, random_inputs, runtime};
use crate::failure::Failure;
use crate::inputs::Job;
use crate::progress::Progress;
use crate::terminal::tell as tell_people;
use relayout::targets::threads_asked;
use relayout::{Model, Options, Report, Target};
use relayout_calibrate::{Cache, Fastest, Host, Job as Tuned, Subject, TuneStep, Tuning, fastest};
use relayout_html::Measured;
use relayout_verify::{ModelSource, Runtime};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// Targets whose results this machine runs as those do who ask for them.
const TUNED: [&str; 3] = ["onnx", "ort-cpu", "ort-nhwc"];

/// That the target can be tuned, and nothing is asked for that does not know the times of this machine.
pub(crate) fn check_call(a: &args::Optimize) -> Result<(), Failure> {
    let library = a.tuning.provider.provider_library.is_some();
    if !a.tuning.tune {
        let why = "--provider-library says what --tune runs models on; add --tune";
        return if library { Err(Failure::usage(why)) } else { Ok(()) };
    }
    if a.output.certificate.is_some() {
        let why = "a certificate is about costs that others can look up, and those of --tune are this machine's";
        return Err(Failure::usage(format!("{why}; leave out one of --certificate and --tune")));
    }
    let asked = asked_name(&a.decide);
    if a.decide.target_file.is_some() || !TUNED.contains(&asked.as_str()) {
        let why = "--tune runs models in ONNX Runtime, which is what targets `onnx`, `ort-cpu` and `ort-nhwc` are for";
        return Err(Failure::usage(format!("{why}, not `{asked}`: add --target and one of them")));
    }
    match (asked.as_str(), library) {
        ("ort-nhwc", false) => {
            let why = "what --tune measures for target `ort-nhwc` is an execution provider's device";
            Err(Failure::usage(format!("{why}; add --provider-library with the plugin library of that provider")))
        }
        ("ort-cpu", true) => {
            let why = "target `ort-cpu` is for the CPU's own provider";
            Err(Failure::usage(format!("{why}; leave out --provider-library, or add --target ort-nhwc")))
        }
        _ => Ok(()),
    }
}

/// Measures, decides, and holds the result against the model.
pub(crate) fn tuned(
    a: &args::Optimize,
    job: &Job,
    target: &dyn Target,
    options: &Options,
) -> Result<(Model, Fastest), Failure> {
    let runtime = runtime()?;
    let model = open(&job.model)?;
    let mut cache =
        cache(a.tuning.tune_cache.as_deref(), &runtime, threads_asked(a.decide.threads.unwrap_or(1).into()))?;
    let blocked = if a.decide.target == "ort-cpu" { Some(asked_cpu(&a.decide)?) } else { None };
    let provider = plugin(&a.tuning.provider);
    let whole = Subject::Whole { target, provider: provider.as_ref() };
    let subject = blocked.as_ref().map_or(whole, Subject::Kernels);
    let name = job.model.display();
    let bar = Progress::start("timing kernels");
    let mut told = |step| {
        match step {
            TuneStep::Kernels { done, of } => bar.tell(format!("timing kernels for {name}: {done} of {of}")),
            _ => bar.tell(format!("running {name} and its result in turns")),
        }
        ControlFlow::Continue(())
    };
    let source = match &job.model {
        path if is_stdio(path) => ModelSource::Bytes(model.bytes()),
        path => ModelSource::Path(path),
    };
    let inputs = random_inputs(&a.decide, &model);
    let budget = Duration::from_secs(a.tuning.tune_seconds);
    let tuned = Tuned { runtime: &runtime, model: &model, source, options, inputs: &inputs, budget };
    let found = fastest(&tuned, subject, &mut cache, &mut told).map_err(Failure::model)?;
    drop(bar);
    Ok((model, found))
}

/// The times, for a page.
pub(crate) fn measured(tuning: &Tuning) -> Option<Measured> {
    let times = tuning.times?;
    Some(Measured::new((times.before_ms * 1e6) as u64, (times.after_ms * 1e6) as u64, tuning.how()))
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

/// The times in the file that is named, or in the one of this host among the user's caches.
pub(crate) fn cache(named: Option<&Path>, runtime: &Runtime, threads: usize) -> Result<Cache, Failure> {
    let host = Host::here(runtime, threads);
    let path = match named {
        Some(path) => {
            check_place(path)?;
            path.to_owned()
        }
        None => host.cache_place().map_err(|e| Failure::model(format!("{e}, with --tune-cache")))?,
    };
    let (cache, damaged) = Cache::open(&path, host).map_err(Failure::model)?;
    if let Some(aside) = damaged {
        let (path, aside) = (path.display(), aside.display());
        tell_people(&format!("{path} was damaged, or of another version, and is now {aside}; a new one is begun\n"));
    }
    Ok(cache)
}
