//! A decision: one choice per node, and what follows from it for every value.

use super::candidates::{Candidates, Choice};
use super::pieces::{Piece, Runs};
use super::scopes::{BodyKey, Crossing, Scopes};
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, Use, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::op::read::between_units;
use relayout_target_api::hints::Hints;
use relayout_target_api::{Cost, MoveKind, MoveQuery, NodeQuery, Offer, Raised, Sizes, Target};
use rustc_hash::FxHashMap;
use std::iter::Sum;
use std::ops::Add;

/// A decision for a whole model.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    candidates: Candidates,
    chosen: Chosen,
    bodies: FxHashMap<BodyKey, usize>,
    /// What the target's runtime makes of the input by itself, where that is not choice 0 of every node.
    loaded: Option<Chosen>,
}

/// The number of the choice that each node takes, by scope and node number, and of the layout in which each border is crossed.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    pub(super) nodes: Vec<Vec<usize>>,
    pub(super) borders: Vec<usize>,
}

/// A layout in which a value is wanted, and by whom.
#[derive(Clone, Debug)]
pub struct Want {
    /// The layout.
    pub layout: Layout,
    /// Readers.
    pub uses: Vec<Use>,
    /// Places among the graph's outputs.
    pub outputs: Vec<usize>,
}

/// What becomes of one value.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// The layout in which its producer leaves it.
    pub produced: Option<Layout>,
    /// Other layouts that are wanted, each once. Row-major comes first.
    pub copies: Vec<Want>,
    /// Its producer is a Transpose whose result is not the plain view of its operand: it moves from this layout, or is a Reshape.
    pub moved_by_producer: Option<Layout>,
}

impl Plan {
    pub(super) fn new(scopes: &Scopes<'_>, candidates: Candidates, chosen: Chosen) -> Plan {
        let mut plan = Plan { candidates, chosen, bodies: scopes.bodies.clone(), loaded: None };
        plan.rest(scopes);
        plan
    }

    /// The same candidates with every choice ONNX's own: the input, and the moves that a contract costs it.
    pub(super) fn origin(&self) -> Plan {
        let nodes = self.chosen.nodes.iter().map(|nodes| vec![0; nodes.len()]).collect();
        let chosen = Chosen { nodes, borders: vec![0; self.chosen.borders.len()] };
        Plan { candidates: self.candidates.clone(), chosen, bodies: self.bodies.clone(), loaded: None }
    }

    /// The plan that is given back to what the target's runtime makes of the input.
    pub(super) fn over(self, loaded: Option<Chosen>) -> Plan {
        Plan { loaded, ..self }
    }

    /// The same candidates as the target's runtime takes them of the input by itself, if it says so.
    pub(super) fn loaded(&self) -> Option<Plan> {
        self.loaded.clone().map(|chosen| Plan { chosen, ..self.clone() })
    }

    /// The number of the choice that a node has in the input: 0, or what the runtime makes of it.
    fn before(&self, s: usize, n: NodeId) -> usize {
        let loaded = self.loaded.as_ref().and_then(|loaded| loaded.nodes.get(s)?.get(n.index()).copied());
        loaded.unwrap_or(0)
    }

    /// The same candidates, chosen otherwise; gives back what was chosen.
    pub(super) fn choose(&mut self, chosen: Chosen) -> Chosen {
        std::mem::replace(&mut self.chosen, chosen)
    }

    pub(super) fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    pub(super) fn candidates(&self) -> &Candidates {
        &self.candidates
    }

    /// The scope of a body.
    pub fn body(&self, key: &BodyKey) -> Option<usize> {
        self.bodies.get(key).copied()
    }

    /// The choice of a node; `None` for nodes that are not ops.
    pub(super) fn choice(&self, s: usize, n: NodeId) -> Option<&Choice> {
        let choices = self.candidates.scopes[s].choices.get(n.index())?;
        choices.get(self.chosen.nodes[s].get(n.index()).copied().unwrap_or(0))
    }

    /// Choice 0 of a node: how ONNX runs it.
    pub(super) fn origin_choice(&self, s: usize, n: NodeId) -> Option<&Choice> {
        self.candidates.scopes[s].choices.get(n.index())?.first()
    }

    /// The offer that a node becomes.
    pub fn offer(&self, s: usize, n: NodeId) -> Option<&Offer> {
        self.candidates.scopes[s].offers.get(n.index())?.get(self.choice(s, n)?.offer?)
    }

