//! Candidates: the layouts that a value may have, and the choices of a node that go with them.
//!
//! Candidate 0 of every value is row-major and choice 0 of every node is how ONNX runs it, so the input itself is always
//! among the solutions. Layouts that differ only in axes of extent 1 are candidates of their own: a Reshape lies between them,
//! which costs little but stands between ops that a runtime would fuse.

use crate::fold_weights::known_constant;
use crate::hints::Hints;
use relayout_ir::form::{AtomOrder, Bound, Form, Slot, View};
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::layout::Layout;
use relayout_ir::storage::{reshape_target, storage_shape};
use relayout_target::{Cost, MoveKind, OpQuery, Target};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Most layouts that one value may have. Hits are counted in the report.
const LAYOUTS_PER_VALUE: usize = 8;
/// Most choices of one node.
const CHOICES_PER_NODE: usize = 16;

/// One way to run a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Layout of each operand, by slot; row-major for what has no layout.
    pub ins: SmallVec<[Layout; 4]>,
    /// Layout of each result.
    pub outs: SmallVec<[Layout; 2]>,
    /// Cost beyond moves.
    pub cost: Cost,
}

/// Layouts per value and choices per node.
#[derive(Clone, Debug)]
pub struct Candidates {
    /// By value number: candidate layouts, row-major first. Empty for values without a layout.
    pub layouts: Vec<SmallVec<[Layout; 2]>>,
    /// By node number: choices, ONNX's own first. Empty for nodes that are not ops.
    pub choices: Vec<Vec<Choice>>,
    /// By value number: a constant, views of one, or known from shape arithmetic. Moves of it are made at compile time.
    pub constant: Vec<bool>,
    /// Values and nodes at their cap.
    pub capped: usize,
}

impl Candidates {
    /// The closure.
    pub fn close(graph: &Graph, target: &dyn Target, hints: &Hints) -> Candidates {
        let mut this = Candidates::start(graph);
        let order = graph.order().unwrap_or_default();
        let mut pending: BTreeSet<(usize, NodeId)> = BTreeSet::new();
        let mut place = vec![0; order.iter().map(|n| n.index() + 1).max().unwrap_or(0)];
        for (i, &n) in order.iter().enumerate() {
            place[n.index()] = i;
            if matches!(graph.node(n).op, Op::Onnx(_)) {
                pending.insert((i, n));
            }
        }
        let mut capped = BTreeSet::new();
        while let Some((_, n)) = pending.pop_first() {
            let changed = this.visit(graph, target, hints, n, &mut capped);
            for v in changed {
                let (producer, _) = graph.value(v).producer();
                let readers = graph.uses(v).into_iter().map(|u| u.node);
                for m in readers.chain([producer]) {
                    if m != n && matches!(graph.node(m).op, Op::Onnx(_)) {
                        pending.insert((place[m.index()], m));
                    }
                }
            }
        }
        this.capped = capped.len();
        this
    }

    fn start(graph: &Graph) -> Candidates {
        let mut layouts = vec![SmallVec::new(); graph.value_bound()];
        let mut constant = vec![false; graph.value_bound()];
        let mut choices = Vec::new();
        for n in graph.order().unwrap_or_default() {
            let node = graph.node(n);
            if choices.len() <= n.index() {
                choices.resize(n.index() + 1, Vec::new());
            }
            for &v in node.outputs.iter().flatten() {
                if let Some(rank) = graph.value(v).ty.rank() {
                    layouts[v.index()].push(Layout::row_major(rank));
                }
                let of_constant = node.inputs.first().copied().flatten().is_some_and(|x| constant[x.index()]);
                constant[v.index()] = matches!(node.op, Op::Constant(_))
                    || (matches!(node.form, Form::View(_)) && of_constant)
                    || known_constant(graph, v).is_some();
            }
        }
        Candidates { layouts, choices, constant, capped: 0 }
    }

    /// Number of candidate layouts over all values.
    pub fn count(&self) -> usize {
        self.layouts.iter().map(SmallVec::len).sum()
    }

