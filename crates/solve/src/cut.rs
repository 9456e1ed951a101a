//! Two states for every variable: exactly a minimum cut, if labels can be oriented.
//!
//! After orienting, a variable's *side* is 0 (the source's) or 1 (the sink's), and every factor must be submodular in the
//! sides. A link is, if equal sides are together no dearer than different ones. A shared value falls into terms, one for each
//! layout `l` that readers want: the price that both producer states have in common times "some reader wants `l`", and the rest
//! times "the producer is in the dearer state, and some reader wants `l`". A term is submodular if all readers want `l` on
//! one side and the producer is dearer on the other; it is a cut with one helper node `d`:
//!
//! ```text
//! wanted on the sink's side:    p -> d  price,  d -> reader  infinite   (any reader over there drags d along)
//! wanted on the source's side:  d -> p  price,  reader -> d  infinite
//! ```
//!
//! With two layouts that is the pair of helper nodes for each value. A helper with arcs on both sides of one node, as some
//! compilers have it, overcharges: a free producer with two readers pinned to each layout costs one conversion, not two.
//!
//! Orienting is a parity problem: each factor says that two variables must, or must not, have their labels the same way
//! round. If the factors contradict each other there is no such cut and another solver has to do.

use std::collections::BTreeMap;

use super::flow::FlowGraph;
use super::network::{Layouts, Network, Shared, each_layout};
use super::weight::Weight;

/// A variable and the state of it that a term is about.
type Literal = (usize, usize);

/// `weight`, if some of `wants` holds, and `when` too where it is given.
#[derive(Debug)]
struct Term {
    when: Option<Literal>,
    wants: Vec<Literal>,
    weight: Weight,
}

/// An optimum of the network.
#[derive(Debug)]
pub(super) struct Optimum {
    pub(super) states: Vec<u32>,
    pub(super) weight: Weight,
}

/// Solves `network` as a minimum cut; `None` if some variable has not two living states, or labels cannot be oriented.
pub(super) fn minimum_cut(network: &Network) -> Option<Optimum> {
    if network.unary.iter().any(|states| states.len() != 2 || !states.iter().all(|weight| weight.is_finite())) {
        return None;
    }
    let factors = Factors::of(network);
    let flip = orient(network.unary.len(), &factors)?;
    let mut graph = Graph { flow: FlowGraph::default(), base: Weight::ZERO, flip };
    for states in &network.unary {
        let node = graph.flow.add_node();
        graph.charge(node, [states[0], states[1]]);
    }
    for (&(a, b), table) in &factors.links {
        graph.link(a, b, *table)?;
    }
    factors.terms.iter().for_each(|term| graph.term(term));
    Some(graph.solve(network.unary.len()))
}

/// The factors of a network, taken apart.
#[derive(Debug, Default)]
struct Factors {
    /// Tables of two variables, the smaller first, indexed by their states.
    links: BTreeMap<(usize, usize), [[Weight; 2]; 2]>,
    terms: Vec<Term>,
}

impl Factors {
    fn of(network: &Network) -> Self {
        let mut factors = Self::default();
        for link in &network.links {
            for (at, &weight) in link.table.iter().enumerate() {
                factors.add_pair((link.a, at / 2), (link.b, at % 2), weight);
            }
        }
        network.shared.iter().for_each(|value| factors.add_value(value));
        factors
    }

    fn add_pair(&mut self, a: Literal, b: Literal, weight: Weight) {
        let (a, b) = if a.0 <= b.0 { (a, b) } else { (b, a) };
        self.links.entry((a.0, b.0)).or_default()[a.1][b.1] += weight;
    }

    fn add_value(&mut self, value: &Shared) {
        let wanted: Layouts = value.readers.iter().flat_map(|reader| &reader.wants).fold(0, |all, set| all | set);
        for layout in each_layout(wanted) {
            let state = |wants: &[Layouts]| wants.iter().position(|set| set >> layout & 1 == 1);
            let wants: Vec<Literal> =
                value.readers.iter().filter_map(|reader| Some((reader.var, state(&reader.wants)?))).collect();
            let Some(producer) = value.producer else {
                self.terms.push(Term { when: None, wants, weight: value.price[0][layout] });
                continue;
            };
            let prices = [value.price[0][layout], value.price[1][layout]];
            if let [want] = wants[..] {
                self.add_pair((producer, 0), want, prices[0]);
                self.add_pair((producer, 1), want, prices[1]);
                continue;
            }
            let common = prices[0].min(prices[1]);
            let dearer = usize::from(prices[1] > prices[0]);
            if common > Weight::ZERO {
                self.terms.push(Term { when: None, wants: wants.clone(), weight: common });
            }
            if prices[0] != prices[1] {
                self.terms.push(Term { when: Some((producer, dearer)), wants, weight: prices[dearer].minus(common) });
            }
        }
    }
}