    /// What a node costs at these sizes, as it was chosen.
    pub(super) fn choice_cost(&self, s: usize, graph: &Graph, n: NodeId, target: &dyn Target, hints: &Hints) -> Cost {
        let Some(chosen) = self.choice(s, n) else { return Cost::ZERO };
        match self.offer(s, n) {
            _ if hints.is_typical() => chosen.cost,
            None => self.cost_as_itself(s, graph, n, chosen, target, hints),
            Some(_) if !target.capabilities().checks_sizes || chosen.cost == Cost::ZERO => chosen.cost,
            Some(taken) => self.offer_cost(s, graph, n, taken, target, hints).unwrap_or(chosen.cost),
        }
    }

    /// What a node of the input costs at these sizes.
    pub(super) fn origin_cost(&self, s: usize, graph: &Graph, n: NodeId, target: &dyn Target, hints: &Hints) -> Cost {
        match self.origin_choice(s, n) {
            None => Cost::ZERO,
            Some(origin) if hints.is_typical() => origin.cost,
            Some(origin) => self.cost_as_itself(s, graph, n, origin, target, hints),
        }
    }

    /// What a choice that is no offer costs at these sizes.
    fn cost_as_itself(
        &self,
        s: usize,
        graph: &Graph,
        n: NodeId,
        choice: &Choice,
        target: &dyn Target,
        hints: &Hints,
    ) -> Cost {
        let own = &self.candidates.scopes[s];
        let cost = own.axes_cost(graph, target, hints, n, choice).filter(|_| choice.reads());
        cost.map_or(choice.cost, |cost| cost + own.plain_cost(s, graph, n, target, hints))
    }

    /// What an offer that was taken costs at these sizes, if it is still made.
    fn offer_cost(
        &self,
        s: usize,
        graph: &Graph,
        n: NodeId,
        taken: &Offer,
        target: &dyn Target,
        sizes: &dyn Sizes,
    ) -> Option<Cost> {
        let own = &self.candidates.scopes[s];
        if let Some(piece) = self.piece(s, n) {
            let offers = piece.offers(target, sizes, &own.constant);
            return offers.into_iter().find(|offer| offer.layouts == taken.layouts).map(|offer| offer.cost);
        }
        let is_constant = |v: ValueId| own.constant.get(v.index()).copied().unwrap_or(false);
        let offers = target.offers(&NodeQuery::new(graph, n, sizes, &is_constant).within(s > 0));
        let same = offers.into_iter().find(|offer| offer.layouts == taken.layouts);
        same.map(|offer| offer.cost + own.charged(n))
    }

    pub(super) fn is_changed(&self, s: usize, n: NodeId) -> bool {
        let choices = self.candidates.scopes[s].choices.get(n.index());
        self.choice(s, n) != choices.and_then(|choices| choices.get(self.before(s, n)))
    }

    /// The piece whose raised op a node runs as.
    pub(super) fn piece(&self, s: usize, n: NodeId) -> Option<&Piece> {
        let Runs::As(piece) = self.choice(s, n)?.runs else { return None };
        self.candidates.scopes[s].pieces.list.get(piece)
    }

    /// The pieces of a graph that become raised ops, in topological order.
    pub fn raised(&self, s: usize) -> impl Iterator<Item = &Raised> {
        let pieces = self.candidates.scopes.get(s).map_or(&[][..], |own| &own.pieces.list);
        let chosen = move |at: usize, piece: &Piece| {
            self.choice(s, piece.last()).is_some_and(|choice| choice.runs == Runs::As(at))
        };
        pieces.iter().enumerate().filter(move |(at, piece)| chosen(*at, piece)).map(|(_, piece)| &piece.is)
    }

    /// Whether a node runs otherwise than as itself.
    pub(super) fn runs_otherwise(&self, s: usize, n: NodeId) -> bool {
        self.choice(s, n).is_some_and(|choice| !choice.reads())
    }

    /// The raised ops that read a value, each with the layout: the node in whose place it stands, and the slot.
    pub(super) fn raised_readers(&self, s: usize, v: ValueId) -> impl Iterator<Item = (Use, Layout)> {
        let readers = self.candidates.scopes[s].pieces.readers(v);
        readers.filter_map(move |(at, slot, piece)| {
            let choice = self.choice(s, piece.last()).filter(|choice| choice.runs == Runs::As(at))?;
            Some((Use { node: piece.last(), slot }, choice.ins.get(slot)?.clone()))
        })
    }

    /// Lets nodes rest whose results nobody reads, of those that may.
    fn rest(&mut self, scopes: &Scopes<'_>) {
        for s in 0..scopes.list.len() {
            let graph = scopes.graph(s);
            for n in graph.order().unwrap_or_default().into_iter().rev() {
                let own = &self.candidates.scopes[s];
                let resting = own.choices.get(n.index()).and_then(|all| all.iter().position(|c| c.runs == Runs::Not));
                let unread = |&v: &ValueId| graph.output_places(v).is_empty() && self.wants(scopes, s, v).is_empty();
                if let Some(at) = resting.filter(|_| graph.node(n).outputs.iter().flatten().all(unread)) {
                    self.chosen.nodes[s][n.index()] = at;
                }
            }
        }
    }