    /// Whether there is nothing to decide.
    pub fn is_trivial(&self) -> bool {
        self.layouts.iter().all(|l| l.len() < 2)
    }

    /// The number of this layout among the candidates of the value.
    pub fn find(&self, v: ValueId, layout: &Layout) -> Option<usize> {
        self.layouts[v.index()].iter().position(|l| l == layout)
    }

    /// Adds a layout unless it is there; whether it is there now and whether it is new.
    fn intern(&mut self, v: ValueId, layout: &Layout) -> (bool, bool) {
        if self.find(v, layout).is_some() {
            return (true, false);
        }
        let list = &mut self.layouts[v.index()];
        if list.is_empty() || list.len() >= LAYOUTS_PER_VALUE {
            return (false, false);
        }
        list.push(layout.clone());
        (true, true)
    }

    /// Rebuilds the choices of a node from the candidates of its values; the values that got new ones.
    fn visit(
        &mut self,
        graph: &Graph,
        target: &dyn Target,
        hints: &Hints,
        n: NodeId,
        capped: &mut BTreeSet<NodeId>,
    ) -> Vec<ValueId> {
        let node = graph.node(n);
        let proposals: Vec<Choice> = match &node.form {
            Form::Opaque(_) => vec![plain(graph, n)],
            Form::View(view) => self.view_choices(graph, n, view),
            Form::Axes(bound) => self.axes_choices(graph, target, hints, n, bound),
        };
        let mut changed = Vec::new();
        let mut kept: Vec<Choice> = Vec::new();
        for choice in proposals {
            if kept.contains(&choice) {
                continue;
            }
            if kept.len() >= CHOICES_PER_NODE {
                capped.insert(n);
                break;
            }
            let slots: Vec<(ValueId, &Layout)> = slots_of(node.inputs.iter(), &choice.ins)
                .chain(slots_of(node.outputs.iter(), &choice.outs))
                .filter(|(v, _)| !self.layouts[v.index()].is_empty())
                .collect();
            // A choice one of whose layouts the cap turns away can't be taken; what it added before stays, and is harmless.
            let mut fits = true;
            for (v, layout) in slots {
                let (there, new) = self.intern(v, layout);
                fits &= there;
                if new {
                    changed.push(v);
                }
            }
            if fits {
                kept.push(choice);
            } else {
                capped.insert(n);
            }
        }
        self.choices[n.index()] = kept;
        changed
    }

    fn view_choices(&self, graph: &Graph, n: NodeId, view: &View) -> Vec<Choice> {
        let node = graph.node(n);
        let plain = plain(graph, n);
        let (Some(x), Some(y)) = (node.inputs.first().copied().flatten(), node.outputs.first().copied().flatten())
        else {
            return vec![plain];
        };
        let (Some(from), Some(to)) = (graph.value(x).ty.shape(), graph.value(y).ty.shape()) else { return vec![plain] };
        let mut pairs: Vec<(Layout, Layout)> = Vec::new();
        for l in &self.layouts[x.index()] {
            if let Ok(r) = view.forward(l, from, to) {
                pairs.push((l.clone(), r));
            }
        }
        for r in &self.layouts[y.index()] {
            if let Ok(l) = view.backward(r, from, to) {
                pairs.push((l, r.clone()));
            }
        }
        let mut choices = Vec::new();
        for (l, r) in pairs {
            let (Some(stored), Some(wanted)) = (storage_shape(from, &l), storage_shape(to, &r)) else { continue };
            let in_place = stored == wanted;
            if !in_place && reshape_target(&stored, &wanted).is_none() && !(l.is_row_major() && r.is_row_major()) {
                continue;
            }
            let mut choice = plain.clone();
            choice.ins[0] = l;
            choice.outs[0] = r;
            choices.push(choice);
        }
        if choices.is_empty() { vec![plain] } else { choices }
    }

