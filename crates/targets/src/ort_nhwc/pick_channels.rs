//! `pick_channels`: where a device has no ops of quantized values, what only moves such values does not quantize them again, and a shuffle
//! of channels is one Gather.
//!
//! ```text
//! Reshape(Q(Concat(Reshape(a), Reshape(b)))) = Gather(Q(Concat(a, b)))          Q is QuantizeLinear and DequantizeLinear
//! Q(Move(Q(x))) = Move(Q(x))
//! Slice(Gather(x)) = Gather(x)
//! ```
//!
//! On such a device each of the two ops of Q is a node, and `QuantizeLinear` is one of the host: values go there and come back. ONNX
//! Runtime moves pairs of the two through Reshapes and Slices when it loads a file, which leaves a pair on either side of each. It moves
//! none through a Gather.

use super::join_views::is_view;
use relayout_ir::attr::Attr;
use relayout_ir::build::Builder;
use relayout_ir::dim::Dim;
use relayout_ir::form::Form;
use relayout_ir::graph::{DuplicateName, Graph, Node, NodeId, Op, ValueId};
use relayout_ir::op::normalize_axis;
use relayout_ir::op::read::{Cut, Units, cuts, elements_taken, units};
use relayout_ir::patch::{Patch, remove_dead};
use relayout_target_api::moves::moved;
use relayout_target_api::{Context, Counted, Declared, Fact, Numerics, Pass, Rule, Slot};

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "pick_channels",
    equation: "Reshape(Q(Concat(Reshape(a), Reshape(b)))) = Gather(Q(Concat(a, b))), Q(Move(Q(x))) = Move(Q(x))",
    condition: "Q is QuantizeLinear and DequantizeLinear of one scale and one zero point, the same everywhere; nobody else reads what lies \
                between; the device has no ops of quantized values",
    buys: "nodes, among them QuantizeLinears on the host",
    numerics: Numerics::Exact,
    counted: Counted::Nodes,
};

/// The pass; for a device with ops of quantized values it does nothing.
pub(super) fn pass(quantized_units: bool) -> Pass {
    let is = Declared::new(RULE.name, Slot::Finish, "looks at shuffles of channels that the decision wrote as views")
        .needs(&[Fact::Packed])
        .after(&["order_channels"])
        .before(&["join_views"])
        .rules(&[&RULE]);
    Pass::on_each_graph(is, move |graph, cx: &mut Context<'_>| {
        if quantized_units {
            return Ok(());
        }
        let before = graph.nodes().count();
        let mut gathers = Vec::new();
        for n in graph.order().unwrap_or_default() {
            if let Some(shuffle) = Some(n).filter(|&n| graph.contains(n)).and_then(|n| Shuffle::recognize(graph, n)) {
                gathers.extend(shuffle.write(graph)?);
            }
        }
        for n in graph.order().unwrap_or_default() {
            if graph.contains(n) {
                quantize_once(graph, n)?;
            }
        }
        for picked in gathers {
            picked.take_parts(graph)?;
        }
        cx.count(&RULE, before.saturating_sub(graph.nodes().count()));
        Ok(())
    })
}

/// The units of a node of this op, if it treats all axes alike.
fn units_of(graph: &Graph, node: &Node, op: &str) -> Option<Units> {
    units(graph, node).filter(|_| node.onnx() == Some(op) && matches!(node.form, Form::Axes(_)))
}

/// The result of the only node that reads a value, if it is of this op; with its units.
fn next(graph: &Graph, v: ValueId, op: &str) -> Option<(ValueId, Units)> {
    let node = graph.node(graph.only_use(v)?.node);
    Some((node.only_result()?, units_of(graph, node, op)?))
}

/// The values behind both ops of a pair that reads this one alone, and its units.
fn pair(graph: &Graph, v: ValueId) -> Option<([ValueId; 2], Units)> {
    let (q, units) = next(graph, v, "QuantizeLinear")?;
    let (d, back) = next(graph, q, "DequantizeLinear")?;
    (units == back).then_some(([q, d], units))
}

fn stored(graph: &Graph, v: ValueId) -> Option<Vec<Dim>> {
    graph.storage_shape(v, &graph.value(v).layout)
}

