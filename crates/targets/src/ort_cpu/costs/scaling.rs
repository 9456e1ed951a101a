//! What ops take on several threads, of what they take on one.
//!
//! A table has times on one thread, and for some numbers of threads a [`Share`]. Between those numbers it is interpolated. Beyond the most,
//! an op has a part that no thread shares and a part that all share (Amdahl's law).

use crate::shared::tables::grid::{exp2, log2};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Thousandths of its time on one thread from which on an op counts as one that the runtime does not share.
const SERIAL: u64 = 900;

/// What a number of threads leaves of the time that ops take on one thread: the same of all ops that the runtime shares among threads, and all
/// of it of the others.
///
/// A share for each kind of op was tried and decided worse: `docs/costs.md` has the figures.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Thousandths that are left of the time of an op that is shared.
    pub permille: u64,
    /// Grids of the ops that are not.
    pub serial: BTreeSet<String>,
}

impl Share {
    /// The share by measured points of each grid: what an op takes on one thread and on several, in nanoseconds without what a node takes
    /// anyhow. Threads get long ops only, so of each grid the longest quarter of the points counts.
    pub fn of<'g>(grids: impl IntoIterator<Item = (&'g str, Vec<(f64, f64)>)>) -> Share {
        let (mut shared, mut serial) = (Vec::new(), BTreeSet::new());
        for (name, mut points) in grids {
            points.sort_by(|a, b| b.0.total_cmp(&a.0));
            let longest = points.iter().take((points.len() / 4).max(1));
            let left: Vec<u64> = longest.map(|(one, more)| (1000.0 * more / one).round() as u64).collect();
            match middle(left) {
                Some(permille) if permille < SERIAL => shared.push(permille.max(1)),
                _ => drop(serial.insert(name.to_owned())),
            }
        }
        Share { permille: middle(shared).unwrap_or(1000), serial }
    }

    /// What is left of the time of the ops of a grid.
    pub fn part(&self, grid: &str) -> f64 {
        if self.serial.contains(grid) { 1.0 } else { self.permille as f64 / 1000.0 }
    }
}

/// The number in the middle.
fn middle(mut numbers: Vec<u64>) -> Option<u64> {
    numbers.sort_unstable();
    numbers.get(numbers.len() / 2).copied()
}

/// How numbers of threads compare with one thread, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Scaling {
    /// What a node takes anyhow, over what it takes on one thread.
    pub(super) nodes: BTreeMap<u64, f64>,
    /// What is left of the time of ops.
    pub(super) shares: BTreeMap<u64, Share>,
}

impl Scaling {
    /// The time of a node that does nothing on this many threads over that on one.
    pub(super) fn node(&self, threads: u64) -> f64 {
        at(self.nodes.iter().map(|(&threads, &part)| (threads, part)), threads)
    }

    /// The time of the ops of a grid on this many threads over that on one.
    pub(super) fn part(&self, grid: &str, threads: u64) -> f64 {
        at(self.shares.iter().map(|(&threads, share)| (threads, share.part(grid))), threads)
    }
}

/// What is left of a time, by what more threads than one leave of it, in rising order of threads.
fn at(measured: impl Iterator<Item = (u64, f64)>, threads: u64) -> f64 {
    let (mut low, threads) = ((1, 1.0), threads.max(1));
    for high in measured {
        if high.0 > threads {
            let [from, to, x] = [low.0, high.0, threads].map(|n| log2(n as f64));
            let [below, above] = [low.1, high.1].map(log2);
            return exp2(below + (above - below) * (x - from) / (to - from));
        }
        low = high;
    }
    let (most, part) = (low.0 as f64, low.1);
    if low.0 == 1 {
        return part;
    }
    // part = alone + (1 - alone) / most
    let alone = ((part - 1.0 / most) / (1.0 - 1.0 / most)).clamp(0.0, 1.0);
    let on = |threads: f64| alone + (1.0 - alone) / threads;
    part * on(threads as f64) / on(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_as_measured_and_the_middle_lies_between() {
        let measured = [(2, 0.6), (8, 0.3)];
        // Half of the way from 2 to 8, in factors.
        let between = (0.6_f64 * 0.3).sqrt();
        for (threads, part) in [(0, 1.0), (1, 1.0), (2, 0.6), (4, between), (8, 0.3)] {
            assert!((at(measured.into_iter(), threads) - part).abs() < 1e-9, "{threads}");
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
        for (part, threads, expected) in cases {
            let found = at([(2, part)].into_iter(), threads);
            assert!((found - expected).abs() < 1e-9, "{part} {threads}: {found}");
        }
        assert!((at(std::iter::empty(), 16) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn ops_that_threads_share_have_one_share_and_all_others_their_time() {
        // Short ops take longer on threads; of eight points the two longest count.
        let points =
            |long: f64| (1..=8).map(|n| (f64::from(n), f64::from(n) * if n > 6 { long } else { 1.5 })).collect();
        let grids = [("a", 0.52), ("b", 0.7), ("c", 0.56), ("d", 0.98), ("e", 1.4)];
        let share = Share::of(grids.map(|(name, long)| (name, points(long))));
        assert_eq!(share, Share { permille: 560, serial: ["d", "e"].map(str::to_owned).into() });
        assert_eq!(["a", "d"].map(|grid| (1000.0 * share.part(grid)).round() as u64), [560, 1000]);
        assert_eq!(Share::of([("a", Vec::new())]), Share { permille: 1000, serial: ["a".to_owned()].into() });
    }
}