/// For each variable whether its state 0 is on the sink's side; `None` if the factors contradict each other.
fn orient(variables: usize, factors: &Factors) -> Option<Vec<bool>> {
    let mut parity = Parity { leader: (0..variables).collect(), odd: vec![false; variables] };
    for (&(a, b), table) in &factors.links {
        let (same, different) = (table[0][0] + table[1][1], table[0][1] + table[1][0]);
        if same != different && !parity.relate(a, b, same > different) {
            return None;
        }
    }
    for term in &factors.terms {
        let Some(&(first, state)) = term.wants.first() else { continue };
        if !term.wants.iter().all(|&(var, other)| parity.relate(first, var, state != other)) {
            return None;
        }
        if term.when.is_some_and(|(producer, dear)| !parity.relate(first, producer, state == dear)) {
            return None;
        }
    }
    Some((0..variables).map(|var| parity.find(var).1).collect())
}

/// Union-find with the parity of each variable relative to its leader.
struct Parity {
    leader: Vec<usize>,
    odd: Vec<bool>,
}

impl Parity {
    /// The leader of `var`, and whether `var` is the other way round.
    fn find(&mut self, var: usize) -> (usize, bool) {
        let (mut root, mut total) = (var, false);
        while self.leader[root] != root {
            total ^= self.odd[root];
            root = self.leader[root];
        }
        let (mut at, mut rest) = (var, total);
        while self.leader[at] != at {
            let next = (self.leader[at], rest ^ self.odd[at]);
            (self.leader[at], self.odd[at]) = (root, rest);
            (at, rest) = next;
        }
        (root, total)
    }

    /// Records that `a` and `b` are the same way round, or that they are not if `odd`; false if that contradicts.
    fn relate(&mut self, a: usize, b: usize, odd: bool) -> bool {
        let ((root_a, odd_a), (root_b, odd_b)) = (self.find(a), self.find(b));
        if root_a == root_b {
            return odd_a ^ odd_b == odd;
        }
        let (low, high) = (root_a.min(root_b), root_a.max(root_b));
        self.leader[high] = low;
        self.odd[high] = odd_a ^ odd_b ^ odd;
        true
    }
}

/// The cut under construction; the first nodes are the variables.
struct Graph {
    flow: FlowGraph,
    /// What is paid in any case.
    base: Weight,
    flip: Vec<bool>,
}

impl Graph {
    /// Charges a variable for each of its states.
    fn charge(&mut self, var: usize, states: [Weight; 2]) {
        let [source, sink] = if self.flip[var] { [states[1], states[0]] } else { states };
        self.base += source;
        self.flow.add_surplus(var, sink.raw() - source.raw());
    }

    /// A submodular table becomes weights for the sides and an arc; `None` if an infinite entry is where none can be.
    fn link(&mut self, a: usize, b: usize, table: [[Weight; 2]; 2]) -> Option<()> {
        let at =
            |side_a: bool, side_b: bool| table[usize::from(side_a ^ self.flip[a])][usize::from(side_b ^ self.flip[b])];
        let (w00, w01, w10, w11) = (at(false, false), at(false, true), at(true, false), at(true, true));
        if !w00.is_finite() || !w11.is_finite() {
            return None;
        }
        self.base += w00;
        if w10.is_finite() {
            self.flow.add_surplus(a, w10.raw() - w00.raw());
            self.flow.add_surplus(b, w11.raw() - w10.raw());
            self.flow.add_arc(a, b, (w01 + w10).minus(w00 + w11).raw(), 0);
        } else if w01.is_finite() {
            self.flow.add_surplus(b, w01.raw() - w00.raw());
            self.flow.add_surplus(a, w11.raw() - w01.raw());
            self.flow.add_arc(b, a, Weight::INFINITE.raw(), 0);
        } else {
            self.flow.add_surplus(a, w11.raw() - w00.raw());
            self.flow.add_arc(a, b, Weight::INFINITE.raw(), Weight::INFINITE.raw());
        }
        Some(())
    }

    fn term(&mut self, term: &Term) {
        let Some(&(first, state)) = term.wants.first() else { return };
        let sink_side = (state == 1) ^ self.flip[first];
        let helper = self.flow.add_node();
        for &(var, _) in &term.wants {
            let (from, to) = if sink_side { (helper, var) } else { (var, helper) };
            self.flow.add_arc(from, to, Weight::INFINITE.raw(), 0);
        }
        match (term.when, sink_side) {
            (Some((producer, _)), true) => self.flow.add_arc(producer, helper, term.weight.raw(), 0),
            (Some((producer, _)), false) => self.flow.add_arc(helper, producer, term.weight.raw(), 0),
            (None, true) => self.flow.add_surplus(helper, term.weight.raw()),
            (None, false) => self.flow.add_surplus(helper, -term.weight.raw()),
        }
    }

    fn solve(self, variables: usize) -> Optimum {
        // A variable that is cheaper on the sink's side is charged that much on the source's side instead. (A helper's
        // surplus is such a charge from the start, and may be infinite.)
        let gains: i128 = self.flow.surplus().iter().take(variables).filter(|&&surplus| surplus < 0).sum();
        let base = self.base + Weight::from_raw(gains);
        let cut = self.flow.minimum_cut();
        let state = |var: usize| u32::from(cut.sink_side[var] ^ self.flip[var]);
        Optimum { states: (0..variables).map(state).collect(), weight: base + cut.flow }
    }
}
