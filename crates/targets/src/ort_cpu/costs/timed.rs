//! Times of single cases, for one model on one machine.
//!
//! A table of grids answers for every size, by what was measured at others. [`Timed`] has what was measured at the very sizes that a
//! model's decision asks about, and says which those are.

use super::case::Case;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Mutex, PoisonError};

/// Cases that were measured by themselves, and those that were asked about.
///
/// Where only some of the cases of a decision were measured, the others are what the grids say times a ratio: else a machine
/// that is slower than that of the table would make everything that was measured look bad.
#[derive(Debug, Default)]
pub struct Timed {
    ns: FxHashMap<Case, u64>,
    /// What this machine takes for what the table has as one nanosecond.
    scale: Option<f64>,
    source: String,
    asked: Mutex<FxHashSet<Case>>,
}

impl Timed {
    /// Times of cases, in nanoseconds, and what the grids' times are multiplied with for all others: `None` leaves them. `source` says
    /// for people where they come from.
    pub fn new(times: impl IntoIterator<Item = (Case, u64)>, scale: Option<f64>, source: impl Into<String>) -> Timed {
        Timed { ns: times.into_iter().collect(), scale, source: source.into(), asked: Mutex::default() }
    }

    /// Where the times come from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// How many cases were measured.
    pub fn len(&self) -> usize {
        self.ns.len()
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.ns.is_empty()
    }

    /// The times, with no order.
    pub fn times(&self) -> impl Iterator<Item = (&Case, u64)> {
        self.ns.iter().map(|(case, ns)| (case, *ns))
    }

    /// The cases that were asked about and not measured, with no order.
    pub fn asked(&self) -> Vec<Case> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The time of a case: as measured, else as the grids have it.
    pub(super) fn ns(&self, case: Case, grids: impl FnOnce() -> u64) -> u64 {
        if let Some(&ns) = self.ns.get(&case) {
            return ns;
        }
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(case);
        self.scaled(grids())
    }

    /// What the grids say, as this machine takes it.
    pub(super) fn scaled(&self, ns: u64) -> u64 {
        // A cast of a float saturates.
        self.scale.map_or(ns, |scale| (ns as f64 * scale).round().max(1.0) as u64)
    }
}
