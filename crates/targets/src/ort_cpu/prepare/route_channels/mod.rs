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

pub(super) use region::chain;
pub(super) use trace::{CHANNELS, Routes, count};
pub(super) use write::pick_weights;

use super::trials::cheapest;
use region::Region;
use relayout_ir::graph::Graph;
use relayout_target_api::{Context, Counted, Numerics, PassError, Rule, each_graph};

/// The name of the pass.
pub(super) const NAME: &str = "route_channels";

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: NAME,
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
    let opset = cx.settings.opset;
    let count = found.iter().map(Vec::len).sum();
    let taken = cheapest(graph, cx, count, &|graph, taken| routed(graph, opset, &found, taken, block))?;
    routed(graph, opset, &found, &taken, block)?;
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
