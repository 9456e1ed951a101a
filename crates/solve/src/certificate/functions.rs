//! A problem as functions of few variables: the form in which a certificate speaks of it.
//!
//! The first variables are those of the problem. Then comes, for each shared value in order, its *hub*: a variable whose states
//! are the sets of layouts that its uses together can want. Where there are more than [`MAX_SETS`] such sets it has one
//! yes-or-no *switch* for each layout instead. The first functions are one of each variable by itself, then come the pairs of
//! the problem, then those of the shared values: what a set costs in each state of the producer, and for each use that its
//! layout is in the set.
//!
//! The minimum over all variables is that of the problem: prices are never negative, so a larger set than needed never pays.
//! Nothing here is shared with the solvers.

use std::collections::BTreeSet;

use crate::Cost;
use crate::problem::{Problem, SharedValue};

/// The most sets of layouts that a hub distinguishes.
const MAX_SETS: usize = 64;

/// What numbers are counted in: this many to a nanosecond.
pub(crate) const UNITS: i128 = 1024;

/// More than any sum of costs that can be paid.
pub(crate) const INFINITE: i128 = 1 << 120;

/// A sum that infinity absorbs.
pub(crate) fn add(a: i128, b: i128) -> i128 {
    if a >= INFINITE || b >= INFINITE { INFINITE } else { a + b }
}

fn of_cost(cost: Cost) -> i128 {
    if cost.is_finite() { i128::from(cost.get()) * UNITS } else { INFINITE }
}

/// A number for every joint state of the variables in `scope`, which ascend; the last one is fastest.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) scope: Vec<usize>,
    pub(crate) data: Vec<i128>,
}

impl Function {
    /// The number at these states of all variables; `None` where a state is out of range.
    pub(crate) fn at(&self, states: &[u32], domains: &[usize]) -> Option<i128> {
        let mut at = 0;
        for &var in &self.scope {
            let state = *states.get(var)? as usize;
            if state >= domains[var] {
                return None;
            }
            at = at * domains[var] + state;
        }
        self.data.get(at).copied()
    }

    /// How far apart entries are that differ by one in the state of `var`; 0 if it is not in the scope.
    pub(crate) fn stride(&self, var: usize, domains: &[usize]) -> usize {
        match self.scope.iter().position(|&other| other == var) {
            Some(at) => self.scope[at + 1..].iter().map(|&later| domains[later]).product(),
            None => 0,
        }
    }

    /// This function where `var` is in `state`.
    pub(crate) fn fixed(&self, var: usize, state: usize, domains: &[usize]) -> Function {
        if !self.scope.contains(&var) {
            return self.clone();
        }
        let (stride, states) = (self.stride(var, domains), domains[var]);
        let data =
            self.data.iter().enumerate().filter(|(at, _)| at / stride % states == state).map(|(_, &x)| x).collect();
        Function { scope: self.scope.iter().copied().filter(|&other| other != var).collect(), data }
    }
}

/// All functions of a problem.
#[derive(Clone, Debug)]
pub(crate) struct Functions {
    /// States of each variable.
    pub(crate) domains: Vec<usize>,
    pub(crate) list: Vec<Function>,
    /// For each shared value how its own variables follow from what is wanted.
    held: Vec<Held>,
}

/// The variables of a shared value.
#[derive(Clone, Debug)]
enum Held {
    Hub { var: usize, sets: Vec<u64> },
    Switches { first: usize, layouts: usize },
}

impl Functions {
    pub(crate) fn of(problem: &Problem) -> Functions {
        let mut domains: Vec<usize> = problem.unary.iter().map(Vec::len).collect();
        let held: Vec<Held> = problem.values.iter().map(|value| Held::new(value, &mut domains)).collect();
        let mut list: Vec<Function> = Vec::with_capacity(domains.len() + problem.pairs.len());
        for (var, &states) in domains.iter().enumerate() {
            let data = match problem.unary.get(var) {
                Some(costs) => costs.iter().map(|&c| of_cost(c)).collect(),
                None => vec![0; states],
            };
            list.push(Function { scope: vec![var], data });
        }
        let mut functions = Functions { domains, list, held: Vec::new() };
        for pair in &problem.pairs {
            let columns = functions.domains[pair.b.index()];
            functions.pair(pair.a.index(), pair.b.index(), |a, b| of_cost(pair.table[a * columns + b]));
        }
        for (value, held) in problem.values.iter().zip(&held) {
            functions.value(value, held);
        }
        functions.held = held;
        functions
    }