/// Values that are put channel by channel beside each other, as views of one more axis, quantized, and seen as one axis again.
struct Shuffle {
    concat: NodeId,
    /// What is put together.
    parts: Vec<ValueId>,
    /// What is computed of it before it is seen as one axis: the result, and those of the two ops.
    between: [ValueId; 3],
    /// The view behind.
    view: NodeId,
    /// Channels of a part.
    each: i64,
}

impl Shuffle {
    fn recognize(graph: &Graph, concat: NodeId) -> Option<Shuffle> {
        let node = graph.node(concat);
        let y = node.only_result().filter(|_| node.onnx() == Some("Concat") && matches!(node.form, Form::Axes(_)))?;
        let dims = stored(graph, y)?;
        let (groups, part) = dims.split_last()?;
        let (each, outside) = part.split_last()?;
        let (groups, each) = (groups.as_const()?, each.as_const()?);
        let one: Vec<Dim> = part.iter().cloned().chain([Dim::from(1)]).collect();
        let source = |v: &Option<ValueId>| {
            let v = (*v).filter(|&v| graph.only_use(v).is_some() && stored(graph, v).as_ref() == Some(&one))?;
            let n = graph.value(v).producer().0;
            let source = graph.node(n).operand(0).filter(|_| stays(graph, n))?;
            (stored(graph, source)?[..] == *part).then_some(source)
        };
        let parts: Vec<ValueId> = node.inputs.iter().map(source).collect::<Option<_>>()?;
        // The axis that they are put together along lies innermost in each.
        let rank = graph.value(y).ty.rank()?;
        let axis = normalize_axis(node.int("axis")?, rank)?;
        let layout = &graph.value(*parts.first()?).layout;
        let innermost = |&v: &ValueId| graph.value(v).layout == *layout && graph.value(v).ty.rank() == Some(rank);
        let lies = layout.as_permutation()?.last() == Some(&axis) && parts.iter().all(innermost);
        if !lies || parts.len() < 2 || i64::try_from(parts.len()) != Ok(groups) {
            return None;
        }
        let ([q, d], units) = pair(graph, y)?;
        let whole: Vec<Dim> = outside.iter().cloned().chain([Dim::from(groups.checked_mul(each)?)]).collect();
        let mut at = d;
        let view = loop {
            if let Some(([_, next], again)) = pair(graph, at) {
                at = next;
                if again != units {
                    return None;
                }
                continue;
            }
            let n = graph.only_use(at).map(|u| u.node).filter(|&n| stays(graph, n))?;
            at = graph.node(n).only_result()?;
            if stored(graph, at).as_ref() == Some(&whole) {
                break n;
            }
        };
        Some(Shuffle { concat, parts, between: [y, q, d], view, each })
    }

    fn write(self, graph: &mut Graph) -> Result<Option<Picked>, DuplicateName> {
        let Shuffle { concat, parts, between, view, each } = self;
        let seen: Vec<NodeId> =
            graph.node(concat).inputs.iter().flatten().map(|&v| graph.value(v).producer().0).collect();
        let last = graph.node(view).operand(0).map(|v| graph.value(v).producer().0);
        let layout = graph.value(parts[0]).layout.clone();
        let mut patch = Patch::new();
        for (slot, &part) in parts.iter().enumerate() {
            patch.connect(concat, slot, part);
        }
        for v in between {
            patch.set_layout(v, layout.clone());
        }
        patch.apply(graph)?;
        let groups = parts.len() as i64;
        let channels: Vec<i64> = (0..each).flat_map(|at| (0..groups).map(move |part| part * each + at)).collect();
        let (x, axis) = (between[2], layout.rank() - 1);
        gather(graph, view, x, axis, &channels)?;
        remove_dead(graph, seen.into_iter().chain(last));
        Ok(graph.node(view).only_result().map(|y| Picked { x, y, axis, channels }))
    }
}

