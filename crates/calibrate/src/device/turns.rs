//! Which file to take for the device of an execution provider: the model and what is made of it, each in the sessions that it is for,
//! run there in turns.

use super::{Asked, AskedModel, DeviceRuntime, Ran, TensorFile, told as told_option};
use crate::CalibrateError;
use crate::cache::{Cache, Compared, Pair};
use crate::fastest::{COMPARED, DEMANDS, Fastest, Job, KEPT, Teller, TuneStep, Tuning};
use relayout::{Optimized, Options, optimize, unchanged};
use relayout_targets::OrtNhwc;
use relayout_verify::{ModelSource, Options as Running, OutputComparison, Reference, RunElsewhere, RunTimes, Tensor};
use serde::Serialize;
use std::collections::BTreeMap;

/// How far results may be from those of the CPU's provider: the root mean square of the error over that of the results. A GPU computes
/// convolutions of floats with products of 10 bits.
pub const DEVICE_TOLERANCE: f64 = 1e-2;
/// Or so many times as far as the model itself is there.
const OF_MODEL: f64 = 2.0;
/// Rounds at least and at most.
const ROUNDS: [usize; 2] = [5, 200];

/// How a file ran on a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The option of its sessions, where one decides how the provider runs.
    pub session: Option<String>,
    /// Whether it is a result, and not the model itself.
    pub optimized: bool,
    /// The median, in milliseconds, when all ran in turns; `None` if it left something else than the model does in the CPU's provider.
    pub ms: Option<f64>,
}

/// A file, and the sessions that it is for.
struct Contender<'t> {
    target: &'t OrtNhwc,
    session: Option<String>,
    /// The result and its bytes, unless it is the model itself.
    made: Option<(Optimized, Vec<u8>)>,
}

/// The file that is fastest on the device, among the model and its results for each kind of session, with the fewest changes given back.
/// All run in turns; then the fastest result and the model where that is fastest do once more, since the runs that choose are not those
/// that are reported. `options` is what the provider is told beside what a kind of session needs. Results have to be those of the CPU's
/// provider, up to [`DEVICE_TOLERANCE`].
///
/// # Errors
/// [`CalibrateError`].
pub fn fastest_on_device(
    job: &Job<'_>,
    target: &OrtNhwc,
    (runtime, options): (&mut DeviceRuntime, &[(String, String)]),
    cache: &mut Cache,
    told: Teller<'_>,
) -> Result<Fastest, CalibrateError> {
    let here = target.clone().in_these_sessions();
    let kinds: Vec<&OrtNhwc> = std::iter::once(&here).chain(target.channels_first()).collect();
    let mut turns = Turns { job, runtime, options, cache, told, reference: None };
    let mut tuning = turns.nothing();
    for demand in DEMANDS {
        let options = job.options.clone().least_gain(demand.max(job.options.least_gain));
        let contenders = turns.contenders(&kinds, &options)?;
        tuning.least_gain = options.least_gain;
        if contenders.iter().all(|contender| contender.made.is_none()) {
            let result = optimize(job.model, target, &options)?;
            tuning.slower = demand > 0;
            return Ok(Fastest { measured: None, options, result, tuning });
        }
        let times = turns.all(&contenders)?;
        tuning.candidates = contenders.iter().zip(&times).map(|(contender, ms)| contender.told(*ms)).collect();
        let best = |optimized: bool| {
            let of = contenders.iter().zip(&times).filter(|(contender, _)| contender.made.is_some() == optimized);
            of.filter_map(|(contender, ms)| Some((contender, (*ms)?))).min_by(|a, b| a.1.total_cmp(&b.1))
        };
        let (Some((model, _)), Some((result, _))) = (best(false), best(true)) else { continue };
        tuning.session.clone_from(&model.session);
        if let times @ Some(_) = turns.reported(model, result)? {
            tuning.session.clone_from(&result.session);
            tuning.times = times;
            let session = result.session.clone();
            let made = contenders.into_iter().find(|own| own.made.is_some() && own.session == session);
            let Some((result, _)) = made.and_then(|own| own.made) else { continue };
            return Ok(Fastest { measured: None, options, result, tuning });
        }
    }
    let kept = kinds.iter().find(|kind| session(kind) == tuning.session).copied().unwrap_or(&here);
    let result = unchanged(job.model, kept, KEPT).chosen_as(job.options);
    tuning.slower = true;
    Ok(Fastest { measured: None, options: job.options.clone(), result, tuning })
}

