//! `fold_requantized`: integers that become floats and the same integers again stay integers.
//!
//! A model in quantized units has a `DequantizeLinear` before and a `QuantizeLinear` behind each op. Where the op was a view or a move
//! that is gone, nothing is left between the two. Some runtimes end on such a pair (see `docs/runtime-bugs.md`).
//!
//! It is exact where [`units`] are known.
//!
//! Absent: scales by channel or block, floats of 16 bits, and integers of other widths.

use crate::state::Step;
use relayout_ir::graph::{Graph, InPlace, NodeId, ValueId};
use relayout_ir::op::read::units;
use relayout_ir::patch::{Patch, remove_dead};
use relayout_ir::types::Type;
use relayout_target_api::{Context, Counted, Declared, Fact, Numerics, PassError, Rule, Slot};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    name: "read_what_is_requantized",
    equation: "QuantizeLinear(DequantizeLinear(q, s, z), s, z) = q",
    condition: "integers of 8 or 16 bits; one scale, a 32-bit float that is known, positive, and far from the least and the greatest; \
                the same zero point; nothing in between, or views for which nothing runs; no graph output, and no body reads it",
    buys: "both nodes, where nothing else reads the floats",
    numerics: Numerics::Exact,
    counted: Counted::Nodes,
};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new("fold_requantized", Slot::Clean, "the moves that stood in between are gone")
        .needs(&[Fact::Packed])
        .rules(&[&RULE]),
    &fold_requantized,
);

/// Folds every such pair.
pub fn fold_requantized(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let mut gone = Vec::new();
    for n in graph.order().unwrap_or_default() {
        let Some(Pair { x, down, views, y }) = requantized(graph, n) else { continue };
        let integers = graph.value(x).ty.dtype();
        let mut patch = Patch::new();
        patch.redirect(y, views.last().map_or(x, |&(_, v)| v));
        if let Some(&(first, _)) = views.first() {
            patch.connect(first, 0, x);
        }
        patch.apply(graph)?;
        for (_, v) in views {
            let value = graph.value_mut(v);
            *value.differs = true;
            if let Type::Tensor(ty) = value.ty {
                ty.dtype = integers;
            }
        }
        gone.extend([n, down]);
    }
    if !gone.is_empty() {
        cx.count(&RULE, remove_dead(graph, gone));
    }
    Ok(())
}

/// A `DequantizeLinear` and a `QuantizeLinear` behind it.
struct Pair {
    /// The integers before both.
    x: ValueId,
    down: NodeId,
    /// Views in between that nothing runs for, and their results, which only the next one reads.
    views: Vec<(NodeId, ValueId)>,
    /// The integers behind both, which only nodes of this graph read.
    y: ValueId,
}

fn requantized(graph: &Graph, n: NodeId) -> Option<Pair> {
    let up = graph.node(n);
    let (quantized, y) = (up.operand(0).filter(|_| up.onnx() == Some("QuantizeLinear"))?, up.result(0)?);
    let (mut views, mut floats) = (Vec::new(), quantized);
    while let Some((view, x)) = alias(graph, floats) {
        views.push((view, floats));
        floats = x;
    }
    views.reverse();
    let down = graph.value(floats).producer().0;
    let node = graph.node(down);
    let x = node.operand(0).filter(|_| node.onnx() == Some("DequantizeLinear"))?;
    let alike = |a: ValueId, b: ValueId| {
        let (a, b) = (graph.value(a), graph.value(b));
        a.layout == b.layout && a.ty.shape() == b.ty.shape()
    };
    let same = units(graph, node)? == units(graph, up)?;
    let fits = same && alike(x, floats) && alike(quantized, y);
    let read = !graph.uses(y).is_empty() && !graph.is_read_by_name(y);
    (fits && read).then_some(Pair { x, down, views, y })
}

/// The view that makes a value that lies as its operand does, and that operand, if only one node reads the value.
fn alias(graph: &Graph, v: ValueId) -> Option<(NodeId, ValueId)> {
    let n = graph.value(v).producer().0;
    let node = graph.node(n);
    let view = node.view()?;
    let x = node.operand(0)?;
    let (from, to) = (&graph.value(x).layout, &graph.value(v).layout);
    let lies = matches!(graph.in_place(&view, (x, from), (v, to)).free(), Some(InPlace::Alias));
    (lies && graph.use_count(v) == 1 && !graph.is_read_by_name(v)).then_some((n, x))
}
