//! Which layout every value has. The pass `assign` asks, and all others read what was decided.
//!
//! 1. `candidates`: the layouts a value may have, as the closure of the input's own orders and of what each op demands,
//!    pushed through the signatures both ways to a fixpoint; and with them the `choices` of every node.
//! 2. `problem`: choices and shared moves as one cost-function network; [`relayout_solve`] finds the cheapest.
//! 3. `regions`: what is left unchanged bounds regions; a region whose cost does not strictly fall, or that would be dearer at
//!    half or double of the size hints, goes back to its origin. Ties keep the input. Of a target whose runtime blocks nodes when it
//!    loads a file, the origin is the input as that runs it (`loaded`).
//!
//! All graphs of a model, bodies included, are decided together; see `scopes`.
//!
//! [`Decision`] does it for a whole model; the result is a [`Plan`]: nothing is edited here. `materialize` does that. A decision
//! also answers for itself: which moves it leaves and what it would take for them to go, why a value lies as it does
//! (`why`), and with a certificate.

mod candidates;
mod choices;
mod decision;
mod ends;
mod lanes;
mod loaded;
mod pieces;
mod plan;
mod problem;
mod regions;
mod scopes;
mod why;

pub use decision::{Decision, Grounds, PricedMove, Standing, Way, problem};
pub use ends::{Ends, MovedEnd};
pub use plan::{Plan, Taken, Want};
pub use problem::SolveRecord;
pub(crate) use scopes::quantizes;
pub use scopes::{BodyKey, Scopes};
pub use why::{Alternative, Side, Why};
