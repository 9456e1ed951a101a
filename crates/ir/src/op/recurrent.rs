//! Recurrent nets: sequences, directions and gates are found by position.

use super::infer::{Answer, InferContext, Inferred, typed};
use super::{Axes, Case, OpDef};
use crate::dim::Dim;
use crate::graph::{Graph, Node};

// Gates are stacked in the rows of the weights; sequence, directions and hidden units are whole.
const RNN: &[Case] = &[
    Case::new("s~ n i, d~ g~ i, d g h~, d b~?, n?, d n h? -> s d n h, d n h").when(sequence_first),
    Case::new("n s~ i, d~ g~ i, d g h~, d b~?, n?, n d h? -> n s d h, n d h").when(batch_first),
];
const LSTM: &[Case] = &[
    Case::new("s~ n i, d~ g~ i, d g h~, d b~?, n?, d n h?, d n h?, d p~? -> s d n h, d n h, d n h")
        .when(sequence_first),
    Case::new("n s~ i, d~ g~ i, d g h~, d b~?, n?, n d h?, n d h?, d p~? -> n s d h, n d h, n d h").when(batch_first),
];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("RNN", (1, 28), Axes::Sig(RNN), recurrent),
    OpDef::onnx("GRU", (1, 28), Axes::Sig(RNN), recurrent),
    OpDef::onnx("LSTM", (1, 28), Axes::Sig(LSTM), recurrent),
];

fn sequence_first(_: &Graph, node: &Node) -> Result<(), String> {
    if node.int("layout").unwrap_or(0) == 0 { Ok(()) } else { Err("has its batch first".to_owned()) }
}

fn batch_first(_: &Graph, node: &Node) -> Result<(), String> {
    if node.flag("layout") { Ok(()) } else { Err("has its sequence first".to_owned()) }
}

fn recurrent(ctx: &mut InferContext<'_>) -> Answer {
    // Recurrent weights are [directions, gates * hidden, hidden].
    cells(ctx, 2)
}

/// Types of the results of an LSTM whose weights are [directions, hidden, gates * hidden].
pub(super) fn recurrent_transposed(ctx: &mut InferContext<'_>) -> Answer {
    cells(ctx, 1)
}

/// Results of a cell whose number of hidden units is this axis of operand 2.
fn cells(ctx: &mut InferContext<'_>, hidden_axis: usize) -> Answer {
    let dtype = ctx.dtype(0);
    let x = ctx.shape_of_rank(0, 3)?;
    let directions = Dim::from(if ctx.node.str("direction") == Some("bidirectional") { 2 } else { 1 });
    let hidden = match (ctx.node.int("hidden_size"), ctx.shape(2)) {
        (Some(h), _) if h > 0 => Dim::from(h),
        (Some(h), _) => return Err(format!("`hidden_size` is {h}")),
        (None, Some(weights)) if weights.len() == 3 => weights[hidden_axis].clone(),
        _ => ctx.unknown(),
    };
    let [a, b, _] = x.as_slice() else { return Err("operand 0 needs rank 3".to_owned()) };
    let batch_first = ctx.node.flag("layout");
    let (sequence, batch) = if batch_first { (b, a) } else { (a, b) };
    let dims = |list: &[&Dim]| typed(dtype, Some(list.iter().copied().cloned().collect()));
    let (all, last) = if batch_first {
        (dims(&[batch, sequence, &directions, &hidden]), dims(&[batch, &directions, &hidden]))
    } else {
        (dims(&[sequence, &directions, batch, &hidden]), dims(&[&directions, batch, &hidden]))
    };
    Ok(Inferred::many(vec![all, last.clone(), last]))
}
