//! Losses: classes are axis 1 of the scores, and labels number them.

use super::infer::{Answer, InferContext, Inferred, typed};
use super::{Axes, Case, OpDef};
use crate::dim::Dim;
use crate::graph::{Graph, Node};

const LIKELIHOOD: &[Case] = &[
    Case::new("n c~ s*, n s*, c? -> n s*").when(keeps_each),
    Case::new("n c~ s*, n s*, c? -> _").when(makes_one_number),
];
const CROSS_ENTROPY: &[Case] = &[
    Case::new("n c~ s*, n s*, c? -> n s*, n c s*").when(keeps_each),
    Case::new("n c~ s*, n s*, c? -> _, n c s*").when(makes_one_number),
];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("NegativeLogLikelihoodLoss", (12, 28), Axes::Sig(LIKELIHOOD), loss),
    OpDef::onnx("SoftmaxCrossEntropyLoss", (12, 28), Axes::Sig(CROSS_ENTROPY), loss),
];

fn is_kept(node: &Node) -> bool {
    node.str("reduction") == Some("none")
}

fn keeps_each(_: &Graph, node: &Node) -> Result<(), String> {
    if is_kept(node) { Ok(()) } else { Err("sums its losses".to_owned()) }
}

fn makes_one_number(_: &Graph, node: &Node) -> Result<(), String> {
    if is_kept(node) { Err("keeps the loss of each label".to_owned()) } else { Ok(()) }
}

fn loss(ctx: &mut InferContext<'_>) -> Answer {
    let each = ctx.shape(1).map(<[Dim]>::to_vec);
    let loss = if is_kept(ctx.node) { each } else { Some(Vec::new()) };
    Ok(Inferred::many(vec![typed(ctx.dtype(0), loss), ctx.ty(0).clone()]))
}