/// Makes a node a Gather of some of what lies innermost in a value.
fn gather(graph: &mut Graph, n: NodeId, x: ValueId, axis: usize, picked: &[i64]) -> Result<(), DuplicateName> {
    let name = format!("{}.picked", graph.value(x).name);
    let layout = |v: ValueId| graph.value(v).layout.declared();
    let (from, to) = (layout(x), graph.node(n).only_result().and_then(layout));
    let mut make = Builder::at(graph, n);
    let list = make.ints(&name, picked)?;
    let draft = make.op("Gather", [x, list]).attr("axis", Attr::Int(axis as i64));
    draft.kernel_in(vec![from, None], vec![to]).in_place_of(n);
    Ok(())
}

/// Takes a pair away behind what only moved values that a pair of the same units had left.
fn quantize_once(graph: &mut Graph, n: NodeId) -> Result<(), DuplicateName> {
    let node = graph.node(n);
    let Some(units) = units_of(graph, node, "QuantizeLinear") else { return Ok(()) };
    let (Some(x), Some(q)) = (node.operand(0), node.only_result()) else { return Ok(()) };
    let mut source = x;
    while let Some(before) = moved_from(graph, source) {
        source = before;
    }
    let first = graph.node(graph.value(source).producer().0);
    if source == x || units_of(graph, first, "DequantizeLinear") != Some(units) || graph.is_read_by_name(q) {
        return Ok(());
    }
    let same = |v: ValueId| {
        let (a, b) = (graph.value(x), graph.value(v));
        a.ty == b.ty && a.layout == b.layout && !graph.is_read_by_name(v)
    };
    let back = |n: NodeId| {
        let node = graph.node(n);
        let y = node.only_result().filter(|_| units_of(graph, node, "DequantizeLinear") == Some(units));
        y.filter(|&v| same(v))
    };
    let uses = graph.uses(q);
    let Some(results) = uses.iter().map(|u| back(u.node)).collect::<Option<Vec<_>>>() else { return Ok(()) };
    let mut patch = Patch::new();
    for v in results {
        patch.redirect(v, x);
    }
    patch.apply(graph)?;
    remove_dead(graph, uses.into_iter().map(|u| u.node));
    Ok(())
}

/// Whether a node leaves the elements of its first operand in the bytes where they are: a view, or a move that moves nothing.
fn stays(graph: &Graph, n: NodeId) -> bool {
    is_view(graph, n) || matches!(graph.node(n).op, Op::Relayout) && moved(graph, n).is_none()
}

/// What a value is a part of, or the same elements of in another order.
fn moved_from(graph: &Graph, v: ValueId) -> Option<ValueId> {
    let n = graph.value(v).producer().0;
    let takes = matches!(graph.node(n).onnx(), Some("Slice" | "Gather"));
    graph.node(n).operand(0).filter(|_| takes || moved(graph, n).is_some() || stays(graph, n))
}

/// A Gather that was written: which channels of a value it leaves.
struct Picked {
    x: ValueId,
    y: ValueId,
    axis: usize,
    channels: Vec<i64>,
}

impl Picked {
    /// Where only Slices of channels read the result, each of them picks its own.
    fn take_parts(self, graph: &mut Graph) -> Result<(), DuplicateName> {
        let producer = graph.value(self.y).producer().0;
        let uses = graph.uses(self.y);
        let parts: Option<Vec<_>> = uses.iter().map(|u| Some((u.node, self.part(graph, u.node)?))).collect();
        for (n, part) in parts.filter(|_| !graph.is_read_by_name(self.y)).unwrap_or_default() {
            gather(graph, n, self.x, self.axis, &part)?;
        }
        remove_dead(graph, [producer]);
        Ok(())
    }

    /// The channels that a Slice takes.
    fn part(&self, graph: &Graph, n: NodeId) -> Option<Vec<i64>> {
        let [Cut { axis, start, end, step }] = cuts(graph, graph.node(n))?[..] else { return None };
        let layout = &graph.value(self.y).layout;
        let lies = layout.as_permutation()?.get(self.axis) == Some(&axis);
        let same = graph.value(graph.node(n).only_result()?).layout == *layout;
        let (first, count) = elements_taken(self.channels.len() as i64, start, end, step);
        let at = |i: i64| self.channels.get(usize::try_from(first + i * step).ok()?).copied();
        (lies && same).then(|| (0..count).map(at).collect())?
    }
}
