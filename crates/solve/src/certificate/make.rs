//! The maker: from a problem to a certificate.
//!
//! A part whose elimination needs small tables only is proven by its order alone. For the others amounts are shifted first,
//! forwards and backwards along the order (sequential message passing: the bound never falls, and where two states are left
//! it comes to the minimum cut); then tables are taken in pieces, and what gap is left is branched on while branches last.

use super::check::{MAX_TABLE, MAX_TOTAL, Part, of_group, size, whole};
use super::functions::{Function, Functions, INFINITE, add};
use super::{Certificate, Proof, SCHEMA, Shift, digest};
use crate::Cost;
use crate::order::min_fill;
use crate::problem::Problem;
use crate::{Limits, Solution, solve};
use std::collections::{BTreeMap, BTreeSet};

/// Tables of a part that is taken in pieces.
const PIECE: usize = 1 << 12;
/// How often amounts are shifted along the order and back.
const SWEEPS: usize = 300;
/// The most cases of one part.
const MAX_CASES: usize = 64;

/// Solves `problem` and says why the solution is as good as it is.
///
/// The certificate's bound is what the checker can prove; it may lie below [`Solution::bound`] where elimination needs tables
/// beyond the checker's limits. The certificate always holds.
#[must_use]
pub fn certify(problem: &Problem, limits: &Limits) -> (Solution, Certificate) {
    let solution = solve(problem, limits);
    let functions = Functions::of(problem);
    let states = functions.complete(problem, &solution.assignment);
    let mut maker = Maker {
        functions,
        states,
        shifts: Vec::new(),
        left: MAX_TOTAL / 2,
        most: limits.max_table_entries.clamp(1, MAX_TABLE),
        cases: usize::try_from(limits.max_branch_nodes).unwrap_or(MAX_CASES).min(MAX_CASES),
    };
    let mut parts = Vec::new();
    let mut bound = Cost::ZERO;
    for group in maker.functions.components() {
        let (proof, proven) = maker.part(&group);
        bound += proven;
        parts.push(proof);
    }
    let certificate = Certificate {
        schema: SCHEMA,
        problem: digest(problem),
        assignment: solution.assignment.clone(),
        cost: solution.cost,
        bound: bound.min(solution.cost),
        shifts: maker.shifts,
        parts,
    };
    (solution, certificate)
}

struct Maker {
    functions: Functions,
    /// States of all variables in the solution.
    states: Option<Vec<u32>>,
    shifts: Vec<Shift>,
    /// Table entries that the checker will still compute.
    left: usize,
    /// The most entries of a table that is not taken in pieces.
    most: usize,
    /// The most cases of one part.
    cases: usize,
}

impl Maker {
    /// A proof of one part and what it proves.
    fn part(&mut self, group: &[usize]) -> (Proof, Cost) {
        let own = of_group(&self.functions, group);
        let order = self.order(group, &own);
        let (most, total) = needed(&order, &own, &self.functions.domains);
        if most <= self.most && total <= self.left / 4 {
            let proof = Proof::Eliminate { order, entries: most };
            return self.proven(proof, own, group).unwrap_or_else(|proof| (proof, Cost::ZERO));
        }
        self.shift(group, &order);
        let own = of_group(&self.functions, group);
        let cost = self.cost(&own);
        let proof = Proof::Eliminate { order, entries: PIECE.min(self.most) };
        let Ok((proof, proven)) = self.proven(proof.clone(), own.clone(), group) else { return (proof, Cost::ZERO) };
        if proven >= cost {
            return (proof, proven);
        }
        self.branch(proof, proven, cost, own, group)
    }

    /// What `proof` comes to, or the proof itself if the checker would refuse it.
    fn proven(&mut self, proof: Proof, own: Vec<Function>, group: &[usize]) -> Result<(Proof, Cost), Proof> {
        let Proof::Eliminate { order, entries } = &proof else { return Err(proof) };
        let mut budget = self.left;
        let mut part = Part { domains: &self.functions.domains, number: 0, budget: &mut budget };
        let free: BTreeSet<usize> = group.iter().copied().collect();
        match part.eliminate(order, *entries, own, &free) {
            Ok(units) => {
                self.left = budget;
                let proven = whole(units);
                Ok((proof, proven))
            }
            Err(_) => Err(proof),
        }
    }

