//! Trials: which of several changes of a graph to make, by decisions in copies of it that have them.

use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::op::read::is_constant;
use relayout_target_api::{Context, Cost, PassError, Sizes, each_graph};

/// How many changes are tried one by one; where there are more, all of them are made or none.
const TRIED: usize = 8;

/// Makes those changes of which it is told so, in the order in which they were found.
type Make<'m> = &'m dyn Fn(&mut Graph, &[bool]) -> Result<(), PassError>;

/// Which of so many changes to make: all or none of them, and then one by one the other way where that is cheaper still.
pub(super) fn cheapest(graph: &Graph, cx: &Context<'_>, count: usize, make: Make<'_>) -> Result<Vec<bool>, PassError> {
    let priced = |taken: &[bool]| {
        let mut trial = graph.clone();
        make(&mut trial, taken)?;
        price(&mut trial, cx)
    };
    let (mut best, mut least) = (vec![false; count], priced(&vec![false; count])?);
    let all = priced(&vec![true; count])?;
    if all < least {
        (best, least) = (vec![true; count], all);
    }
    for change in 0..if count > 1 && count <= TRIED { count } else { 0 } {
        let mut other = best.clone();
        other[change] = !other[change];
        let cost = priced(&other)?;
        if cost < least {
            (best, least) = (other, cost);
        }
    }
    Ok(best)
}

/// What a graph costs: what is decided, and what the decision takes for free in every layout, copies and Reshapes.
fn price(graph: &mut Graph, cx: &Context<'_>) -> Result<Cost, PassError> {
    let mut beside = Cost::ZERO;
    let mut at = 0;
    each_graph(graph, "", &mut |graph, _| {
        let own: Cost = graph.nodes().map(|n| beside_decision(graph, cx, n)).sum();
        beside += own.times(cx.weight(at));
        at += 1;
        Ok(())
    })?;
    Ok(cx.trials.decide(cx.settings, graph)?.cost + beside)
}

/// What a node costs that only brings elements elsewhere, or says their shape.
fn beside_decision(graph: &Graph, cx: &Context<'_>, n: NodeId) -> Cost {
    let node = graph.node(n);
    let moving = node.operand(0).filter(|&x| !is_constant(graph, x));
    match (node.onnx(), &node.form, moving) {
        (Some(op @ ("Concat" | "Split" | "Slice" | "Gather")), _, Some(x)) => {
            let bytes = |v: ValueId| cx.settings.hints.bytes(graph, v);
            let written = node.outputs.iter().flatten().fold(0_u64, |all, &v| all.saturating_add(bytes(v)));
            let parts = if op == "Concat" { node.inputs.len() } else { node.outputs.len() };
            // Of each image a part lies together, of what a Gather takes a channel.
            let shape = cx.settings.hints.shape(graph, x).unwrap_or_default();
            let (images, channels) = (shape.first().copied().unwrap_or(1), shape.get(1).copied().unwrap_or(1));
            let run = match op {
                "Gather" => bytes(x).checked_div(images.saturating_mul(channels)),
                _ => written.checked_div(images.saturating_mul(parts as u64)),
            };
            cx.target().copy_cost(written, run.unwrap_or(0))
        }
        (Some(_), Form::View(View::Reshape), Some(_)) => cx.target().view_cost(),
        _ => Cost::ZERO,
    }
}
