//! Bucket elimination: exact while tables stay below the cap, a lower bound beyond it.
//!
//! The network becomes functions over variables. A shared value gets a hub variable whose states are the sets of layouts that
//! its readers can make it hold; a set may be larger than what is wanted, which never pays. Where there are too many sets it
//! gets one yes-or-no variable for each layout instead.
//!
//! Variables are eliminated in min-fill order (`order.rs`). The functions whose first eliminated variable is `x` form the
//! bucket of `x`; minimizing their sum over `x` gives a message to a later bucket. If their joint scope is too large for a table the
//! bucket is split into mini-buckets that are minimized apart, each with its own copy of `x`: the result is a lower bound, and
//! it is tightened first by giving all parts the same minimum for each state of `x` (moment matching).
//!
//! Without a split the states follow backwards, each the best given the later ones. With splits the messages guide the branch
//! and bound of `search.rs`.

use std::collections::BTreeMap;

use super::Limits;
use super::network::{Layouts, Network, Shared, each_layout};
use super::order::min_fill;
use super::table::{Table, entries, project, union};
use super::weight::Weight;

/// The most sets of layouts that a hub variable distinguishes.
const MAX_HUB_STATES: usize = 64;

/// The network as functions; the first variables are those of the network.
struct Functions {
    domains: Vec<usize>,
    tables: Vec<Table>,
}

impl Functions {
    fn of(network: &Network) -> Self {
        let domains = network.unary.iter().map(Vec::len).collect();
        let mut functions = Self { domains, tables: Vec::new() };
        for (var, weights) in network.unary.iter().enumerate() {
            functions.tables.push(Table { scope: vec![var], data: weights.clone() });
        }
        for link in &network.links {
            functions.add_pair(link.a, link.b, |a, b| link.table[a * network.unary[link.b].len() + b]);
        }
        for value in &network.shared {
            match reachable_sets(value) {
                Some(sets) => functions.add_hub(value, &sets),
                None => functions.add_switches(value),
            }
        }
        functions
    }

    fn add_variable(&mut self, states: usize) -> usize {
        self.domains.push(states);
        self.domains.len() - 1
    }

    fn add_pair(&mut self, a: usize, b: usize, weight: impl Fn(usize, usize) -> Weight) {
        let (rows, columns) = (self.domains[a], self.domains[b]);
        let (scope, data) = if a < b {
            (vec![a, b], (0..rows * columns).map(|at| weight(at / columns, at % columns)).collect())
        } else {
            (vec![b, a], (0..rows * columns).map(|at| weight(at % rows, at / rows)).collect())
        };
        self.tables.push(Table { scope, data });
    }

    /// What the states of `held`, a variable for what `value` holds, cost in each state of the producer.
    fn add_prices(&mut self, value: &Shared, held: usize, price: impl Fn(usize, usize) -> Weight) {
        if let Some(producer) = value.producer {
            self.add_pair(producer, held, price);
        } else {
            let data = (0..self.domains[held]).map(|state| price(0, state)).collect();
            self.tables.push(Table { scope: vec![held], data });
        }
    }

    fn add_hub(&mut self, value: &Shared, sets: &[Layouts]) {
        let hub = self.add_variable(sets.len());
        self.add_prices(value, hub, |state, set| value.price_of(state, sets[set]));
        for reader in &value.readers {
            self.add_pair(reader.var, hub, |state, set| free_if(reader.wants[state] & !sets[set] == 0));
        }
    }

    fn add_switches(&mut self, value: &Shared) {
        let wanted = value.readers.iter().flat_map(|reader| &reader.wants).fold(0, |all, set| all | set);
        for layout in each_layout(wanted) {
            let switch = self.add_variable(2);
            let on = |on: usize, price: Weight| if on == 1 { price } else { Weight::ZERO };
            self.add_prices(value, switch, |state, s| on(s, value.price[state][layout]));
            let wants = |set: Layouts| set >> layout & 1 == 1;
            for reader in value.readers.iter().filter(|reader| reader.wants.iter().any(|&set| wants(set))) {
                self.add_pair(reader.var, switch, |state, s| free_if(s == 1 || !wants(reader.wants[state])));
            }
        }
    }
}

fn free_if(allowed: bool) -> Weight {
    if allowed { Weight::ZERO } else { Weight::INFINITE }
}

