//! The choices of a node: its views, the orders that its letters allow, the offers of the target; with what each needs beside
//! the op.

use super::candidates::{Choice, ScopeCandidates};
use super::pieces::Runs;
use crate::operands::needs_raise;
use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::form::{AtomOrder, Bound, Form, Slot, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout_ir::layout::Layout;
use relayout_target_api::Numerics;
use relayout_target_api::hints::Hints;
use relayout_target_api::{Cost, MoveQuery, NodeQuery, Offer, OpQuery, Target};

/// What a node costs that makes a few numbers: it has to be started, as one that moves nothing has.
fn small_node(target: &dyn Target) -> Cost {
    let (from, to) = (Layout::row_major(2), Layout::permutation(&[1, 0]));
    let moved = to.ok().and_then(|to| target.move_cost(&MoveQuery::permute(&from, &to, &[1, 1]).bytes(0)));
    target.view_cost().max(moved.unwrap_or_default())
}

/// Whether a view moves nothing between these layouts of its operand and its result.
fn is_free(graph: &Graph, view: &View, [x, y]: [ValueId; 2], [from, to]: [Layout; 2]) -> bool {
    let (own, others) = ([from], [to]);
    let pairs = graph.free_pairs(view, (x, &own[..]), (y, &others[..]));
    pairs.into_iter().any(|(l, r, _)| l == own[0] && r == others[0])
}

impl ScopeCandidates {
    pub(super) fn view_choices(&self, graph: &Graph, target: &dyn Target, n: NodeId, view: &View) -> Vec<Choice> {
        let node = graph.node(n);
        let plain = plain(graph, n);
        let (Some(x), Some(y)) = (node.operand(0), node.result(0)) else {
            return vec![plain];
        };
        let sides = ((x, &self.layouts[x.index()][..]), (y, &self.layouts[y.index()][..]));
        let small_node = small_node(target);
        let mut choices = Vec::new();
        for (l, r, beside) in graph.free_pairs(view, sides.0, sides.1) {
            let written = [target.written(&l), target.written(&r)];
            if written.iter().any(Option::is_some) {
                let [from, to] = written;
                let written = [from.unwrap_or_else(|| l.clone()), to.unwrap_or_else(|| r.clone())];
                if !is_free(graph, view, [x, y], written) {
                    continue;
                }
            }
            let mut choice = plain.clone();
            choice.cost += small_node.times(beside as u64);
            choice.ins[0] = l;
            choice.outs[0] = r;
            choices.push(choice);
        }
        if choices.is_empty() { vec![plain] } else { choices }
    }

    pub(super) fn axes_choices(
        &self,
        graph: &Graph,
        target: &dyn Target,
        hints: &Hints,
        n: NodeId,
        bound: &Bound,
    ) -> Vec<Choice> {
        let node = graph.node(n);
        let mut choices = Vec::new();
        for layouts in self.axes_layouts(graph, n, bound) {
            let mut choice = plain(graph, n);
            for (slot, layout) in layouts {
                match slot {
                    Slot::In(i) => choice.ins[i] = layout,
                    Slot::Out(i) => choice.outs[i] = layout,
                }
            }
            if !self.may_pad(graph, node, &choice) {
                continue;
            }
            let Some(cost) = self.axes_cost(graph, target, hints, n, &choice) else { continue };
            choice.cost = cost;
            choices.push(choice);
        }
        choices
    }

    /// What a node that runs as itself costs at these sizes, its operands and results as a choice has them; 0 for a node whose axes no
    /// signature names. `None` if the target does not run it so.
    pub(super) fn axes_cost(
        &self,
        graph: &Graph,
        target: &dyn Target,
        hints: &Hints,
        n: NodeId,
        choice: &Choice,
    ) -> Option<Cost> {
        let node = graph.node(n);
        let Form::Axes(bound) = &node.form else { return Some(Cost::ZERO) };
        let turned = |&(slot, layout): &(Slot, &Layout)| bound.slots().any(|own| own == slot) && !layout.is_row_major();
        let ins = choice.ins.iter().enumerate().map(|(i, layout)| (Slot::In(i), layout));
        let outs = choice.outs.iter().enumerate().map(|(i, layout)| (Slot::Out(i), layout));
        let turned = ins.chain(outs).filter(turned).filter_map(|(slot, _)| node.value_at(slot));
        let turned_bytes = turned.fold(0u64, |sum, v| sum.saturating_add(hints.bytes(graph, v)));
        let bytes = node.operand(0).map_or(0, |v| hints.bytes(graph, v));
        let query = OpQuery::new(graph, n, bound, &choice.ins, &choice.outs).bytes(bytes, turned_bytes);
        let extra = extra_nodes(graph, &self.constant, n, bound, choice);
        Some(target.op_cost(&query)? + target.view_cost().times(extra))
    }

    /// Layouts in which a node's axes lie alike in all operands and results: those that these have, carried to the others.
    fn axes_layouts(&self, graph: &Graph, n: NodeId, bound: &Bound) -> Vec<Vec<(Slot, Layout)>> {
        let node = graph.node(n);
        let mut orders: Vec<AtomOrder> = vec![bound.identity()];
        let mut broken: Vec<Vec<(Slot, Layout)>> = Vec::new();
        let shape = |slot| node.value_at(slot).and_then(|v| graph.value(v).ty.shape());
        for slot in bound.slots() {
            let Some(v) = node.value_at(slot) else { continue };
            for layout in self.layouts[v.index()].iter().skip(1) {
                if let Some(stored) = layout.as_permutation() {
                    let order = bound.order_from(slot, &stored);
                    orders.extend(order.filter(|o| !orders.contains(o)));
                } else {
                    let all = bound.carry(slot, layout, graph.storage, shape);
                    broken.extend(all.filter(|all| !broken.contains(all)));
                    // Runs beside it may have pad slots of their own.
                    let padded = |l: &&Layout| l.factors() == layout.factors() && has_slot_map(l);
                    let beside = |slot| node.value_at(slot).and_then(|v| self.layouts[v.index()].iter().find(padded));
                    if bound.joined().is_some() {
                        let all = bound.carry_beside(slot, layout, beside, graph.storage, shape);
                        broken.extend(all.filter(|all| !broken.contains(all)));
                    }
                }
            }
        }
        let whole = orders.into_iter().filter(|order| bound.allows(order)).map(|order| {
            let of = |slot| Some((slot, Layout::permutation(&bound.restrict(&order, slot)?).ok()?));
            bound.slots().filter_map(of).collect()
        });
        whole.chain(broken).collect()
    }

    /// Whether what the pad slots of the results would hold is harmless.
    fn may_pad(&self, graph: &Graph, node: &Node, choice: &Choice) -> bool {
        slots_of(node.outputs.iter(), &choice.outs).all(|(v, layout)| {
            layout.as_permutation().is_some()
                || match padded(graph, v, layout)[..] {
                    [] => true,
                    [axis] => self.lanes.is_finite(v, axis),
                    _ => false,
                }
        })
    }

    /// Whether export can re-lay every constant that the choice reads: elements of less than a byte move as whole axes only.
    pub(super) fn may_repack(&self, graph: &Graph, node: &Node, choice: &Choice) -> bool {
        self.operands(node, choice).all(|(v, layout)| {
            let bits = graph.value(v).ty.dtype().and_then(DType::bits);
            layout.as_permutation().is_some() || !self.constant[v.index()] || bits.is_some_and(|bits| bits >= 8)
        })
    }

    /// Offers of a node for layouts that other ops brought: those with pad slots that no offer asks for by itself.
    pub(super) fn offer_among(
        &mut self,
        graph: &Graph,
        target: &dyn Target,
        hints: &Hints,
        n: NodeId,
        numerics: Numerics,
    ) {
        let node = graph.node(n);
        let brought = |v: &ValueId| !self.constant[v.index()] && self.layouts[v.index()].iter().any(has_slot_map);
        if !matches!(node.op, Op::Onnx(_)) || !node.inputs.iter().chain(&node.outputs).flatten().any(brought) {
            return;
        }
        let is_constant = |v: ValueId| self.constant[v.index()];
        let query = NodeQuery::new(graph, n, hints, &is_constant);
        let mut offers = target.offers_among(&query, &|v| &self.layouts[v.index()]);
        offers.retain(|offer| may_take(offer, numerics));
        let charged = self.charged(n);
        for offer in &mut offers {
            offer.cost += charged;
        }
        let own = &mut self.offers[n.index()];
        own.truncate(self.offered[n.index()]);
        own.extend(offers);
    }

    /// What a node costs at these sizes beside the layouts that it has, if it runs as itself.
    pub(super) fn plain_cost(&self, s: usize, graph: &Graph, n: NodeId, target: &dyn Target, hints: &Hints) -> Cost {
        let is_constant = |v: ValueId| self.constant.get(v.index()).copied().unwrap_or(false);
        target.plain_cost(&NodeQuery::new(graph, n, hints, &is_constant).within(s > 0)) + self.charged(n)
    }

    /// What offers of a node cost beyond what forms say.
    pub(super) fn charged(&self, n: NodeId) -> Cost {
        self.charged.get(&n.index()).copied().unwrap_or(Cost::ZERO)
    }

    /// The offers of the target for a node.
    pub(super) fn offer_choices(&self, graph: &Graph, n: NodeId) -> Vec<Choice> {
        let row_major = |v: &Option<ValueId>| Layout::row_major(v.and_then(|v| graph.value(v).ty.rank()).unwrap_or(0));
        let of = |(number, offer): (usize, &Offer)| {
            let mut choice = plain(graph, n);
            if let Some(&piece) = self.raised.get(&(n, number)) {
                choice.runs = Runs::As(piece);
                choice.ins = self.pieces.list[piece].operands.iter().map(row_major).collect();
            }
            let sides = [(&mut choice.ins[..], &offer.layouts.ins), (&mut choice.outs[..], &offer.layouts.outs)];
            for (slots, layouts) in sides {
                for (slot, layout) in slots.iter_mut().zip(layouts) {
                    if let Some(layout) = layout {
                        slot.clone_from(layout);
                    }
                }
            }
            choice.cost = offer.cost;
            choice.offer = Some(number);
            choice
        };
        self.offers[n.index()].iter().enumerate().map(of).collect()
    }
}

/// Whether pad slots of a layout are elsewhere than at the end of the last blocks.
pub(super) fn has_slot_map(layout: &Layout) -> bool {
    (0..layout.rank()).any(|axis| layout.slot_map(axis).is_some())
}

/// Whether an offer may stand for a node.
pub(super) fn may_take(offer: &Offer, numerics: Numerics) -> bool {
    !offer.adds_zeros || numerics > Numerics::Exact
}

/// Whether operands and results of a node can lie as an offer has them: an operand of a broken model may have other extents than its op
/// asks for.
pub(super) fn fits(graph: &Graph, n: NodeId, offer: &Offer) -> bool {
    let node = graph.node(n);
    let sides = [(&offer.layouts.ins, &node.inputs), (&offer.layouts.outs, &node.outputs)];
    sides.into_iter().flat_map(|(layouts, values)| layouts.iter().zip(values)).all(|(layout, v)| match (layout, v) {
        (Some(layout), Some(v)) if layout.as_permutation().is_none() => {
            graph.value(*v).ty.shape().is_none_or(|shape| layout.fits(shape).is_ok())
        }
        _ => true,
    })
}

/// Small nodes that an order needs beside the op: broadcast operands raised to full rank, Shape's extents put in order.
fn extra_nodes(graph: &Graph, constant: &[bool], n: NodeId, bound: &Bound, choice: &Choice) -> u64 {
    let node = graph.node(n);
    let raised = (0..node.inputs.len())
        .filter(|&i| {
            let raised = |v: ValueId| needs_raise(graph, bound, i, v, &choice.ins[i], choice.outs.first());
            node.inputs[i].is_some_and(|v| !constant[v.index()] && raised(v))
        })
        .count();
    let extents = bound.renumber.contains(&relayout_ir::form::Renumber::Extents)
        && choice.ins.first().is_some_and(|l| !l.is_row_major());
    (raised + usize::from(extents)) as u64
}

/// Axes of a value that have pad slots in this layout.
fn padded(graph: &Graph, v: ValueId, layout: &Layout) -> Vec<usize> {
    let shape = graph.value(v).ty.shape().unwrap_or_default();
    let has_pads = |axis: &usize| {
        let block = Dim::from(layout.block_of(*axis) as i64);
        layout.slot_map(*axis).is_some() || shape.get(*axis).is_none_or(|d| d.exact_div(&block).is_none())
    };
    (0..layout.rank()).filter(has_pads).collect()
}

pub(super) fn slots_of<'a>(
    values: impl Iterator<Item = &'a Option<ValueId>>,
    layouts: &'a [Layout],
) -> impl Iterator<Item = (ValueId, &'a Layout)> {
    values.zip(layouts).filter_map(|(v, l)| v.map(|v| (v, l)))
}

/// Every slot row-major, as ONNX runs the node. A Transpose is the exception: its own choice 0 leaves the bytes and renames.
pub(super) fn plain(graph: &Graph, n: NodeId) -> Choice {
    let node = graph.node(n);
    let row_major = |v: &Option<ValueId>| Layout::row_major(v.and_then(|v| graph.value(v).ty.rank()).unwrap_or(0));
    Choice {
        ins: node.inputs.iter().map(row_major).collect(),
        outs: node.outputs.iter().map(row_major).collect(),
        cost: Cost::ZERO,
        offer: None,
        runs: Runs::Itself,
    }
}
