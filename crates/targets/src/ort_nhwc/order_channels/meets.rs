//! What a node does with the channels of what it reads and leaves: which other axes have the same ones in the same order.

use relayout_ir::dim::Dim;
use relayout_ir::form::{Bound, Form, Slot, View};
use relayout_ir::graph::{Graph, Node, NodeId, Op, ValueId};
use relayout_ir::op::read::transpose_perm;
use relayout_ir::op::{Alike, alike, bind};
use relayout_ir::perm;

/// An axis of a value.
pub(super) type Place = (ValueId, usize);

/// Ops that add up over an axis of two operands, and the order in which they do does not count.
const SUMS: [&str; 3] = ["MatMul", "Gemm", "Conv"];

/// What has the same channels as an operand or a result of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Meeting {
    /// Other operands and results.
    pub(super) alike: Vec<Place>,
    /// Operands that are constants, by their slots, and along which axis.
    pub(super) constants: Vec<(usize, usize)>,
    /// Whether the node adds up over the channels.
    pub(super) sums: bool,
}

/// What has the same channels as an axis of an operand or a result of a node. `None` if the node knows channels by their numbers.
pub(super) fn meeting(graph: &Graph, n: NodeId, slot: Slot, axis: usize) -> Option<Meeting> {
    let node = graph.node(n);
    let to = |slot: Slot, axis: Option<usize>| Meeting::recognize(node, slot, axis?);
    match (&node.op, &node.form) {
        (Op::Relayout, _) | (_, Form::View(View::Same)) => to(other(slot)?, Some(axis)),
        (_, Form::View(View::Transpose(perm))) => to(other(slot)?, turned(perm, slot, axis)),
        (_, Form::View(View::Reshape)) => {
            let [from, into] =
                [slot, other(slot)?].map(|slot| node.value_at(slot).and_then(|v| graph.value(v).ty.shape()));
            to(other(slot)?, kept(from?, axis, into?))
        }
        (_, Form::Axes(bound)) => bound_to(graph, node, bound, slot, axis),
        (_, Form::Kernel(layouts)) => match node.onnx()? {
            "Transpose" | "Reshape" => stored(graph, node, slot, axis),
            _ if layouts.ins.iter().chain(&layouts.outs).all(Option::is_none) => match bind(graph, n) {
                Form::Axes(bound) => bound_to(graph, node, &bound, slot, axis),
                _ => None,
            },
            _ => None,
        },
        (_, Form::Borders(_) | Form::Opaque(_)) => None,
    }
}

impl Meeting {
    fn recognize(node: &Node, slot: Slot, axis: usize) -> Option<Meeting> {
        Some(Meeting { alike: vec![(node.value_at(slot)?, axis)], ..Meeting::default() })
    }
}

/// The other side of a node of one operand and one result.
fn other(slot: Slot) -> Option<Slot> {
    match slot {
        Slot::In(0) => Some(Slot::Out(0)),
        Slot::Out(0) => Some(Slot::In(0)),
        _ => None,
    }
}

/// Where a Transpose has an axis on its other side.
fn turned(order: &[usize], slot: Slot, axis: usize) -> Option<usize> {
    match slot {
        Slot::In(_) => perm::place(order, axis),
        Slot::Out(_) => order.get(axis).copied(),
    }
}

/// Where a Reshape has an axis that it keeps whole.
fn kept(from: &[Dim], axis: usize, into: &[Dim]) -> Option<usize> {
    let (extent, after) = (from.get(axis)?, Dim::product(from.get(axis + 1..)?)?);
    (0..into.len()).find(|&at| into[at] == *extent && Dim::product(&into[at + 1..]).as_ref() == Some(&after))
}

/// What has the same channels, by a node that is told of dims as they are stored.
fn stored(graph: &Graph, node: &Node, slot: Slot, axis: usize) -> Option<Meeting> {
    let (v, to) = (node.value_at(slot)?, other(slot)?);
    let w = node.value_at(to)?;
    let dim = dim_of(graph, (v, axis))?;
    let dims = |v: ValueId| graph.storage_shape(v, &graph.value(v).layout);
    let dim = match node.onnx()? {
        "Transpose" => turned(&transpose_perm(node, graph.value(v).ty.rank()?).ok()?, slot, dim)?,
        _ => kept(&dims(v)?, dim, &dims(w)?)?,
    };
    Meeting::recognize(node, to, axis_at(graph, w, dim)?)
}

/// Which dim of a value an axis is as it is stored.
pub(super) fn dim_of(graph: &Graph, (v, axis): Place) -> Option<usize> {
    perm::place(&graph.value(v).layout.as_permutation()?, axis)
}

/// Which axis a dim of a value is as it is stored.
pub(super) fn axis_at(graph: &Graph, v: ValueId, dim: usize) -> Option<usize> {
    graph.value(v).layout.as_permutation()?.get(dim).copied()
}

/// What has the same channels by the letters of an op.
fn bound_to(graph: &Graph, node: &Node, bound: &Bound, slot: Slot, axis: usize) -> Option<Meeting> {
    let Alike { places, contracted } = alike(graph, node, bound, slot, axis)?;
    if contracted && !SUMS.contains(&node.onnx()?) {
        return None;
    }
    let mut met = Meeting { sums: contracted, ..Meeting::default() };
    for (at, axis) in places {
        let v = node.value_at(at)?;
        match at {
            Slot::In(slot) if graph.constant(v).is_some() => met.constants.push((slot, axis)),
            _ => met.alike.push((v, axis)),
        }
    }
    Some(met)
}
