//! Layouts of operands and results against what the node means for layouts.
//!
//! A node with letters on its axes runs in one total order of its atoms, and each slot is stored in the restriction of that
//! order. The check looks for the order: the digits that a slot stores, outermost first, are a chain of "before" between
//! digits of atoms; the chains of all slots together must have a topological order, in which the op must be able to run. An
//! axis of extent 1 has no place and drops out of its slot's chain. The slot that first contradicts those before it is the one
//! named.

use super::{Invariant, Scope};
use crate::dim::Dim;
use crate::form::{AtomId, AtomOrder, Border, Bound, Form, KernelLayouts, Role, Slot, View};
use crate::graph::{Graph, Node, Op, ValueId};
use crate::layout::storage::FreeOrCopy;
use crate::layout::{Layout, Refusal, Segment};
use crate::op::{extents_agree, value_at};
use crate::storage::StorageRule;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(scope: &mut Scope<'_>, node: &Node) {
    match (&node.op, &node.form) {
        (Op::Relayout, _) => relayout(scope, node),
        (Op::Onnx(_), Form::Opaque(why)) => opaque(scope, node, why),
        (Op::Onnx(_), Form::View(view)) => self::view(scope, node, view),
        (Op::Onnx(_), Form::Axes(bound)) => axes(scope, node, bound),
        (Op::Onnx(_), Form::Borders(borders)) => self::borders(scope, node, borders),
        (Op::Onnx(_), Form::Kernel(layouts)) => kernel(scope, node, layouts),
        (Op::Input { .. } | Op::Constant(_) | Op::Outer, _) => {}
    }
}

/// One layout on both sides of every border; row-major in every slot, and at every end of a body, that none names.
fn borders(scope: &mut Scope<'_>, node: &Node, borders: &[Border]) {
    let graph = scope.graph;
    let mut named = BTreeSet::new();
    for border in borders {
        let mut agreed: Option<Layout> = None;
        for place in &border.places {
            let Some((body, owner, v)) = value_at(graph, node, &place.at) else { continue };
            named.insert((body, v));
            let value = owner.value(v);
            let layout = if place.stacked { unstacked(&value.layout) } else { Some(value.layout.clone()) };
            match (layout, &agreed) {
                (Some(layout), None) => agreed = Some(layout),
                (Some(layout), Some(other)) if layout == *other => {}
                (layout, _) => {
                    let stored = layout.unwrap_or_else(|| value.layout.clone());
                    let problem = format!(
                        "is stored as {stored} at {:?}, and otherwise on the other side of the border",
                        place.at
                    );
                    let fix = "put relayouts on one side, so that both have one layout";
                    scope.report_named(Invariant::Pinned, Some(value.name.clone()), problem, fix);
                }
            }
        }
    }
    let mut plain = |body: Option<&str>, owner: &Graph, v: ValueId| {
        let value = owner.value(v);
        if !value.layout.is_row_major() && !named.contains(&(body, v)) {
            let problem = format!("is stored as {}, and crosses the border of a body", value.layout);
            scope.report_named(Invariant::Pinned, Some(value.name.clone()), problem, "put a relayout there");
        }
    };
    for &v in node.inputs.iter().chain(&node.outputs).flatten().chain(&node.captures) {
        plain(None, graph, v);
    }
    for (name, attr) in &node.attrs {
        for body in attr.bodies() {
            for v in ends(body) {
                plain(Some(name), body, v);
            }
        }
    }
}

/// Inputs, outputs and outer values of a body.
fn ends(body: &Graph) -> impl Iterator<Item = ValueId> + '_ {
    let outer = body.nodes().filter(|&n| matches!(body.node(n).op, Op::Outer));
    let outer = outer.flat_map(|n| body.node(n).outputs.iter().flatten().copied());
    body.inputs().iter().chain(body.outputs()).copied().chain(outer)
}

/// The layout of what is stacked along the first and outermost axis; `None` if it does not lie so.
fn unstacked(layout: &Layout) -> Option<Layout> {
    let stored = layout.as_permutation()?;
    let (first, rest) = stored.split_first()?;
    (*first == 0).then(|| Layout::permutation(&rest.iter().map(|a| a - 1).collect::<Vec<_>>()).ok())?
}

