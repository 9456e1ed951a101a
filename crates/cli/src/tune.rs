//! `relayout optimize --tune` and `--for-this-machine`: what this model's kernels take on this machine, and whether the result is faster.

use crate::args;
use crate::calibrate::check_place;
use crate::commands::{is_stdio, open, plugin, random_inputs, runtime};
use crate::failure::Failure;
use crate::inputs::Job;
use crate::progress::Progress;
use crate::terminal::tell as tell_people;
use relayout::targets::threads_asked;
use relayout::{Model, Options, Report, Target};
use relayout_calibrate::device::{DeviceRuntime, fastest_on_device};
use relayout_calibrate::{Cache, Fastest, Host, Job as Tuned, Subject, TuneStep, Tuning, fastest};
use relayout_html::Measured;
use relayout_verify::ModelSource;
use std::ops::ControlFlow;
use std::path::Path;

/// Has kernels timed where the options that fit this machine are those of target `ort-cpu`, unless what else is asked for goes with no
/// times. Of several models none is timed, and none that comes from stdin, which can be read once.
pub(crate) fn for_this_machine(a: &mut args::Optimize) {
    let Some(fits) = a.decide.chosen.as_mut().filter(|fits| fits.target == "ort-cpu") else { return };
    let untimed = a.tuning.tune || a.tuning.no_tune || a.output.fix_sizes || a.output.certificate.is_some();
    if !untimed && matches!(&a.models[..], [model] if model.is_file()) {
        a.tuning.for_this_machine = true;
        let seconds = a.tuning.tune_seconds;
        fits.why.push(format!("its kernels are timed here, for at most {seconds} s (--no-tune leaves that out)"));
    }
}

/// What [`tuned`] makes; nothing where timing was not asked for by name and fails.
pub(crate) fn tried(
    a: &args::Optimize,
    job: &Job,
    target: &dyn Target,
    options: &Options,
) -> Result<Option<(Model, Fastest)>, Failure> {
    match tuned(a, job, target, options) {
        Err(failure) if a.tuning.for_this_machine => {
            let why = failure.message().unwrap_or_default();
            tell_people(&format!("not timed: {why}\n"));
            Ok(None)
        }
        made => made.map(Some),
    }
}

/// Measures, decides, and holds the result against the model.
fn tuned(a: &args::Optimize, job: &Job, target: &dyn Target, options: &Options) -> Result<(Model, Fastest), Failure> {
    let runtime = runtime()?;
    let model = open(&job.model)?;
    let mut request = a.request();
    request.measured_in(&runtime.version());
    let threads = threads_asked(usize::try_from(request.threads.unwrap_or(1)).unwrap_or(usize::MAX));
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
    let budget = request.tune_seconds;
    let tuned = Tuned { runtime: &runtime, model: &model, source, options, inputs: &inputs, budget };
    let place = request.tune_cache.as_deref();
    let found = if let (Some(python), Some(target)) = (&request.python, request.ort_nhwc()?) {
        let provider = &target.provider().execution_provider;
        let mut device = DeviceRuntime::start(python, provider, false).map_err(Failure::model)?;
        let mut cache = cache(place, device.host(threads))?;
        fastest_on_device(&tuned, &target, (&mut device, &request.provider_options), &mut cache, &mut told)
    } else {
        let mut cache = cache(place, Host::here(&runtime, threads))?;
        let blocked = request.ort_cpu()?;
        let provider = plugin(&a.tuning.provider);
        let whole = Subject::Whole { target, provider: provider.as_ref() };
        fastest(&tuned, blocked.as_ref().map_or(whole, Subject::Kernels), &mut cache, &mut told)
    };
    let found = found.map_err(Failure::model)?;
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
pub(crate) fn cache(named: Option<&Path>, host: Host) -> Result<Cache, Failure> {
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
