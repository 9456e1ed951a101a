//! What an op takes on several threads, of what it takes on one.
//!
//! A table has times on one thread. For another number of threads it has two numbers for each grid, a [`Share`]: what it costs to give work to
//! threads and to wait for them, and which part of the time on one thread is left; a short op runs on one thread. They are fitted from few measurements, so that times of
//! ops on several threads differ from each other as those on one thread do, which are known better.
//!
//! Between numbers of threads that were measured shares are interpolated. Beyond the most, an op has a part that no thread shares and a part
//! that all share (Amdahl's law).

use crate::shared::tables::grid::{exp2, log2};
use std::collections::BTreeMap;

/// What ops of a grid take on a number of threads: `overhead_ns + permille / 1000` of what they take on one, or, where that is less, what they
/// take on one: the runtime gives no threads to short ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Nanoseconds to give work to threads and to wait for them.
    pub overhead_ns: u64,
    /// Of a thousand nanoseconds on one thread, how many are left.
    pub permille: u64,
}

impl Share {
    /// The share that fits measured points best, each what an op takes on one thread and on several, without what a node takes anyhow: the
    /// one with the smallest sum of differences in logarithms, those of long ops weighing more: what threads share of
    /// short ones is little, whatever their number. All of the time, where there is no point.
    pub fn fitted(points: &[(f64, f64)]) -> Share {
        let overheads =
            std::iter::once(0).chain((0..).map(|step| (100.0 * exp2(f64::from(step) / 2.0)) as u64).take(17));
        let parts = (0..70).map(|step| (20.0 * exp2(f64::from(step) / 11.0)) as u64);
        let shares =
            overheads.flat_map(|overhead_ns| parts.clone().map(move |permille| Share { overhead_ns, permille }));
        let far = |share: &Share| -> f64 {
            points
                .iter()
                .map(|&(one, more)| exp2(log2(one) / 4.0) * (log2(share.of(one)) - log2(more.max(1.0))).abs())
                .sum()
        };
        let all = Share { overhead_ns: 0, permille: 1000 };
        let nearer = |(best, least): (Share, f64), share: Share| {
            let far = far(&share);
            if far < least { (share, far) } else { (best, least) }
        };
        shares.fold((all, far(&all)), nearer).0
    }

    /// What is left of a time on one thread, both in nanoseconds.
    pub fn of(self, ns: f64) -> f64 {
        shared(ns, self.overhead_ns as f64, self.permille as f64 / 1000.0)
    }
}

/// What an op takes that takes so long on one thread.
fn shared(ns: f64, overhead: f64, part: f64) -> f64 {
    let on_threads = overhead + ns * part;
    if part < 1.0 { on_threads.min(ns) } else { on_threads }
}

/// How one number of threads compares with one thread.
#[derive(Clone, Debug)]
pub(super) struct OnThreads {
    /// The threads.
    pub(super) threads: u64,
    /// What a node takes anyhow, over what it takes on one thread.
    pub(super) node: f64,
    /// By grid.
    pub(super) shares: BTreeMap<String, Share>,
}

/// Numbers of threads that were measured, ascending, without one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Scaling(pub(super) Vec<OnThreads>);

impl Scaling {
    /// The time of a node that does nothing on this many threads over that on one.
    pub(super) fn node(&self, threads: u64) -> f64 {
        let measured = self.0.iter().map(|on| (on.threads, on.node));
        part(&std::iter::once((1, 1.0)).chain(measured).collect::<Vec<_>>(), threads)
    }

    /// What ops of a grid take on this many threads that take so many nanoseconds on one.
    pub(super) fn ns(&self, grid: &str, threads: u64, ns: f64) -> f64 {
        let (wait, part) = self.share(grid, threads);
        shared(ns, wait, part)
    }

    /// What ops of a grid take on one thread that take so many nanoseconds on this many.
    pub(super) fn alone(&self, grid: &str, threads: u64, ns: f64) -> f64 {
        let (wait, part) = self.share(grid, threads);
        let shared = ((ns - wait) / part).max(ns / 10.0);
        if part < 1.0 { shared.max(ns) } else { shared }
    }

