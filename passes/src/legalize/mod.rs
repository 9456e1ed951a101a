//! `legalize`: what the target's dialect needs said explicitly, and what it says in one op.
//!
//! - `raise`: an operand of lower rank is aligned at its end, so where its axes no longer lie there it is raised to full rank.
//! - `nchwc`: ONNX Runtime's blocked convolutions take in the sum and the activation behind them.

mod nchwc;
mod raise;

pub(crate) use raise::needs_raise;

use crate::pipeline::{Context, PassError};
use relayout_ir::graph::Graph;

/// Says what the dialect needs.
pub fn legalize(graph: &mut Graph, _cx: &mut Context<'_>) -> Result<(), PassError> {
    raise::raise_operands(graph)?;
    nchwc::fuse(graph)
}
