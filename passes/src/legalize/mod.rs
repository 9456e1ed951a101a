//! `legalize`: what the target's dialect needs said explicitly, and what it says in one op.
//!
//! - `raise`: an operand of lower rank is aligned at its end, so where its axes no longer lie there it is raised to full rank.
//! - `digits`: where results have a dim per digit, an operand that lacks some is raised to all of them.
//! - `scale`: scales per channel of blocked images are convolutions of one tap.
//! - `norm`: normalizations over groups of channels of blocked images are several nodes.
//! - `guard`: a file in blocks fails on hosts of another block, and what stays plain is kept from being blocked on load.
//! - `transposes`: a slow move is several fast ones; after the moves of constants are gone.
//! - `nchwc`: ONNX Runtime's blocked convolutions take in the sum and the activation behind them.

mod digits;
mod guard;
mod make;
mod nchwc;
mod norm;
mod raise;
mod scale;
mod transposes;

pub(crate) use raise::needs_raise;
pub(crate) use scale::is_sayable;
pub(crate) use transposes::split_moves;

use crate::pipeline::{Context, PassError};
use relayout_ir::graph::{Graph, NodeId};

/// Says what the dialect needs.
pub fn legalize(graph: &mut Graph, cx: &mut Context<'_>) -> Result<(), PassError> {
    raise::raise_operands(graph)?;
    digits::raise_to_digits(graph, cx.opset)?;
    let Some(host) = cx.target.blocked_host() else { return Ok(()) };
    norm::say_norms(graph, cx.opset)?;
    scale::say_scales(graph)?;
    nchwc::fuse(graph)?;
    let plain: Vec<NodeId> =
        graph.order().unwrap_or_default().into_iter().filter(|&n| guard::needs_shield(graph, n, host.block)).collect();
    guard::guard(graph, host, &plain)
}
