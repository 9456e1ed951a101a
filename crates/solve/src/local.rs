//! Better assignments for components that elimination could not settle.
//!
//! Three kinds of moves, each never for the worse, in turn until a round of them gains nothing or the moves are used up:
//!
//! - *single*: a variable takes the state that is best for it while the others keep theirs;
//! - *fusion*: every variable chooses between its state and a proposed one, which is a problem of two states and often a
//!   minimum cut; the proposals are "all take state k";
//! - *bands*: the variables at every l-th distance from a root keep their states; the bands between them are solved at once.
//!
//! The last two restrict the network and hand it to the same reductions and solvers that the whole problem goes through.

use super::Limits;
use super::component::Component;
use super::cut;
use super::eliminate::Buckets;
use super::network::{Network, weigh_shared};
use super::reduce::reduce;
use super::weight::Weight;

/// Fusion and band moves in all, for small networks and, for large ones, by their variables.
const MAX_MOVES: usize = 96;
const MAX_MOVED_VARIABLES: usize = 200_000;
/// Sweeps of single moves after each other move.
const MAX_SWEEPS: usize = 8;
/// The largest tables in a move; the limits may ask for less.
const MAX_TABLE: usize = 1 << 14;
/// All tables of a move together.
const MAX_TOTAL: usize = 1 << 20;
/// The most readers of a value that single moves weigh again and again.
const CROWD: usize = 64;
/// Distances between the layers that bands keep.
const WIDTHS: [usize; 4] = [3, 5, 7, 9];

/// `start` or something better, with its weight.
pub(super) fn improve(network: &Network, start: Vec<u32>, limits: &Limits) -> (Vec<u32>, Weight) {
    let factors = Factors::of(network);
    let mut limits = limits.clone();
    limits.max_table_entries = limits.max_table_entries.min(MAX_TABLE);
    limits.max_total_entries = limits.max_total_entries.min(MAX_TOTAL);
    let moves = (MAX_MOVED_VARIABLES / start.len().max(1)).clamp(4, MAX_MOVES);
    let mut local = Local { network, weight: network.weigh(&start), states: start, limits, moves };
    local.sweep(&factors);
    let roots = [0, factors.farthest(network, 0)];
    let layers: Vec<Vec<usize>> = roots.iter().map(|&root| factors.distances(network, root)).collect();
    loop {
        let before = local.weight;
        local.fusions(&factors);
        local.bands(&factors, &layers);
        if local.weight >= before || local.moves == 0 {
            return (local.states, local.weight);
        }
    }
}

struct Local<'a> {
    network: &'a Network,
    states: Vec<u32>,
    weight: Weight,
    limits: Limits,
    /// Moves left.
    moves: usize,
}

