//! Costs of an execution provider's device, measured through a Python whose ONNX Runtime has the provider.
//!
//! A [`DeviceRuntime`] is that Python, and [`calibrate_device`] has it time what the grids of [`relayout_targets::device`] need. Models are
//! small, copies of one op that read one tensor of the device; their results stay there. Groups of them run in turns, and the middle of the
//! rounds counts. From the profile of the first run it is known that the op ran on the provider. [`fastest_on_device`] has a model and what is
//! made of it run there.

mod models;
mod python;
#[cfg(test)]
mod tests;
mod turns;

pub use python::DeviceRuntime;
pub use turns::{Candidate, DEVICE_TOLERANCE, fastest_on_device};

use crate::CalibrateError;
use models::CaseModel;
use python::{Asked, AskedModel, Ran, TensorFile};
use relayout_targets::Provider;
use relayout_targets::device::{Case, DeviceCosts, DeviceMachine, Points, Spec, specs};
use relayout_targets::measured::{Measurement, points_of};
use std::collections::BTreeMap;

/// Models that run in turns.
const TOGETHER: usize = 8;
/// Elements of the sum that takes what any node takes.
const NOTHING: u64 = 64;

/// How much is measured.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceOptions {
    /// Points of each axis.
    pub points: Points,
    /// Rounds of each group of models.
    pub rounds: usize,
    /// The day, as in `2026-11-21`, for the table.
    pub date: String,
}

impl DeviceOptions {
    /// Enough for a table that others read.
    pub fn new(date: impl Into<String>) -> DeviceOptions {
        DeviceOptions { points: Points::Whole, rounds: 21, date: date.into() }
    }

    /// Few rounds, for a first look.
    #[must_use]
    pub fn quick(self) -> DeviceOptions {
        DeviceOptions { rounds: 5, ..self }
    }

    /// Few and small points, to try the way on a CPU.
    #[must_use]
    pub fn few(self) -> DeviceOptions {
        DeviceOptions { points: Points::Few, ..self }
    }
}

/// What a device was measured to take.
#[derive(Clone, Debug)]
pub struct DeviceCalibration {
    machine: DeviceMachine,
    grids: Vec<Measurement>,
}

impl DeviceCalibration {
    /// The text of the table.
    pub fn text(&self) -> String {
        DeviceCosts::text(&self.machine, &self.grids)
    }

    /// The table.
    ///
    /// # Errors
    /// [`CalibrateError::Table`].
    pub fn costs(&self) -> Result<DeviceCosts, CalibrateError> {
        let table = DeviceCosts::new(self.machine.clone(), self.grids.clone());
        table.map_err(|why| CalibrateError::Table { why })
    }
}

/// Measures a table for a provider. `progress` hears how many of how many nodes are measured.
///
/// # Errors
/// [`CalibrateError::Device`] if the device does not run one of them, [`CalibrateError::Table`] if the times are none.
pub fn calibrate_device(
    runtime: &mut DeviceRuntime,
    provider: &Provider,
    options: &DeviceOptions,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<DeviceCalibration, CalibrateError> {
    // What the provider alone runs has no stand-in.
    let own = !runtime.is_stand_in();
    let specs: Vec<Spec> = specs(options.points).into_iter().filter(|spec| own || !spec.may_lack()).collect();
    let cases: Vec<(Case, bool)> =
        specs.iter().flat_map(|spec| points(spec).into_iter().map(|point| (spec.case(&point), spec.half))).collect();
    let mut bench = Bench { runtime, sessions: sessions(provider), rounds: options.rounds };
    let call = bench.calls(&[models::nothing()?])?.first().copied().unwrap_or_default();
    let node = bench.nodes(&[(Case::Sum(NOTHING), false)], call)?.first().copied().unwrap_or_default();
    let mut ns = Vec::with_capacity(cases.len());
    for group in cases.chunks(TOGETHER) {
        progress(ns.len(), cases.len());
        ns.extend(bench.nodes(group, call)?);
    }
    progress(ns.len(), cases.len());
    let mut times = ns.into_iter();
    let grids = specs.iter().map(|spec| Measurement {
        name: spec.name.clone(),
        axes: spec.axes.iter().map(|(name, points)| ((*name).to_owned(), points.clone())).collect(),
        ns: times.by_ref().take(points(spec).len()).collect(),
    });
    let grids = grids.collect();
    let machine = DeviceMachine {
        machine: runtime.machine(),
        provider: provider.name.clone(),
        device: if own { "own" } else { "cpu" }.to_owned(),
        date: options.date.clone(),
        runtime: runtime.runtime().to_owned(),
        node_ns: node,
    };
    let calibration = DeviceCalibration { machine, grids };
    calibration.costs()?;
    Ok(calibration)
}

fn points(spec: &Spec) -> Vec<Vec<u64>> {
    let axes: Vec<Vec<u64>> = spec.axes.iter().map(|(_, points)| points.clone()).collect();
    points_of(&axes)
}

/// What the provider is told in sessions that run convolutions channels first, and in those that run them channels last.
fn sessions(provider: &Provider) -> [BTreeMap<String, String>; 2] {
    let first = provider.channels_first().and_then(|first| first.session);
    [first, provider.session.clone()].map(|option| told(option.as_deref()))
}

/// The option of a session, `prefer_nhwc=1`, as a provider is told it.
fn told(option: Option<&str>) -> BTreeMap<String, String> {
    option
        .and_then(|option| option.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into_iter()
        .collect()
}

struct Bench<'a> {
    runtime: &'a mut DeviceRuntime,
    sessions: [BTreeMap<String, String>; 2],
    rounds: usize,
}

impl Bench<'_> {
    /// Nanoseconds of a node of each case.
    fn nodes(&mut self, cases: &[(Case, bool)], call: u64) -> Result<Vec<u64>, CalibrateError> {
        let models: Vec<CaseModel> =
            cases.iter().map(|(case, half)| models::of(case, *half)).collect::<Result<_, _>>()?;
        let calls = self.calls(&models)?;
        let of = |(model, ns): (&CaseModel, u64)| (ns.saturating_sub(call) / model.copies.max(1)).max(1);
        Ok(models.iter().zip(calls).map(of).collect())
    }

    /// Nanoseconds of a call of each model, which run in turns: the middle of the rounds.
    fn calls(&mut self, models: &[CaseModel]) -> Result<Vec<u64>, CalibrateError> {
        let mut asked = Asked { models: Vec::new(), rounds: [self.rounds; 2], seconds: 0.0, turns: 1 };
        for model in models {
            let [first, last] = &self.sessions;
            asked.models.push(AskedModel {
                path: self.runtime.put(&model.bytes)?,
                options: if model.channels_last { last.clone() } else { first.clone() },
                optimized: false,
                threads: 1,
                op: Some(model.op),
                feeds: None,
                results: false,
            });
        }
        let ran = self.runtime.run(&asked)?;
        for AskedModel { path, .. } in &asked.models {
            // The folder goes at the end anyway.
            let _ = std::fs::remove_file(path);
        }
        Ok(ran.into_iter().map(|Ran { ns, .. }| middle(ns)).collect())
    }
}

/// The middle one of some numbers.
fn middle(mut ns: Vec<u64>) -> u64 {
    ns.sort_unstable();
    ns.get(ns.len() / 2).copied().unwrap_or_default()
}
