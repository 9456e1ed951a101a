//! The form that the solvers work on: weights instead of costs, and shared values priced by the state of their producer.
//!
//! A [`Shared`] keeps, for each state of its producer, the price of every layout; the layout produced is priced 0. What is
//! wanted for certain, or by the producer itself, is paid in a unary weight and then priced 0 as well. So a row of prices is
//! all that is left of producer, moves, self loops and pinned uses, and the cost of a value is the sum of the prices of the
//! union of what its uses want.
//!
//! A state of infinite unary weight is dead. Tables keep their entries for dead states; whoever reads them skips those.

use super::problem::{Problem, SharedValue};
use super::weight::Weight;

/// A weight for every joint state of two variables, row-major.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) table: Vec<Weight>,
}

/// A set of layouts, one bit each.
pub(super) type Layouts = u64;

/// The layouts in `set`, ascending.
pub(super) fn each_layout(set: Layouts) -> impl Iterator<Item = usize> {
    (0..64_usize).filter(move |&layout| set >> layout & 1 == 1)
}

/// A variable that reads a value: for each of its states the layouts it then wants.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    pub(super) var: usize,
    pub(super) wants: Vec<Layouts>,
}

/// A value whose conversions are paid once each.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    /// `None`: the producer's state is settled, and `price` has one row.
    pub(super) producer: Option<usize>,
    /// For each state of the producer the price of each layout.
    pub(super) price: Vec<Vec<Weight>>,
    pub(super) readers: Vec<Reader>,
}

impl Shared {
    /// The price of having all of `set` when the producer is in `state`.
    pub(super) fn price_of(&self, state: usize, set: Layouts) -> Weight {
        each_layout(set).map(|layout| self.price[state][layout]).sum()
    }
}

/// Variables and factors over them, all indices local to the network.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    /// For each variable the weight of each state.
    pub(super) unary: Vec<Vec<Weight>>,
    pub(super) links: Vec<Link>,
    pub(super) shared: Vec<Shared>,
}

impl Network {
    /// The network of `problem`, with the tie-break in the unary weights.
    pub(super) fn of(problem: &Problem) -> Self {
        let charged =
            |(state, &cost): (usize, _)| Weight::from(cost) + if state == 0 { Weight::ZERO } else { Weight::CHANGE };
        let unary = problem.unary.iter().map(|costs| costs.iter().enumerate().map(charged).collect()).collect();
        let link = |pair: &super::problem::Pair| Link {
            a: pair.a.index(),
            b: pair.b.index(),
            table: pair.table.iter().copied().map(Weight::from).collect(),
        };
        let links = problem.pairs.iter().map(link).collect();
        Self { unary, links, shared: problem.values.iter().map(shared).collect() }
    }

    /// The states of `var` that are not dead, ascending.
    pub(super) fn alive(&self, var: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        self.unary[var].iter().enumerate().filter(|(_, weight)| weight.is_finite()).map(|(state, _)| state)
    }

    /// Takes out of `value` the layouts that some reader wants in all of its living states, and those that are free. Their
    /// prices go to the producer's states; where that is settled they are returned.
    pub(super) fn charge_certain(&mut self, value: &mut Shared) -> Weight {
        let always = |reader: &Reader| self.alive(reader.var).fold(!0, |set, state| set & reader.wants[state]);
        // A reader without a living state makes the problem infeasible, which its unary weights say.
        let living = |reader: &&Reader| self.alive(reader.var).next().is_some();
        let certain = value.readers.iter().filter(living).fold(0, |set, reader| set | always(reader));
        let mut settled = Weight::ZERO;
        for (state, row) in value.price.iter_mut().enumerate() {
            let paid = take_prices(row, certain);
            match value.producer {
                Some(var) => self.unary[var][state] += paid,
                None => settled += paid,
            }
        }
        let states: Vec<usize> = value.producer.map_or_else(|| vec![0], |var| self.alive(var).collect());
        let priced =
            |row: &Vec<Weight>| (0..row.len()).filter(|&l| row[l] != Weight::ZERO).fold(0, |set, l| set | 1 << l);
        let useful: Layouts = states.iter().fold(0, |set, &state| set | priced(&value.price[state]));
        value.readers.iter_mut().flat_map(|reader| &mut reader.wants).for_each(|set| *set &= useful);
        settled
    }

    /// What the states weigh, one for each variable.
    pub(super) fn weigh(&self, states: &[u32]) -> Weight {
        let state = |var: usize| states[var] as usize;
        let unary: Weight = self.unary.iter().zip(states).map(|(weights, &s)| weights[s as usize]).sum();
        let links: Weight =
            self.links.iter().map(|link| link.table[state(link.a) * self.unary[link.b].len() + state(link.b)]).sum();
        let shared: Weight = self.shared.iter().map(|value| weigh_shared(value, state)).sum();
        unary + links + shared
    }
}

/// Sums the prices of `set` and sets them to zero.
pub(super) fn take_prices(row: &mut [Weight], set: Layouts) -> Weight {
    let wanted = row.iter_mut().enumerate().filter(|(layout, _)| set >> layout & 1 == 1);
    wanted.map(|(_, price)| std::mem::take(price)).sum()
}

/// What the conversions of `value` weigh.
pub(super) fn weigh_shared(value: &Shared, state: impl Fn(usize) -> usize) -> Weight {
    let set = value.readers.iter().fold(0, |set, reader| set | reader.wants[state(reader.var)]);
    value.price_of(value.producer.map_or(0, state), set)
}

fn shared(value: &SharedValue) -> Shared {
    let row = |&produced: &u32| {
        let free = produced as usize;
        let price = |to| {
            if to == free { Weight::ZERO } else { Weight::from(value.moves[free * value.layouts + to]) }
        };
        (0..value.layouts).map(price).collect()
    };
    let reader = |read: &super::problem::Use| Reader {
        var: read.var.index(),
        wants: read.wants.iter().map(|want| want.map_or(0, |layout| 1 << layout)).collect(),
    };
    Shared {
        producer: Some(value.producer.index()),
        price: value.produces.iter().map(row).collect(),
        readers: value.uses.iter().map(reader).collect(),
    }
}
