//! What can be settled before solving, without losing an optimum.
//!
//! - *Fold*: factors are pulled onto the variables that stand for theirs; what depends on one variable only becomes unary, a
//!   value with one reader becomes a link, links between the same two variables become one.
//! - *Merge*: two variables whose link allows each state of one with exactly one state of the other are one variable.
//! - *Prune* (`prune.rs`): states that are impossible, or that another state beats whatever the neighbours do, die.
//!
//! These take turns until nothing changes, or for [`MAX_ROUNDS`] rounds: stopping early loses no optimum either. Then the
//! network falls into its connected components, with dead states gone. Since weights carry the tie-break, "no worse" here is
//! no worse in the number of changes too, and the reduced optimum is the one that the tie-break asks for.

use std::collections::BTreeMap;
use std::mem;

use super::component::{Component, components};
use super::network::{Layouts, Link, Network, Reader, Shared, take_prices};
use super::prune;
use super::weight::Weight;

/// Rounds of fold, merge and prune.
const MAX_ROUNDS: usize = 32;

/// Stands for the variable it belongs to: state `s` of `root` means state `states[s]` here.
#[derive(Clone, Debug)]
struct Alias {
    root: usize,
    states: Vec<u32>,
}

/// A reduced network and the way back.
#[derive(Debug)]
pub(super) struct Reduced {
    /// The parts that need a solver, by their smallest variable.
    pub(super) components: Vec<Component>,
    /// The weight of all that is settled.
    pub(super) settled: Weight,
    /// Variables that another one stands for.
    pub(super) merged: usize,
    /// Variables with a single state left, or without any factor.
    pub(super) pinned: usize,
    aliases: Vec<Option<Alias>>,
    /// The states of what is settled; 0 elsewhere.
    base: Vec<u32>,
}

impl Reduced {
    /// The states of all variables, given those of each component in order.
    pub(super) fn expand(mut self, solved: impl IntoIterator<Item = Vec<u32>>) -> Vec<u32> {
        let mut states = mem::take(&mut self.base);
        for (component, local) in self.components.iter().zip(solved) {
            for (var, (&whole, &state)) in component.vars.iter().zip(&local).enumerate() {
                states[whole] = component.states[var][state as usize];
            }
        }
        let mut aliases = Aliases(mem::take(&mut self.aliases));
        for var in 0..states.len() {
            let root = aliases.root(var);
            if let Some(alias) = &aliases.0[var] {
                states[var] = alias.states[states[root] as usize];
            }
        }
        states
    }
}

/// Reduces `network`.
pub(super) fn reduce(network: Network) -> Reduced {
    let mut reducer = Reducer {
        aliases: Aliases(vec![None; network.unary.len()]),
        network,
        settled: Weight::ZERO,
        merging: true,
        changed: false,
    };
    for round in 0..=MAX_ROUNDS {
        reducer.merging = round < MAX_ROUNDS;
        reducer.changed = false;
        reducer.fold_shared();
        reducer.fold_links();
        // After a merge some factors still name the variable that is gone; they are folded before anything else.
        let again = reducer.changed || (reducer.merging && prune::prune(&mut reducer.network));
        if !again {
            break;
        }
    }
    reducer.split()
}

/// Which variable stands for which.
struct Aliases(Vec<Option<Alias>>);

impl Aliases {
    /// The variable that stands for `var`, itself if none does; afterwards its alias, if any, names that one directly.
    fn root(&mut self, var: usize) -> usize {
        let mut path = Vec::new();
        let mut at = var;
        while let Some(alias) = &self.0[at] {
            path.push(at);
            at = alias.root;
        }
        let root = at;
        // The last of the path already names the root; the others go through their successor.
        for pair in path.windows(2).rev() {
            let Some(next) = self.0[pair[1]].clone() else { continue };
            if let Some(alias) = &mut self.0[pair[0]] {
                alias.states = next.states.iter().map(|&state| alias.states[state as usize]).collect();
                alias.root = root;
            }
        }
        root
    }

