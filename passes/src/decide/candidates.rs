//! Candidates: the layouts that a value may have, and the choices of a node that go with them.
//!
//! Candidate 0 of every value is row-major and choice 0 of every node is how ONNX runs it, so the input itself is always
//! among the solutions. Layouts that differ only in axes of extent 1 are candidates of their own: a Reshape lies between them,
//! which costs little but stands between ops that a runtime would fuse.

use super::choices::{fits, may_take, plain, slots_of};
use super::lanes::Lanes;
use super::pieces::{Pieces, Runs, less};
use super::plan::Chosen;
use super::scopes::Scopes;
use crate::operands::known_constant;
use relayout_ir::form::Form;
use relayout_ir::graph::{Node, NodeId, Op, ValueId};
use relayout_ir::layout::Layout;
use relayout_target_api::Numerics;
use relayout_target_api::hints::Hints;
use relayout_target_api::{Cost, NodeQuery, Offer, Target};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeSet;

/// Most layouts that one value may have: each of eight channel shuffles in a row adds one, beside the orders of whole axes. Hits are
/// counted in the report.
const LAYOUTS_PER_VALUE: usize = 12;
/// Most choices of one node.
const CHOICES_PER_NODE: usize = 40;

/// One way to run a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Layout of each operand, by slot; row-major for what has no layout. Of a raised op these are its own operands.
    pub(super) ins: SmallVec<[Layout; 4]>,
    /// Layout of each result.
    pub(super) outs: SmallVec<[Layout; 2]>,
    /// Cost beyond moves.
    pub(super) cost: Cost,
    /// The offer that it is, by its number among the node's; `None` for the standard op.
    pub(super) offer: Option<usize>,
    /// How it runs the node.
    pub(super) runs: Runs,
}

impl Choice {
    /// Whether every operand and result is stored in an order of its axes.
    fn is_plain(&self) -> bool {
        self.ins.iter().chain(&self.outs).all(|layout| layout.as_permutation().is_some())
    }

    /// Whether the node reads its own operands.
    pub(super) fn reads(&self) -> bool {
        self.runs == Runs::Itself
    }
}

/// Layouts per value and choices per node, of one graph.
#[derive(Clone, Debug, Default)]
pub(super) struct ScopeCandidates {
    /// By value number: candidate layouts, row-major first. Empty for values without a layout.
    pub(super) layouts: Vec<SmallVec<[Layout; 2]>>,
    /// By node number: choices, ONNX's own first. Empty for nodes that are not ops.
    pub(super) choices: Vec<Vec<Choice>>,
    /// By node number: offers of the target.
    pub(super) offers: Vec<Vec<Offer>>,
    /// By node number: how many of these there are whatever the candidates of its values.
    pub(super) offered: Vec<usize>,
    /// By node number: cost of the standard op.
    pub(super) plain: Vec<Cost>,
    /// Pieces that may be one raised op.
    pub(super) pieces: Pieces,
    /// By node: what its offers cost beyond what forms say, because a piece that ends with it does.
    pub(super) charged: FxHashMap<usize, Cost>,
    /// By node and number of an offer: the piece that it is for, if it is for one.
    pub(super) raised: FxHashMap<(NodeId, usize), usize>,
    /// By value number: what its pad slots may hold.
    pub(super) lanes: Lanes,
    /// By value number: a constant, views of one, or known from shape arithmetic. Moves of it are made at compile time.
    pub(super) constant: Vec<bool>,
    /// By value: layouts that the cap turned away, each once.
    pub(super) dropped: FxHashMap<ValueId, Vec<Layout>>,
    /// Nodes that have more choices than the cap allows.
    pub(super) cut_short: BTreeSet<usize>,
}

/// What a whole model is decided among.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates {
    /// Per scope.
    pub(super) scopes: Vec<ScopeCandidates>,
    /// Per border: the layouts in which its value may cross, row-major first.
    pub(super) borders: Vec<SmallVec<[Layout; 2]>>,
    /// Values, nodes and borders at their cap.
    pub(super) capped: usize,
}

/// What is looked at next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Todo {
    Node(usize, usize, NodeId),
    Border(usize),
}

