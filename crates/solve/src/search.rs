//! Branch and bound over what elimination could not settle.
//!
//! Variables are given states in the opposite order of their elimination. The messages of the buckets below bound what is
//! still to come, so a node's bound is the weight of what is settled plus the messages into it. Below the first bucket that was
//! split messages are exact: there the best rest is read off, and the search has no need to descend.
//!
//! When the nodes run out, what was left unopened still has its bounds; the least of them is the bound reported.

use super::eliminate::Buckets;
use super::weight::Weight;

/// What the search has to say.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The best states known, of the network's own variables.
    pub(super) states: Vec<u32>,
    /// Their weight; infinite if nothing better than that is known.
    pub(super) weight: Weight,
    /// No assignment weighs less.
    pub(super) bound: Weight,
    /// Nodes opened.
    pub(super) nodes: u64,
}

/// The states still to try at one bucket, dearest first, with their bounds.
struct Frame {
    children: Vec<(Weight, u32)>,
}

/// Improves on `known` states and their weight, opening at most `max_nodes` nodes.
pub(super) fn search(buckets: &Buckets, known: (Vec<u32>, Weight), max_nodes: u64) -> Outcome {
    let (states, weight) = known;
    let mut outcome = Outcome { states, weight, bound: buckets.bound, nodes: 0 };
    let Some(leaf) = buckets.first_split else { return outcome };
    if buckets.bound >= outcome.weight {
        outcome.bound = outcome.weight;
        return outcome;
    }
    let mut states = vec![0_u32; buckets.domains.len()];
    let top = buckets.order.len() - 1;
    let mut frames = vec![open(buckets, top, buckets.bound, &mut states)];
    while !frames.is_empty() {
        let at = top + 1 - frames.len();
        let Some((bound, state)) = frames.last_mut().and_then(|frame| frame.children.pop()) else {
            frames.pop();
            continue;
        };
        if bound >= outcome.weight {
            frames.pop(); // the others are no better
            continue;
        }
        states[buckets.order[at]] = state;
        if at == leaf {
            let mut full = states.clone();
            buckets.decode(leaf, &mut full);
            outcome.states = buckets.own(&full);
            outcome.weight = bound;
            continue;
        }
        if outcome.nodes == max_nodes {
            let open = frames.iter().filter_map(|frame| frame.children.last()).map(|&(bound, _)| bound);
            let least = open.chain([bound]).min().unwrap_or(bound);
            outcome.bound = least.min(outcome.weight).max(buckets.bound);
            return outcome;
        }
        outcome.nodes += 1;
        frames.push(open(buckets, at - 1, bound, &mut states));
    }
    outcome.bound = outcome.weight;
    outcome
}

/// The states of bucket `at` below a node of bound `above`.
fn open(buckets: &Buckets, at: usize, above: Weight, states: &mut [u32]) -> Frame {
    let var = buckets.order[at];
    let sent: Weight = buckets.messages[at]
        .iter()
        .map(|&(bucket, index)| buckets.functions[bucket][index].at(states, &buckets.domains))
        .sum::<Weight>()
        + buckets.constants[at];
    let mut children = Vec::with_capacity(buckets.domains[var]);
    for state in 0..buckets.domains[var] as u32 {
        states[var] = state;
        let bound = above.minus(sent) + buckets.weigh(at, states);
        if bound.is_finite() {
            children.push((bound, state));
        }
    }
    children.sort_unstable_by(|a, b| b.cmp(a));
    Frame { children }
}
