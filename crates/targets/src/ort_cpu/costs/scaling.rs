//! What ops take on several threads, of what they take on one.
//!
//! A table has times on one thread, and for some numbers of threads a [`Share`]. Between those numbers it is interpolated. Beyond the most,
//! an op has a part that no thread shares and a part that all share (Amdahl's law).

use crate::shared::tables::grid::{Grid, exp2, log2};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Thousandths of its time on one thread from which on an op counts as one that the runtime does not share.
const SERIAL: u64 = 900;

/// Nanoseconds on one thread at which a share is fitted: waking threads is dear for short ops and nothing for long ones.
const FITTED: [u64; 7] = [500, 2_000, 8_000, 32_000, 128_000, 512_000, 2_048_000];

/// Points that say what is left of a time; fewer say too little.
const ENOUGH: usize = 6;

/// What a number of threads leaves of the time that ops take on one thread: of the ops that the runtime shares among threads a part that
/// depends on how long they take alone, and of all others all of it.
///
/// As long as shares fall more slowly than times rise, the one of two ops that is faster alone is the faster one on threads as well. A share for
/// each kind of op was tried and decided worse: `docs/costs.md` has the figures.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Nanoseconds that an op takes on one thread, rising.
    pub ns: Vec<u64>,
    /// Thousandths that are left of each. Between them it is interpolated, and beyond the ends it is that of the end.
    pub permille: Vec<u64>,
    /// Grids of the ops that are not shared. Of convolutions those count that stand for their kind: `conv-plain-im2col`,
    /// `conv-plain-depthwise`, `conv-blocked-regular`, `conv-blocked-depthwise`, `conv-from-nchw` and `conv-volume`.
    pub serial: BTreeSet<String>,
}

impl Share {
    /// The share by measured points of each grid: what an op takes on one thread and on several, in nanoseconds without what a node takes
    /// anyhow. Whether the ops of a grid are shared is what the longest quarter of its points say, since threads get long ops only.
    pub fn of<'g>(grids: impl IntoIterator<Item = (&'g str, Vec<(f64, f64)>)>) -> Share {
        let (mut shared, mut serial) = (Vec::new(), BTreeSet::new());
        for (name, mut points) in grids {
            points.sort_by(|a, b| b.0.total_cmp(&a.0));
            let longest = points.iter().take((points.len() / 4).max(1));
            match middle(longest.map(left).collect()) {
                Some(permille) if permille < SERIAL => shared.extend(points),
                _ => drop(serial.insert(name.to_owned())),
            }
        }
        let (mut ns, mut permille): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        for time in FITTED {
            // Each point counts within a factor of two.
            let near = |&&(alone, _): &&(f64, f64)| (log2(alone) - log2(time as f64)).abs() <= 1.0;
            let parts: Vec<u64> = shared.iter().filter(near).map(left).collect();
            if parts.len() < ENOUGH {
                continue;
            }
            // What is longer is shared as well as what is shorter.
            let least = permille.last().copied().unwrap_or(u64::MAX);
            ns.push(time);
            permille.push(middle(parts).unwrap_or(1000).clamp(1, least));
        }
        if ns.is_empty() {
            return Share {
                ns: vec![1],
                permille: vec![middle(shared.iter().map(left).collect()).unwrap_or(1000).max(1)],
                serial,
            };
        }
        Share { ns, permille, serial }
    }

    /// What is left of the time of an op of a grid that takes so many nanoseconds on one thread.
    pub fn part(&self, grid: &str, ns: f64) -> f64 {
        if self.serial.contains(grid) {
            return 1.0;
        }
        let permille: Vec<f64> = self.permille.iter().map(|&permille| permille as f64 / 1000.0).collect();
        Grid::new(std::slice::from_ref(&self.ns), &permille).rate(&[ns])
    }
}

/// Thousandths of the time alone that are left.
fn left(&(alone, more): &(f64, f64)) -> u64 {
    (1000.0 * more / alone).round() as u64
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

    /// What is left on this many threads of the times of the ops of a grid on one, by their nanoseconds there.
    pub(super) fn parts(&self, grid: &str, threads: u64) -> Grid {
        let times: BTreeSet<u64> = self.shares.values().flat_map(|share| share.ns.iter().copied()).collect();
        let times: Vec<u64> = if times.is_empty() { vec![1] } else { times.into_iter().collect() };
        let part = |&ns: &u64| at(self.shares.iter().map(|(&n, share)| (n, share.part(grid, ns as f64))), threads);
        let parts: Vec<f64> = times.iter().map(part).collect();
        Grid::new(&[times], &parts)
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
    fn a_share_falls_with_the_time_of_an_op_and_leaves_serial_ops_their_time() {
        // Points of three grids at four times: long ops are shared better, and one grid is not shared. The last is near no time that is fitted.
        let points = |parts: [f64; 4]| {
            let times = [2_100.0, 33_000.0, 500_000.0, 9e6];
            let of = |(time, part): (f64, f64)| (0..if time > 1e6 { 1 } else { 4 }).map(move |_| (time, time * part));
            times.into_iter().zip(parts).flat_map(of).collect::<Vec<_>>()
        };
        let grids = [("a", [1.2, 0.7, 0.52, 0.5]), ("b", [1.2, 0.6, 0.56, 0.5]), ("c", [1.0, 1.0, 0.98, 1.0])];
        let share = Share::of(grids.map(|(name, parts)| (name, points(parts))));
        assert_eq!((&share.ns[..], &share.permille[..]), (&[2_000, 32_000, 512_000][..], &[1200, 700, 560][..]));
        assert_eq!(share.serial, ["c".to_owned()].into());
        for (grid, ns, part) in [("a", 100.0, 1.2), ("a", 8_000.0, 0.9165), ("b", 1e9, 0.56), ("c", 1e9, 1.0)] {
            assert!((share.part(grid, ns) - part).abs() < 1e-3, "{grid} {ns}: {}", share.part(grid, ns));
        }
        assert_eq!(Share::of([("a", Vec::new())]).serial, ["a".to_owned()].into());
    }

    #[test]
    fn parts_on_any_number_of_threads_follow_from_each_share() {
        let share =
            |ns: &[u64], permille: &[u64]| Share { ns: ns.into(), permille: permille.into(), serial: BTreeSet::new() };
        let shares = [(2, share(&[1_000, 100_000], &[1000, 500])), (8, share(&[10_000], &[250]))].into();
        let scaling = Scaling { nodes: BTreeMap::new(), shares };
        let part = |threads: u64, ns: f64| scaling.parts("a", threads).rate(&[ns]);
        for (threads, ns, expected) in [
            (1, 1e3, 1.0),
            (2, 1e3, 1.0),
            (2, 1e4, 0.5_f64.sqrt()),
            (8, 1e9, 0.25),
            (4, 1e6, (0.5_f64 * 0.25).sqrt()),
            (16, 1e6, 1.0 / 7.0 + 6.0 / 7.0 / 16.0),
        ] {
            // Twice as many threads as the most: 0.25 is a seventh alone and six shared by eight.
            assert!((part(threads, ns) / expected - 1.0).abs() < 1e-9, "{threads} {ns}: {}", part(threads, ns));
        }
    }
}
