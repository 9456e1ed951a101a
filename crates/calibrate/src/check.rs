//! A table held against shapes that are in none of its grids.

use std::fmt;

use relayout_targets::measured::{Case, ConvKernel, ConvShape, MeasuredCosts, Reorder, Side};
use serde::Serialize;

use super::shapes::{Source, draw};
use super::timing::{Bench, Chain, block};
use super::{CalibrateError, CalibrateOptions};
use relayout_verify::Runtime;

/// What differs by less counts as equal.
const DIFFERS: f64 = 1.1;

/// Two ways to run one convolution, in nanoseconds.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CaseComparison {
    /// The convolution.
    pub shape: String,
    /// What stands beside the plain kernel.
    pub other: &'static str,
    /// The plain kernel and the other way, measured.
    pub measured_ns: [u64; 2],
    /// The plain kernel and the other way, by the table.
    pub predicted_ns: [u64; 2],
}

impl CaseComparison {
    /// Whether one way is faster than the other by more than a tenth.
    pub fn differs(&self) -> bool {
        let [a, b] = self.measured_ns.map(|ns| ns as f64);
        a.max(b) > DIFFERS * a.min(b)
    }

    /// Whether the table finds the faster way.
    pub fn ranked(&self) -> bool {
        let less = |[a, b]: [u64; 2]| a < b;
        less(self.measured_ns) == less(self.predicted_ns)
    }

    /// What the way takes that the table chooses.
    pub fn chosen_ns(&self) -> u64 {
        let [plain, other] = self.measured_ns;
        if self.predicted_ns[0] < self.predicted_ns[1] { plain } else { other }
    }

    /// What the faster way takes.
    pub fn best_ns(&self) -> u64 {
        self.measured_ns[0].min(self.measured_ns[1])
    }
}

/// How good a table is.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// Every comparison.
    pub comparisons: Vec<CaseComparison>,
}

impl Check {
    /// Of the comparisons that `of` admits: how many differ by more than a tenth, and how many of those are ranked right.
    pub fn ranked(&self, of: impl Fn(&CaseComparison) -> bool) -> (usize, usize) {
        let differing: Vec<&CaseComparison> = self.comparisons.iter().filter(|c| of(c) && c.differs()).collect();
        (differing.len(), differing.iter().filter(|c| c.ranked()).count())
    }

    /// Time lost by believing the table, in percent of the time of the faster ways together.
    pub fn regret_percent(&self, of: impl Fn(&CaseComparison) -> bool) -> f64 {
        let sum =
            |ns: &dyn Fn(&CaseComparison) -> u64| self.comparisons.iter().filter(|c| of(c)).map(ns).sum::<u64>() as f64;
        100.0 * (sum(&CaseComparison::chosen_ns) / sum(&CaseComparison::best_ns).max(1.0) - 1.0)
    }

    /// The factor by which half of the predictions are off at most.
    pub fn median_factor(&self, of: impl Fn(&CaseComparison) -> bool) -> f64 {
        let factor = |(a, b): (&u64, &u64)| (*a.max(b)).max(1) as f64 / (*a.min(b)).max(1) as f64;
        let pairs = self.comparisons.iter().filter(|c| of(c)).flat_map(|c| c.measured_ns.iter().zip(&c.predicted_ns));
        let mut factors: Vec<f64> = pairs.map(factor).collect();
        factors.sort_by(f64::total_cmp);
        factors.get(factors.len() / 2).copied().unwrap_or(1.0)
    }

    /// The figures of some comparisons, for people.
    pub(crate) fn line(&self, what: &str, of: impl Fn(&CaseComparison) -> bool + Copy) -> String {
        let count = self.comparisons.iter().filter(|c| of(c)).count();
        let (differ, ranked) = self.ranked(of);
        let percent = 100.0 * ranked as f64 / differ.max(1) as f64;
        format!(
            "{what}: {count} pairs, {differ} differ by more than 10 %, ranked right {ranked} ({percent:.1} %); regret {:.2} %; half of \
             the costs within a factor of {:.2}",
            self.regret_percent(of),
            self.median_factor(of),
        )
    }

