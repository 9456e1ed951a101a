//! How long two models run, side by side.

use crate::error::VerifyError;
use crate::io::Ends;
use crate::model::{Level, Model, ModelSource};
use crate::{Inputs, Options, Runtime, Tensor};
use relayout::io::End;
use std::time::{Duration, Instant};

/// Run times of two models.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct RunTimes {
    /// Median run time of the first model, in nanoseconds.
    pub a_ns: u64,
    /// Median run time of the second model, in nanoseconds.
    pub b_ns: u64,
    /// Between these run times of the first model lies the middle half of its runs, in nanoseconds.
    pub a_spread: [u64; 2],
    /// The same of the second model.
    pub b_spread: [u64; 2],
    /// How many times as fast the second model is: the median over the pairs of runs.
    pub ratio: f64,
    /// Between these numbers lies that median, with 95 % confidence.
    pub ratio_between: [f64; 2],
    /// How often each of them ran.
    pub runs: usize,
}

impl RunTimes {
    /// Of pairs of runs, in nanoseconds.
    fn of(pairs: &[[u64; 2]]) -> RunTimes {
        let sorted = |of: usize| {
            let mut times: Vec<u64> = pairs.iter().map(|pair| pair[of]).collect();
            times.sort_unstable();
            times
        };
        let (a, b) = (sorted(0), sorted(1));
        let at = |times: &[u64], quarters: usize| times.get(times.len() * quarters / 4).copied().unwrap_or(0);
        let mut ratios: Vec<f64> = pairs.iter().map(|[a, b]| *a as f64 / (*b).max(1) as f64).collect();
        ratios.sort_by(f64::total_cmp);
        let ratio = |place: usize| ratios.get(place).copied().unwrap_or(1.0);
        let [low, high] = between(ratios.len());
        RunTimes {
            a_ns: at(&a, 2),
            b_ns: at(&b, 2),
            a_spread: [at(&a, 1), at(&a, 3)],
            b_spread: [at(&b, 1), at(&b, 3)],
            ratio: ratio(ratios.len() / 2),
            ratio_between: [ratio(low), ratio(high)],
            runs: pairs.len(),
        }
    }

    /// Whether the second model is slower, beyond what chance explains.
    pub fn is_slower(&self) -> bool {
        self.ratio_between[1] < 1.0
    }
}

/// The places in a sorted sample between which its median lies with 95 % confidence: order statistics, by the normal approximation of the
/// binomial distribution; of a few runs the first and the last.
fn between(count: usize) -> [usize; 2] {
    let half = 0.98 * (count as f64).sqrt();
    let middle = count as f64 / 2.0;
    let low = (middle - half).floor().max(0.0) as usize;
    [low, ((middle + half).ceil() as usize).min(count.saturating_sub(1))]
}

/// How often each model runs at least and at most.
const RUNS: (usize, usize) = (5, 200);

/// Runs two models in turns on the same inputs, with all rewrites of the runtime, on so many threads, and takes medians. Each runs
/// once before that, and then as often as `about` allows, at least 5 and at most 200 times. Both are in memory at the same time.
pub fn time_side_by_side(
    runtime: &Runtime,
    a: ModelSource<'_>,
    b: ModelSource<'_>,
    inputs: &Inputs,
    threads: usize,
    about: Duration,
) -> Result<RunTimes, VerifyError> {
    let options = Options { threads, ..Options::default() };
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
    Ok(RunTimes::of(&times))
}

/// Nanoseconds of one run.
fn one(model: &mut Model, inputs: &[Tensor]) -> Result<u64, VerifyError> {
    let begun = Instant::now();
    model.run(inputs)?;
    Ok(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{RunTimes, between};

    #[test]
    fn one_slow_run_does_not_move_the_median() {
        let times = RunTimes::of(&[[7, 14], [5, 10], [900, 16], [6, 12], [8, 16]]);
        assert_eq!((times.a_ns, times.b_ns, times.runs), (7, 14, 5));
        assert!((times.ratio - 0.5).abs() < 1e-9 && !times.is_slower(), "{times:?}");
        assert_eq!(RunTimes::of(&[]).runs, 0);
    }

    #[test]
    fn what_is_always_slower_is_seen_among_many_runs_and_what_is_as_fast_is_not() {
        let slower: Vec<[u64; 2]> = (0..31).map(|i| [100 + i % 3, 104 + i % 5]).collect();
        assert!(RunTimes::of(&slower).is_slower());
        let same: Vec<[u64; 2]> = (0..31).map(|i| [100 + i % 7, 100 + (i + 3) % 7]).collect();
        assert!(!RunTimes::of(&same).is_slower());
    }

    #[test]
    fn the_interval_of_a_median_is_that_of_the_sign_test() {
        // Tables of the sign test have the 10th and the 22nd of 31 runs, counted from 1.
        assert_eq!((between(31), between(5)), ([10, 21], [0, 4]));
    }
}
