//! Values whose channels lie in one order, and what it costs to have them in another.

use super::meets::{Meeting, Place, axis_at, dim_of, meeting};
use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, Slot, View};
use relayout_ir::graph::{Graph, NodeId, Op, Use, ValueId};
use relayout_ir::perm;
use relayout_target_api::Sizes;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// A constant that is stored again may have as many bytes as this where others read it too.
const SMALL: u64 = 1 << 16;

/// A move that exchanges two parts of the channels, between Reshapes: `[.., a, b]` becomes `[.., b, a]`.
#[derive(Clone, Debug)]
pub(super) struct Swap {
    /// The move.
    pub(super) node: NodeId,
    /// The Reshape before it, and the channels that this reads.
    before: Option<(NodeId, Place)>,
    /// The Reshape behind it, and the channels that this leaves.
    behind: Option<(NodeId, Place)>,
    outer: usize,
    inner: usize,
}

/// The swaps of a graph.
#[derive(Debug, Default)]
pub(super) struct Swaps {
    pub(super) list: Vec<Swap>,
    /// By the Reshape before it, and by that behind it.
    before: FxHashMap<NodeId, usize>,
    behind: FxHashMap<NodeId, usize>,
}

impl Swaps {
    pub(super) fn of(graph: &Graph) -> Swaps {
        let mut swaps = Swaps::default();
        for swap in graph.order().unwrap_or_default().into_iter().filter_map(|n| Swap::recognize(graph, n)) {
            let at = swaps.list.len();
            swaps.before.extend(swap.before.map(|(n, _)| (n, at)));
            swaps.behind.extend(swap.behind.map(|(n, _)| (n, at)));
            swaps.list.push(swap);
        }
        swaps
    }
}

impl Swap {
    fn recognize(graph: &Graph, n: NodeId) -> Option<Swap> {
        let node = graph.node(n);
        let (x, y) = (node.operand(0)?, node.only_result()?);
        let order = match (&node.op, &node.form) {
            (Op::Relayout, _) => graph.value(y).layout.as_permutation()?,
            (_, Form::View(View::Transpose(order))) if graph.value(y).layout.is_row_major() => order.clone(),
            _ => return None,
        };
        let last = order.len().checked_sub(2)?;
        let swapped: Vec<usize> = (0..last).chain([last + 1, last]).collect();
        let extent = |axis: usize| usize::try_from(graph.value(x).ty.shape()?.get(axis)?.as_const()?).ok();
        let (outer, inner) = (extent(last)?, extent(last + 1)?);
        if order != swapped || !graph.value(x).layout.is_row_major() || outer < 2 || inner < 2 {
            return None;
        }
        let channels = Dim::from(i64::try_from(outer.checked_mul(inner)?).ok()?);
        // The channels of a value that lie innermost, all of them.
        let whole = |v: ValueId| {
            let dims = graph.storage_shape(v, &graph.value(v).layout)?;
            let last = dims.len().checked_sub(1)?;
            (dims.get(last) == Some(&channels)).then(|| Some((v, axis_at(graph, v, last)?)))?
        };
        let first = graph.value(x).producer().0;
        let before = || Some((first, whole(graph.node(first).operand(0)?)?));
        let second = graph.only_use(y).map(|u| u.node);
        // A Reshape of a value as it is named says nothing of how it is stored.
        let told = |n: NodeId| graph.value(y).layout.is_row_major() || !matches!(graph.node(n).form, Form::View(_));
        let behind = |n: NodeId| Some((n, whole(graph.node(n).only_result()?)?));
        let before = (reshapes(graph, first) && graph.only_use(x).is_some()).then(before).flatten();
        let behind = second.filter(|&n| reshapes(graph, n) && told(n)).and_then(behind);
        (before.is_some() || behind.is_some()).then_some(Swap { node: n, before, behind, outer, inner })
    }

    /// Where the channels are that it reads and leaves.
    pub(super) fn ends(&self) -> impl Iterator<Item = Place> {
        [self.before, self.behind].into_iter().flatten().map(|(_, place)| place)
    }
}

fn reshapes(graph: &Graph, n: NodeId) -> bool {
    let node = graph.node(n);
    matches!(node.form, Form::View(View::Reshape))
        || node.onnx() == Some("Reshape") && matches!(node.form, Form::Kernel(_))
}

/// A swap at an end of which a region is: it goes if the channels there are in this many groups, one of each group after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wish {
    swap: usize,
    before: bool,
    groups: usize,
}

