//! Tuning: what a model's kernels take on this machine, and which result is not slower than the model.

use crate::failure::Failure;
use crate::settings::Settings;
use crate::source::Source;
use crate::verify::on_disk;
use crate::worker::Reporter;
use pyo3::prelude::*;
use relayout::Model;
use relayout_calibrate::{Cache, Fastest, Host, Job, Subject, TuneStep, fastest};
use relayout_verify::{Inputs, PluginProvider, Runtime};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// How to tune: a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Tune {
    /// The library of ONNX Runtime.
    library: PathBuf,
    /// For how many seconds kernels are timed at most.
    seconds: f64,
    /// Where times are kept, if not among the user's caches.
    cache: Option<PathBuf>,
    /// The plugin of the execution provider that runs models, if not the CPU's.
    provider_library: Option<PathBuf>,
    /// What that is told.
    provider_options: Vec<(String, String)>,
}

/// The result that is not slower than the model.
pub(crate) fn tuned(
    tune: &Tune,
    (source, model): (&Source, &Model),
    settings: &Settings,
    reporter: &Reporter,
) -> Result<Fastest, Failure> {
    let runtime = Runtime::load(&tune.library)?;
    let host = Host::here(&runtime, settings.threads());
    let place = tune.cache.clone().map_or_else(|| host.cache_place(), Ok)?;
    // A damaged cache was set aside; a new one is begun.
    let (mut cache, _) = Cache::open(&place, host)?;
    let inputs = Inputs::Random { seed: 0, dims: settings.sizes()?.into_iter().collect() };
    let target = settings.target()?;
    let blocked = if settings.is_ort_cpu() { Some(settings.ort_cpu()?) } else { None };
    let provider =
        tune.provider_library.clone().map(|library| PluginProvider { library, options: tune.provider_options.clone() });
    let whole = Subject::Whole { target: target.as_ref(), provider: provider.as_ref() };
    let subject = blocked.as_ref().map_or(whole, Subject::Kernels);
    let options = reporter.stoppable(settings.checked_options()?);
    let mut told = |_: TuneStep| if reporter.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    on_disk(source, |source| {
        let budget = Duration::from_secs_f64(tune.seconds);
        let job = Job { runtime: &runtime, model, source, options: &options, inputs: &inputs, budget };
        Ok(fastest(&job, subject, &mut cache, &mut told)?)
    })
}
