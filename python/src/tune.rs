//! Tuning: what a model's kernels take on this machine, and which result is not slower than the model.

use crate::failure::Failure;
use crate::settings::sizes;
use crate::source::Source;
use crate::verify::on_disk;
use crate::worker::Reporter;
use relayout::targets::threads_asked;
use relayout::{Model, Request};
use relayout_calibrate::{Cache, Fastest, Host, Job, Subject, TuneStep, fastest};
use relayout_verify::{Inputs, PluginProvider, Runtime};
use std::ops::ControlFlow;
use std::path::Path;

/// The result that is not slower than the model, run by this library of ONNX Runtime.
pub(crate) fn tuned(
    library: &Path,
    (source, model): (&Source, &Model),
    request: &Request,
    reporter: &Reporter,
) -> Result<Fastest, Failure> {
    let runtime = Runtime::load(library)?;
    let threads = usize::try_from(request.threads.unwrap_or(1)).unwrap_or(usize::MAX);
    let host = Host::here(&runtime, threads_asked(threads));
    let place = request.tune_cache.clone().map_or_else(|| host.cache_place(), Ok)?;
    // A damaged cache was set aside; a new one is begun.
    let (mut cache, _) = Cache::open(&place, host)?;
    let inputs = Inputs::Random { seed: 0, dims: sizes(request).into_iter().collect() };
    let target = request.target()?;
    let mut measured = request.clone();
    measured.measured_in(&runtime.version());
    let blocked = measured.ort_cpu()?;
    let plugin = |library| PluginProvider { library, options: request.provider_options.clone() };
    let provider = request.provider_library.clone().map(plugin);
    let whole = Subject::Whole { target: target.as_ref(), provider: provider.as_ref() };
    let subject = blocked.as_ref().map_or(whole, Subject::Kernels);
    let options = reporter.stoppable(request.checked_options());
    let mut told = |_: TuneStep| if reporter.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    on_disk(source, |source| {
        let budget = request.tune_seconds;
        let job = Job { runtime: &runtime, model, source, options: &options, inputs: &inputs, budget };
        Ok(fastest(&job, subject, &mut cache, &mut told)?)
    })
}
