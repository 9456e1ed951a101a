//! `relayout calibrate --check MODEL...`: what models lose by a table of costs on this machine.

use crate::args;
use crate::commands::{open, runtime};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::terminal::{json, say, say_json};
use crate::tune::cache;
use relayout::Options;
use relayout::targets::measured::MeasuredCosts;
use relayout::targets::{Block, OrtCpu};
use relayout_calibrate::{Host, Job, TuneStep, check_model};
use relayout_verify::{Inputs, ModelSource};
use serde_json::json;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

pub(super) fn check(a: &args::Calibrate, costs: Option<MeasuredCosts>) -> Result<(), Failure> {
    let threads = costs.as_ref().map_or(1, MeasuredCosts::threads);
    let mut target = OrtCpu::new(Block::of_host()).map_err(Failure::usage)?;
    if let Some(costs) = costs {
        target = target.with_costs(costs);
    }
    let runtime = runtime()?;
    let host = Host::here(&runtime, usize::try_from(threads).unwrap_or(usize::MAX));
    let mut cache = cache(a.tune_cache.as_deref(), host)?;
    let (options, inputs) = (Options::default(), Inputs::Random { seed: 0, dims: BTreeMap::new() });
    let mut list = Vec::new();
    for path in &a.models {
        let model = open(path)?;
        let name = path.display();
        let bar = Progress::start(format!("timing kernels for {name}"));
        let mut told = |step| {
            match step {
                TuneStep::Kernels { done, of } => bar.tell(format!("timing kernels for {name}: {done} of {of}")),
                _ => bar.tell(format!("running both results of {name} in turns")),
            }
            ControlFlow::Continue(())
        };
        let (source, budget) = (ModelSource::Path(path), Duration::from_secs(a.tune_seconds));
        let job = Job { runtime: &runtime, model: &model, source, options: &options, inputs: &inputs, budget };
        let found =
            check_model(&job, &target, &mut cache, &mut told).map_err(|e| Failure::model(format!("{name}: {e}")))?;
        drop(bar);
        if json() {
            list.push(json!({ "model": name.to_string(), "check": found }));
        } else {
            say(&format!("{name}\n{found}"))?;
        }
    }
    if json() { say_json(&json!({ "models": list })) } else { Ok(()) }
}
