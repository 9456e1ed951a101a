//! `order_bytes`: the channels of quantized images are made in the order in which they are read, so that shuffles between quantized
//! convolutions go.
//!
//! In which order a convolution makes its channels is up to its filters, and in which order one reads them to its weights. Between the two
//! everything is told channel by channel: pairs of `QuantizeLinear` and `DequantizeLinear`, pools, depthwise convolutions. A Concat puts
//! what it reads side by side, in whatever order that lies. So each value has an order of its channels, which follows from those in which
//! the convolutions before it make theirs, and only what reads some of the channels has to take these out: a Split, and a Concat
//! where they are in several places. A shuffle reads all of them, and is nothing.
//!
//! Nothing is quantized another time, or once less: what a Concat of other units does to each byte it does in the new order, too.
//! So the integers that a convolution adds up are the same, and each byte is.
//!
//! Absent: sums of two images, whose channels would have to lie alike; channels that lie last; groups of several channels.

mod orders;
mod reading;
mod region;
mod write;

use orders::Orders;
use region::Region;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, NodeId};
use relayout_ir::layout::Layout;
use relayout_target_api::{Context, Cost, Counted, MoveQuery, Numerics, PassError, Rule, Sizes};

/// The name of the pass.
pub(super) const NAME: &str = "order_bytes";

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: NAME,
    equation: "Conv(Shuffle(Concat(Conv(x, W), y)), V) = Conv(Concat(Conv(x, P W), y), V Q)",
    condition: "between QuantizeLinear and DequantizeLinear, or as QLinearConv; every channel that is brought to another place comes from a \
                convolution of all channels, and ends in one, with nothing between but Concat and ops that treat each channel for itself; \
                weights are constant",
    buys: "shuffles of bytes, and the moves of the runtime's convolutions around them, against copies of some channels",
    numerics: Numerics::Reassociate,
    counted: Counted::Tensors,
};

/// Orders the channels of every region where that is cheaper.
pub(super) fn order_bytes(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    if cx.settings.numerics < Numerics::Reassociate {
        return Ok(());
    }
    let found = region::find(graph);
    let mut between: Vec<NodeId> = Vec::new();
    for region in &found.regions {
        let orders = Orders::best(graph, region, &cx.settings.hints);
        let own = found.between(graph, region);
        if copied(graph, cx, region, &orders) >= brought(graph, cx, &own) {
            continue;
        }
        write::write(graph, region, &orders, cx.settings.opset)?;
        between.extend(own);
        cx.count(&RULE, region.made.len());
    }
    relayout_ir::patch::remove_dead(graph, between.into_iter().rev());
    Ok(())
}

/// What is copied to bring channels to their readers in these orders. Runtimes hold bytes with their channels last.
fn copied(graph: &Graph, cx: &Context<'_>, region: &Region, orders: &Orders) -> Cost {
    let copies = region.reads().map(|(read, joined)| {
        let runs = orders.runs(read);
        if runs.len() < 2 && read.is_all(graph) {
            return Cost::ZERO;
        }
        let bytes = cx.settings.hints.bytes(graph, read.value) / if read.dequantized.is_some() { 4 } else { 1 };
        let run = (read.at.len() / runs.len().max(1)) as u64;
        let once = cx.target().copy_cost(bytes, run);
        if runs.len() > 1 && !joined { once + once } else { once }
    });
    copies.sum()
}

/// What it costs to bring them there as they are.
fn brought(graph: &Graph, cx: &Context<'_>, between: &[NodeId]) -> Cost {
    let each = between.iter().map(|&n| {
        let node = graph.node(n);
        let (Some(x), Some(y)) = (node.operand(0), node.result(0)) else { return Cost::ZERO };
        match (&node.form, node.onnx()) {
            (Form::View(View::Transpose(perm)), _) => {
                let shape = cx.settings.hints.shape(graph, x).unwrap_or_default();
                let Ok(to) = Layout::permutation(perm) else { return Cost::ZERO };
                let (from, bytes) = (Layout::row_major(perm.len()), shape.iter().copied().fold(1, u64::saturating_mul));
                let mut query = MoveQuery::permute(&from, &to, &shape).bytes(bytes);
                query.dtype = Some(DType::U8);
                cx.target().move_cost(&query).unwrap_or(Cost::ZERO)
            }
            (Form::View(_), _) => cx.target().view_cost(),
            (_, Some("Split" | "Slice" | "Gather")) => {
                let bytes = cx.settings.hints.bytes(graph, y);
                cx.target().copy_cost(bytes, bytes)
            }
            _ => Cost::ZERO,
        }
    });
    each.sum()
}
