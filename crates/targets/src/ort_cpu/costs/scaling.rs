//! What an op takes on several threads, of what it takes on one.
//!
//! A table has times on one thread, and for some numbers of threads times at some of the same points. Their ratio is smooth: it is
//! interpolated over the points as rates are, and over numbers of threads. Beyond the most threads that were measured an op has a part that
//! no thread shares and a part that all share (Amdahl's law); what gets no faster on more threads stays as it is.

use crate::shared::tables::grid::{Grid, exp2, log2};
use std::collections::BTreeMap;

/// How one number of threads compares with one thread.
#[derive(Clone, Debug)]
pub(super) struct OnThreads {
    /// The threads.
    pub(super) threads: u64,
    /// What a node takes anyhow, over what it takes on one thread.
    pub(super) node: f64,
    /// Rates of each grid over those on one thread.
    pub(super) grids: BTreeMap<String, Grid>,
}

/// Numbers of threads that were measured, ascending, without one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Scaling(pub(super) Vec<OnThreads>);

impl Scaling {
    /// The time of a node that does nothing on this many threads over that on one.
    pub(super) fn node(&self, threads: u64) -> f64 {
        self.curve(|on| on.node).at(threads)
    }

    /// The rate at a place of a grid on this many threads over that on one.
    pub(super) fn rate(&self, grid: &str, at: &[f64], threads: u64) -> f64 {
        self.curve(|on| on.grids.get(grid).map_or(1.0, |grid| grid.rate(at))).at(threads)
    }

    fn curve(&self, ratio: impl Fn(&OnThreads) -> f64) -> Curve {
        let measured = self.0.iter().map(|on| (on.threads, ratio(on)));
        Curve(std::iter::once((1, 1.0)).chain(measured).collect())
    }
}

/// Numbers of threads and what something takes on them, over what it takes on one, which is the first.
struct Curve(Vec<(u64, f64)>);

impl Curve {
    fn at(&self, threads: u64) -> f64 {
        let above = self.0.partition_point(|(known, _)| *known <= threads.max(1));
        let Some(&(low, below)) = above.checked_sub(1).and_then(|at| self.0.get(at)) else { return 1.0 };
        if low == threads.max(1) {
            return below;
        }
        match self.0.get(above) {
            Some(&(high, above)) => {
                let [low, high, x] = [low, high, threads].map(|n| log2(n as f64));
                let [below, above] = [below, above].map(log2);
                exp2(below + (above - below) * (x - low) / (high - low))
            }
            None if low == 1 => 1.0,
            None => below * beyond(low as f64, below, threads as f64),
        }
    }
}

/// What more threads take of what `most` threads take, where these take `ratio` of one.
fn beyond(most: f64, ratio: f64, threads: f64) -> f64 {
    // ratio = alone + (1 - alone) / most
    let alone = ((ratio - 1.0 / most) / (1.0 - 1.0 / most)).clamp(0.0, 1.0);
    let on = |threads: f64| alone + (1.0 - alone) / threads;
    on(threads) / on(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(u64, f64)]) -> Curve {
        Curve(std::iter::once((1, 1.0)).chain(points.iter().copied()).collect())
    }

    #[test]
    fn what_was_measured_is_as_measured_and_the_middle_lies_between() {
        let curve = curve(&[(2, 0.6), (8, 0.3)]);
        for (threads, ratio) in [(0, 1.0), (1, 1.0), (2, 0.6), (8, 0.3)] {
            assert!((curve.at(threads) - ratio).abs() < 1e-12, "{threads}");
        }
        // Half of the way from 2 to 8, in factors.
        assert!((curve.at(4) - (0.6_f64 * 0.3).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn beyond_the_most_threads_a_part_is_not_shared() {
        let cases = [
            // All of it is shared; a fifth is not; nothing is; more threads are slower.
            (0.5, 16, 1.0 / 16.0),
            (0.6, 16, 0.2 + 0.8 / 16.0),
            (1.0, 16, 1.0),
            (1.3, 64, 1.3),
            // Two threads that are better than twice as fast are as good for more.
            (0.4, 4, 0.2),
        ];
        for (ratio, threads, expected) in cases {
            let found = curve(&[(2, ratio)]).at(threads);
            assert!((found - expected).abs() < 1e-9, "{ratio} {threads}: {found}");
        }
        assert!((curve(&[]).at(16) - 1.0).abs() < 1e-12);
    }
}