impl Local<'_> {
    fn fusions(&mut self, factors: &Factors) {
        let most = self.network.unary.iter().map(Vec::len).max().unwrap_or(0);
        for proposed in 0..most as u32 {
            let states = self.states.clone();
            self.restricted(factors, |var, state| state == states[var] || state == proposed);
        }
    }

    fn bands(&mut self, factors: &Factors, layers: &[Vec<usize>]) {
        for width in WIDTHS {
            for layer in layers {
                for offset in [0, width / 2] {
                    let states = self.states.clone();
                    self.restricted(factors, |var, state| layer[var] % width != offset || state == states[var]);
                }
            }
        }
    }

    /// Takes the best assignment among the states that `keep` names, the present ones included, if it is better.
    fn restricted(&mut self, factors: &Factors, keep: impl Fn(usize, u32) -> bool) {
        if self.moves == 0 {
            return;
        }
        self.moves -= 1;
        let mut network = self.network.clone();
        for (var, weights) in network.unary.iter_mut().enumerate() {
            for (state, weight) in weights.iter_mut().enumerate() {
                if !keep(var, state as u32) {
                    *weight = Weight::INFINITE;
                }
            }
        }
        let reduced = reduce(network);
        let solved: Vec<Vec<u32>> = reduced.components.iter().map(|component| self.component(component)).collect();
        let states = reduced.expand(solved);
        let weight = self.network.weigh(&states);
        if weight < self.weight {
            (self.states, self.weight) = (states, weight);
            self.sweep(factors);
        }
    }

    /// The best states of `component`, or else good ones.
    fn component(&self, component: &Component) -> Vec<u32> {
        let network = &component.network;
        if let Some(optimum) = cut::minimum_cut(network) {
            return optimum.states;
        }
        let buckets = Buckets::new(network, &self.limits);
        let states = buckets.decoded();
        match component.project(&self.states) {
            Some(present) if buckets.first_split.is_some() && network.weigh(&present) <= network.weigh(&states) => {
                present
            }
            _ => states,
        }
    }

    /// Single moves until none gains.
    fn sweep(&mut self, factors: &Factors) {
        for _ in 0..MAX_SWEEPS {
            let mut gained = false;
            for var in (0..self.states.len()).filter(|&var| !factors.crowded[var]) {
                let present = self.states[var];
                let mut best = (self.around(factors, var), present);
                for state in 0..self.network.unary[var].len() as u32 {
                    self.states[var] = state;
                    let weight = self.around(factors, var);
                    if weight < best.0 {
                        best = (weight, state);
                    }
                }
                self.states[var] = best.1;
                gained |= best.1 != present;
            }
            if !gained {
                break;
            }
        }
        self.weight = self.network.weigh(&self.states);
    }

    /// What the factors of `var` weigh.
    fn around(&self, factors: &Factors, var: usize) -> Weight {
        let state = |var: usize| self.states[var] as usize;
        let links = factors.links[var].iter().map(|&at| {
            let link = &self.network.links[at];
            link.table[state(link.a) * self.network.unary[link.b].len() + state(link.b)]
        });
        let shared = factors.shared[var].iter().map(|&at| weigh_shared(&self.network.shared[at], state));
        self.network.unary[var][state(var)] + links.sum() + shared.sum()
    }
}

/// The factors of each variable, by index.
struct Factors {
    links: Vec<Vec<usize>>,
    shared: Vec<Vec<usize>>,
    /// Whether a variable has a value with so many readers that weighing it for each of them would be quadratic; such
    /// variables are left to the other moves.
    crowded: Vec<bool>,
}

impl Factors {
    fn of(network: &Network) -> Self {
        let n = network.unary.len();
        let mut factors = Self { links: vec![Vec::new(); n], shared: vec![Vec::new(); n], crowded: vec![false; n] };
        for (at, link) in network.links.iter().enumerate() {
            factors.links[link.a].push(at);
            factors.links[link.b].push(at);
        }
        for (at, value) in network.shared.iter().enumerate() {
            for var in value.readers.iter().map(|reader| reader.var).chain(value.producer) {
                factors.shared[var].push(at);
                factors.crowded[var] |= value.readers.len() > CROWD;
            }
        }
        factors
    }

    /// How many factors each variable is away from `root`.
    fn distances(&self, network: &Network, root: usize) -> Vec<usize> {
        let mut distance = vec![usize::MAX; network.unary.len()];
        let mut seen = vec![false; network.shared.len()];
        let mut queue = vec![root];
        distance[root] = 0;
        let mut done = 0;
        while let Some(&var) = queue.get(done) {
            done += 1;
            let mut reach = |near: usize, queue: &mut Vec<usize>| {
                if distance[near] == usize::MAX {
                    distance[near] = distance[var] + 1;
                    queue.push(near);
                }
            };
            for &at in &self.links[var] {
                reach(network.links[at].a, &mut queue);
                reach(network.links[at].b, &mut queue);
            }
            for &at in &self.shared[var] {
                if !std::mem::replace(&mut seen[at], true) {
                    let value = &network.shared[at];
                    value.readers.iter().map(|r| r.var).chain(value.producer).for_each(|near| reach(near, &mut queue));
                }
            }
        }
        distance
    }

    /// A variable as far from `root` as any.
    fn farthest(&self, network: &Network, root: usize) -> usize {
        let distances = self.distances(network, root);
        (0..distances.len()).max_by_key(|&var| (distances[var], std::cmp::Reverse(var))).unwrap_or(root)
    }
}