fn relayout(scope: &mut Scope<'_>, node: &Node) {
    let graph = scope.graph;
    let ([Some(from)], [Some(to)]) = (&node.inputs[..], &node.outputs[..]) else {
        let fix = "give it one of each";
        return scope.report(Invariant::Relayout, None, "a relayout has one operand and one result", fix);
    };
    let (from, to) = (*from, *to);
    let (a, b) = (&graph.value(from).ty, &graph.value(to).ty);
    if a != b {
        let problem = format!("is {b}, but the relayout's operand `{}` is {a}", graph.value(from).name);
        scope.report(
            Invariant::Relayout,
            Some(to),
            problem,
            "give both the same type: a relayout keeps the logical value",
        );
    } else if a.rank().is_none() {
        let fix = "insert relayouts only where the rank is known";
        scope.report(Invariant::Relayout, Some(to), "has no known rank, so it has no layout to change", fix);
    }
}

fn opaque(scope: &mut Scope<'_>, node: &Node, why: &str) {
    // What is not known to share a layout with a body crosses in row-major.
    borders(scope, node, &[]);
    let because = format!("the node ({why}) has every operand and result");
    for &v in node.inputs.iter().chain(&node.outputs).flatten() {
        row_major(scope, v, &because);
    }
}

fn row_major(scope: &mut Scope<'_>, v: ValueId, because: &str) {
    scope.stored_as(
        Invariant::Opaque,
        v,
        None,
        because,
        "put a relayout between them, or bind the node to a signature",
    );
}

/// A kernel of a dialect: each slot in the layout that it was chosen with.
fn kernel(scope: &mut Scope<'_>, node: &Node, layouts: &KernelLayouts) {
    let fix = "put a relayout between them";
    for (slot, v) in values(node) {
        let wanted = match slot {
            Slot::In(i) => layouts.ins.get(i),
            Slot::Out(i) => layouts.outs.get(i),
        };
        scope.stored_as(Invariant::Kernel, v, wanted.and_then(Option::as_ref), "the kernel runs in it", fix);
    }
}

fn view(scope: &mut Scope<'_>, node: &Node, view: &View) {
    let graph = scope.graph;
    for &v in node.inputs.iter().skip(1).chain(node.outputs.iter().skip(1)).flatten() {
        row_major(scope, v, "the view reads its parameters");
    }
    let (Some(&Some(operand)), Some(&Some(result))) = (node.inputs.first(), node.outputs.first()) else {
        let fix = "connect both, or make the node opaque";
        return scope.report(Invariant::View, None, "a view has an operand and a result", fix);
    };
    let (from, to) = (graph.value(operand), graph.value(result));
    let (Some(old), Some(new)) = (from.ty.shape(), to.ty.shape()) else { return };
    let plain = |layout: &Layout, rank: usize| layout.is_row_major() && layout.rank() == rank;
    match view {
        View::Transpose(perm) => {
            if Layout::permutation(perm).is_err() || perm.len() != old.len() || perm.len() != new.len() {
                let problem = format!("is {}, which the permutation {perm:?} does not make of {}", to.ty, from.ty);
                scope.report(Invariant::View, Some(result), problem, "bind the node again after changing a type");
            }
            return;
        }
        // Row-major to row-major is what the op itself does, also where the extents can't be compared.
        View::Reshape if plain(&from.layout, old.len()) && plain(&to.layout, new.len()) => return,
        View::Same | View::Reshape => {}
    }
    match view.free_or_copy(&from.layout, old, &to.layout, new) {
        FreeOrCopy::Free(_) => {}
        FreeOrCopy::Copy(Refusal::Moves { from: layout, .. }) => {
            let problem = format!(
                "is stored as {}, but the bytes of `{}` ({}) lie as {layout}",
                to.layout, from.name, from.layout
            );
            scope.report(Invariant::View, Some(result), problem, "take that layout, or put a relayout before the view");
        }
        FreeOrCopy::Copy(why) => {
            let problem = format!("can't view `{}` as stored ({}): {why}", from.name, from.layout);
            scope.report(Invariant::View, Some(result), problem, "put a relayout to row-major before the view");
        }
    }
}

fn values(node: &Node) -> impl Iterator<Item = (Slot, ValueId)> + '_ {
    let ins = node.inputs.iter().enumerate().filter_map(|(i, v)| Some((Slot::In(i), (*v)?)));
    ins.chain(node.outputs.iter().enumerate().filter_map(|(i, v)| Some((Slot::Out(i), (*v)?))))
}