/// The fixpoint under way.
struct Closure<'a, 'g> {
    scopes: &'a Scopes<'g>,
    target: &'a dyn Target,
    hints: &'a Hints,
    numerics: Numerics,
    candidates: Candidates,
    /// By scope and node number: place in topological order.
    place: Vec<Vec<usize>>,
    pending: BTreeSet<Todo>,
    /// Nodes that are to be looked at once more when layouts other than plain orders come: those that had one to propose, or whose own
    /// proposals were new, so that another look may find more.
    unsettled: BTreeSet<Todo>,
    capped: BTreeSet<Todo>,
    /// Only orders of whole axes, and what offers ask for. These come first: shuffles of channels, one after the other, make so many
    /// layouts that the cap would turn away those of an offer behind them.
    plain_orders: bool,
}

impl Candidates {
    /// The closure.
    pub(super) fn close(scopes: &Scopes<'_>, target: &dyn Target, hints: &Hints, numerics: Numerics) -> Candidates {
        let mut closure = Closure {
            scopes,
            target,
            hints,
            numerics,
            candidates: Candidates::default(),
            place: Vec::new(),
            pending: BTreeSet::new(),
            unsettled: BTreeSet::new(),
            capped: BTreeSet::new(),
            plain_orders: true,
        };
        for s in 0..scopes.list.len() {
            closure.start(s);
        }
        for (b, border) in scopes.borders.iter().enumerate() {
            let (s, v, crossing) = border[0];
            let rank = scopes.graph(s).value(v).ty.rank().unwrap_or(0);
            let rank = rank.saturating_sub(usize::from(crossing.stacked));
            let layout = scopes.fixed.get(&b).cloned().unwrap_or_else(|| Layout::row_major(rank));
            if scopes.fixed.contains_key(&b) {
                closure.candidates.scopes[s].intern(v, &layout);
            }
            closure.candidates.borders.push(smallvec![layout]);
        }
        closure.settle();
        closure.plain_orders = false;
        closure.pending = std::mem::take(&mut closure.unsettled);
        closure.settle();
        let mut candidates = closure.candidates;
        candidates.capped = closure.capped.len();
        candidates
    }

    /// Number of candidate layouts over all values.
    pub(super) fn count(&self) -> usize {
        self.scopes.iter().flat_map(|s| &s.layouts).map(SmallVec::len).sum()
    }

    /// Choice 0 of every node: the input as it was read.
    pub(super) fn untaken(&self) -> Chosen {
        let nodes = self.scopes.iter().map(|s| vec![0; s.choices.len()]).collect();
        Chosen { nodes, borders: vec![0; self.borders.len()] }
    }

    /// Whether there is nothing to decide.
    pub(super) fn is_trivial(&self) -> bool {
        let settled = |s: &ScopeCandidates| {
            s.layouts.iter().all(|layouts| layouts.len() < 2) && s.choices.iter().all(|choices| choices.len() < 2)
        };
        self.scopes.iter().all(settled)
    }
}

impl ScopeCandidates {
    /// The number of this layout among the candidates of the value.
    pub(super) fn find(&self, v: ValueId, layout: &Layout) -> Option<usize> {
        self.layouts[v.index()].iter().position(|l| l == layout)
    }

    /// The same of a layout that a choice names; row-major for what has none.
    pub(super) fn number(&self, v: ValueId, layout: Option<&Layout>) -> u32 {
        layout.and_then(|layout| self.find(v, layout)).unwrap_or(0) as u32
    }

    /// Adds a layout unless it is there; whether it is there now and whether it is new.
    fn intern(&mut self, v: ValueId, layout: &Layout) -> (bool, bool) {
        add(&mut self.layouts[v.index()], layout)
    }
}

fn add(list: &mut SmallVec<[Layout; 2]>, layout: &Layout) -> (bool, bool) {
    if list.contains(layout) {
        return (true, false);
    }
    if list.is_empty() || list.len() >= LAYOUTS_PER_VALUE {
        return (false, false);
    }
    list.push(layout.clone());
    (true, true)
}

impl Closure<'_, '_> {
    /// Looks at everything until nothing is new.
    fn settle(&mut self) {
        while let Some(todo) = self.pending.pop_first() {
            match todo {
                Todo::Node(s, _, n) => self.visit(s, n),
                Todo::Border(b) => self.cross(b),
            }
        }
    }