    pub(super) fn revert(&mut self, s: usize, n: NodeId) {
        let before = self.before(s, n);
        if let Some(chosen) = self.chosen.nodes[s].get_mut(n.index()) {
            *chosen = before;
        }
    }

    pub(super) fn border_is_changed(&self, b: usize) -> bool {
        self.chosen.borders[b] != 0
    }

    pub(super) fn revert_border(&mut self, b: usize) {
        self.chosen.borders[b] = 0;
    }

    /// The layout in which an end of the main graph is stored: an input's, or that of the k-th output.
    pub fn end(&self, scopes: &Scopes<'_>, v: ValueId, output: Option<usize>) -> Option<Layout> {
        let crossing = match output {
            Some(k) => scopes.output(0, k),
            None => scopes.produced(0, v),
        };
        self.crossed(crossing?)
    }

    /// The layout that a value has at one end of a border.
    fn crossed(&self, crossing: Crossing) -> Option<Layout> {
        let layouts = &self.candidates.borders[crossing.border];
        crossing.here(layouts.get(self.chosen.borders[crossing.border])?)
    }

    /// Whether the value is a constant, or views of one.
    pub(super) fn is_constant(&self, s: usize, v: ValueId) -> bool {
        self.candidates.scopes[s].constant[v.index()]
    }

    /// The layout in which a use reads its value.
    pub(super) fn wanted(&self, scopes: &Scopes<'_>, s: usize, u: Use, v: ValueId) -> Layout {
        let rank = scopes.graph(s).value(v).ty.rank().unwrap_or(0);
        let crossing = scopes.wanted(s, u).and_then(|c| self.crossed(c));
        let wanted = crossing.or_else(|| self.choice(s, u.node)?.ins.get(u.slot).cloned());
        wanted.unwrap_or_else(|| Layout::row_major(rank))
    }

    /// What becomes of a value.
    pub fn taken(&self, scopes: &Scopes<'_>, s: usize, v: ValueId) -> Taken {
        let graph = scopes.graph(s);
        let value = graph.value(v);
        let Some(rank) = value.ty.rank() else { return Taken::default() };
        let row_major = Layout::row_major(rank);
        let (producer, slot) = value.producer();
        if self.choice(s, producer).is_some_and(|choice| choice.runs == Runs::Not) {
            return Taken::default();
        }
        let crossing = scopes.produced(s, v).and_then(|c| self.crossed(c));
        let left = crossing.or_else(|| self.choice(s, producer)?.outs.get(slot).cloned());
        let left = left.unwrap_or_else(|| row_major.clone());
        let wanted = self.wants(scopes, s, v);
        // A Transpose whose view nobody reads moves the bytes itself, to what is wanted first.
        let transposes = matches!(graph.node(producer).form, Form::View(View::Transpose(_)));
        let absorbs = transposes && !self.is_constant(s, v) && wanted.iter().all(|w| w.layout != left);
        let produced = match (absorbs, wanted.first()) {
            (false, _) => left.clone(),
            (true, Some(first)) => first.layout.clone(),
            (true, None) => row_major,
        };
        let moved_by_producer = absorbs.then_some(left);
        let copies = wanted.into_iter().filter(|w| w.layout != produced).collect();
        Taken { produced: Some(produced), copies, moved_by_producer }
    }

    /// Layouts in which a value is wanted, row-major first, and by whom.
    fn wants(&self, scopes: &Scopes<'_>, s: usize, v: ValueId) -> Vec<Want> {
        let graph = scopes.graph(s);
        let rank = graph.value(v).ty.rank().unwrap_or(0);
        let mut wants: Vec<Want> = Vec::new();
        let mut want = |layout: Layout| -> usize {
            wants.iter().position(|w| w.layout == layout).unwrap_or_else(|| {
                wants.push(Want { layout, uses: Vec::new(), outputs: Vec::new() });
                wants.len() - 1
            })
        };
        let mut outputs = Vec::new();
        for &k in graph.output_places(v) {
            let layout = scopes.output(s, k).and_then(|c| self.crossed(c)).unwrap_or_else(|| Layout::row_major(rank));
            outputs.push((want(layout), k));
        }
        let own = graph.uses(v).into_iter().filter(|u| !self.runs_otherwise(s, u.node));
        let own = own.map(|u| (u, self.wanted(scopes, s, u, v)));
        let uses: Vec<(usize, Use)> =
            own.chain(self.raised_readers(s, v)).map(|(u, layout)| (want(layout), u)).collect();
        for (i, k) in outputs {
            wants[i].outputs.push(k);
        }
        for (i, u) in uses {
            wants[i].uses.push(u);
        }
        wants.sort_by_key(|w| !w.layout.is_row_major());
        wants
    }