/// Values whose channels are in one order.
#[derive(Debug, Default)]
pub(super) struct Region {
    /// How many channels there are.
    pub(super) channels: usize,
    /// Which axis of each value they are.
    pub(super) members: BTreeMap<ValueId, usize>,
    /// Constants that have an entry per channel, by node and slot, and along which axes.
    pub(super) constants: BTreeMap<(NodeId, usize), BTreeSet<usize>>,
    /// Members that something makes which knows channels by their numbers.
    pub(super) given: BTreeSet<ValueId>,
    /// Readers of a member that know them so.
    pub(super) wanted: BTreeMap<ValueId, Vec<Use>>,
    wishes: Vec<Wish>,
}

/// A way to have the channels of a region.
#[derive(Debug)]
pub(super) struct Way {
    /// In how many groups; there is one channel of each group after the other.
    pub(super) groups: usize,
    /// Swaps that go.
    pub(super) gone: Vec<NodeId>,
    /// Moves that a region takes less than before, and elements that they write.
    gain: (i64, i128),
}

impl Region {
    /// The values that have the channels of this one; all that were looked at are `seen`. `None` if some value has them twice, or they are
    /// not known.
    pub(super) fn around(
        graph: &Graph,
        start: Place,
        swaps: &Swaps,
        summing: &FxHashSet<NodeId>,
        seen: &mut FxHashSet<ValueId>,
    ) -> Option<Region> {
        let channels = usize::try_from(graph.value(start.0).ty.shape()?.get(start.1)?.as_const()?).ok()?;
        let mut region = Region { channels, ..Region::default() };
        let mut todo = vec![start];
        while let Some((v, axis)) = todo.pop() {
            match region.members.insert(v, axis) {
                Some(before) if before == axis => continue,
                Some(_) => return None,
                None => {}
            }
            seen.insert(v);
            dim_of(graph, (v, axis))?;
            let (n, slot) = graph.value(v).producer();
            if let Some(&swap) = swaps.behind.get(&n).filter(|&&swap| swaps.list[swap].behind == Some((n, (v, axis)))) {
                region.wishes.push(Wish { swap, before: false, groups: swaps.list[swap].inner });
            } else if !region.meet(graph, (n, Slot::Out(slot)), (v, axis), summing, &mut todo) {
                region.given.insert(v);
            }
            for u in graph.uses(v) {
                let before =
                    swaps.before.get(&u.node).filter(|&&swap| swaps.list[swap].before == Some((u.node, (v, axis))));
                if let Some(&swap) = before {
                    region.wishes.push(Wish { swap, before: true, groups: swaps.list[swap].outer });
                } else if !region.meet(graph, (u.node, Slot::In(u.slot)), (v, axis), summing, &mut todo) {
                    region.wanted.entry(v).or_default().push(u);
                }
            }
        }
        region.end_behind_moves(graph);
        Some(region)
    }

    /// Ends the region where a value lies as most others do: a value that only an op outside reads, in another layout, stays as it is, and
    /// so does one that such an op makes. Else the move of the channels would stand between a convolution and the move that the runtime
    /// cancels.
    fn end_behind_moves(&mut self, graph: &Graph) {
        let wanted: Vec<ValueId> = self.wanted.keys().copied().collect();
        for v in wanted {
            let t = graph.value(v).producer().0;
            let Some(x) = moved(graph, t).filter(|x| self.members.contains_key(x)) else { continue };
            if graph.is_output(v) || self.wanted[&v].len() != graph.use_count(v) {
                continue;
            }
            self.wanted.remove(&v);
            self.members.remove(&v);
            self.wanted.entry(x).or_default().push(Use { node: t, slot: 0 });
        }
        let given: Vec<ValueId> = self.given.iter().copied().collect();
        for v in given {
            let reader = graph.only_use(v).map(|u| u.node).filter(|&t| moved(graph, t) == Some(v));
            let y = reader.and_then(|t| graph.node(t).only_result()).filter(|y| self.members.contains_key(y));
            if let Some(y) = y.filter(|_| !graph.is_output(v) && !self.wanted.contains_key(&v)) {
                self.given.remove(&v);
                self.members.remove(&v);
                self.given.insert(y);
            }
        }
    }

    /// Takes up what has the same channels at a node; whether it may have them in any order.
    fn meet(
        &mut self,
        graph: &Graph,
        (n, slot): (NodeId, Slot),
        (v, axis): Place,
        summing: &FxHashSet<NodeId>,
        todo: &mut Vec<Place>,
    ) -> bool {
        let Some(Meeting { alike, constants, sums }) = meeting(graph, n, slot, axis) else { return false };
        let read = matches!(slot, Slot::In(slot) if slot >= graph.node(n).inputs.len());
        let stored = constants.iter().all(|&(slot, axis)| is_free(graph, n, slot, axis));
        let typed = alike.iter().chain([&(v, axis)]).all(|(v, _)| graph.value(*v).contents.is_none());
        if read || !stored || !typed || sums && !summing.contains(&n) {
            return false;
        }
        for (slot, axis) in constants {
            self.constants.entry((n, slot)).or_default().insert(axis);
        }
        todo.extend(alike);
        true
    }