/// The sets that `value` may have to hold, ascending; `None` if there are too many.
fn reachable_sets(value: &Shared) -> Option<Vec<Layouts>> {
    let mut alike: BTreeMap<Vec<Layouts>, usize> = BTreeMap::new();
    for reader in &value.readers {
        let mut wants = reader.wants.clone();
        wants.sort_unstable();
        wants.dedup();
        *alike.entry(wants).or_default() += 1;
    }
    let mut sets: Vec<Layouts> = vec![0];
    for (wants, readers) in alike {
        for _ in 0..readers {
            let mut next: Vec<Layouts> =
                sets.iter().flat_map(|&set| wants.iter().map(move |&more| set | more)).collect();
            next.sort_unstable();
            next.dedup();
            if next.len() > MAX_HUB_STATES {
                return None;
            }
            if next == sets {
                break; // more readers of the kind reach nothing more
            }
            sets = next;
        }
    }
    Some(sets)
}

/// The functions sorted into buckets, with the messages between them.
pub(super) struct Buckets {
    pub(super) domains: Vec<usize>,
    /// The variable of each bucket, first eliminated first.
    pub(super) order: Vec<usize>,
    /// For each bucket the functions that are settled once its variable and all later ones are.
    pub(super) functions: Vec<Vec<Table>>,
    /// For each bucket its messages: the bucket they went to and their place there.
    pub(super) messages: Vec<Vec<(usize, usize)>>,
    /// For each bucket the sum of its messages that depend on nothing.
    pub(super) constants: Vec<Weight>,
    /// The first bucket that was split; from it on messages are lower bounds.
    pub(super) first_split: Option<usize>,
    /// No assignment weighs less.
    pub(super) bound: Weight,
    /// Buckets that were not split.
    pub(super) whole: usize,
    /// How many variables belong to the network.
    variables: usize,
}

impl Buckets {
    /// Eliminates all variables of `network`.
    pub(super) fn new(network: &Network, limits: &Limits) -> Self {
        let Functions { domains, tables } = Functions::of(network);
        let order = min_fill(&domains, tables.iter().map(|table| table.scope.as_slice()));
        let mut position = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &var)| position[var] = at);
        let cap = affordable_cap(&domains, &order, &position, &tables, limits);
        let n = order.len();
        let mut buckets = Self {
            domains,
            order,
            functions: vec![Vec::new(); n],
            messages: vec![Vec::new(); n],
            constants: vec![Weight::ZERO; n],
            first_split: None,
            bound: Weight::ZERO,
            whole: 0,
            variables: network.unary.len(),
        };
        for table in tables {
            buckets.file(table, &position);
        }
        for at in 0..n {
            buckets.eliminate(at, cap, &position);
        }
        buckets
    }

    /// Puts `table` in its bucket and says where; `None` for a constant.
    fn file(&mut self, table: Table, position: &[usize]) -> Option<(usize, usize)> {
        let bucket = table.scope.iter().map(|&var| position[var]).min()?;
        self.functions[bucket].push(table);
        Some((bucket, self.functions[bucket].len() - 1))
    }

    fn eliminate(&mut self, at: usize, cap: usize, position: &[usize]) {
        let var = self.order[at];
        let parts = partition(&self.functions[at], cap, &self.domains);
        if parts.len() > 1 {
            self.first_split.get_or_insert(at);
        } else {
            self.whole += 1;
        }
        let shifts = matching(&parts, &self.functions[at], var, &self.domains);
        let mut made = Vec::with_capacity(parts.len());
        for (part, shift) in parts.iter().zip(&shifts) {
            let mut tables: Vec<&Table> = part.members.iter().map(|&i| &self.functions[at][i]).collect();
            tables.extend(shift);
            let keep: Vec<usize> = part.scope.iter().copied().filter(|&other| other != var).collect();
            made.push(project(&tables, &keep, &self.domains));
        }
        for message in made {
            if message.scope.is_empty() {
                let weight = message.data.first().copied().unwrap_or_default();
                self.constants[at] += weight;
                self.bound += weight;
            } else if let Some(place) = self.file(message, position) {
                self.messages[at].push(place);
            }
        }
    }

    /// What the functions of bucket `at` weigh.
    pub(super) fn weigh(&self, at: usize, states: &[u32]) -> Weight {
        self.functions[at].iter().map(|table| table.at(states, &self.domains)).sum()
    }

    /// Gives the variables of the buckets below `end` the states that are best given those of the later buckets.
    pub(super) fn decode(&self, end: usize, states: &mut [u32]) {
        for at in (0..end).rev() {
            let var = self.order[at];
            let mut best = (Weight::INFINITE, 0);
            for state in 0..self.domains[var] as u32 {
                states[var] = state;
                best = best.min((self.weigh(at, states), state));
            }
            states[var] = best.1;
        }
    }

    /// The states of the network's own variables that the messages lead to: the best if no bucket was split.
    pub(super) fn decoded(&self) -> Vec<u32> {
        let mut states = vec![0; self.domains.len()];
        self.decode(self.order.len(), &mut states);
        self.own(&states)
    }

    /// The states of the network's own variables among `states`.
    pub(super) fn own(&self, states: &[u32]) -> Vec<u32> {
        states[..self.variables].to_vec()
    }
}

