//! The passes, their order, and the solvers of the decision.

mod cases;
mod milp;
#[path = "../oracle/mod.rs"]
mod oracle;
mod order;
mod parts;
mod pieces;
mod solve;
mod stub;