fn axes(scope: &mut Scope<'_>, node: &Node, bound: &Bound) {
    if let Err(why) = extents_agree(scope.graph, node, bound) {
        let fix = "change weights, groups and bias together with the channels of an operand";
        return scope.report(Invariant::Extents, None, format!("{why} (signature {bound})"), fix);
    }
    if one_order_tells_all(scope.graph, node, bound) || digits_agree(scope.graph, node, bound) {
        return;
    }
    let mut chains = Chains::new(bound);
    let mut fine = true;
    for (slot, v) in values(node) {
        let Some(atoms) = bound.axes(slot) else {
            row_major(scope, v, "the node reads or makes this slot as it is,");
            continue;
        };
        let Some(chain) = chain(scope, bound, v, atoms) else {
            fine = false;
            continue;
        };
        if let Err(problem) = chains.add(&chain) {
            let problem = format!("is stored as {}, {problem} (signature {bound})", scope.graph.value(v).layout);
            scope.report(Invariant::Axes, Some(v), problem, "put a relayout there to the order of the others");
            fine = false;
        }
    }
    if fine && let Some((v, name)) = apart(scope.graph, node, bound) {
        let layout = &scope.graph.value(v).layout;
        let problem = format!("is stored as {layout}, with pad slots of `{name}` elsewhere than the slots before");
        return scope.report(Invariant::Axes, Some(v), problem, "put a relayout there to the layout of the others");
    }
    if fine && !chains.orders(scope.graph, node).iter().any(|order| bound.allows(order)) {
        let problem = format!("can't run with {} (signature {bound})", stored(scope.graph, node));
        let fix = "put relayouts there: letters that are found by position stay at their place, and Gather's indices together";
        scope.report(Invariant::Axes, None, problem, fix);
    }
}

/// Whether every slot is stored as the order of ONNX's axes says, or as that of the first slot that lies otherwise says. Nearly
/// all nodes are so, and need no search.
fn one_order_tells_all(graph: &Graph, node: &Node, bound: &Bound) -> bool {
    let fits = |order: &[AtomId]| {
        values(node).all(|(slot, v)| {
            let value = graph.value(v);
            let Some(stored) = bound.restrict(order, slot) else { return value.layout.is_row_major() };
            let ranks_agree = value.ty.rank() == Some(stored.len()) && value.layout.rank() == stored.len();
            ranks_agree && value.layout.as_permutation() == Some(stored)
        })
    };
    let identity = bound.identity();
    if fits(&identity) {
        return bound.allows(&identity);
    }
    let turned = values(node).find(|(slot, v)| bound.axes(*slot).is_some() && !graph.value(*v).layout.is_row_major());
    let order = turned.and_then(|(slot, v)| bound.order_from(slot, &graph.value(v).layout.as_permutation()?));
    order.is_some_and(|order| fits(&order))
}

/// The first slot that has pad slots of a letter elsewhere than the slots before it, and that letter.
fn apart<'g>(graph: &'g Graph, node: &Node, bound: &'g Bound) -> Option<(ValueId, &'g str)> {
    let mut known: BTreeMap<AtomId, Option<&[Segment]>> = BTreeMap::new();
    for (slot, v) in values(node) {
        let value = graph.value(v);
        let (Some(atoms), Some(shape)) = (bound.axes(slot), value.ty.shape()) else { continue };
        for (axis, (&atom, extent)) in atoms.iter().zip(shape).enumerate() {
            let letter = bound.atoms.get(usize::from(atom))?;
            // Runs of a joined axis have slots of their own; one element is the same wherever it is repeated.
            if letter.role == Role::Joined || extent.is_one() {
                continue;
            }
            let own = value.layout.slot_map(axis);
            if *known.entry(atom).or_insert(own) != own {
                return Some((v, &letter.name));
            }
        }
    }
    None
}

/// Whether a joined axis has pad slots between its runs, and where they have theirs. Only the bytes of what is declared per axis
/// are put side by side as they lie.
fn joins_runs(graph: &Graph, node: &Node, bound: &Bound) -> bool {
    let stored = |slot: Slot| node.value_at(slot).map(|v| &graph.value(v).layout);
    let shape = |slot: Slot| node.value_at(slot).and_then(|v| graph.value(v).ty.shape());
    graph.storage == StorageRule::PerAxis && bound.joined().is_some_and(|atom| bound.runs_agree(atom, &stored, &shape))
}