    /// What waiting takes, and which part is left.
    fn share(&self, grid: &str, threads: u64) -> (f64, f64) {
        let shares = || self.0.iter().filter_map(|on| Some((on.threads, *on.shares.get(grid)?)));
        let parts: Vec<(u64, f64)> =
            std::iter::once((1, 1.0)).chain(shares().map(|(n, share)| (n, share.permille as f64 / 1000.0))).collect();
        let waits: Vec<(u64, f64)> =
            std::iter::once((1, 0.0)).chain(shares().map(|(n, share)| (n, share.overhead_ns as f64))).collect();
        (wait(&waits, threads), part(&parts, threads))
    }
}

/// The numbers of threads that were measured around this one, with what was measured: that and the ones below and above it.
fn around(measured: &[(u64, f64)], threads: u64) -> [Option<(f64, f64)>; 2] {
    let above = measured.partition_point(|(known, _)| *known <= threads);
    let at =
        |at: Option<usize>| at.and_then(|at| measured.get(at)).map(|&(threads, value)| (log2(threads as f64), value));
    [at(above.checked_sub(1)), at(Some(above))]
}

/// What is left of a time, by what is left on the numbers of threads that were measured, ascending from one.
fn part(measured: &[(u64, f64)], threads: u64) -> f64 {
    let (threads, x) = (threads.max(1), log2(threads.max(1) as f64));
    match around(measured, threads) {
        [Some((low, below)), Some((high, above))] => {
            exp2(log2(below) + (log2(above) - log2(below)) * (x - low) / (high - low))
        }
        // Nothing but one thread was measured.
        [Some((0.0, _)), None] => 1.0,
        [Some((low, below)), None] => {
            let most = exp2(low);
            // below = alone + (1 - alone) / most
            let alone = ((below - 1.0 / most) / (1.0 - 1.0 / most)).clamp(0.0, 1.0);
            let on = |threads: f64| alone + (1.0 - alone) / threads;
            below * on(threads as f64) / on(most)
        }
        _ => 1.0,
    }
}

/// What waiting for threads takes, in the same way.
fn wait(measured: &[(u64, f64)], threads: u64) -> f64 {
    let (threads, x) = (threads.max(1), log2(threads.max(1) as f64));
    match around(measured, threads) {
        [Some((low, below)), Some((high, above))] => below + (above - below) * (x - low) / (high - low),
        [Some((_, below)), None] => below,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_as_measured_and_the_middle_lies_between() {
        let measured = [(1, 1.0), (2, 0.6), (8, 0.3)];
        for (threads, ratio) in [(0, 1.0), (1, 1.0), (2, 0.6), (8, 0.3)] {
            assert!((part(&measured, threads) - ratio).abs() < 1e-12, "{threads}");
        }
        // Half of the way from 2 to 8, in factors, and for what is waited in numbers.
        assert!((part(&measured, 4) - (0.6_f64 * 0.3).sqrt()).abs() < 1e-9);
        let waits = [(1, 0.0), (2, 1000.0), (8, 5000.0)];
        for (threads, ns) in [(0, 0.0), (1, 0.0), (2, 1000.0), (4, 3000.0), (8, 5000.0), (64, 5000.0)] {
            assert!((wait(&waits, threads) - ns).abs() < 1e-6, "{threads}");
        }
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
            let found = part(&[(1, 1.0), (2, ratio)], threads);
            assert!((found - expected).abs() < 1e-9, "{ratio} {threads}: {found}");
        }
        assert!((part(&[(1, 1.0)], 16) - 1.0).abs() < 1e-12 && wait(&[(1, 0.0)], 16) == 0.0);
    }

    #[test]
    fn a_share_is_found_again_from_points_of_which_some_are_far_off() {
        for (overhead_ns, permille) in [(0, 1000), (1600, 550), (400, 300), (25_600, 700), (200, 1200)] {
            let share = Share { overhead_ns, permille };
            let mut points: Vec<(f64, f64)> =
                [500.0, 3e3, 2e4, 1e5, 7e5, 4e6, 3e7].map(|ns| (ns, share.of(ns))).to_vec();
            points.extend([(5e4, 3.0 * share.of(5e4)), (5e5, 0.4 * share.of(5e5))]);
            let found = Share::fitted(&points);
            for (one, more) in points.iter().take(7) {
                assert!((found.of(*one) / more - 1.0).abs() < 0.06, "{share:?}: {found:?} at {one}");
            }
        }
        assert_eq!(Share::fitted(&[]), Share { overhead_ns: 0, permille: 1000 });
    }
}