    /// Adds a function of two variables; where they are the same it goes into that of the variable.
    fn pair(&mut self, a: usize, b: usize, price: impl Fn(usize, usize) -> i128) {
        let (rows, columns) = (self.domains[a], self.domains[b]);
        if a == b {
            let own = self.list[a].data.iter_mut().enumerate();
            own.for_each(|(state, entry)| *entry = add(*entry, price(state, state)));
            return;
        }
        let (scope, data) = if a < b {
            (vec![a, b], (0..rows * columns).map(|at| price(at / columns, at % columns)).collect())
        } else {
            (vec![b, a], (0..rows * columns).map(|at| price(at % rows, at / rows)).collect())
        };
        self.list.push(Function { scope, data });
    }

    fn value(&mut self, value: &SharedValue, held: &Held) {
        let price = |made: usize, layout: usize| {
            let from = value.produces[made] as usize;
            if from == layout { 0 } else { of_cost(value.moves[from * value.layouts + layout]) }
        };
        let allowed = |yes: bool| if yes { 0 } else { INFINITE };
        match held {
            Held::Hub { var, sets } => {
                self.pair(value.producer.index(), *var, |made, set| {
                    layouts(sets[set]).map(|layout| price(made, layout)).fold(0, add)
                });
                for read in &value.uses {
                    self.pair(read.var.index(), *var, |state, set| {
                        allowed(read.wants[state].is_none_or(|layout| sets[set] >> layout & 1 == 1))
                    });
                }
            }
            Held::Switches { first, layouts } => {
                for layout in 0..*layouts {
                    let on = first + layout;
                    self.pair(value.producer.index(), on, |made, s| if s == 1 { price(made, layout) } else { 0 });
                    for read in value.uses.iter().filter(|read| read.wants.contains(&Some(layout as u32))) {
                        self.pair(read.var.index(), on, |state, s| {
                            allowed(s == 1 || read.wants[state] != Some(layout as u32))
                        });
                    }
                }
            }
        }
    }

    /// The states of all variables that go with states of the problem's own; `None` where those are out of range.
    pub(crate) fn complete(&self, problem: &Problem, own: &[u32]) -> Option<Vec<u32>> {
        let mut states = own.to_vec();
        states.resize(self.domains.len(), 0);
        for (value, held) in problem.values.iter().zip(&self.held) {
            let mut wanted = 0_u64;
            for read in &value.uses {
                let state = *own.get(read.var.index())? as usize;
                wanted |= read.wants.get(state)?.map_or(0, |layout| 1 << layout);
            }
            match held {
                Held::Hub { var, sets } => states[*var] = sets.iter().position(|&set| set == wanted)? as u32,
                Held::Switches { first, layouts } => {
                    (0..*layouts).for_each(|layout| states[first + layout] = (wanted >> layout & 1) as u32);
                }
            }
        }
        Some(states)
    }

    /// Groups of variables that functions tie together, each ascending, by their smallest.
    pub(crate) fn components(&self) -> Vec<Vec<usize>> {
        let mut leader: Vec<usize> = (0..self.domains.len()).collect();
        for function in &self.list {
            for pair in function.scope.windows(2) {
                let (a, b) = (root(&mut leader, pair[0]), root(&mut leader, pair[1]));
                leader[a.max(b)] = a.min(b);
            }
        }
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); leader.len()];
        for var in 0..leader.len() {
            let at = root(&mut leader, var);
            members[at].push(var);
        }
        members.retain(|group| !group.is_empty());
        members
    }
}

fn root(leader: &mut [usize], mut var: usize) -> usize {
    while leader[var] != var {
        leader[var] = leader[leader[var]];
        var = leader[var];
    }
    var
}

impl Held {
    /// Adds the variables of `value`.
    fn new(value: &SharedValue, domains: &mut Vec<usize>) -> Held {
        let first = domains.len();
        if let Some(sets) = reachable(value) {
            domains.push(sets.len());
            return Held::Hub { var: first, sets };
        }
        domains.extend(std::iter::repeat_n(2, value.layouts));
        Held::Switches { first, layouts: value.layouts }
    }
}

/// The sets that the uses of `value` can want, ascending; `None` if they are too many.
fn reachable(value: &SharedValue) -> Option<Vec<u64>> {
    let mut sets = BTreeSet::from([0_u64]);
    for read in &value.uses {
        let wants: BTreeSet<u64> = read.wants.iter().map(|want| want.map_or(0, |layout| 1 << layout)).collect();
        sets = sets.iter().flat_map(|&set| wants.iter().map(move |&more| set | more)).collect();
        if sets.len() > MAX_SETS {
            return None;
        }
    }
    Some(sets.into_iter().collect())
}

fn layouts(set: u64) -> impl Iterator<Item = usize> {
    (0..64_usize).filter(move |&layout| set >> layout & 1 == 1)
}
