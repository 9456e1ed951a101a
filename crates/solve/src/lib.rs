//! Cost function networks: which state each variable takes, at the least cost, with a lower bound and a proof.
//!
//! ```
//! use relayout_solve::{Cost, Limits, Problem, certificate, solve};
//!
//! let costs = |units: &[u64]| units.iter().copied().map(Cost::new).collect::<Vec<_>>();
//! let mut problem = Problem::new();
//! let a = problem.add_variable("a", costs(&[0, 5]))?;
//! let b = problem.add_variable("b", costs(&[9, 1]))?;
//! problem.add_pair(a, b, costs(&[0, 7, 7, 0]))?;
//! let solution = solve(&problem, &Limits::default());
//! assert_eq!((solution.cost, solution.optimal), (Cost::new(6), true));
//! let (_, certificate) = certificate::certify(&problem, &Limits::default());
//! assert!(certificate.check(&problem)?.is_optimal());
//! assert_eq!(problem.to_string().parse(), Ok(problem));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Should you use this? It is made for networks with few states, narrow graphs, and *shared values*: what one variable makes and others
//! want in several forms, each conversion paid once. Those of layouts of tensors are such. It is exact where tables stay small; for
//! dense networks of many states a solver such as toulbar2, whose files [`wcsp`] reads and writes, goes further.
//!
//! [`Problem`] is self-contained: it knows nothing of graphs, targets or files, and [`text`] is its form for people. [`solve()`] first
//! settles what can be settled without loss (`reduce.rs`, `prune.rs`), then treats each connected component by itself:
//!
//! 1. two states everywhere and labels that can be oriented: a minimum cut (`cut.rs`, `flow.rs`), exact;
//! 2. otherwise bucket elimination in min-fill order (`eliminate.rs`), exact while the tables stay below a cap;
//! 3. beyond the cap buckets are split, which leaves a lower bound, and a branch and bound guided by that bound closes the gap
//!    or runs out of nodes (`search.rs`), starting from what a local search finds (`local.rs`).
//!
//! **Costs** are whole numbers of any unit; relayout counts nanoseconds, and the messages of [`certificate`] say so.
//!
//! **Ties** go to the input: among assignments of equal cost one with the fewest variables off state 0 is taken, exactly, by
//! carrying that count below the cost (`weight.rs`). All limits are counts, nothing depends on time, addresses or hashing:
//! the same problem gives the same solution.
//!
//! **Proof**: [`certificate::certify`] gives a solution together with what a checker needs to verify its cost and its bound.
//!
//! **Bound**: [`Solution::bound`] never exceeds the optimum of the problem *as given*: these variables, states and prices. It
//! equals [`Solution::cost`] wherever [`Solution::optimal`] says so; where the limits cut in it may lie below.
//!
//! Absent: any I/O, and any clock.

#![forbid(unsafe_code)]

pub mod certificate;
mod component;
mod cost;
mod cut;
mod dot;
mod eliminate;
mod flow;
mod local;
mod network;
mod order;
mod problem;
mod prune;
mod reduce;
mod search;
mod table;
pub mod text;
pub mod wcsp;
mod weight;

#[cfg(test)]
mod tests;

// The oracle, which tests of other crates share, knows this crate by its name.
#[cfg(test)]
extern crate self as relayout_solve;

use serde::{Deserialize, Serialize};
use std::fmt;

pub use cost::Cost;
pub use problem::{MAX_LAYOUTS, Problem, ProblemError, SharedValue, Use, Var};

/// How far the solvers may go; counts only, so that the same problem always ends the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Limits {
    /// The most entries in one table of the elimination.
    pub max_table_entries: usize,
    /// The most entries in all tables of the elimination of one component together; 16 bytes each.
    pub max_total_entries: usize,
    /// The most nodes that the branch and bound of one component opens.
    pub max_branch_nodes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_table_entries: 1 << 18, max_total_entries: 1 << 24, max_branch_nodes: 1 << 18 }
    }
}

