//! Texts: element-wise where each makes one, opaque where how many there are depends on what they say.

use super::infer::{Answer, InferContext, Inferred, boolean, typed};
use super::{Axes, Case, OpDef};
use crate::dim::Dim;
use crate::dtype::DType;

const CONCATENATED: &[Case] = &[Case::new("a*, a* -> a*")];
const MATCHED: &[Case] = &[Case::new("a* -> a*")];
// The parts of a text are along one more axis, the last.
const SPLIT: &[Case] = &[Case::new("a* -> a* p~, a*")];
const COUNTED: &[Case] = &[Case::new("n c~ -> n f~"), Case::new("c~ -> f~")];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("StringConcat", (20, 28), Axes::Sig(CONCATENATED), concatenated),
    OpDef::onnx("RegexFullMatch", (20, 28), Axes::Sig(MATCHED), matched),
    OpDef::onnx("StringSplit", (20, 28), Axes::Sig(SPLIT), split),
    OpDef::onnx(
        "StringNormalizer",
        (10, 28),
        Axes::Opaque("leaves words away, so that how many there are depends on what they say"),
        normalized,
    ),
    OpDef::onnx("TfIdfVectorizer", (9, 28), Axes::Sig(COUNTED), counted),
    OpDef::onnx("ImageDecoder", (20, 28), Axes::Opaque("reads an image from a stream of bytes"), image),
];

fn concatenated(ctx: &mut InferContext<'_>) -> Answer {
    let shape = ctx.broadcast(&[ctx.shape(0), ctx.shape(1)])?;
    Ok(Inferred::one(typed(Some(DType::String), shape)))
}

fn matched(ctx: &mut InferContext<'_>) -> Answer {
    Ok(Inferred::one(boolean(ctx.shape(0).map(<[Dim]>::to_vec))))
}

fn split(ctx: &mut InferContext<'_>) -> Answer {
    let parts = ctx.unknown();
    let shape = ctx.shape(0);
    let split = shape.map(|s| [s, &[parts]].concat());
    Ok(Inferred::many(vec![typed(Some(DType::String), split), typed(Some(DType::I64), shape.map(<[Dim]>::to_vec))]))
}

fn normalized(ctx: &mut InferContext<'_>) -> Answer {
    let shape = match ctx.shape(0) {
        Some([_]) => Some(ctx.unknown_shape(1)),
        Some([one, _]) => Some(vec![one.clone(), ctx.unknown()]),
        _ => None,
    };
    Ok(Inferred::one(typed(Some(DType::String), shape)))
}

fn counted(ctx: &mut InferContext<'_>) -> Answer {
    let last = ctx.node.ints("ngram_indexes").and_then(|places| places.iter().max()).and_then(|n| n.checked_add(1));
    let features = last.map_or_else(|| ctx.unknown(), Dim::from);
    let shape = match ctx.shape(0) {
        Some([_]) => Some(vec![features]),
        Some([batch, _]) => Some(vec![batch.clone(), features]),
        Some(shape) => return Err(format!("operand 0 has rank {}, needs 1 or 2", shape.len())),
        None => None,
    };
    Ok(Inferred::one(typed(Some(DType::F32), shape)))
}

fn image(ctx: &mut InferContext<'_>) -> Answer {
    let mut shape = ctx.unknown_shape(3);
    shape[2] = Dim::from(if ctx.node.str("pixel_format") == Some("Grayscale") { 1 } else { 3 });
    Ok(Inferred::one(typed(Some(DType::U8), Some(shape))))
}
