//! Costs for one model: the very kernels and moves that its decision asks about, measured on this machine.
//!
//! A decision asks a table what each kernel takes that it may choose. [`tune`] decides once, has the cases that were asked about, measures
//! them, and decides again with their times, until nothing new is asked or the time is up. What could not be measured in time is what the
//! table says, times what this machine takes for the others.

use crate::cache::{Cache, Time};
use crate::fastest::{Teller, TuneStep};
use crate::timing::{Bench, TOGETHER, block};
use crate::{CalibrateError, CalibrateOptions};
use relayout::{Model, Options, optimize};
use relayout_targets::OrtCpu;
use relayout_targets::measured::{Case, MeasuredCosts, Timed};
use relayout_verify::Runtime;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A decision with new costs may ask about new cases: so often at most.
const DECISIONS: usize = 4;
/// Cases below this time say more about calls of the runtime than about the machine.
const COMPARED_NS: u64 = 2_000;

/// What was measured for a model.
#[non_exhaustive]
pub struct Tuned {
    /// The target with these costs.
    pub target: OrtCpu,
    /// Cases that were measured now.
    pub measured: usize,
    /// Cases that the cache knew.
    pub known: usize,
    /// Cases that can't be timed by themselves, for which the table counts.
    pub untimed: usize,
    /// Cases for which there was no time left.
    pub left: usize,
}

/// Measures what the decision about a model for a target asks, for at most so long, the dearest first; `budget` is also the time in which
/// nothing is begun any more, so it is passed by what one group of cases takes. Times go to the cache as they come.
///
/// # Errors
/// [`CalibrateError::Stopped`] if who is told says so, [`CalibrateError::OtherBlock`] if the target is for hosts of other blocks; what the runtime, the model or the cache say.
pub fn tune(
    runtime: &Runtime,
    (model, options): (&Model, &Options),
    target: &OrtCpu,
    cache: &mut Cache,
    budget: Duration,
    told: Teller<'_>,
) -> Result<Tuned, CalibrateError> {
    let (machine, wanted) = (block(runtime)?, target.block().channels());
    if machine != wanted {
        return Err(CalibrateError::OtherBlock { table: wanted, machine });
    }
    let until = Instant::now() + budget;
    let grids = target.costs().clone();
    let mut work = Work { grids, block: machine, known: Vec::new(), refused: Vec::new(), measured: 0 };
    let mut left = 0;
    for _ in 0..DECISIONS {
        let timed = Arc::new(work.timed(cache));
        optimize(model, &work.target(target, &timed), options)?;
        let cases = work.asked(&timed);
        left = work.take(runtime, cases, cache, until, told)?;
        if timed.len() == work.known.len() {
            break;
        }
    }
    let timed = Arc::new(work.timed(cache));
    let (measured, untimed) = (work.measured, work.refused.len());
    Ok(Tuned { target: work.target(target, &timed), measured, known: work.known.len() - measured, untimed, left })
}

struct Work {
    grids: MeasuredCosts,
    /// Channels of a block here, which the table may have been measured without.
    block: u64,
    known: Vec<(Case, u64)>,
    refused: Vec<Case>,
    measured: usize,
}

impl Work {
    /// What is known by now, as costs.
    fn timed(&self, cache: &Cache) -> Timed {
        let source = format!("{} kernels and moves timed on {}", self.known.len(), cache.host());
        Timed::new(self.known.iter().cloned(), self.scale(), source)
    }

    fn target(&self, target: &OrtCpu, timed: &Arc<Timed>) -> OrtCpu {
        target.clone().with_costs(self.grids.clone().with_timed(Arc::clone(timed)))
    }

    /// What this machine takes for a nanosecond of the table: the middle one of all cases.
    fn scale(&self) -> Option<f64> {
        let ratio = |(case, ns): &(Case, u64)| {
            let said = self.grids.ns(case).filter(|&said| said >= COMPARED_NS)?;
            Some(*ns as f64 / said as f64)
        };
        let mut ratios: Vec<f64> = self.known.iter().filter_map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied()
    }

    /// What was asked about and is not known, the dearest first.
    fn asked(&self, timed: &Timed) -> Vec<Case> {
        let priced = |case: Case| (std::cmp::Reverse(self.grids.ns(&case)), format!("{case:?}"), case);
        let new = timed.asked().into_iter().filter(|case| !self.refused.contains(case));
        let mut cases: Vec<_> = new.map(priced).collect();
        cases.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        cases.into_iter().map(|(_, _, case)| case).collect()
    }

    /// Has the cases from the cache or measures them; how many were left when the time was up.
    fn take(
        &mut self,
        runtime: &Runtime,
        cases: Vec<Case>,
        cache: &mut Cache,
        until: Instant,
        told: Teller<'_>,
    ) -> Result<usize, CalibrateError> {
        let of = self.known.len() + self.refused.len() + cases.len();
        let mut new = Vec::new();
        for case in cases {
            match cache.get(&case) {
                Some(Time::Ns(ns)) => self.note(case, Some(ns)),
                Some(Time::Untimed) => self.note(case, None),
                None => new.push(case),
            }
        }
        let threads = usize::try_from(cache.host().threads).unwrap_or(1);
        let options =
            CalibrateOptions { passes: 2, rounds: 5, threads: vec![threads], ..CalibrateOptions::new("", "") };
        let bench = Bench::new(runtime, &options, self.block);
        let mut groups = new.chunks(TOGETHER);
        for group in groups.by_ref() {
            if told(TuneStep::Kernels { done: self.known.len() + self.refused.len(), of }).is_break() {
                return Err(CalibrateError::Stopped);
            }
            if Instant::now() >= until {
                return Ok(group.len() + groups.map(<[Case]>::len).sum::<usize>());
            }
            for (case, ns) in group.iter().zip(bench.cases(group)?) {
                cache.add(case, ns);
                self.measured += usize::from(ns.is_some());
                self.note(case.clone(), ns);
            }
            cache.save()?;
        }
        Ok(0)
    }

    fn note(&mut self, case: Case, ns: Option<u64>) {
        match ns {
            Some(ns) => self.known.push((case, ns)),
            None => self.refused.push(case),
        }
    }
}
