//! What the runtime of a target makes of the input by itself, as choices of its nodes: what a decision is held against.

use super::candidates::{Candidates, Choice, ScopeCandidates};
use super::plan::{Chosen, is_transpose};
use super::scopes::Scopes;
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::layout::Layout;
use relayout_target_api::{Loaded, Offer, Target};

/// The choices that the runtime takes; `None` if it runs every node as the file has it.
pub(super) fn chosen(scopes: &Scopes<'_>, candidates: &Candidates, target: &dyn Target) -> Option<Chosen> {
    let mut chosen = candidates.untaken();
    let mut any = false;
    for (s, (scope, own)) in scopes.list.iter().zip(&candidates.scopes).enumerate() {
        let graph = scope.graph;
        let is_constant = |v: ValueId| own.constant.get(v.index()).copied().unwrap_or(false);
        let Some(loaded) = target.loads(graph, &is_constant) else { continue };
        any = true;
        for n in graph.nodes() {
            let slot = chosen.nodes.get_mut(s).and_then(|nodes| nodes.get_mut(n.index()));
            if let Some((slot, at)) = slot.zip(choice(graph, own, &loaded, n)) {
                *slot = at;
            }
        }
    }
    any.then_some(chosen)
}

/// The number of the choice that a node runs as; `None` for what the file has.
fn choice(graph: &Graph, own: &ScopeCandidates, loaded: &Loaded, n: NodeId) -> Option<usize> {
    let node = graph.node(n);
    let is_stored = |v: &Option<ValueId>| v.is_some_and(|v| loaded.stored.contains(&v));
    let turns = is_transpose(node) && node.inputs.iter().any(is_stored);
    let blocked = |layouts: &[Layout]| layouts.iter().any(|l| l.as_permutation().is_none());
    let alike = |choice: &Choice| {
        let (read, left) = (blocked(&choice.ins), blocked(&choice.outs));
        choice.reads() && if turns { read } else { left && is_read_so(graph, choice, loaded, n) }
    };
    let runs = turns || node.outputs.iter().any(is_stored);
    let choices = own.choices.get(n.index()).filter(|_| runs)?;
    let fitting = choices.iter().enumerate().filter(|(_, choice)| alike(choice));
    // A form that stands for the op in another way is none of the runtime's.
    let offers = own.offers.get(n.index()).map_or(&[][..], Vec::as_slice);
    let keeps =
        |choice: &Choice| choice.offer.is_none_or(|at| offers.get(at).is_some_and(|offer| keeps_op(graph, n, offer)));
    fitting.filter(|(_, choice)| keeps(choice)).min_by_key(|(at, choice)| (choice.cost, *at)).map(|(at, _)| at)
}

/// Whether a node stays the op that it is.
fn keeps_op(graph: &Graph, n: NodeId, offer: &Offer) -> bool {
    let node = graph.node(n);
    offer.becomes.as_ref().is_some_and(|becomes| matches!(&node.op, Op::Onnx(op) if *op == becomes.op))
}

/// Whether a node reads in blocks each operand that lies so.
fn is_read_so(graph: &Graph, choice: &Choice, loaded: &Loaded, n: NodeId) -> bool {
    let operands = graph.node(n).inputs.iter().zip(&choice.ins);
    operands
        .into_iter()
        .all(|(v, layout)| !v.is_some_and(|v| loaded.stored.contains(&v)) || layout.as_permutation().is_none())
}
