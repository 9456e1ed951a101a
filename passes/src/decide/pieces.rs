//! Pieces of several nodes in a decision.
//!
//! A piece has one raised op. Its offers are states of the piece's last node: in them the node reads the operands of the raised op in
//! the place of its own. What is before it in the piece need not run then, so each of these nodes has one state more in which it
//! reads nothing and leaves nothing; whoever reads its result forbids that state. So pieces may overlap, and what is between may be
//! read from outside.
//!
//! Offers are priced in a copy of the graph in which the piece is raised. There the form says what the piece costs as ONNX has it. If
//! its nodes by themselves say less, the last one is charged with the difference. If they say more, so do the offers.

use super::choices::may_take;
use super::scopes::Scopes;
use crate::forms::raise::raise;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_target_api::hints::Hints;
use relayout_target_api::{Cost, NodeQuery, Numerics, Offer, Raised, Sizes, Target};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// How a choice runs its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Runs {
    /// The node itself.
    #[default]
    Itself,
    /// As the raised op of this piece.
    As(usize),
    /// Not at all.
    Not,
}

/// A piece with its raised op.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) is: Raised,
    /// Operands of the raised op, by slot. A constant that the file does not have is none of the graph.
    pub(super) operands: Vec<Option<ValueId>>,
    /// The graph in which it is raised.
    copy: Arc<Graph>,
    last: NodeId,
    /// What its nodes cost beyond what the form says of the piece.
    beyond: Cost,
    inside: bool,
}

/// The pieces of a graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    pub(super) list: Vec<Piece>,
    /// Which pieces read a value, and in which slots.
    readers: FxHashMap<ValueId, Vec<(usize, usize)>>,
    /// Nodes that need not run.
    rest: FxHashSet<NodeId>,
}

impl Pieces {
    /// Those of a graph with their offers. `plain` are the costs of the nodes as ONNX has them; those of last nodes are raised to what
    /// forms say of pieces.
    pub(super) fn of(
        scopes: &Scopes<'_>,
        s: usize,
        (target, hints, numerics): (&dyn Target, &Hints, Numerics),
        plain: &mut [Cost],
        constant: &[bool],
    ) -> (Pieces, Vec<(NodeId, usize, Offer)>) {
        let graph = scopes.graph(s);
        let (mut all, mut offered, mut wholes) = (Pieces::default(), Vec::new(), Vec::new());
        for round in rounds(scopes.pieces(s)) {
            let mut copy = graph.clone();
            let raised: Vec<&Raised> = round.into_iter().filter(|piece| raise(&mut copy, piece).is_ok()).collect();
            let copy = Arc::new(copy);
            for is in raised {
                let Some((&last, inner)) = is.nodes.split_last() else { continue };
                let operands = copy.node(last).inputs.iter().map(|v| v.filter(|&v| graph.has(v))).collect();
                let beyond = Cost::ZERO;
                let piece = Piece { is: is.clone(), operands, copy: Arc::clone(&copy), last, beyond, inside: s > 0 };
                let (mut offers, whole) = piece.priced(target, hints, constant);
                offers.retain(|offer| may_take(offer, numerics));
                if offers.is_empty() {
                    continue;
                }
                charge(plain, &is.nodes, whole);
                let number = all.list.len();
                offered.extend(offers.into_iter().map(|offer| (last, number, offer)));
                let ranked = |v: &ValueId| graph.value(*v).ty.rank().is_some();
                let rests = |n: &&NodeId| graph.node(**n).outputs.iter().flatten().all(ranked);
                all.rest.extend(inner.iter().filter(rests));
                for (slot, v) in piece.operands.iter().enumerate().filter_map(|(slot, v)| Some((slot, (*v)?))) {
                    all.readers.entry(v).or_default().push((number, slot));
                }
                wholes.push(whole);
                all.list.push(piece);
            }
        }
        // Only now every node is charged.
        for (piece, whole) in all.list.iter_mut().zip(wholes) {
            piece.beyond = less(together(plain, &piece.is.nodes), whole);
        }
        for (_, piece, offer) in &mut offered {
            offer.cost += all.list[*piece].beyond;
        }
        (all, offered)
    }

    /// The pieces that may read a value, with the slots.
    pub(super) fn readers(&self, v: ValueId) -> impl Iterator<Item = (usize, usize, &Piece)> {
        let readers = self.readers.get(&v).into_iter().flatten();
        readers.filter_map(|&(piece, slot)| Some((piece, slot, self.list.get(piece)?)))
    }

    /// Whether a node need not run.
    pub(super) fn may_rest(&self, n: NodeId) -> bool {
        self.rest.contains(&n)
    }
}

impl Piece {
    /// The node in whose place the raised op stands.
    pub(super) fn last(&self) -> NodeId {
        self.last
    }

    /// What the raised op is called.
    pub(super) fn describe(&self) -> String {
        self.copy.node(self.last).describe(&self.copy)
    }

    /// The offers for the raised op at these sizes, priced as the piece's nodes are.
    pub(super) fn offers(&self, target: &dyn Target, sizes: &dyn Sizes, constant: &[bool]) -> Vec<Offer> {
        let (mut offers, _) = self.priced(target, sizes, constant);
        for offer in &mut offers {
            offer.cost += self.beyond;
        }
        offers
    }

    /// The offers as the form prices them, and what the piece costs as ONNX has it.
    fn priced(&self, target: &dyn Target, sizes: &dyn Sizes, constant: &[bool]) -> (Vec<Offer>, Cost) {
        let is_constant =
            |v: ValueId| constant.get(v.index()).copied().unwrap_or_else(|| self.copy.constant(v).is_some());
        let query = NodeQuery::new(&self.copy, self.last, sizes, &is_constant).within(self.inside);
        (target.offers(&query), target.plain_cost(&query))
    }
}

/// What these nodes cost together.
fn together(plain: &[Cost], nodes: &[NodeId]) -> Cost {
    nodes.iter().filter_map(|n| plain.get(n.index())).copied().sum()
}

/// Charges the last of these nodes with what they lack of this cost.
fn charge(plain: &mut [Cost], nodes: &[NodeId], whole: Cost) {
    let lacking = less(whole, together(plain, nodes));
    if let Some(last) = nodes.last().and_then(|n| plain.get_mut(n.index())) {
        *last += lacking;
    }
}

/// `a - b`, nothing if that is more.
pub(super) fn less(a: Cost, b: Cost) -> Cost {
    if a.is_finite() { Cost::new(a.get().saturating_sub(b.get())) } else { a }
}

/// Pieces such that those of one round have no node in common.
fn rounds(pieces: &[Raised]) -> Vec<Vec<&Raised>> {
    let mut rounds: Vec<(FxHashSet<NodeId>, Vec<&Raised>)> = Vec::new();
    for piece in pieces {
        let free = |(taken, _): &&mut (FxHashSet<NodeId>, _)| piece.nodes.iter().all(|n| !taken.contains(n));
        match rounds.iter_mut().find(free) {
            Some((taken, round)) => {
                taken.extend(&piece.nodes);
                round.push(piece);
            }
            None => rounds.push((piece.nodes.iter().copied().collect(), vec![piece])),
        }
    }
    rounds.into_iter().map(|(_, round)| round).collect()
}