    /// `rows`, indexed by states of `var`, indexed by states of its root instead.
    fn pull<T: Clone>(&self, var: usize, rows: Vec<T>) -> Vec<T> {
        match &self.0[var] {
            Some(alias) => alias.states.iter().map(|&state| rows[state as usize].clone()).collect(),
            None => rows,
        }
    }
}

struct Reducer {
    network: Network,
    aliases: Aliases,
    settled: Weight,
    /// Off in the last round, which must leave every factor on variables that stand for themselves.
    merging: bool,
    changed: bool,
}

impl Reducer {
    fn states(&self, var: usize) -> usize {
        self.network.unary[var].len()
    }

    /// The only state left of `var`.
    fn only(&self, var: usize) -> Option<usize> {
        let mut alive = self.network.alive(var);
        alive.next().filter(|_| alive.next().is_none())
    }

    fn fold_links(&mut self) {
        let mut kept: BTreeMap<(usize, usize), Vec<Weight>> = BTreeMap::new();
        for link in mem::take(&mut self.network.links) {
            if let Some(Link { a, b, table }) = self.fold_link(link) {
                match kept.get_mut(&(a, b)) {
                    Some(sum) => sum.iter_mut().zip(&table).for_each(|(sum, &weight)| *sum += weight),
                    None => _ = kept.insert((a, b), table),
                }
            }
        }
        // A merge may have come after a link was folded: only the next round sees it on its root.
        self.network.links = kept.into_iter().map(|((a, b), table)| Link { a, b, table }).collect();
    }

    /// `link` between two roots, the smaller first; `None` if unary weights or a merge say all that it said.
    fn fold_link(&mut self, link: Link) -> Option<Link> {
        let Link { a, b, table } = self.rooted(link);
        let columns = self.states(b);
        if a == b {
            for (state, weight) in self.network.unary[a].iter_mut().enumerate() {
                *weight += table[state * columns + state];
            }
            return None;
        }
        if let Some(state) = self.only(a) {
            let row = &table[state * columns..(state + 1) * columns];
            self.network.unary[b].iter_mut().zip(row).for_each(|(weight, &more)| *weight += more);
            return None;
        }
        if let Some(state) = self.only(b) {
            let rows = table.chunks(columns);
            self.network.unary[a].iter_mut().zip(rows).for_each(|(weight, row)| *weight += row[state]);
            return None;
        }
        let link = Link { a, b, table };
        match self.merging.then(|| self.bijection(&link)).flatten() {
            Some(partner) => {
                self.merge(&link, partner);
                None
            }
            None => Some(link),
        }
    }

    /// `link` with its ends replaced by their roots, the smaller first.
    fn rooted(&mut self, link: Link) -> Link {
        let Link { a, b, mut table } = link;
        let (root_a, root_b) = (self.aliases.root(a), self.aliases.root(b));
        if (root_a, root_b) != (a, b) {
            let rows = table.chunks(self.states(b)).map(<[Weight]>::to_vec).collect();
            let rows = self.aliases.pull(a, rows);
            table = rows.into_iter().flat_map(|row| self.aliases.pull(b, row)).collect();
        }
        if root_a <= root_b {
            return Link { a: root_a, b: root_b, table };
        }
        let (rows, columns) = (self.states(root_a), self.states(root_b));
        let flipped = (0..columns).flat_map(|c| (0..rows).map(move |r| (r, c))).map(|(r, c)| table[r * columns + c]);
        Link { a: root_b, b: root_a, table: flipped.collect() }
    }

    /// For each living state of `link.a` its only partner, if partners are one to one.
    fn bijection(&self, link: &Link) -> Option<Vec<Option<usize>>> {
        let columns = self.states(link.b);
        let mut partner = vec![None; self.states(link.a)];
        let mut taken = vec![false; columns];
        for row in self.network.alive(link.a) {
            let mut finite = self.network.alive(link.b).filter(|&c| link.table[row * columns + c].is_finite());
            let column = finite.next()?;
            if finite.next().is_some() || mem::replace(&mut taken[column], true) {
                return None;
            }
            partner[row] = Some(column);
        }
        self.network.alive(link.b).all(|column| taken[column]).then_some(partner)
    }

