//! `assign`: which layout every value has.
//!
//! 1. `candidates`: the layouts a value may have, as the closure of the input's own orders and of what each op demands,
//!    pushed through the signatures both ways to a fixpoint; and with them the choices of every node.
//! 2. `problem`: choices and shared moves as one cost-function network; [`solve`](crate::solve) finds the cheapest.
//! 3. `regions`: what is left unchanged bounds regions; a region whose cost does not strictly fall, or that would be dearer at
//!    half or double of the size hints, goes back to its origin. Ties keep the input.
//!
//! All graphs of a model, bodies included, are decided together; see `scopes`.
//!
//! The result is a [`Plan`]: nothing is edited here. `materialize` does that.

mod candidates;
mod lanes;
mod plan;
mod problem;
mod regions;
mod scopes;

pub use plan::{Plan, Taken, Want};
pub use problem::SolveRecord;
pub use scopes::{BodyKey, Scopes};

use crate::hints::Hints;
use crate::solve::{Limits, ProblemError};
use candidates::Candidates;
use relayout_target::Target;

/// Decides the layouts of a whole model, whose forms are bound.
///
/// # Errors
/// [`ProblemError`] for graphs beyond the solver's number range.
pub fn assign(
    scopes: &Scopes<'_>,
    target: &dyn Target,
    hints: &Hints,
    limits: &Limits,
) -> Result<(Plan, SolveRecord), ProblemError> {
    let candidates = Candidates::close(scopes, target, hints);
    let (chosen, record) = problem::decide(scopes, &candidates, target, hints, limits)?;
    let mut plan = Plan::new(scopes, candidates, chosen);
    regions::keep_what_gains(scopes, &mut plan, target, hints);
    Ok((plan, record))
}