/// The option of the sessions that files of a target are for.
fn session(target: &OrtNhwc) -> Option<String> {
    target.provider().session.clone()
}

impl Contender<'_> {
    fn told(&self, ms: Option<f64>) -> Candidate {
        Candidate { session: self.session.clone(), optimized: self.made.is_some(), ms }
    }
}

struct Turns<'a, 'j> {
    job: &'a Job<'j>,
    runtime: &'a mut DeviceRuntime,
    options: &'a [(String, String)],
    cache: &'a mut Cache,
    told: Teller<'a>,
    /// What the model computes, once that is asked.
    reference: Option<Reference>,
}

impl Turns<'_, '_> {
    /// What is said where nothing ran.
    fn nothing(&self) -> Tuning {
        let host = self.cache.host();
        let options: Vec<String> = self.options.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        Tuning {
            timed: 0,
            known: 0,
            untimed: 0,
            left: 0,
            least_gain: 0,
            slower: false,
            threads: host.threads,
            runtime: host.runtime.clone(),
            provider: Some(format!("{} on {}{}", self.runtime.provider(), self.runtime.machine(), options.concat())),
            cache: self.cache.path().map(Into::into),
            times: None,
            session: None,
            candidates: Vec::new(),
        }
    }

    /// The model in each kind of session, and its results.
    fn contenders<'t>(&self, kinds: &[&'t OrtNhwc], options: &Options) -> Result<Vec<Contender<'t>>, CalibrateError> {
        let of = |&target: &&'t OrtNhwc| Contender { target, session: session(target), made: None };
        let mut contenders: Vec<Contender<'t>> = kinds.iter().map(of).collect();
        for kind in kinds {
            let result = optimize(self.job.model, *kind, options)?;
            if result.report().changed {
                let bytes = result.to_bytes()?;
                contenders.push(Contender { made: Some((result, bytes)), ..of(kind) });
            }
        }
        Ok(contenders)
    }

    /// Milliseconds of each, which run in turns unless the cache knows all; none of what computes something else.
    fn all(&mut self, contenders: &[Contender<'_>]) -> Result<Vec<Option<f64>>, CalibrateError> {
        let pairs: Vec<Pair> = contenders.iter().map(|own| self.pair("choice", &contenders[0], own)).collect();
        let known: Option<Vec<_>> = pairs.iter().map(|pair| self.cache.compared(pair)).collect();
        let compared = if let Some(known) = known {
            known
        } else {
            let all: Vec<&Contender<'_>> = contenders.iter().collect();
            let ran = self.run(&all)?;
            let beside = |(times, right): &(Vec<u64>, bool)| {
                right.then(|| Compared::from(&RunTimes::of(&rounds(&ran[0].0, times))))
            };
            let compared: Vec<Option<Compared>> = ran.iter().map(beside).collect();
            for (pair, compared) in pairs.iter().zip(&compared) {
                self.cache.keep(pair, *compared)?;
            }
            compared
        };
        Ok(compared.into_iter().map(|compared| Some(compared?.after_ms)).collect())
    }

    /// How the model and a result run beside each other, in turns of their own; `None` if the result is slower.
    fn reported(&mut self, model: &Contender<'_>, result: &Contender<'_>) -> Result<Option<Compared>, CalibrateError> {
        let pair = self.pair("report", model, result);
        if let Some(known) = self.cache.compared(&pair) {
            return Ok(known);
        }
        let ran = self.run(&[model, result])?;
        let times = match ran.as_slice() {
            [(before, _), (after, true)] => Some(RunTimes::of(&rounds(before, after))),
            _ => None,
        };
        let compared = times.filter(|times| !times.is_slower()).as_ref().map(Compared::from);
        self.cache.keep(&pair, compared)?;
        Ok(compared)
    }

    /// What the cache calls the times of one beside another.
    fn pair(&self, what: &str, beside: &Contender<'_>, own: &Contender<'_>) -> Pair {
        let made = |of: &Contender<'_>| of.made.as_ref().map_or_else(Vec::new, |(_, bytes)| bytes.clone());
        let (inputs, options) = (&self.job.inputs, self.options);
        let sessions = [&beside.session, &own.session];
        Pair::new(
            self.job.model.bytes(),
            &[made(beside), made(own)].concat(),
            &format!("{what} {inputs:?} {COMPARED:?} {options:?} {sessions:?} {}", self.runtime.provider()),
        )
    }

    /// Has some run in turns: nanoseconds of all turns, and whether each computes what the model does.
    fn run(&mut self, contenders: &[&Contender<'_>]) -> Result<Vec<(Vec<u64>, bool)>, CalibrateError> {
        if (self.told)(TuneStep::Runs).is_break() {
            return Err(CalibrateError::Stopped);
        }
        let mut running = Running::default();
        running.threads = usize::try_from(self.cache.host().threads).unwrap_or(1);
        let reference = match self.reference.take() {
            Some(reference) => reference,
            None => Reference::of(self.job.runtime, self.job.source, self.job.inputs, &running)?,
        };
        let mut asked = Asked { models: Vec::new(), rounds: ROUNDS, seconds: COMPARED.as_secs_f64(), turns: 2 };
        let mut held = Vec::new();
        for contender in contenders {
            let source = contender.made.as_ref().map_or(self.job.source, |(_, bytes)| ModelSource::Bytes(bytes));
            let elsewhere = reference.elsewhere(self.job.runtime, source, &running)?;
            asked.models.push(self.asked(contender, source, &elsewhere.feeds)?);
            held.push(elsewhere);
        }
        let ran = self.runtime.run(&asked)?;
        let errors = ran.iter().zip(&held).map(|(ran, held)| error(ran, held, &reference));
        let errors: Vec<f64> = errors.collect::<Result<_, _>>()?;
        self.reference = Some(reference);
        // The model itself is as far as the device computes.
        let own = contenders.iter().zip(&errors).filter(|(contender, _)| contender.made.is_none());
        let own = own.map(|(_, &error)| error).fold(0.0, f64::max);
        let right = |(contender, error): (&&Contender<'_>, f64)| {
            contender.made.is_none() || error <= DEVICE_TOLERANCE.max(OF_MODEL * own)
        };
        let right: Vec<bool> = contenders.iter().zip(errors).map(right).collect();
        Ok(ran.into_iter().map(|ran| ran.ns).zip(right).collect())
    }

    /// A file as Python is asked to run it.
    fn asked(
        &mut self,
        contender: &Contender<'_>,
        source: ModelSource<'_>,
        feeds: &[Tensor],
    ) -> Result<AskedModel, CalibrateError> {
        let path = match source {
            ModelSource::Path(path) => path.to_owned(),
            ModelSource::Bytes(bytes) => self.runtime.put(bytes)?,
            _ => {
                return Err(CalibrateError::Device {
                    why: "data beside a model in memory can't be given to Python".to_owned(),
                });
            }
        };
        let mut files = Vec::new();
        for tensor in feeds {
            let Some(raw) = tensor.to_raw() else {
                return Err(CalibrateError::Device {
                    why: format!("`{}` has strings, which no device takes", tensor.name()),
                });
            };
            let (name, shape) = (tensor.name().to_owned(), tensor.shape().to_vec());
            files.push(TensorFile { name, element_type: tensor.element_type(), shape, file: self.runtime.put(&raw)? });
        }
        let mut options: BTreeMap<String, String> = self.options.iter().cloned().collect();
        options.extend(told_option(contender.target.provider().session.as_deref()));
        let threads = self.cache.host().threads;
        Ok(AskedModel { path, options, optimized: true, threads, op: None, feeds: Some(files), results: true })
    }
}

/// Turns of two files as rounds of two.
fn rounds(a: &[u64], b: &[u64]) -> Vec<[[u64; 2]; 2]> {
    let turns: Vec<[u64; 2]> = a.iter().zip(b).map(|(&a, &b)| [a, b]).collect();
    turns.as_chunks::<2>().0.to_vec()
}

/// How far what a file left is from what the model computes in the CPU's provider, at most; without bounds if it can't be compared.
fn error(ran: &Ran, held: &RunElsewhere, reference: &Reference) -> Result<f64, CalibrateError> {
    let read = |file: &TensorFile| {
        let raw = std::fs::read(&file.file).map_err(|e| CalibrateError::Device { why: e.to_string() })?;
        let tensor = Tensor::from_raw(&file.name, file.element_type, file.shape.clone(), &raw);
        let _ = std::fs::remove_file(&file.file);
        tensor.ok_or_else(|| CalibrateError::Device { why: format!("`{}` came back cut off", file.name) })
    };
    let left = ran.results.iter().map(read).collect::<Result<_, _>>()?;
    let of = |output: OutputComparison| if output.mismatch.is_some() { f64::INFINITY } else { output.rms };
    Ok(held.held(reference, left)?.into_iter().map(of).fold(0.0, f64::max))
}