    fn axes_choices(&self, graph: &Graph, target: &dyn Target, hints: &Hints, n: NodeId, bound: &Bound) -> Vec<Choice> {
        let node = graph.node(n);
        let value_at = |slot: Slot| match slot {
            Slot::In(i) => node.inputs.get(i).copied().flatten(),
            Slot::Out(i) => node.outputs.get(i).copied().flatten(),
        };
        let mut orders: Vec<AtomOrder> = vec![bound.identity()];
        for slot in bound.slots() {
            let Some(v) = value_at(slot) else { continue };
            for layout in self.layouts[v.index()].iter().skip(1) {
                let order = layout.as_permutation().and_then(|stored: Vec<usize>| bound.order_from(slot, &stored));
                orders.extend(order.filter(|o| !orders.contains(o)));
            }
        }
        let bytes = node.inputs.first().copied().flatten().map_or(0, |v| hints.bytes(graph, v));
        let mut choices = Vec::new();
        for order in orders {
            let Some(mut cost) = target.op_cost(&OpQuery { graph, node: n, bound, order: &order, bytes }) else {
                continue;
            };
            let mut choice = plain(graph, n);
            for slot in bound.slots() {
                let Some(layout) = bound.restrict(&order, slot).and_then(|p| Layout::permutation(&p).ok()) else {
                    continue;
                };
                match slot {
                    Slot::In(i) => choice.ins[i] = layout,
                    Slot::Out(i) => choice.outs[i] = layout,
                }
            }
            let extra = extra_nodes(graph, &self.constant, n, bound, &choice);
            cost += target.move_cost(MoveKind::View, 0).times(extra);
            choice.cost = cost;
            choices.push(choice);
        }
        choices
    }
}

/// Small nodes that an order needs beside the op: broadcast operands raised to full rank, Shape's extents put in order.
fn extra_nodes(graph: &Graph, constant: &[bool], n: NodeId, bound: &Bound, choice: &Choice) -> u64 {
    let node = graph.node(n);
    let raised = (0..node.inputs.len())
        .filter(|&i| node.inputs[i].is_some_and(|v| !constant[v.index()]) && needs_raise(bound, i, choice))
        .count();
    let extents = bound.renumber.contains(&relayout_ir::form::Renumber::Extents)
        && choice.ins.first().is_some_and(|l| !l.is_row_major());
    (raised + usize::from(extents)) as u64
}

/// Whether operand `i`, which the op aligns at its end, no longer lines up there in this order.
pub fn needs_raise(bound: &Bound, i: usize, choice: &Choice) -> bool {
    if !bound.aligned.get(i).copied().unwrap_or(false) {
        return false;
    }
    let (Some(own), Some(full)) = (bound.axes(Slot::In(i)), bound.axes(Slot::Out(0))) else { return false };
    let stored = |axes: &[u16], layout: &Layout| -> Option<Vec<u16>> {
        layout.as_permutation()?.iter().map(|&a| axes.get(a).copied()).collect()
    };
    let (Some(own), Some(full)) =
        (choice.ins.get(i).and_then(|l| stored(own, l)), choice.outs.first().and_then(|l| stored(full, l)))
    else {
        return false;
    };
    !full.ends_with(&own)
}

fn slots_of<'a>(
    values: impl Iterator<Item = &'a Option<ValueId>>,
    layouts: &'a [Layout],
) -> impl Iterator<Item = (ValueId, &'a Layout)> {
    values.zip(layouts).filter_map(|(v, l)| v.map(|v| (v, l)))
}

/// Every slot row-major, as ONNX runs the node. A Transpose is the exception: its own choice 0 leaves the bytes and renames.
fn plain(graph: &Graph, n: NodeId) -> Choice {
    let node = graph.node(n);
    let row_major = |v: &Option<ValueId>| Layout::row_major(v.and_then(|v| graph.value(v).ty.rank()).unwrap_or(0));
    Choice {
        ins: node.inputs.iter().map(row_major).collect(),
        outs: node.outputs.iter().map(row_major).collect(),
        cost: Cost::ZERO,
    }
}