    /// Splits the variable with the most functions among those that large tables have, again and again where the bound is least.
    fn branch(&mut self, first: Proof, proven: Cost, cost: Cost, own: Vec<Function>, group: &[usize]) -> (Proof, Cost) {
        let mut tree = Tree { nodes: vec![Node { own, free: group.to_vec(), proof: first, proven, cases: None }] };
        let mut cases = 1;
        loop {
            let leaf = (0..tree.nodes.len()).filter(|&at| tree.nodes[at].cases.is_none());
            let Some(worst) = leaf.min_by_key(|&at| tree.nodes[at].proven) else { break };
            if tree.nodes[worst].proven >= cost {
                break;
            }
            let Some(var) = self.branching_variable(&tree.nodes[worst]) else { break };
            cases += self.functions.domains[var] - 1;
            if cases > self.cases || !self.open(&mut tree, worst, var) {
                break;
            }
        }
        let proven =
            (0..tree.nodes.len()).filter(|&at| tree.nodes[at].cases.is_none()).map(|at| tree.nodes[at].proven).min();
        (tree.proof(0), proven.unwrap_or(Cost::ZERO))
    }

    fn branching_variable(&self, node: &Node) -> Option<usize> {
        let count = |var: usize| node.own.iter().filter(|f| f.scope.len() > 1 && f.scope.contains(&var)).count();
        let several = node.free.iter().copied().filter(|&var| self.functions.domains[var] > 1);
        several.max_by_key(|&var| (count(var), std::cmp::Reverse(var)))
    }

    /// Gives a leaf its cases; false if the checker's limits do not allow it, and then the leaf stays.
    fn open(&mut self, tree: &mut Tree, at: usize, var: usize) -> bool {
        let free: Vec<usize> = tree.nodes[at].free.iter().copied().filter(|&v| v != var).collect();
        let mut made = Vec::new();
        for state in 0..self.functions.domains[var] {
            let domains = &self.functions.domains;
            let own: Vec<Function> = tree.nodes[at].own.iter().map(|f| f.fixed(var, state, domains)).collect();
            let entries: usize = own.iter().map(|f| f.data.len()).sum();
            let Some(left) = self.left.checked_sub(entries) else { return false };
            self.left = left;
            let proof = Proof::Eliminate { order: self.order(&free, &own), entries: PIECE.min(self.most) };
            let Ok((proof, proven)) = self.proven(proof, own.clone(), &free) else { return false };
            made.push(Node { own, free: free.clone(), proof, proven, cases: None });
        }
        let first = tree.nodes.len();
        tree.nodes[at].cases = Some((var, first..first + made.len()));
        tree.nodes.extend(made);
        true
    }

    /// The variables of `group` in min-fill order.
    fn order(&self, group: &[usize], own: &[Function]) -> Vec<u32> {
        let local = |var: &usize| group.binary_search(var).unwrap_or(0);
        let domains: Vec<usize> = group.iter().map(|&var| self.functions.domains[var]).collect();
        let scopes: Vec<Vec<usize>> = own.iter().map(|f| f.scope.iter().map(local).collect()).collect();
        min_fill(&domains, scopes.iter().map(Vec::as_slice)).into_iter().map(|at| group[at] as u32).collect()
    }

    /// What the solution costs in these functions.
    fn cost(&self, own: &[Function]) -> Cost {
        let Some(states) = &self.states else { return Cost::INFINITE };
        let sum = own.iter().map(|f| f.at(states, &self.functions.domains).unwrap_or(INFINITE)).fold(0, add);
        whole(sum)
    }

    /// Shifts amounts within a part along the order and back, until that gains nothing.
    fn shift(&mut self, group: &[usize], order: &[u32]) {
        let domains = self.functions.domains.clone();
        let mut place = vec![usize::MAX; domains.len()];
        order.iter().enumerate().for_each(|(at, &var)| place[var as usize] = at);
        let mut of_var: Vec<Vec<usize>> = vec![Vec::new(); domains.len()];
        for (at, function) in self.functions.list.iter().enumerate().skip(domains.len()) {
            if function.scope.len() > 1 && group.binary_search(&function.scope[0]).is_ok() {
                function.scope.iter().for_each(|&var| of_var[var].push(at));
            }
        }
        let mut total: BTreeMap<(usize, usize), Vec<i128>> = BTreeMap::new();
        let mut last = i128::MIN;
        for sweep in 0..SWEEPS {
            let forwards = sweep % 2 == 0;
            let vars: Vec<usize> = if forwards {
                order.iter().map(|&v| v as usize).collect()
            } else {
                order.iter().rev().map(|&v| v as usize).collect()
            };
            for var in vars {
                for &at in &of_var[var] {
                    let amounts = least(&self.functions.list[at], var, &domains);
                    self.give(at, var, &amounts, &mut total);
                }
                let ahead = |at: &&usize| {
                    let scope = &self.functions.list[**at].scope;
                    scope.iter().any(|&v| if forwards { place[v] > place[var] } else { place[v] < place[var] })
                };
                let next: Vec<usize> = of_var[var].iter().filter(ahead).copied().collect();
                let ways = next.len().max(of_var[var].len() - next.len()).max(1) as i128;
                let share: Vec<i128> = self.functions.list[var]
                    .data
                    .iter()
                    .map(|&x| if x >= INFINITE { 0 } else { -x.div_euclid(ways) })
                    .collect();
                for at in next {
                    self.give(at, var, &share, &mut total);
                }
            }
            let now: i128 = group
                .iter()
                .map(|&var| &self.functions.list[var])
                .chain(of_var.iter().flatten().map(|&at| &self.functions.list[at]))
                .map(|f| f.data.iter().copied().min().unwrap_or(0))
                .fold(0, add);
            // The functions of more variables are counted once for each of them; all of them have minima that come and go,
            // so only a long standstill is one.
            if sweep % 20 == 19 && std::mem::replace(&mut last, now) == now {
                break;
            }
        }
        self.keep(total);
    }

