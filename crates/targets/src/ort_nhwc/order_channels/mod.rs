//! `order_channels`: channels lie in the order in which a normalization over groups reads them, one of each group after the other.
//!
//! Channels last, such a normalization takes two moves that exchange two parts of the channels
//! ([`group_norm`](super::group_norm)). In which order a convolution makes its channels is up to its weights, and so is the order in
//! which one reads them. Between the two are ops that treat all channels alike. So the values between them are had in the order that the
//! normalization wants, and the moves become Reshapes.
//!
//! ```text
//! Conv(Swap(x), W) = Conv(x, W Q)        Swap(Conv(x, W)) = Conv(x, P W)
//! ```
//!
//! A *region* is the values that have the same channels. What knows channels by their numbers ends it: a Concat, an output. There a
//! move stands if the region has another order. A region is given another order if that takes fewer moves of no more elements, or as many
//! of fewer.
//!
//! Absent: Concat and Split of channels in groups, and orders for groups of several sizes.

mod meets;
mod region;
mod write;

use region::{Region, Swaps};
use relayout_ir::graph::{Graph, ValueId};
use relayout_target_api::{Context, Counted, Declared, Fact, Numerics, Pass, PassError, Rule, Slot};
use rustc_hash::FxHashSet;

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "order_channels",
    equation: "Conv(Swap(Conv(x, W)), V) = Conv(Conv(x, P W), V)",
    condition: "the channels that a move exchanges come from constant weights or end in such, with nothing between but ops that treat all \
                channels alike; moves stand where anything else makes or reads them; weights that others read too are small",
    buys: "moves: fewer of no more elements, or as many of fewer",
    numerics: Numerics::Reassociate,
    counted: Counted::Nodes,
};

/// The pass.
pub(super) fn pass() -> Pass {
    let is = Declared::new(
        RULE.name,
        Slot::Finish,
        "looks at the moves that the forms left; constants are stored as they are read",
    )
    .needs(&[Fact::Packed])
    .after(&["write_digit_moves"])
    .before(&["join_views"])
    .rules(&[&RULE]);
    Pass::on_each_graph(is, order_channels)
}

fn order_channels(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    let summing: FxHashSet<_> = cx.reassociable(graph).into_iter().collect();
    if summing.is_empty() {
        return Ok(());
    }
    // Values of regions that were looked at.
    let mut seen: FxHashSet<ValueId> = FxHashSet::default();
    let mut swaps = Swaps::of(graph);
    let starts: Vec<_> = swaps.list.iter().flat_map(region::Swap::ends).collect();
    for start in starts {
        if seen.contains(&start.0) || !graph.has(start.0) {
            continue;
        }
        let Some(region) = Region::around(graph, start, &swaps, &summing, &mut seen) else { continue };
        let best = region.best(graph, &swaps, &cx.settings.hints);
        if let Some(way) = best.filter(|way| write::fits(graph, &region, &swaps, way)) {
            write::write(graph, &region, &swaps, &way)?;
            cx.count(&RULE, way.gone.len());
            swaps = Swaps::of(graph);
        }
    }
    Ok(())
}