    /// Price of the copies of a value, its producer's own move not counted.
    pub(super) fn copies_price(
        &self,
        scopes: &Scopes<'_>,
        s: usize,
        v: ValueId,
        target: &dyn Target,
        hints: &Hints,
    ) -> Price {
        if self.is_constant(s, v) {
            return Price::default();
        }
        let taken = self.taken(scopes, s, v);
        let Some(produced) = &taken.produced else { return Price::default() };
        let graph = scopes.graph(s);
        let price = |w: &Want| Price::of_move(graph, v, produced, &w.layout, target, hints);
        taken.copies.iter().map(price).sum::<Price>().times(scopes.list[s].weight)
    }
}

/// What a part of the model costs, and the bytes that it moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Price {
    pub(super) cost: Cost,
    pub(super) bytes: u64,
}

impl Price {
    /// A price without moves.
    pub(super) fn of_op(cost: Cost) -> Price {
        Price { cost, bytes: 0 }
    }

    /// The price of a move of a value.
    pub(super) fn of_move(
        graph: &Graph,
        v: ValueId,
        from: &Layout,
        to: &Layout,
        target: &dyn Target,
        hints: &Hints,
    ) -> Price {
        let moves = move_kind(graph, v, from, to) == MoveKind::Permute;
        let bytes = if moves { hints.bytes(graph, v) } else { 0 };
        Price { cost: move_cost(graph, v, from, to, target, hints), bytes }
    }

    /// `n` times this price.
    pub(super) fn times(self, n: u64) -> Price {
        Price { cost: self.cost.times(n), bytes: self.bytes.saturating_mul(n) }
    }

    /// Whether this is a gain over `before`: cheaper, by at least so many percent, and nothing more is moved unless the target allows
    /// that.
    pub(super) fn gains_over(self, before: Price, target: &dyn Target, least_gain: u64) -> bool {
        let most = before.cost.percent(100_u64.saturating_sub(least_gain));
        self.cost < before.cost && self.cost <= most && self.holds_against(before, target)
    }

    /// Whether this is no loss against `before`.
    pub(super) fn holds_against(self, before: Price, target: &dyn Target) -> bool {
        self.cost <= before.cost && (target.capabilities().may_move_more || self.bytes <= before.bytes)
    }
}

impl Add for Price {
    type Output = Price;

    fn add(self, other: Price) -> Price {
        Price { cost: self.cost + other.cost, bytes: self.bytes.saturating_add(other.bytes) }
    }
}

impl Sum for Price {
    fn sum<I: Iterator<Item = Price>>(prices: I) -> Price {
        prices.fold(Price::default(), Add::add)
    }
}

/// Whether a value is what a `DequantizeLinear` reads of the `QuantizeLinear` before it, and no move may part the two: floats move before or behind
/// them.
pub(super) fn is_pair(graph: &Graph, v: ValueId, target: &dyn Target) -> bool {
    target.capabilities().keeps_pairs && between_units(graph, v)
}

/// Cost of one move of a value between two layouts.
pub(super) fn move_cost(
    graph: &Graph,
    v: ValueId,
    from: &Layout,
    to: &Layout,
    target: &dyn Target,
    hints: &Hints,
) -> Cost {
    if from == to {
        return Cost::ZERO;
    }
    // A target may write moves of volumes as moves of images, which has to be possible.
    let possible = target.can_move(graph, v, from, to);
    let Some(shape) = hints.shape(graph, v).filter(|_| possible) else { return Cost::INFINITE };
    let (kind, bytes) = (move_kind(graph, v, from, to), hints.bytes(graph, v));
    if kind == MoveKind::Permute && is_pair(graph, v, target) {
        return Cost::INFINITE;
    }
    let dtype = graph.value(v).ty.dtype();
    target
        .move_cost(&MoveQuery::permute(from, to, &shape).kind(kind).dtype(dtype).bytes(bytes))
        .unwrap_or(Cost::INFINITE)
}

/// Whether a change of layout moves bytes. One that does not but that no op of ONNX alone expresses is taken for one that does.
pub(super) fn move_kind(graph: &Graph, v: ValueId, from: &Layout, to: &Layout) -> MoveKind {
    let free = graph.in_place(&View::Same, (v, from), (v, to)).free();
    if free.and_then(|how| how.nodes()).is_some_and(|nodes| nodes <= 1) { MoveKind::View } else { MoveKind::Permute }
}

/// Whether a node is a Transpose in the file.
pub(super) fn is_transpose(node: &Node) -> bool {
    matches!(node.form, Form::View(View::Transpose(_))) && matches!(node.op, Op::Onnx(_))
}