/// What settled a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Method {
    /// A minimum cut.
    Cut,
    /// Bucket elimination without a split.
    Elimination,
    /// Branch and bound over split buckets.
    Search,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Cut => "minimum cut",
            Method::Elimination => "elimination",
            Method::Search => "branch and bound",
        })
    }
}

/// Counts of what the solvers did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stats {
    /// Variables of the problem.
    pub variables: usize,
    /// Variables that another one stands for.
    pub merged: usize,
    /// Variables settled before any solver: one state left, or nothing that ties it to others.
    pub pinned: usize,
    /// States of all variables.
    pub states: usize,
    /// Variables left for the solvers.
    pub variables_left: usize,
    /// States that these have left.
    pub states_left: usize,
    /// Components left.
    pub components: usize,
    /// Components that a minimum cut settled.
    pub cut_components: usize,
    /// Variables eliminated by tables that were not split, those added for shared values included.
    pub eliminated: usize,
    /// Nodes that branch and bound opened.
    pub branch_nodes: u64,
}

/// An assignment, its cost, and how far from the optimum it can be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Solution {
    /// The state of each variable.
    pub assignment: Vec<u32>,
    /// [`Problem::cost`] of the assignment; infinite if there is no assignment that can be paid, or none was found.
    pub cost: Cost,
    /// No assignment costs less; of a minimum cut it is the maximum flow.
    pub bound: Cost,
    /// Whether the assignment is proven to be the best, ties included.
    pub optimal: bool,
    /// What settled each component, components ordered by their smallest variable.
    pub methods: Vec<Method>,
    /// What was done.
    pub stats: Stats,
}

/// What one component came to.
struct Part {
    states: Vec<u32>,
    bound: weight::Weight,
    optimal: bool,
    method: Method,
}

/// Finds the cheapest assignment of `problem`, or the best that `limits` allow.
#[must_use]
pub fn solve(problem: &Problem, limits: &Limits) -> Solution {
    let reduced = reduce::reduce(network::Network::of(problem));
    let mut stats = Stats {
        variables: problem.variables(),
        merged: reduced.merged,
        pinned: reduced.pinned,
        states: problem.unary.iter().map(Vec::len).sum(),
        variables_left: reduced.components.iter().map(|c| c.vars.len()).sum(),
        states_left: reduced.components.iter().flat_map(|c| &c.states).map(Vec::len).sum(),
        components: reduced.components.len(),
        ..Stats::default()
    };
    let mut bound = reduced.settled;
    let mut optimal = true;
    let mut methods = Vec::with_capacity(reduced.components.len());
    let mut solved = Vec::with_capacity(reduced.components.len());
    for component in &reduced.components {
        let part = solve_component(&component.network, limits, &mut stats);
        bound += part.bound;
        optimal &= part.optimal;
        methods.push(part.method);
        solved.push(part.states);
    }
    let assignment = reduced.expand(solved);
    let cost = problem.cost(&assignment);
    Solution { assignment, cost, bound: bound.cost().min(cost), optimal, methods, stats }
}

fn solve_component(network: &network::Network, limits: &Limits, stats: &mut Stats) -> Part {
    if let Some(cut::Optimum { states, weight }) = cut::minimum_cut(network) {
        stats.cut_components += 1;
        return Part { states, bound: weight, optimal: true, method: Method::Cut };
    }
    let buckets = eliminate::Buckets::new(network, limits);
    stats.eliminated += buckets.whole;
    let states = buckets.decoded();
    if buckets.first_split.is_none() {
        return Part { states, bound: buckets.bound, optimal: true, method: Method::Elimination };
    }
    let known = local::improve(network, states, limits);
    let found = search::search(&buckets, known, limits.max_branch_nodes);
    stats.branch_nodes += found.nodes;
    Part { states: found.states, bound: found.bound, optimal: found.bound >= found.weight, method: Method::Search }
}