    /// Row-major for every value, and every op to be looked at.
    fn start(&mut self, s: usize) {
        let graph = self.scopes.graph(s);
        let order = graph.order().unwrap_or_default();
        let nodes = order.iter().map(|n| n.index() + 1).max().unwrap_or(0);
        let mut own = ScopeCandidates {
            layouts: vec![SmallVec::new(); graph.value_bound()],
            choices: vec![Vec::new(); nodes],
            offers: vec![Vec::new(); nodes],
            offered: vec![0; nodes],
            plain: vec![Cost::ZERO; nodes],
            pieces: Pieces::default(),
            charged: FxHashMap::default(),
            raised: FxHashMap::default(),
            lanes: Lanes::of(graph),
            constant: vec![false; graph.value_bound()],
            dropped: FxHashMap::default(),
            cut_short: BTreeSet::new(),
        };
        let mut place = vec![0; nodes];
        for (i, &n) in order.iter().enumerate() {
            let node = graph.node(n);
            place[n.index()] = i;
            if matches!(node.op, Op::Onnx(_)) {
                self.pending.insert(Todo::Node(s, i, n));
                // Operands come first in the order, so what is constant is known.
                let is_constant = |v: ValueId| own.constant.get(v.index()).copied().unwrap_or(false);
                let query = NodeQuery::new(graph, n, self.hints, &is_constant).within(s > 0);
                let (mut offers, plain) = (self.target.offers(&query), self.target.plain_cost(&query));
                offers.retain(|offer| may_take(offer, self.numerics) && fits(graph, n, offer));
                own.offered[n.index()] = offers.len();
                own.offers[n.index()] = offers;
                own.plain[n.index()] = plain;
            }
            for &v in node.outputs.iter().flatten() {
                if let Some(rank) = graph.value(v).ty.rank() {
                    own.layouts[v.index()].push(Layout::row_major(rank));
                }
                let of_constant = node.operand(0).is_some_and(|x| own.constant[x.index()]);
                own.constant[v.index()] = matches!(&node.op, Op::Constant(c) if c.can_move())
                    || (matches!(node.form, Form::View(_)) && of_constant)
                    || (matches!(node.op, Op::Onnx(_)) && known_constant(graph, v).is_some());
            }
        }
        own.take_pieces(self.scopes, s, (self.target, self.hints, self.numerics));
        self.place.push(place);
        self.candidates.scopes.push(own);
    }

    /// A value got a layout: everything that touches it is to be looked at again.
    fn touch(&mut self, s: usize, v: ValueId, except: Option<NodeId>) {
        let graph = self.scopes.graph(s);
        let (producer, _) = graph.value(v).producer();
        let readers = graph.uses(v).into_iter().map(|u| u.node);
        for m in readers.chain([producer]) {
            if Some(m) != except && matches!(graph.node(m).op, Op::Onnx(_)) {
                self.pending.insert(Todo::Node(s, self.place[s][m.index()], m));
            }
        }
        self.pending.extend(self.scopes.attached(s, v).iter().map(|&b| Todo::Border(b)));
    }

    /// Brings the candidates of all places of a border together.
    fn cross(&mut self, b: usize) {
        if self.scopes.fixed.contains_key(&b) {
            return;
        }
        let mut layouts = self.candidates.borders[b].clone();
        for &(s, v, crossing) in &self.scopes.borders[b] {
            for layout in &self.candidates.scopes[s].layouts[v.index()] {
                // A stacked value whose extra axis is not outermost can't cross so.
                let Some(across) = crossing.across(layout) else { continue };
                // What a caller can feed has a shape.
                if self.scopes.free.contains(&b) && across.as_permutation().is_none() {
                    continue;
                }
                if !self.target.crosses(&across) {
                    continue;
                }
                if !add(&mut layouts, &across).0 {
                    self.capped.insert(Todo::Border(b));
                }
            }
        }
        for &(s, v, crossing) in &self.scopes.borders[b] {
            for layout in layouts.iter().filter_map(|l| crossing.here(l)) {
                match self.candidates.scopes[s].intern(v, &layout) {
                    (true, true) => self.touch(s, v, None),
                    (true, false) => {}
                    (false, _) => drop(self.capped.insert(Todo::Border(b))),
                }
            }
        }
        // A layout that some place has no room for can't be taken.
        let own = &self.candidates.scopes;
        let everywhere = |l: &Layout| {
            self.scopes.borders[b].iter().all(|&(s, v, c)| c.here(l).is_some_and(|h| own[s].find(v, &h).is_some()))
        };
        layouts.retain(|l| everywhere(l));
        self.candidates.borders[b] = layouts;
    }