/// Whether every slot has the same digits as they are spelled, where some axis is split. Seen up to digits of one value, as
/// below, a split axis can look whole in one slot (`[N, C, 1, 1]` in blocks of C) and not in another.
fn digits_agree(graph: &Graph, node: &Node, bound: &Bound) -> bool {
    let mut chains = Chains::new(bound);
    let mut split = false;
    let joins_runs = joins_runs(graph, node, bound);
    for (slot, v) in values(node) {
        let (value, atoms) = (graph.value(v), bound.axes(slot));
        let Some(atoms) = atoms else {
            if value.layout.is_row_major() {
                continue;
            }
            return false;
        };
        let Some(shape) = value.ty.shape().filter(|s| s.len() == atoms.len() && s.len() == value.layout.rank()) else {
            return false;
        };
        let mut chain = Vec::with_capacity(value.layout.factors().len());
        for factor in value.layout.factors() {
            let axis = usize::from(factor.axis);
            let (Some(&atom), Some(extent)) = (atoms.get(axis), shape.get(axis)) else { return false };
            let Some(letter) = bound.atoms.get(usize::from(atom)) else { return false };
            let padded = value.layout.slot_map(axis).is_some();
            let broken = !factor.is_whole() || padded;
            split |= broken;
            if !broken && extent.is_one() {
                continue;
            }
            let whole_runs = !padded && extent.exact_div(&Dim::from(value.layout.block_of(axis) as i64)).is_some();
            let soft = match letter.role {
                Role::Carried | Role::Contracted | Role::Produced => true,
                Role::Joined => whole_runs || joins_runs,
                Role::Windowed | Role::Whole => false,
            };
            if broken && (letter.pinned || !soft) {
                return false;
            }
            chain.push(Digit { atom, div: factor.div, modulo: factor.modulo });
        }
        if chains.add(&chain).is_err() {
            return false;
        }
    }
    split && apart(graph, node, bound).is_none() && chains.orders(graph, node).iter().any(|order| bound.allows(order))
}

/// What is stored how, for messages.
fn stored(graph: &Graph, node: &Node) -> String {
    let each = values(node).map(|(_, v)| format!("`{}` as {}", graph.value(v).name, graph.value(v).layout));
    each.collect::<Vec<_>>().join(", ")
}

/// A digit of an atom: its divisor orders the digits of one atom, `None` for the modulus marks the outermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Digit {
    atom: AtomId,
    div: u64,
    modulo: Option<u64>,
}

/// The digits of a slot, outermost first; reports and answers `None` if they say nothing about the atoms.
fn chain(scope: &mut Scope<'_>, bound: &Bound, v: ValueId, atoms: &[AtomId]) -> Option<Vec<Digit>> {
    let value = scope.graph.value(v);
    let known = |a: &AtomId| usize::from(*a) < bound.atoms.len();
    let Some(shape) = value.ty.shape().filter(|shape| shape.len() == atoms.len() && atoms.iter().all(known)) else {
        let problem = format!("is {}, but its slot has {} axes (signature {bound})", value.ty, atoms.len());
        scope.report(Invariant::Axes, Some(v), problem, "bind the node again after changing a type");
        return None;
    };
    if value.layout.rank() != shape.len() {
        return None; // reported with the layout
    }
    if shape.contains(&Dim::ZERO) {
        return Some(Vec::new()); // no element is out of place
    }
    // Runs of a joined axis have the same digits, also where one of them takes a single value.
    let joined = |(axis, atom): (usize, &AtomId)| {
        bound.atoms[usize::from(*atom)].role == Role::Joined && value.layout.block_of(axis) != 1
    };
    let layout =
        if atoms.iter().enumerate().any(joined) { value.layout.clone() } else { value.layout.canonical(shape) };
    let mut chain = Vec::with_capacity(layout.factors().len());
    for factor in layout.factors() {
        let axis = usize::from(factor.axis);
        let (Some(&atom), Some(extent)) = (atoms.get(axis), shape.get(axis)) else { continue };
        let letter = &bound.atoms[usize::from(atom)];
        let padded = layout.slot_map(axis).is_some();
        if factor.is_whole() && !padded && extent.is_one() {
            continue;
        }
        let broken = !factor.is_whole() || padded;
        let rigid = match letter.role {
            _ if letter.pinned => true,
            Role::Windowed | Role::Whole => true,
            // Blocks of a run end where the run does.
            Role::Joined => padded || extent.exact_div(&Dim::from(layout.block_of(axis) as i64)).is_none(),
            Role::Carried | Role::Contracted | Role::Produced => false,
        };
        if rigid && broken {
            let problem =
                format!("is stored as {}, which splits axis {axis}; `{}` must be whole", value.layout, letter.name);
            scope.report(
                Invariant::Axes,
                Some(v),
                problem,
                "put a relayout there to a layout that keeps the axis whole",
            );
            return None;
        }
        chain.push(Digit { atom, div: factor.div, modulo: factor.modulo });
    }
    Some(chain)
}