    /// The way that takes the fewest moves, if it takes fewer than now, or as many of fewer elements.
    pub(super) fn best(&self, graph: &Graph, swaps: &Swaps, sizes: &dyn Sizes) -> Option<Way> {
        let orders: BTreeSet<usize> = self.wishes.iter().map(|wish| wish.groups).collect();
        let ways = orders.into_iter().map(|groups| self.way(graph, swaps, sizes, groups));
        let gains = |way: &Way| way.gain.0 >= 0 && way.gain.1 >= 0 && way.gain > (0, 0);
        ways.filter(gains).max_by_key(|way| (way.gain, std::cmp::Reverse(way.groups)))
    }

    /// Whether a wish is fulfilled. A swap between two values of the region stays: both are in the same order.
    fn goes(&self, wish: &Wish, groups: usize) -> bool {
        wish.groups == groups && self.wishes.iter().filter(|other| other.swap == wish.swap).count() == 1
    }

    fn way(&self, graph: &Graph, swaps: &Swaps, sizes: &dyn Sizes, groups: usize) -> Way {
        let elements = |v: ValueId| {
            let shape = sizes.shape(graph, v).unwrap_or_default();
            i128::from(shape.iter().fold(1_u64, |all, &d| all.saturating_mul(d)))
        };
        let gone = self.wishes.iter().filter(|wish| self.goes(wish, groups)).map(|wish| swaps.list[wish.swap].node);
        let gone: Vec<NodeId> = gone.collect();
        let mut gain = (0, 0);
        for y in gone.iter().filter_map(|&n| graph.node(n).only_result()) {
            gain = (gain.0 + 1, gain.1 + elements(y));
        }
        let (given, wanted) = self.ends(graph, swaps, groups);
        for v in given.iter().chain(wanted.keys().filter(|v| !given.contains(*v))) {
            gain = (gain.0 - 1, gain.1 - elements(*v));
        }
        Way { groups, gone, gain }
    }

    /// Members that are made with their channels as they are now, and those that are read so, by whom, if the others are in so many
    /// groups.
    pub(super) fn ends(
        &self,
        graph: &Graph,
        swaps: &Swaps,
        groups: usize,
    ) -> (BTreeSet<ValueId>, BTreeMap<ValueId, Vec<Use>>) {
        let (mut given, mut wanted) = (self.given.clone(), self.wanted.clone());
        for wish in self.wishes.iter().filter(|wish| !self.goes(wish, groups)) {
            let swap = &swaps.list[wish.swap];
            match (wish.before, swap.before, swap.behind) {
                (true, Some((node, (v, _))), _) => wanted.entry(v).or_default().push(Use { node, slot: 0 }),
                (false, _, Some((_, (v, _)))) => drop(given.insert(v)),
                _ => {}
            }
        }
        for &v in self.members.keys().filter(|&&v| graph.is_output(v)) {
            wanted.entry(v).or_default();
        }
        (given, wanted)
    }
}

/// What a node reads that only moves it.
fn moved(graph: &Graph, n: NodeId) -> Option<ValueId> {
    let node = graph.node(n);
    let moves = matches!(node.op, Op::Relayout)
        || matches!(node.form, Form::View(View::Transpose(_)))
        || node.onnx() == Some("Transpose") && matches!(node.form, Form::Kernel(_));
    node.operand(0).filter(|_| moves)
}

/// Whether a constant operand can be stored in another order.
fn is_free(graph: &Graph, n: NodeId, slot: usize, axis: usize) -> bool {
    let Some(v) = graph.node(n).operand(slot) else { return false };
    let Some(c) = graph.constant(v) else { return false };
    let alone = graph.use_count(v) == 1 && !graph.is_output(v) || c.size_bytes().is_some_and(|bytes| bytes <= SMALL);
    let whole = c.dtype.bits().is_some_and(|bits| bits >= 8) && c.source.is_available();
    let permuted = c.pending.as_ref().is_none_or(|repack| repack.to.as_permutation().is_some());
    alone
        && whole
        && permuted
        && perm::place(&graph.value(v).layout.as_permutation().unwrap_or_default(), axis).is_some()
}
