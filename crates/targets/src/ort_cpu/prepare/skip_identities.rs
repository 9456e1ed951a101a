//! `skip_identities`: what reads an Identity between the nodes of a network of convolutions reads its operand.
//!
//! ONNX Runtime takes Identity away when it loads a file, and then takes sums and activations into convolutions. Blocked convolutions of
//! a file take in what stands right behind them when the file is written, and an Identity would be in the way.

use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::patch::{Patch, remove_dead};
use relayout_target_api::{Context, Counted, Numerics, PassError, Rule};

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "skip_identities",
    equation: "Identity(x) = x",
    condition: "x is of float32, in a graph with convolutions; no graph output, and no body reads either",
    buys: "time: convolutions take in the sum or the activation behind it",
    numerics: Numerics::Exact,
    counted: Counted::Nodes,
};

/// Skips those of a graph.
pub(super) fn skip_identities(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    if !graph.nodes().any(|n| graph.node(n).onnx() == Some("Conv")) {
        return Ok(());
    }
    let mut gone = Vec::new();
    for n in graph.order().unwrap_or_default() {
        let Some((x, y)) = skipped(graph, n) else { continue };
        let mut patch = Patch::new();
        patch.redirect(y, x);
        patch.apply(graph)?;
        gone.push(n);
    }
    if !gone.is_empty() {
        cx.count(&RULE, gone.len());
        remove_dead(graph, gone);
    }
    Ok(())
}

/// The operand and the result of an Identity of which a file names neither outside of the graph's own nodes.
fn skipped(graph: &Graph, n: NodeId) -> Option<(ValueId, ValueId)> {
    let node = graph.node(n);
    let (x, y) = (node.operand(0)?, node.only_result().filter(|_| node.onnx() == Some("Identity"))?);
    let float = [x, y].into_iter().all(|v| graph.value(v).ty.dtype() == Some(DType::F32));
    let same = graph.value(x).ty == graph.value(y).ty && graph.constant(x).is_none();
    (float && same && !graph.is_read_by_name(y) && !graph.uses(y).is_empty()).then_some((x, y))
}
