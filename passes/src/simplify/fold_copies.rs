//! `fold_copies`: a Slice that takes everything, a Pad that adds nothing and a Cast that keeps the type go; who reads the copy reads what
//! was copied.
//!
//! Absent: graph outputs, which stay results of nodes of their name, and Identity, which no runtime copies for.

use crate::pipeline::Step;
use crate::simplify::fold_constants::pass_cost;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::patch::{Patch, remove_dead};
use relayout_target::{Context, Cost, Counted, Declared, Numerics, PassError, Rule, Slot};

/// The rule.
pub(crate) const RULE: Rule = Rule {
    name: "read_what_is_copied",
    equation: "Slice(x, all) = x, Pad(x, 0) = x, Cast(x, type of x) = x",
    condition: "what is taken and added is known, and operand and result have the same shape, whatever the symbols are, and the \
                same type; no graph output, and no body reads it",
    buys: "the node, and one pass over the tensor",
    numerics: Numerics::Exact,
    counted: Counted::Nodes,
};

/// The pass.
pub(crate) const PASS: Step<'static> = Step::each_graph(
    Declared::new("fold_copies", Slot::Prepare, "what comes after it need not look through copies").rules(&[&RULE]),
    &fold_copies,
);

/// Folds every such copy.
pub fn fold_copies(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let mut gone = Vec::new();
    for n in graph.order().unwrap_or_default() {
        let Some((x, y)) = copied(graph, n).filter(|_| pass_cost(graph, cx, n) > Cost::ZERO) else { continue };
        let mut patch = Patch::new();
        patch.redirect(y, x);
        patch.apply(graph)?;
        gone.push(n);
    }
    if gone.is_empty() {
        return Ok(());
    }
    cx.count(&RULE, gone.len());
    remove_dead(graph, gone);
    Ok(())
}

/// The operand and the result of a copy that only nodes of this graph read.
fn copied(graph: &Graph, n: NodeId) -> Option<(ValueId, ValueId)> {
    let node = graph.node(n);
    let is_copy = matches!(node.form, Form::View(View::Same)) && matches!(node.onnx(), Some("Slice" | "Pad" | "Cast"));
    let (x, y) = (node.operand(0)?, node.result(0)?);
    (is_copy && !graph.is_read_by_name(y) && !graph.uses(y).is_empty()).then_some((x, y))
}