/// What the slots looked at so far say about the order of digits.
struct Chains<'b> {
    bound: &'b Bound,
    /// Digits of each atom that some slot stores.
    digits: BTreeMap<AtomId, BTreeSet<Digit>>,
    /// Pairs of neighbours.
    before: BTreeSet<(Digit, Digit)>,
}

impl<'b> Chains<'b> {
    fn new(bound: &'b Bound) -> Chains<'b> {
        Chains { bound, digits: BTreeMap::new(), before: BTreeSet::new() }
    }

    /// Takes in a slot, or says what it contradicts and leaves it out.
    fn add(&mut self, chain: &[Digit]) -> Result<(), String> {
        let mut own: BTreeMap<AtomId, BTreeSet<Digit>> = BTreeMap::new();
        for digit in chain {
            own.entry(digit.atom).or_default().insert(*digit);
        }
        for (atom, digits) in &own {
            if self.digits.get(atom).is_some_and(|known| known != digits) {
                let name = &self.bound.atoms[usize::from(*atom)].name;
                return Err(format!("which splits `{name}` otherwise than the slots before"));
            }
        }
        let new: Vec<(Digit, Digit)> =
            chain.windows(2).map(|pair| (pair[0], pair[1])).filter(|pair| !self.before.contains(pair)).collect();
        self.before.extend(new.iter().copied());
        let known = std::mem::take(&mut self.digits);
        self.digits = known.iter().chain(&own).map(|(atom, digits)| (*atom, digits.clone())).collect();
        if !new.is_empty() && self.sorted(&BTreeSet::new()).is_none() {
            self.digits = known;
            for pair in &new {
                self.before.remove(pair);
            }
            return Err("which orders the letters otherwise than the slots before".to_owned());
        }
        Ok(())
    }

    /// All digits in an order that agrees with every chain: where several may be next one of `eager`, else the lowest. An
    /// atom that no slot stores is a digit of its own.
    fn sorted(&self, eager: &BTreeSet<AtomId>) -> Option<Vec<Digit>> {
        let mut left: BTreeSet<Digit> = self.digits.values().flatten().copied().collect();
        let unseen = (0..self.bound.atoms.len() as AtomId).filter(|atom| !self.digits.contains_key(atom));
        left.extend(unseen.map(|atom| Digit { atom, div: 1, modulo: None }));
        let mut order = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let waits: BTreeSet<Digit> =
                self.before.iter().filter(|(a, _)| left.contains(a)).map(|(_, b)| *b).collect();
            let mut ready = left.iter().filter(|d| !waits.contains(d));
            let next = match ready.clone().find(|d| eager.contains(&d.atom)) {
                Some(eager) => *eager,
                None => *ready.next()?,
            };
            left.remove(&next);
            order.push(next);
        }
        Some(order)
    }

    /// Orders of the atoms, by their outermost digits, to try the op in: agreeing with every slot, with substitutes early so
    /// that they follow what they replace; and those that the signature itself derives from one slot.
    fn orders(&self, graph: &Graph, node: &Node) -> Vec<AtomOrder> {
        let substitutes = self.bound.substitute.iter().flat_map(|(_, atoms)| atoms.iter().copied()).collect();
        let outermost = |digits: Vec<Digit>| digits.iter().filter(|d| d.modulo.is_none()).map(|d| d.atom).collect();
        let mut orders: Vec<AtomOrder> =
            [BTreeSet::new(), substitutes].iter().filter_map(|eager| self.sorted(eager)).map(outermost).collect();
        for (slot, v) in values(node) {
            let derived =
                graph.value(v).layout.as_permutation().and_then(|stored| self.bound.order_from(slot, &stored));
            orders.extend(derived.filter(|order| self.agrees(order)));
        }
        orders
    }

    /// Whether an order of whole atoms agrees with every chain.
    fn agrees(&self, order: &[AtomId]) -> bool {
        let place = |digit: &Digit| order.iter().position(|a| *a == digit.atom);
        self.before.iter().all(|(a, b)| place(a) < place(b))
    }
}
