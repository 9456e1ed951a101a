//! Kills states that no optimum needs.
//!
//! A state dies if a link leaves it no partner, or if another living state of the same variable is no heavier whatever the
//! neighbours do: the sum over all factors of the largest excess of the other state is at most zero (Goldstein's criterion for
//! dead-end elimination). Each death is judged against the states then alive, so at least one optimum survives all of them.

use super::network::{Layouts, Link, Network, each_layout};
use super::weight::Weight;

/// How often a variable is looked at, for each of its states.
const VISITS_PER_STATE: usize = 4;

/// The factors of each variable.
struct Incidence {
    links: Vec<Vec<u32>>,
    produced: Vec<Vec<u32>>,
    read: Vec<Vec<u32>>,
}

impl Incidence {
    fn of(network: &Network) -> Self {
        let n = network.unary.len();
        let mut all = Self { links: vec![Vec::new(); n], produced: vec![Vec::new(); n], read: vec![Vec::new(); n] };
        for (at, link) in network.links.iter().enumerate() {
            all.links[link.a].push(at as u32);
            all.links[link.b].push(at as u32);
        }
        for (at, value) in network.shared.iter().enumerate() {
            value.producer.into_iter().for_each(|var| all.produced[var].push(at as u32));
            value.readers.iter().for_each(|reader| all.read[reader.var].push(at as u32));
        }
        all
    }
}

/// Prunes until nothing more dies or every variable has had its visits; says whether anything died.
pub(super) fn prune(network: &mut Network) -> bool {
    let incidence = Incidence::of(network);
    let n = network.unary.len();
    let mut visits: Vec<usize> = network.unary.iter().map(|states| states.len() * VISITS_PER_STATE).collect();
    let mut waiting = vec![true; n];
    let mut queue: std::collections::VecDeque<usize> = (0..n).collect();
    let mut any = false;
    while let Some(var) = queue.pop_front() {
        waiting[var] = false;
        if visits[var] == 0 || network.alive(var).nth(1).is_none() {
            continue;
        }
        visits[var] -= 1;
        if (Visit { network, incidence: &incidence, var }).kill() {
            any = true;
            let mut wake = |other: usize| {
                if !waiting[other] {
                    waiting[other] = true;
                    queue.push_back(other);
                }
            };
            for &at in &incidence.links[var] {
                let link = &network.links[at as usize];
                wake(if link.a == var { link.b } else { link.a });
            }
            // What a reader may gain depends on the producer alone, and the other way round.
            for &at in &incidence.produced[var] {
                network.shared[at as usize].readers.iter().for_each(|reader| wake(reader.var));
            }
            for &at in &incidence.read[var] {
                network.shared[at as usize].producer.into_iter().for_each(&mut wake);
            }
        }
    }
    any
}

/// How much dearer one state can be than another, over all cases in which the other is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Excess {
    /// There is no such case.
    Void,
    /// By so much, which may be negative.
    AtMost(i128),
    /// The state is impossible in one of them.
    Unlimited,
}

/// One look at a variable.
struct Visit<'a> {
    network: &'a mut Network,
    incidence: &'a Incidence,
    var: usize,
}

impl Visit<'_> {
    /// Kills what can be killed, later states first; says whether anything was.
    fn kill(&mut self) -> bool {
        let alive: Vec<usize> = self.network.alive(self.var).collect();
        let mut any = false;
        for &state in alive.iter().rev() {
            let living = |&other: &usize| other != state && self.network.unary[self.var][other].is_finite();
            let beaten = alive.iter().copied().filter(living).any(|other| self.beats(other, state));
            if beaten || !self.possible(state) {
                self.network.unary[self.var][state] = Weight::INFINITE;
                any = true;
            }
        }
        any
    }

    fn possible(&self, state: usize) -> bool {
        self.incidence.links[self.var].iter().all(|&at| {
            let link = &self.network.links[at as usize];
            self.partner_states(link).any(|partner| self.entry(link, state, partner).is_finite())
        })
    }

    /// Whether `other` is no heavier than `state` in every case.
    fn beats(&self, other: usize, state: usize) -> bool {
        let unary = &self.network.unary[self.var];
        let mut excess = unary[other].raw() - unary[state].raw();
        // The excess of a factor may be negative only for links; the shared values can but add to it.
        for &at in &self.incidence.links[self.var] {
            let link = &self.network.links[at as usize];
            match self.link_excess(link, other, state) {
                Excess::AtMost(more) => excess += more,
                Excess::Unlimited => return false,
                Excess::Void => {} // `possible` finds that
            }
        }
        if excess > 0 {
            return false;
        }
        for &at in &self.incidence.read[self.var] {
            excess += self.reader_excess(at as usize, other, state);
            if excess > 0 {
                return false;
            }
        }
        for &at in &self.incidence.produced[self.var] {
            excess += self.producer_excess(at as usize, other, state);
            if excess > 0 {
                return false;
            }
        }
        true
    }

    fn link_excess(&self, link: &Link, other: usize, state: usize) -> Excess {
        let mut most = Excess::Void;
        for partner in self.partner_states(link) {
            let (mine, its) = (self.entry(link, other, partner), self.entry(link, state, partner));
            if its.is_finite() {
                if !mine.is_finite() {
                    return Excess::Unlimited;
                }
                most = most.max(Excess::AtMost(mine.raw() - its.raw()));
            }
        }
        most
    }

    fn partner_states(&self, link: &Link) -> impl Iterator<Item = usize> + Clone {
        self.network.alive(if link.a == self.var { link.b } else { link.a })
    }

    fn entry(&self, link: &Link, state: usize, partner: usize) -> Weight {
        let columns = self.network.unary[link.b].len();
        if link.a == self.var { link.table[state * columns + partner] } else { link.table[partner * columns + state] }
    }

    /// At most what `other` wants beyond `state`, at the dearest producer.
    fn reader_excess(&self, at: usize, other: usize, state: usize) -> i128 {
        let value = &self.network.shared[at];
        let Ok(me) = value.readers.binary_search_by_key(&self.var, |reader| reader.var) else {
            return Weight::INFINITE.raw();
        };
        let wants = &value.readers[me].wants;
        let beyond: Layouts = wants[other] & !wants[state];
        if beyond == 0 {
            return 0;
        }
        let dearest = match value.producer {
            Some(producer) => self.network.alive(producer).map(|s| value.price_of(s, beyond)).max(),
            None => Some(value.price_of(0, beyond)),
        };
        dearest.unwrap_or_default().raw()
    }

    /// At most what producing in `other` makes dearer, whatever is wanted.
    fn producer_excess(&self, at: usize, other: usize, state: usize) -> i128 {
        let value = &self.network.shared[at];
        let dearer = |layout: usize| match (value.price[other][layout], value.price[state][layout]) {
            (_, its) if !its.is_finite() => 0,
            (mine, _) if !mine.is_finite() => Weight::INFINITE.raw(),
            (mine, its) => (mine.raw() - its.raw()).max(0),
        };
        let wanted =
            value.readers.iter().flat_map(|reader| self.network.alive(reader.var).map(|state| reader.wants[state]));
        let wanted: Layouts = wanted.fold(0, |set, more| set | more);
        let mut sum = 0;
        for layout in each_layout(wanted) {
            sum += dearer(layout);
            if sum >= Weight::INFINITE.raw() {
                return Weight::INFINITE.raw();
            }
        }
        sum
    }
}
