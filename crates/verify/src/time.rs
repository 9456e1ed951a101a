//! How long two models run, side by side.

use crate::error::VerifyError;
use crate::io::Ends;
use crate::model::{Level, Model, ModelSource};
use crate::{Inputs, Options, Runtime, Tensor};
use relayout::io::End;
use std::time::{Duration, Instant};

/// Run times of two models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunTimes {
    /// Median run time of the first model, in nanoseconds.
    pub a_ns: u64,
    /// Median run time of the second model, in nanoseconds.
    pub b_ns: u64,
    /// How often each of them ran.
    pub runs: usize,
}

/// How often each model runs at least and at most.
const RUNS: (usize, usize) = (5, 200);

/// Runs two models in turns on the same inputs, with all rewrites of the runtime, on one thread, and takes the median of each. Each runs
/// once before that, and then as often as `about` allows, at least 5 and at most 200 times. Both are in memory at the same time.
pub fn time_side_by_side(
    runtime: &Runtime,
    a: ModelSource<'_>,
    b: ModelSource<'_>,
    inputs: &Inputs,
    about: Duration,
) -> Result<RunTimes, VerifyError> {
    let options = Options::default();
    let mut a = Model::load(runtime, a, Level::All, &options)?;
    let given = inputs.feeds(&a, 1)?.into_iter().next().unwrap_or_default();
    let original = Ends::of(&a)?.to_original(End::Input, given.clone())?;
    let mut b = Model::load(runtime, b, Level::All, &options)?;
    let fed = Ends::of(&b)?.feeds(&b.inputs, &original)?;
    let begun = Instant::now();
    let mut times: Vec<[u64; 2]> = Vec::new();
    // The first run of each makes room for what the others reuse.
    [one(&mut a, &given)?, one(&mut b, &fed)?].iter().for_each(drop);
    while times.len() < RUNS.0 || (times.len() < RUNS.1 && begun.elapsed() < about) {
        times.push([one(&mut a, &given)?, one(&mut b, &fed)?]);
    }
    let [a_ns, b_ns] = [0, 1].map(|of| median(times.iter().map(|pair| pair[of]).collect()));
    Ok(RunTimes { a_ns, b_ns, runs: times.len() })
}

/// Nanoseconds of one run.
fn one(model: &mut Model, inputs: &[Tensor]) -> Result<u64, VerifyError> {
    let begun = Instant::now();
    model.run(inputs)?;
    Ok(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

fn median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn one_slow_run_does_not_move_the_median() {
        assert_eq!(median(vec![7, 5, 900, 6, 8]), 7);
        assert_eq!(median(Vec::new()), 0);
    }
}
