//! What a Pad puts around the image that a convolution reads, and what a Slice takes away from its result: both in one place, so that
//! sums that are computed may cancel.

use relayout_ir::dim::Dim;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node, NodeId, ValueId};
use relayout_ir::op::read::{self, Fill, SymbolicCut};
use std::collections::VecDeque;

/// Elements before and after.
pub(super) type Ends = (Dim, Dim);

/// A Pad or a Slice and the Transposes that stand between it and the convolution.
pub(super) struct PadOrSlice {
    /// What the Pad reads, or what the Slice makes.
    pub(super) end: ValueId,
    /// Which axis of that each axis of the convolution is.
    pub(super) order: Vec<usize>,
    /// What is added to, or taken from, each axis of the convolution.
    pub(super) ends: Vec<Ends>,
}

/// Most nodes among which an Equal is looked for.
const MOST: usize = 256;

/// From here on a bound means that all is taken, whatever the extent: what exporters write.
const FAR: i64 = 1_000_000_000;

/// The Pad of zeros that an image comes from.
pub(super) fn padded(graph: &Graph, image: ValueId) -> Option<PadOrSlice> {
    let rank = graph.value(image).ty.rank()?;
    let (mut v, mut order) = (image, (0..rank).collect::<Vec<_>>());
    let node = loop {
        let node = graph.node(graph.value(v).producer().0);
        let Form::View(View::Transpose(perm)) = &node.form else { break node };
        order = order.iter().map(|&axis| perm.get(axis).copied()).collect::<Option<_>>()?;
        v = node.operand(0)?;
    };
    if node.onnx() != Some("Pad") || !matches!(read::fill(graph, node), Fill::Number(x) if x == 0.0) {
        return None;
    }
    let mut pads = vec![(Dim::ZERO, Dim::ZERO); rank];
    for pad in read::symbolic_pads(graph, node, rank).ok()?? {
        pads[pad.axis] = (pad.before, pad.after);
    }
    let ends = order.iter().map(|&axis| pads.get(axis).cloned()).collect::<Option<Vec<_>>>()?;
    let only_adds = ends.iter().all(|(before, after)| before.is_never_negative() && after.is_never_negative());
    only_adds.then_some(PadOrSlice { end: node.operand(0)?, order, ends })
}

/// The Slice that a result goes through, and nothing else.
pub(super) fn sliced(graph: &Graph, result: ValueId) -> Option<PadOrSlice> {
    let rank = graph.value(result).ty.rank()?;
    // Which axis of the convolution each axis of the value is.
    let (mut v, mut axes) = (result, (0..rank).collect::<Vec<_>>());
    let node = loop {
        let node = graph.node(graph.only_use(v)?.node);
        let Form::View(View::Transpose(perm)) = &node.form else { break node };
        axes = perm.iter().map(|&axis| axes.get(axis).copied()).collect::<Option<_>>()?;
        v = node.result(0)?;
    };
    if node.onnx() != Some("Slice") || node.operand(0) != Some(v) {
        return None;
    }
    let shape = graph.value(v).ty.shape()?;
    let mut ends = vec![(Dim::ZERO, Dim::ZERO); rank];
    for cut in read::symbolic_cuts(graph, node, rank).ok()?? {
        let place = ends.get_mut(*axes.get(cut.axis)?)?;
        *place = taken(graph, node, shape.get(cut.axis)?, &cut)?;
    }
    let order = (0..rank).map(|axis| axes.iter().position(|at| *at == axis)).collect::<Option<_>>()?;
    Some(PadOrSlice { end: node.result(0)?, order, ends })
}

/// What a cut leaves out before and after, if that is known.
fn taken(graph: &Graph, node: &Node, extent: &Dim, cut: &SymbolicCut) -> Option<Ends> {
    if let (Some(n), Some(known)) = (extent.as_const(), cut.known()) {
        let (first, count) = read::elements_taken(n, known.start, known.end, known.step);
        return (known.step == 1).then(|| (Dim::from(first), Dim::from(n - first - count)));
    }
    let (start, end) = (cut.start.clone()?, cut.end.as_ref()?);
    if cut.step != Some(1) || !start.is_never_negative() {
        return None;
    }
    let after = match end.as_const() {
        Some(end) if end >= FAR => Dim::ZERO,
        Some(end) if end < 0 => Dim::from(end.checked_neg()?),
        Some(_) => return None,
        None if end.is_never_negative() => extent.checked_sub(end)?,
        None => chosen(graph, node, end)?,
    };
    after.is_never_negative().then_some((start, after))
}

/// For an end that is far where a number is zero, and else so far from the end as this number says: the number.
fn chosen(graph: &Graph, node: &Node, end: &Dim) -> Option<Dim> {
    let found = |name: String| compared(graph, node, &name).map(|(left, right)| (name, left, right));
    let (name, left, right) = end.symbols().into_iter().find_map(found)?;
    let where_it_is = |truth: i64| end.substitute(&|symbol| (symbol == name).then(|| Dim::from(truth)));
    let number = left.checked_sub(&right)?;
    let far = where_it_is(1)?.as_const().is_some_and(|end| end >= FAR);
    let back = where_it_is(0)?.checked_add(&number)? == Dim::ZERO;
    (far && back).then_some(number)
}

/// The two numbers of which an Equal before this node says by this unknown whether they are the same.
fn compared(graph: &Graph, node: &Node, unknown: &str) -> Option<(Dim, Dim)> {
    let is_unknown = |d: &Dim| unknown.starts_with('~') && d.to_string() == unknown;
    let known = |v: &ValueId| graph.value(*v).contents.is_some();
    let maker = |v: ValueId| graph.value(v).producer().0;
    let mut todo: VecDeque<NodeId> = node.inputs.iter().skip(1).flatten().copied().filter(known).map(maker).collect();
    let mut seen = Vec::new();
    while let Some(n) = todo.pop_front() {
        if seen.contains(&n) || seen.len() >= MOST {
            continue;
        }
        seen.push(n);
        let node = graph.node(n);
        let contents = |v: Option<ValueId>| graph.value(v?).contents.as_deref();
        let place = contents(node.result(0)).and_then(|all| all.iter().position(is_unknown));
        if let Some(place) = place.filter(|_| node.onnx() == Some("Equal")) {
            let at = |all: &[Dim]| all.get(if all.len() == 1 { 0 } else { place }).cloned();
            return Some((at(contents(node.operand(0))?)?, at(contents(node.operand(1))?)?));
        }
        todo.extend(node.inputs.iter().flatten().copied().filter(known).map(maker));
    }
    None
}
