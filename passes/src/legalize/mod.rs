//! `legalize`: what the target's dialect needs said explicitly, and what it says in one op.
//!
//! - `raise`: an operand of lower rank is aligned at its end, so where its axes no longer lie there it is raised to full rank.
//! - `digits`: where results have a dim per digit, an operand that lacks some is raised to all of them.
//! - `widen`: groups of channels that are no whole blocks are run as wider ones.
//! - `reduced`: means over an image that drop its axes are pools and a Reshape.
//! - `unfold`: Pad and Slice of a blocked image speak of its digits.
//! - `scale`: scales per channel of blocked images are convolutions of one tap.
//! - `norm`: normalizations over groups of channels of blocked images are several nodes.
//! - `run_moves`: of what has pad slots between its channels the channels are gathered; after the moves of constants are gone.
//! - `signal`: blocked signals are images of one row, for all that follows.
//! - `volume`: convolutions and maxima over blocked volumes are those of images; so are, in `volume_moves`, moves of volumes.
//! - `guard`: a file in blocks fails on hosts of another block, and what stays plain is kept from being blocked on load.
//! - `parts`: parts of what a Transpose makes are those of a Split, which keeps the Transpose in one piece.
//! - `transposes`: a slow move is several fast ones; after the moves of constants are gone.
//! - `nchwc`: ONNX Runtime's blocked convolutions take in the sum and the activation behind them.

mod digits;
mod guard;
mod make;
mod nchwc;
mod norm;
mod parts;
mod raise;
mod reduced;
mod run_moves;
mod scale;
mod signal;
mod transposes;
mod unfold;
mod volume;
mod volume_moves;
mod widen;

pub(crate) use raise::needs_raise;
pub(crate) use transposes::split_moves;
pub(crate) use volume_moves::is_sayable as can_move;

use crate::pipeline::{Context, PassError};
use relayout_ir::form::{Form, KernelLayouts};
use relayout_ir::graph::{Graph, NodeId, Op};
use relayout_ir::op::NCHWC;

/// Says what the dialect needs.
pub fn legalize(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    raise::raise_operands(graph)?;
    digits::raise_to_digits(graph, cx.opset)?;
    let Some(host) = cx.target.blocked_host() else { return Ok(()) };
    let signals = signal::say_images(graph)?;
    norm::say_norms(graph, cx.opset)?;
    say_kernels(graph, host.block)?;
    if signals {
        signal::join_reshapes(graph)?;
    }
    nchwc::fuse(graph)?;
    volume::say_convolutions(graph, cx.opset)?;
    parts::split_parts(graph, cx.opset)?;
    let plain: Vec<NodeId> =
        graph.order().unwrap_or_default().into_iter().filter(|&n| guard::needs_shield(graph, n, host.block)).collect();
    guard::guard(graph, host, &plain)?;
    plain.into_iter().try_for_each(|n| guard::part_output(graph, n))
}

/// Whether a kernel that is no single op of the node's operands can be said for this node.
pub(crate) fn is_sayable(graph: &Graph, n: NodeId, layouts: &KernelLayouts) -> bool {
    match graph.node(n).onnx() {
        Some("Conv") if volume::is_volume(graph, n) => volume::is_sayable(graph, n),
        Some("Conv") => widen::is_sayable(graph, n),
        Some("ReduceMean" | "ReduceMax" | "Pad" | "Slice" | "MaxPool") => true,
        _ => scale::is_sayable(graph, n, layouts),
    }
}

/// Says every such kernel of a graph, for hosts of this block.
fn say_kernels(graph: &mut Graph, block: u64) -> Result<(), PassError> {
    for n in graph.order().unwrap_or_default() {
        // A shift that went into the bias before it is gone.
        if !graph.contains(n) {
            continue;
        }
        let node = graph.node(n);
        let (Form::Kernel(layouts), Op::Onnx(op)) = (&node.form, &node.op) else { continue };
        if op.domain == NCHWC {
            continue;
        }
        // What was made for a normalization runs as ONNX has it.
        if layouts.ins.iter().chain(&layouts.outs).all(Option::is_none) {
            continue;
        }
        let layouts = layouts.as_ref().clone();
        match node.onnx() {
            Some("Conv") if volume::is_volume(graph, n) => volume::pack(graph, n, block, &layouts)?,
            Some("Conv") => widen::say(graph, n, block, &layouts)?,
            Some("MaxPool") => volume::say_maximum(graph, n)?,
            Some("ReduceMean" | "ReduceMax") => reduced::say(graph, n, &layouts)?,
            Some("Pad" | "Slice") => unfold::say(graph, n, &layouts)?,
            _ => scale::say(graph, n, &layouts)?,
        }
    }
    Ok(())
}
