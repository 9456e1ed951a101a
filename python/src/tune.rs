//! Tuning: what a model's kernels take on this machine, and which result is not slower than the model.

use crate::failure::Failure;
use crate::settings::sizes;
use crate::source::Source;
use crate::verify::on_disk;
use crate::worker::Reporter;
use relayout::targets::threads_asked;
use relayout::{Model, Request};
use relayout_calibrate::device::{DeviceRuntime, fastest_on_device};
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
    let place = |host: Host| {
        let place = request.tune_cache.clone().map_or_else(|| host.cache_place(), Ok)?;
        // A damaged cache was set aside; a new one is begun.
        Cache::open(&place, host).map(|(cache, _)| cache)
    };
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
        let threads = threads_asked(threads);
        if let (Some(python), Some(target)) = (&request.python, request.ort_nhwc()?) {
            let mut device = DeviceRuntime::start(python, &target.provider().execution_provider, false)?;
            let (mut cache, told_options) = (place(device.host(threads))?, &request.provider_options);
            return Ok(fastest_on_device(&job, &target, (&mut device, told_options), &mut cache, &mut told)?);
        }
        Ok(fastest(&job, subject, &mut place(Host::here(&runtime, threads))?, &mut told)?)
    })
}
