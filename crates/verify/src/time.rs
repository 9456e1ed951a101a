//! How long two models run, side by side.

use crate::error::VerifyError;
use crate::io::Ends;
use crate::model::{Level, Model, ModelSource};
use crate::{Inputs, Options, Runtime, Tensor};
use relayout::io::End;
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};

/// Run times of two models.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct RunTimes {
    /// Median run time of the first model, in nanoseconds.
    pub a_ns: u64,
    /// Median run time of the second model, in nanoseconds.
    pub b_ns: u64,
    /// How many rounds there were. Each model ran once in each of them, the first one twice.
    pub runs: usize,
    /// Time of the first model over that of the second one: above 1 the second one is faster.
    pub ratio: Ratio,
    /// Time of the first model over its own in its other run of the round: what this machine calls a difference although there is none.
    pub control: Ratio,
}

/// The median of ratios, each taken within a round.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Ratio {
    /// The low end of an interval that holds the true median with a probability of 95 %, whatever the distribution is. Of fewer than
    /// six rounds it is the least ratio.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The high end.
    pub high: f64,
}

impl Ratio {
    /// Of one ratio or more; of none all are 0.
    fn of(mut ratios: Vec<f64>) -> Ratio {
        ratios.sort_unstable_by(f64::total_cmp);
        let at = |rank: usize| ratios.get(rank).copied().unwrap_or(0.0);
        let (count, cut) = (ratios.len(), below_interval(ratios.len()));
        let median = f64::midpoint(at(count / 2), at(count.saturating_sub(1) / 2));
        Ratio { low: at(cut), median, high: at(count.saturating_sub(cut + 1)) }
    }
}

impl Display for Ratio {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ({:.2} to {:.2})", self.median, self.low, self.high)
    }
}

/// How many of so many sorted numbers lie below the interval of their median, and as many above it: the most for which a binomial
/// distribution of one half leaves at most 5 % outside.
fn below_interval(count: usize) -> usize {
    let (mut chance, mut below, mut found) = (0.5f64.powf(count as f64), 0.0, 0);
    for rank in 0..count / 2 {
        below += chance;
        if 2.0 * below > 0.05 {
            break;
        }
        found = rank;
        chance *= (count - rank) as f64 / (rank + 1) as f64;
    }
    found
}

/// How often each model runs at least and at most.
const RUNS: (usize, usize) = (5, 200);

/// Runs two models in turns on the same inputs, with all rewrites of the runtime, on one thread. Each runs once before that, and then as
/// often as `about` allows, at least 5 and at most 200 times. In each round the first one runs again after the second one, as a control;
/// every second round runs the other way round. Both are in memory at the same time.
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
    let mut times: Vec<[u64; 3]> = Vec::new();
    // The first run of each makes room for what the others reuse.
    [one(&mut a, &given)?, one(&mut b, &fed)?].iter().for_each(drop);
    while times.len() < RUNS.0 || (times.len() < RUNS.1 && begun.elapsed() < about) {
        let mut round = [one(&mut a, &given)?, one(&mut b, &fed)?, one(&mut a, &given)?];
        if times.len() % 2 == 1 {
            round.reverse();
        }
        times.push(round);
    }
    Ok(RunTimes::of(&times))
}

impl RunTimes {
    /// Of rounds: the first model, the second one, the first one again.
    fn of(rounds: &[[u64; 3]]) -> RunTimes {
        let [a_ns, b_ns] = [0, 1].map(|of| median(rounds.iter().map(|round| round[of]).collect()));
        let [ratio, control] =
            [1, 2].map(|of| Ratio::of(rounds.iter().map(|round| round[0] as f64 / round[of].max(1) as f64).collect()));
        RunTimes { a_ns, b_ns, runs: rounds.len(), ratio, control }
    }
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
    use super::{Ratio, RunTimes, below_interval, median};

    #[test]
    fn one_slow_run_does_not_move_the_median() {
        assert_eq!(median(vec![7, 5, 900, 6, 8]), 7);
        assert_eq!(median(Vec::new()), 0);
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let found = RunTimes::of(&[[100, 50, 100], [900, 300, 1000], [200, 80, 200]]);
        assert_eq!((found.a_ns, found.b_ns, found.runs), (200, 80, 3));
        assert_eq!(found.ratio, Ratio { low: 2.0, median: 2.5, high: 3.0 });
        assert_eq!(found.control.to_string(), "1.00 (0.90 to 1.00)");
    }

    #[test]
    fn an_interval_leaves_out_as_many_ratios_as_are_sure_to_be_on_one_side() {
        assert_eq!([0, 1, 5, 8, 9, 15, 21, 100, 200].map(below_interval), [0, 0, 0, 0, 1, 3, 5, 39, 85]);
        let found = Ratio::of((1..=9).rev().map(f64::from).collect());
        assert_eq!(found, Ratio { low: 2.0, median: 5.0, high: 8.0 });
        assert_eq!(Ratio::of(vec![1.0, 2.0]), Ratio { low: 1.0, median: 1.5, high: 2.0 });
        assert_eq!(Ratio::of(Vec::new()), Ratio { low: 0.0, median: 0.0, high: 0.0 });
    }
}