    /// Makes the certificate's shifts of what was shifted in all.
    fn keep(&mut self, mut total: BTreeMap<(usize, usize), Vec<i128>>) {
        for ((at, var), amounts) in std::mem::take(&mut total) {
            let stored: Option<Vec<i64>> = amounts.iter().map(|&x| i64::try_from(x).ok()).collect();
            let Some(stored) = stored else {
                // What a certificate can't say is taken back.
                let back: Vec<i128> = amounts.iter().map(|&x| -x).collect();
                self.give(at, var, &back, &mut total);
                continue;
            };
            if stored.iter().any(|&x| x != 0) {
                self.shifts.push(Shift { function: at as u32, variable: var as u32, amounts: stored });
            }
        }
    }

    /// Moves amounts from a function to that of `var`.
    fn give(&mut self, at: usize, var: usize, amounts: &[i128], total: &mut BTreeMap<(usize, usize), Vec<i128>>) {
        let domains = &self.functions.domains;
        let stride = self.functions.list[at].stride(var, domains);
        for (i, entry) in self.functions.list[at].data.iter_mut().enumerate() {
            *entry = add(*entry, -amounts[i / stride % domains[var]]);
        }
        self.functions.list[var].data.iter_mut().zip(amounts).for_each(|(entry, &more)| *entry = add(*entry, more));
        let sum = total.entry((at, var)).or_insert_with(|| vec![0; amounts.len()]);
        sum.iter_mut().zip(amounts).for_each(|(sum, &more)| *sum += more);
    }
}

/// For each state of `var` the least entry, 0 where there is none that can be paid.
fn least(function: &Function, var: usize, domains: &[usize]) -> Vec<i128> {
    let stride = function.stride(var, domains);
    let mut least = vec![INFINITE; domains[var]];
    for (i, &entry) in function.data.iter().enumerate() {
        let state = i / stride % domains[var];
        least[state] = least[state].min(entry);
    }
    least.iter_mut().filter(|x| **x >= INFINITE).for_each(|x| *x = 0);
    least
}

/// The most entries of a table of an elimination without pieces, and those of all tables.
fn needed(order: &[u32], own: &[Function], domains: &[usize]) -> (usize, usize) {
    let mut position = vec![usize::MAX; domains.len()];
    order.iter().enumerate().for_each(|(at, &var)| position[var as usize] = at);
    let mut scopes: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); order.len()];
    for function in own {
        if let Some(first) = function.scope.iter().map(|&var| position[var]).min() {
            scopes[first].extend(&function.scope);
        }
    }
    let (mut most, mut total) = (0, 0_usize);
    for (at, &var) in order.iter().enumerate() {
        let mut scope = std::mem::take(&mut scopes[at]);
        let entries = size(scope.iter().copied(), domains);
        most = most.max(entries);
        total = total.saturating_add(entries);
        scope.remove(&(var as usize));
        if let Some(next) = scope.iter().map(|&other| position[other]).min() {
            scopes[next].extend(scope);
        }
    }
    (most, total)
}

/// A branching under construction.
struct Tree {
    nodes: Vec<Node>,
}

struct Node {
    own: Vec<Function>,
    free: Vec<usize>,
    proof: Proof,
    proven: Cost,
    /// The variable branched on and its cases, by number.
    cases: Option<(usize, std::ops::Range<usize>)>,
}

impl Tree {
    fn proof(&self, at: usize) -> Proof {
        match &self.nodes[at].cases {
            Some((var, cases)) => {
                Proof::Branch { variable: *var as u32, cases: cases.clone().map(|case| self.proof(case)).collect() }
            }
            None => self.nodes[at].proof.clone(),
        }
    }
}