    /// Rebuilds the choices of a node from the candidates of its values.
    fn visit(&mut self, s: usize, n: NodeId) {
        let graph = self.scopes.graph(s);
        let node = graph.node(n);
        let own = &mut self.candidates.scopes[s];
        let mut proposals: Vec<Choice> = match &node.form {
            Form::Opaque(_) | Form::Borders(_) | Form::Kernel(_) => vec![plain(graph, n)],
            Form::View(view) => own.view_choices(graph, self.target, n, view),
            Form::Axes(bound) => own.axes_choices(graph, self.target, self.hints, n, bound),
        };
        for choice in &mut proposals {
            choice.cost += own.plain[n.index()];
        }
        own.offer_among(graph, self.target, self.hints, n, self.numerics);
        // The offers of the target come before other orders of the standard op, so that the cap does not turn them away.
        let offers = own.offer_choices(graph, n);
        proposals.splice(proposals.len().min(1)..proposals.len().min(1), offers);
        proposals.retain(|choice| own.may_repack(graph, node, choice));
        let all = proposals.len();
        if self.plain_orders {
            proposals.retain(|choice| choice.offer.is_some() || choice.is_plain());
        }
        let held_back = proposals.len() < all;
        let (mut kept, changed, cut) = own.admit(n, node, proposals);
        if own.pieces.may_rest(n) {
            kept.push(Choice { runs: Runs::Not, ..plain(graph, n) });
        }
        own.choices[n.index()] = kept;
        let todo = Todo::Node(s, self.place[s][n.index()], n);
        if cut {
            self.capped.insert(todo);
        }
        if self.plain_orders && (held_back || !changed.is_empty()) {
            self.unsettled.insert(todo);
        } else {
            self.unsettled.remove(&todo);
        }
        for v in changed {
            self.touch(s, v, Some(n));
        }
    }
}

impl ScopeCandidates {
    /// Takes up the pieces of a graph, whose offers are those of their last nodes.
    fn take_pieces(&mut self, scopes: &Scopes<'_>, s: usize, by: (&dyn Target, &Hints, Numerics)) {
        if scopes.pieces(s).is_empty() {
            return;
        }
        let before = self.plain.clone();
        let (pieces, offers) = Pieces::of(scopes, s, by, &mut self.plain, &self.constant);
        for (n, (now, before)) in self.plain.iter().zip(before).enumerate().filter(|(_, (now, before))| *now != before)
        {
            let charged = less(*now, before);
            for offer in &mut self.offers[n] {
                offer.cost += charged;
            }
            self.charged.insert(n, charged);
        }
        for (last, piece, offer) in offers {
            let own = &mut self.offers[last.index()];
            self.raised.insert((last, own.len()), piece);
            own.push(offer);
            self.offered[last.index()] = own.len();
        }
        self.pieces = pieces;
    }

    /// What a choice of a node reads, in which layouts.
    pub(super) fn operands<'a>(
        &'a self,
        node: &'a Node,
        choice: &'a Choice,
    ) -> impl Iterator<Item = (ValueId, &'a Layout)> + 'a {
        let values: &[Option<ValueId>] = match choice.runs {
            Runs::Itself => &node.inputs,
            Runs::As(piece) => self.pieces.list.get(piece).map_or(&[], |piece| &piece.operands),
            Runs::Not => &[],
        };
        slots_of(values.iter(), &choice.ins)
    }

    /// Takes up the layouts of choices as candidates: the choices that can be taken, the values that have new candidates, and
    /// whether a cap turned anything away.
    fn admit(&mut self, n: NodeId, node: &Node, proposals: Vec<Choice>) -> (Vec<Choice>, Vec<ValueId>, bool) {
        let (mut kept, mut changed, mut cut): (Vec<Choice>, _, _) = (Vec::new(), Vec::new(), false);
        for choice in proposals {
            if kept.contains(&choice) {
                continue;
            }
            if kept.len() >= CHOICES_PER_NODE {
                self.cut_short.insert(n.index());
                return (kept, changed, true);
            }
            // A choice one of whose layouts the cap turns away can't be taken; what it added before stays, and is harmless.
            let mut fits = true;
            let slots = self.operands(node, &choice).chain(slots_of(node.outputs.iter(), &choice.outs));
            let slots: SmallVec<[(ValueId, Layout); 6]> = slots.map(|(v, layout)| (v, layout.clone())).collect();
            for (v, layout) in &slots {
                let v = *v;
                if self.layouts[v.index()].is_empty() {
                    continue;
                }
                let (there, new) = self.intern(v, layout);
                fits &= there;
                if !there {
                    let dropped = self.dropped.entry(v).or_default();
                    if !dropped.contains(layout) {
                        dropped.push(layout.clone());
                    }
                }
                if new {
                    changed.push(v);
                }
            }
            cut |= !fits;
            if fits {
                kept.push(choice);
            }
        }
        (kept, changed, cut)
    }
}
