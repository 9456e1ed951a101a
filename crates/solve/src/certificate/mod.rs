//! Certificates: what a solution costs and what no solution can undercut, checkable without the solver.
//!
//! The problem is a sum of functions of few variables (`functions.rs`). A certificate has three parts:
//!
//! - an *assignment*: its cost is looked up;
//! - *shifts*: amounts moved from a function to that of one of its variables, state by state. They change no sum, so whatever
//!   bounds the shifted functions bounds the problem. After good shifts the least entries of all functions add up to nearly
//!   the optimum; in the case of two layouts that is the maximum flow;
//! - for each connected part a *proof*: in which order to minimize over its variables. The checker computes the tables itself.
//!   A table that would be too large is taken in pieces, each minimized apart, which leaves a bound; a branch goes through the
//!   states of one variable and may prove each of them otherwise.
//!
//! The bound is the sum over the parts. Costs are whole nanoseconds, so that of a part is rounded up. The size of a certificate
//! is that of the problem at most: tables are not stored.
//!
//! [`Certificate::check`] and `functions.rs` use nothing of the solvers. [`certify`] does: it takes a solution from
//! [`solve`](super::solve) and an order from the solvers' heuristic, neither of which the checker has to trust.

mod check;
pub(crate) mod functions;
mod make;

use super::problem::Problem;
use crate::Cost;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use make::certify;

/// Version of the form of a [`Certificate`].
pub const SCHEMA: u32 = 1;

/// A claim about a [`Problem`] with all that is needed to check it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Certificate {
    /// Version of this form.
    pub schema: u32,
    /// A digest of the problem, which tells a certificate of another one.
    pub problem: String,
    /// A state for each variable.
    pub assignment: Vec<u32>,
    /// What the assignment costs.
    pub cost: Cost,
    /// No assignment costs less.
    pub bound: Cost,
    /// Amounts moved between functions.
    pub shifts: Vec<Shift>,
    /// A proof for each connected part, by its smallest variable.
    pub parts: Vec<Proof>,
}

/// Amounts taken from a function and given to that of one of its variables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shift {
    /// The function that they are taken from.
    pub function: u32,
    /// The variable.
    pub variable: u32,
    /// For each of its states, in 1024th of a nanosecond.
    pub amounts: Vec<i64>,
}

/// How the functions of a part are bounded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// By minimizing over its variables one after the other.
    Eliminate {
        /// Every variable that is free, once.
        order: Vec<u32>,
        /// The most entries of a table; what would need more is taken apart.
        entries: usize,
    },
    /// By the least of the cases.
    Branch {
        /// The variable whose states are the cases.
        variable: u32,
        /// A proof for each state.
        cases: Vec<Proof>,
    },
}

/// What a certificate that holds says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// The cost of its assignment.
    pub cost: Cost,
    /// No assignment costs less.
    pub bound: Cost,
}

impl Checked {
    /// Whether nothing can be cheaper.
    #[must_use]
    pub fn is_optimal(self) -> bool {
        self.cost == self.bound
    }

    /// How much cheaper than the assignment something could be, in percent of its cost.
    #[must_use]
    pub fn gap_percent(self) -> f64 {
        let (cost, bound) = (self.cost.get(), self.bound.get().min(self.cost.get()));
        (cost - bound) as f64 * 100.0 / cost.max(1) as f64
    }
}

/// Why a certificate does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A form that this version does not know.
    #[error("the certificate has form {got}; this version checks form {SCHEMA}")]
    Schema {
        /// The form that it names.
        got: u32,
    },
    /// It speaks of something else.
    #[error("the certificate is one of another problem: of another model, target, version, or of other sizes")]
    OtherProblem,
    /// The assignment does not cost what is claimed.
    #[error("the certificate claims a cost of {} ns, but its assignment costs {}", .claimed.get(), said(*.found))]
    Cost {
        /// The cost claimed.
        claimed: Cost,
        /// The cost found.
        found: Cost,
    },
    /// The bound does not follow.
    #[error("the certificate claims a bound of {} ns, but it proves {} only", .claimed.get(), said(*.found))]
    Bound {
        /// The bound claimed.
        claimed: Cost,
        /// The bound found.
        found: Cost,
    },
    /// A shift that can't be.
    #[error(
        "shift {at} of the certificate names no function of more than one variable with that variable, or has not one amount for each state"
    )]
    Shift {
        /// Which one.
        at: usize,
    },
    /// Too few or too many proofs.
    #[error("the certificate has {got} proofs for {want} parts")]
    Parts {
        /// Proofs given.
        got: usize,
        /// Parts of the problem.
        want: usize,
    },
    /// A proof that proves nothing.
    #[error("the proof of part {part} does not hold: {why}")]
    Proof {
        /// The part.
        part: usize,
        /// What is wrong.
        why: String,
    },
}

fn said(cost: Cost) -> String {
    if cost.is_finite() { format!("{} ns", cost.get()) } else { "more than can be paid".to_owned() }
}

impl Certificate {
    /// Checks every claim against the problem, without solving it: looks up the cost, and computes the bound from the shifts
    /// and the proofs.
    ///
    /// # Errors
    /// [`CertificateError`] if a claim does not hold, or if checking would take more than fixed limits.
    pub fn check(&self, problem: &Problem) -> Result<Checked, CertificateError> {
        check::check(problem, self)
    }
}

/// FNV-1a over everything that a problem says but names, 64 bits in hex.
fn digest(problem: &Problem) -> String {
    let mut hash = Digest(0xcbf2_9ce4_8422_2325);
    hash.eat([problem.unary.len(), problem.pairs.len(), problem.values.len()].map(|n| n as u64));
    for costs in &problem.unary {
        hash.eat([costs.len() as u64]);
        hash.eat(costs.iter().map(|c| c.get()));
    }
    for pair in &problem.pairs {
        hash.eat([pair.a, pair.b].map(|var| u64::from(var.0)));
        hash.eat(pair.table.iter().map(|c| c.get()));
    }
    for value in &problem.values {
        hash.eat([u64::from(value.producer.0), value.uses.len() as u64, value.layouts as u64]);
        hash.eat(value.produces.iter().map(|&layout| u64::from(layout)));
        for read in &value.uses {
            hash.eat([u64::from(read.var.0)]);
            hash.eat(read.wants.iter().map(|want| want.map_or(u64::MAX, u64::from)));
        }
        hash.eat(value.moves.iter().map(|c| c.get()));
    }
    format!("{:016x}", hash.0)
}

struct Digest(u64);

impl Digest {
    fn eat(&mut self, words: impl IntoIterator<Item = u64>) {
        for byte in words.into_iter().flat_map(u64::to_le_bytes) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