    /// The kinds of comparisons, in the order in which they come.
    fn kinds(&self) -> Vec<&'static str> {
        let mut kinds: Vec<&'static str> = Vec::new();
        for comparison in &self.comparisons {
            if !kinds.contains(&comparison.other) {
                kinds.push(comparison.other);
            }
        }
        kinds
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for kind in self.kinds() {
            writeln!(f, "{}", self.line(&format!("plain or {kind}"), |c| c.other == kind))?;
        }
        writeln!(f, "{}", self.line("all", |_| true))
    }
}

/// Holds a table against convolutions drawn from a seed. `progress` hears how many of how many measurements are done.
pub fn check(
    runtime: &Runtime,
    costs: &MeasuredCosts,
    options: &CalibrateOptions,
    seed: u64,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Check, CalibrateError> {
    let block = block(runtime)?;
    if block != costs.machine().block {
        return Err(CalibrateError::OtherBlock { table: costs.machine().block, machine: block });
    }
    let bench = Bench::new(runtime, options, block);
    let mut source = Source::new(seed);
    let shapes: Vec<ConvShape> = (0..options.shapes).map(|_| draw(&mut source)).collect();
    let ways: Vec<Vec<(&'static str, Chain)>> = shapes.iter().map(|shape| ways(shape, block)).collect();
    let chains: Vec<Chain> = ways.iter().flatten().map(|(_, chain)| chain.clone()).collect();
    let mut times = bench.times(&chains, progress)?.into_iter().map(|ns| ns.round().max(1.0) as u64);
    let predict = |chain: &Chain| chain.iter().map(|case| costs.ns(case)).sum::<Option<u64>>();
    let mut comparisons = Vec::new();
    for (shape, ways) in shapes.iter().zip(&ways) {
        let measured: Vec<u64> = times.by_ref().take(ways.len()).collect();
        let mut figures = ways.iter().zip(&measured).map(|((name, chain), &ns)| (*name, ns, predict(chain)));
        let Some((_, plain, Some(predicted))) = figures.next() else { continue };
        for (other, ns, cost) in figures {
            let cost = cost.unwrap_or(u64::MAX);
            let shape = spelled(shape);
            comparisons.push(CaseComparison {
                shape,
                other,
                measured_ns: [plain, ns],
                predicted_ns: [predicted, cost],
            });
        }
    }
    Ok(Check { comparisons })
}

/// The ways to run a convolution, the plain kernel first.
fn ways(shape: &ConvShape, block: u64) -> Vec<(&'static str, Chain)> {
    let conv = |form| Case::Conv(*shape, form);
    let output = Case::Reorder(Reorder::Output, Side::Nchw, [shape.n, shape.m, shape.oh, shape.ow]);
    let input = Case::Reorder(Reorder::Input, Side::Nchw, [shape.n, shape.c, shape.h, shape.w]);
    let mut ways = vec![("plain", vec![conv(ConvKernel::Plain)])];
    if shape.group == 1 && shape.c < block {
        ways.push(("blocked from NCHW", vec![conv(ConvKernel::BlockedFromNchw)]));
        ways.push(("blocked from NCHW, then a reorder", vec![conv(ConvKernel::BlockedFromNchw), output]));
        return ways;
    }
    let per_group = [shape.c / shape.group, shape.m / shape.group];
    let dense = Case::Conv(ConvShape { group: 1, ..*shape }, ConvKernel::Blocked);
    if shape.is_depthwise() || per_group.iter().all(|c| c.is_multiple_of(block)) || shape.group == 1 {
        ways.push(("blocked", vec![conv(ConvKernel::Blocked)]));
        // Reorders take channels by four, and the groups of the one behind them must fit.
        if shape.c.is_multiple_of(4) {
            ways.push(("blocked between two reorders", vec![input, conv(ConvKernel::Blocked), output]));
        }
    } else {
        ways.push(("blocked, each group padded", vec![conv(ConvKernel::Blocked)]));
    }
    if shape.group > 1 && !shape.is_depthwise() && shape.c <= 512 {
        ways.push(("blocked, without groups", vec![dense]));
    }
    ways
}

pub(crate) fn spelled(s: &ConvShape) -> String {
    let activation = s.activation.map_or("", |a| a.name());
    format!(
        "{}x{}x{}x{} to {}x{}x{}, kernel {}x{}, stride {}, group {} {activation}",
        s.n, s.c, s.h, s.w, s.m, s.oh, s.ow, s.kh, s.kw, s.stride[0], s.group
    )
    .trim_end()
    .to_owned()
}
