//! `route_channels`: channels that are only brought from some convolutions to others, by Concat, Split and shuffles, lie so that whole
//! blocks are brought there.
//!
//! A unit of such a network reads one half of the channels that there are, puts what it makes of them beside the other half, and shuffles
//! both. In blocks of channels a shuffle is no move of anything that lies together, and halves may end within a block. But in which order a
//! convolution makes its channels is up to its weights, and so is the order in which one reads them. So each value is made in the
//! order in which it is read: channels that go to the same readers fill whole blocks, and a reader has zeros in its weights for what
//! lies in its blocks beside the channels that it wants. What is left between convolutions are a Split and a Concat
//! of whole blocks.
//!
//! Whether that is cheaper, with the moves around, is decided by decisions in copies of the graph.

mod region;
mod slots;
mod trace;
mod write;

use region::Region;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId, ValueId};
use relayout_ir::op::read::is_constant;
use relayout_target::{Context, Counted, Numerics, PassError, Rule, each_graph};
use relayout_target::{Cost, Sizes};

/// How many regions are tried one by one; where there are more, they go all together or not at all.
const TRIED: usize = 8;

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "route_channels",
    equation: "Conv(Split(Shuffle(Concat(Conv(x, W), y))), V) = Conv(Concat(Split(Conv(x, P W)), y), V Q)",
    condition: "the target's convolutions read blocks of channels; float32; every channel that is brought to another place comes \
                from a convolution of all channels, and ends in one, with nothing between but ops that treat each channel for \
                itself; weights are constant; what is read beside the channels that are wanted, times zeros, is not infinite",
    buys: "cost: shuffles, and moves into blocks and out of them, against channels that only fill these",
    numerics: Numerics::Reassociate,
    counted: Counted::Tensors,
};

/// Routes the channels of every region where that is cheaper, in blocks of this many channels.
pub(super) fn route_channels(graph: &mut Graph, cx: &mut Context<'_>, block: usize) -> Result<(), PassError> {
    let mut found: Vec<Vec<Region>> = Vec::new();
    each_graph(graph, "", &mut |graph, _| {
        cx.scope = found.len();
        let summing = cx.reassociable(graph);
        found.push(if summing.is_empty() { Vec::new() } else { region::find(graph, &summing, block) });
        Ok(())
    })?;
    if found.iter().all(Vec::is_empty) {
        return Ok(());
    }
    let taken = cheapest(graph, cx, &found, block)?;
    routed(graph, cx.settings.opset, &found, &taken, block)?;
    let mut taken = taken.into_iter();
    for (at, regions) in found.iter().enumerate() {
        let own = regions.iter().zip(taken.by_ref()).filter(|(_, taken)| *taken);
        let sinks: usize = own.map(|(region, _)| region.sinks.len()).sum();
        if sinks > 0 {
            cx.count_in(at, &RULE, sinks);
        }
    }
    Ok(())
}

/// Which regions to route, in the order in which they were found: all or none of them, and then one by one the other way where that
/// is cheaper still.
fn cheapest(graph: &Graph, cx: &Context<'_>, found: &[Vec<Region>], block: usize) -> Result<Vec<bool>, PassError> {
    let count = found.iter().map(Vec::len).sum();
    let priced = |taken: &[bool]| {
        let mut trial = graph.clone();
        routed(&mut trial, cx.settings.opset, found, taken, block)?;
        price(&mut trial, cx)
    };
    let (mut best, mut least) = (vec![false; count], priced(&vec![false; count])?);
    let all = priced(&vec![true; count])?;
    if all < least {
        (best, least) = (vec![true; count], all);
    }
    for region in 0..if count > 1 && count <= TRIED { count } else { 0 } {
        let mut other = best.clone();
        other[region] = !other[region];
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

/// Writes the regions that are taken, of each graph in turn.
fn routed(graph: &mut Graph, opset: i64, found: &[Vec<Region>], taken: &[bool], block: usize) -> Result<(), PassError> {
    let (mut at, mut taken) = (0, taken.iter());
    each_graph(graph, "", &mut |graph, _| {
        for (region, _) in found[at].iter().zip(taken.by_ref()).filter(|(_, taken)| **taken) {
            write::write(graph, region, block, opset)?;
        }
        at += 1;
        Ok(())
    })
}
