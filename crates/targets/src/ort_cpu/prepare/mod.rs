//! What the runtime wants otherwise, before anything is decided.

mod bring_filters;
mod join_gates;
mod order_bytes;
mod order_depth;
mod part_fused;
mod route_channels;
mod skip_identities;
mod trials;
mod unsign_bytes;
mod widen_halves;
mod write_out_prelu;

use super::Block;
use relayout_target_api::{Declared, Pass, Slot};

fn bring() -> Declared {
    let reason = "what is decided of convolutions in bodies has to see their filters";
    Declared::new("bring_filters", Slot::Prepare, reason)
}

/// Those of files of standard operators.
pub(super) fn of_standard() -> Vec<Pass> {
    vec![Pass::on_model(bring().before(&["fold_copies"]), |graph, _| bring_filters::bring_filters(graph))]
}

/// The passes, in their order.
pub(super) fn passes(block: Block) -> Vec<Pass> {
    let widen = Declared::new(
        "widen_halves",
        Slot::Prepare,
        "before anything is decided for element types that the runtime does not compute in",
    )
    .before(&["fold_copies"]);
    let bring = bring().after(&["widen_halves"]).before(&["skip_identities", "fold_copies"]);
    let skip = Declared::new("skip_identities", Slot::Prepare, "what comes after it need not look through them")
        .after(&["widen_halves"])
        .before(&["part_fused", "fold_copies"])
        .rules(&[&skip_identities::RULE]);
    let part = Declared::new("part_fused", Slot::Prepare, "forms stand for convolutions that took in nothing yet")
        .after(&["widen_halves"])
        .before(&["fold_copies"]);
    let prelu =
        Declared::new("write_out_prelu", Slot::Prepare, "its nodes may run in blocks, which the decision has to know")
            .after(&["part_fused"])
            .before(&["fold_copies"])
            .rules(&[&write_out_prelu::RULE]);
    let gates = Declared::new("join_gates", Slot::Prepare, "shifts and factors of gates are not folded away yet")
        .after(&["part_fused"])
        .before(&["fold_copies"])
        .rules(&[&join_gates::RULE]);
    let unsign =
        Declared::new("unsign_bytes", Slot::Prepare, "for the same reason; constants between quantizations are folded")
            .after(&["widen_halves"])
            .before(&["fold_copies"])
            .rules(&[&unsign_bytes::RULE]);
    let route = Declared::new(
        route_channels::NAME,
        Slot::Forms,
        "what stood between convolutions and could go is gone; trial decisions price both ways",
    )
    .rules(&[&route_channels::RULE]);
    let order = Declared::new(order_depth::NAME, Slot::Forms, "for the same reason")
        .after(&[route_channels::NAME])
        .rules(&[&order_depth::RULE]);
    let bytes = Declared::new(order_bytes::NAME, Slot::Forms, "what stood between convolutions and could go is gone")
        .after(&[route_channels::NAME])
        .rules(&[&order_bytes::RULE]);
    // Without VNNI, which most hosts with blocks of 8 lack, the runtime's sums of bytes saturate by pairs: then their order counts.
    let sums_bytes = block == Block::B16;
    let block = usize::try_from(block.channels()).unwrap_or(1);
    vec![
        Pass::on_model(widen, widen_halves::widen_halves),
        Pass::on_model(bring, |graph, _| bring_filters::bring_filters(graph)),
        Pass::on_each_graph(skip, skip_identities::skip_identities),
        Pass::on_each_graph(part, part_fused::part_fused),
        Pass::on_each_graph(prelu, write_out_prelu::write_out_prelu),
        Pass::on_each_graph(gates, join_gates::join_gates),
        Pass::on_each_graph(unsign, unsign_bytes::unsign_bytes),
        Pass::on_model(route, move |graph, cx| route_channels::route_channels(graph, cx, block)),
        Pass::on_each_graph(
            bytes,
            move |graph, cx| if sums_bytes { order_bytes::order_bytes(graph, cx) } else { Ok(()) },
        ),
        Pass::on_model(order, move |graph, cx| order_depth::order_depth(graph, cx, block)),
    ]
}