    /// Lets `link.a` stand for `link.b`.
    fn merge(&mut self, link: &Link, partner: Vec<Option<usize>>) {
        let columns = self.states(link.b);
        let absorbed = mem::replace(&mut self.network.unary[link.b], vec![Weight::INFINITE; columns]);
        let unary = &mut self.network.unary[link.a];
        for (state, weight) in unary.iter_mut().enumerate() {
            if let Some(column) = partner[state] {
                *weight += absorbed[column] + link.table[state * columns + column];
            }
        }
        // Dead states have no partner; any will do, since no solution has them.
        let states = partner.into_iter().map(|column| column.unwrap_or(0) as u32).collect();
        self.aliases.0[link.b] = Some(Alias { root: link.a, states });
        self.changed = true;
    }

    fn fold_shared(&mut self) {
        for value in mem::take(&mut self.network.shared) {
            if let Some(value) = self.fold_value(value) {
                self.network.shared.push(value);
            }
        }
    }

    /// `value` with producer and readers replaced by their roots and with nothing in it that is certain; `None` if a link
    /// or unary weights say all that it said.
    fn fold_value(&mut self, value: Shared) -> Option<Shared> {
        let mut value = self.rooted_value(value);
        self.settled += self.network.charge_certain(&mut value);
        let network = &self.network;
        value.readers.retain(|reader| network.alive(reader.var).any(|state| reader.wants[state] != 0));
        if value.readers.len() > 1 {
            return Some(value);
        }
        if let Some(reader) = value.readers.pop() {
            self.single_reader(&value, &reader);
            self.changed = true;
        }
        None
    }

    fn rooted_value(&mut self, value: Shared) -> Shared {
        let mut producer = value.producer;
        let mut price = value.price;
        if let Some(var) = value.producer {
            let root = self.aliases.root(var);
            price = self.aliases.pull(var, price);
            producer = Some(root);
            if let Some(state) = self.only(root) {
                producer = None;
                price = vec![price.swap_remove(state)];
            }
        }
        let mut readers: BTreeMap<usize, Vec<Layouts>> = BTreeMap::new();
        for Reader { var, wants } in value.readers {
            let root = self.aliases.root(var);
            let wants = self.aliases.pull(var, wants);
            match readers.get_mut(&root) {
                Some(all) => all.iter_mut().zip(&wants).for_each(|(all, &set)| *all |= set),
                None => _ = readers.insert(root, wants),
            }
        }
        if let Some((var, wants)) = producer.and_then(|var| readers.remove_entry(&var)) {
            // The producer reads its own value: what its state wants comes with its state.
            for (state, row) in price.iter_mut().enumerate() {
                self.network.unary[var][state] += take_prices(row, wants[state]);
            }
        }
        let readers = readers.into_iter().map(|(var, wants)| Reader { var, wants }).collect();
        Shared { producer, price, readers }
    }

    /// Says what `value` says about its last reader.
    fn single_reader(&mut self, value: &Shared, reader: &Reader) {
        let Some(producer) = value.producer else {
            for (state, weight) in self.network.unary[reader.var].iter_mut().enumerate() {
                *weight += value.price_of(0, reader.wants[state]);
            }
            return;
        };
        let rows = 0..value.price.len();
        let table = rows.flat_map(|row| reader.wants.iter().map(move |&set| value.price_of(row, set))).collect();
        self.network.links.push(Link { a: producer, b: reader.var, table });
    }

    /// Settles what no factor ties to anything and takes the rest apart.
    fn split(self) -> Reduced {
        let Self { network, aliases, mut settled, .. } = self;
        let mut base = vec![0; network.unary.len()];
        let best = |weights: &Vec<Weight>| (weights.iter().copied().zip(0..)).min().unwrap_or_default();
        let bests: Vec<(Weight, u32)> = network.unary.iter().map(best).collect();
        let (components, alone) = components(network, |var| aliases.0[var].is_some());
        for &var in &alone {
            let (weight, state) = bests[var];
            settled += weight;
            base[var] = state;
        }
        let merged = aliases.0.iter().flatten().count();
        Reduced { components, settled, merged, pinned: alone.len(), aliases: aliases.0, base }
    }
}
