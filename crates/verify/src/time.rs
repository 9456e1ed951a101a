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
    /// Between these run times of the first model lies the middle half of its runs, in nanoseconds.
    pub a_spread: [u64; 2],
    /// Between these run times of the second model lies the middle half of its runs, in nanoseconds.
    pub b_spread: [u64; 2],
    /// How many rounds there were. Each model ran twice in each of them.
    pub runs: usize,
    /// Time of the first model over that of the second one: above 1 the second one is faster.
    pub ratio: Ratio,
    /// Time of the first model over its own in its second run of the round: what this machine calls a difference although there is none.
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

/// Runs two models in turns on the same inputs, with all rewrites of the runtime; threads, custom ops and provider are those of `options`. Each runs once before that, and then as
/// often as `about` allows, at least 5 and at most 200 rounds. In each round both run twice, in turns: so neither ever follows itself and
/// finds its own data in the caches. Both are in memory at the same time.
pub fn time_side_by_side(
    runtime: &Runtime,
    a: ModelSource<'_>,
    b: ModelSource<'_>,
    inputs: &Inputs,
    options: &Options,
    about: Duration,
) -> Result<RunTimes, VerifyError> {
    let source = a;
    let mut a = Model::load(runtime, source, Level::All, options)?;
    let given = inputs.feeds(source, &a, 1)?.into_iter().next().unwrap_or_default();
    let original = Ends::of(&a)?.to_original(End::Input, given.clone())?;
    let mut b = Model::load(runtime, b, Level::All, options)?;
    let fed = Ends::of(&b)?.feeds(&b.inputs, &original)?;
    let begun = Instant::now();
    let mut times: Vec<Round> = Vec::new();
    let mut turn = || Ok::<_, VerifyError>([one(&mut a, &given)?, one(&mut b, &fed)?]);
    // The first run of each makes room for what the others reuse.
    turn()?;
    while times.len() < RUNS.0 || (times.len() < RUNS.1 && begun.elapsed() < about) {
        times.push([turn()?, turn()?]);
    }
    Ok(RunTimes::of(&times))
}

/// Nanoseconds of two turns, in each of both models.
type Round = [[u64; 2]; 2];

impl RunTimes {
    /// Of rounds of two turns, each nanoseconds of the first and of the second model.
    pub fn of(rounds: &[[[u64; 2]; 2]]) -> RunTimes {
        let [[a_ns, a_low, a_high], [b_ns, b_low, b_high]] = [0, 1].map(|of| {
            let mut times: Vec<u64> = rounds.iter().flatten().map(|turn| turn[of]).collect();
            times.sort_unstable();
            [2, 1, 3].map(|quarters| quantile(&times, quarters))
        });
        let over = |of: fn(&Round) -> [u64; 2]| {
            let ratio = |[a, b]: [u64; 2]| a as f64 / b.max(1) as f64;
            Ratio::of(rounds.iter().map(|round| ratio(of(round))).collect())
        };
        let ratio = over(|[first, second]| [first[0] + second[0], first[1] + second[1]]);
        let control = over(|[first, second]| [first[0], second[0]]);
        let (a_spread, b_spread) = ([a_low, a_high], [b_low, b_high]);
        RunTimes { a_ns, b_ns, a_spread, b_spread, runs: rounds.len(), ratio, control }
    }

    /// Whether the second model is slower, beyond what chance explains.
    pub fn is_slower(&self) -> bool {
        self.ratio.high < 1.0
    }
}

/// Nanoseconds of one run.
fn one(model: &mut Model, inputs: &[Tensor]) -> Result<u64, VerifyError> {
    let begun = Instant::now();
    model.run(inputs)?;
    Ok(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// The number below which so many quarters of these sorted ones lie.
fn quantile(times: &[u64], quarters: usize) -> u64 {
    times.get(times.len() * quarters / 4).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Ratio, Round, RunTimes, below_interval, quantile};

    #[test]
    fn one_slow_run_does_not_move_the_median() {
        let times = [5, 6, 7, 8, 900];
        assert_eq!([1, 2, 3].map(|quarters| quantile(&times, quarters)), [6, 7, 8]);
        assert_eq!(quantile(&[], 2), 0);
    }

    #[test]
    fn what_is_always_slower_is_seen_among_many_runs_and_what_is_as_fast_is_not() {
        let slower: Vec<Round> = (0..31).map(|i| [[100 + i % 3, 104 + i % 5], [100, 104]]).collect();
        assert!(RunTimes::of(&slower).is_slower());
        let same: Vec<Round> = (0..31).map(|i| [[100 + i % 7, 100 + (i + 3) % 7], [100, 100]]).collect();
        assert!(!RunTimes::of(&same).is_slower());
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let found = RunTimes::of(&[[[100, 50], [100, 50]], [[900, 300], [1000, 333]], [[190, 80], [210, 80]]]);
        assert_eq!((found.a_ns, found.b_ns, found.runs), (210, 80, 3));
        assert_eq!(found.ratio, Ratio { low: 2.0, median: 2.5, high: 1900.0 / 633.0 });
        assert_eq!(found.control.to_string(), "0.90 (0.90 to 1.00)");
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