/// The functions of a mini-bucket, by index, and their joint scope.
struct Part {
    members: Vec<usize>,
    scope: Vec<usize>,
}

/// Puts each function, those of larger scope first, into the first part where the joint table stays below `cap`.
fn partition(functions: &[Table], cap: usize, domains: &[usize]) -> Vec<Part> {
    let mut by_size: Vec<usize> = (0..functions.len()).collect();
    by_size.sort_by_key(|&i| (std::cmp::Reverse(functions[i].scope.len()), i));
    let mut parts: Vec<Part> = Vec::new();
    for i in by_size {
        let scope = &functions[i].scope;
        let fits = |part: &&mut Part| {
            let joint = union(&part.scope, scope);
            joint.len() == part.scope.len() || entries(&joint, domains) <= cap
        };
        if let Some(part) = parts.iter_mut().find(fits) {
            part.scope = union(&part.scope, scope);
            part.members.push(i);
        } else {
            parts.push(Part { members: vec![i], scope: scope.clone() });
        }
    }
    parts
}

/// For each part an amount to add for each state of `var`, such that all parts have the same minimum for it. The amounts of
/// a state cancel out. Nothing is moved for a state that some part forbids.
fn matching(parts: &[Part], functions: &[Table], var: usize, domains: &[usize]) -> Vec<Option<Table>> {
    if parts.len() < 2 {
        return vec![None; parts.len()];
    }
    let minima: Vec<Vec<Weight>> = parts
        .iter()
        .map(|part| {
            let tables: Vec<&Table> = part.members.iter().map(|&i| &functions[i]).collect();
            project(&tables, &[var], domains).data
        })
        .collect();
    let mut shifts: Vec<Vec<Weight>> = vec![vec![Weight::ZERO; domains[var]]; parts.len()];
    for state in 0..domains[var] {
        let total: Weight = minima.iter().map(|minimum| minimum[state]).sum();
        if !total.is_finite() {
            continue;
        }
        let count = parts.len() as i128;
        let (mean, rest) = (total.raw().div_euclid(count), total.raw().rem_euclid(count));
        for (i, shift) in shifts.iter_mut().enumerate() {
            let target = mean + if i == 0 { rest } else { 0 };
            shift[state] = Weight::from_raw(target - minima[i][state].raw());
        }
    }
    shifts.into_iter().map(|data| Some(Table { scope: vec![var], data })).collect()
}

/// The table cap of `limits`, halved until all tables together fit.
fn affordable_cap(domains: &[usize], order: &[usize], position: &[usize], tables: &[Table], limits: &Limits) -> usize {
    // What the tables would be without splits; what exceeds the cap is split into parts that do not.
    let mut scopes: Vec<Vec<usize>> = vec![Vec::new(); order.len()];
    for table in tables {
        if let Some(first) = table.scope.iter().map(|&var| position[var]).min() {
            scopes[first] = union(&scopes[first], &table.scope);
        }
    }
    let mut sizes = Vec::with_capacity(order.len());
    for (at, &var) in order.iter().enumerate() {
        let mut scope = std::mem::take(&mut scopes[at]);
        sizes.push(entries(&scope, domains));
        scope.retain(|&other| other != var);
        // A scope beyond every table is not followed further: its parts are smaller.
        if let Some(next) = scope.iter().map(|&other| position[other]).min().filter(|_| scope.len() < 64) {
            scopes[next] = union(&scopes[next], &scope);
        }
    }
    let mut cap = limits.max_table_entries.max(1);
    let total = |cap: usize| sizes.iter().fold(0_usize, |total, &size| total.saturating_add(size.min(cap)));
    while cap > 1 && total(cap) > limits.max_total_entries {
        cap /= 2;
    }
    cap
}
