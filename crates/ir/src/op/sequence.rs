//! Sequences and optionals. Their elements are tensors of any shape, which have no layout of their own: what is put into one is
//! row-major, and so is what is taken out.

use super::infer::{Answer, InferContext, Inferred, boolean, typed};
use super::{Axes, OpDef};
use crate::dtype::DType;

const SEQUENCE: &str = "a sequence holds tensors of any shape, all of them row-major";
const OPTIONAL: &str = "an optional holds a tensor of any shape, row-major";

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("SequenceConstruct", (11, 28), Axes::Opaque(SEQUENCE), declared),
    OpDef::onnx("SequenceEmpty", (11, 28), Axes::Opaque(SEQUENCE), declared),
    OpDef::onnx("SequenceInsert", (11, 28), Axes::Opaque(SEQUENCE), declared),
    OpDef::onnx("SequenceErase", (11, 28), Axes::Opaque(SEQUENCE), declared),
    OpDef::onnx("SequenceAt", (11, 28), Axes::Opaque(SEQUENCE), declared),
    OpDef::onnx("SequenceLength", (11, 28), Axes::Opaque(SEQUENCE), length),
    OpDef::onnx("SequenceMap", (17, 28), Axes::Opaque(SEQUENCE), declared),
    OpDef::onnx("SplitToSequence", (11, 28), Axes::Opaque(SEQUENCE), declared),
    OpDef::onnx("ConcatFromSequence", (11, 28), Axes::Opaque(SEQUENCE), declared),
    OpDef::onnx("Optional", (15, 28), Axes::Opaque(OPTIONAL), declared),
    OpDef::onnx("OptionalHasElement", (15, 28), Axes::Opaque(OPTIONAL), has_element),
    OpDef::onnx("OptionalGetElement", (15, 28), Axes::Opaque(OPTIONAL), get_element),
];

/// Nothing beyond what the file declares.
fn declared(_: &mut InferContext<'_>) -> Answer {
    Ok(Inferred::default())
}

fn length(_: &mut InferContext<'_>) -> Answer {
    Ok(Inferred::one(typed(Some(DType::I64), Some(vec![]))))
}

fn has_element(_: &mut InferContext<'_>) -> Answer {
    Ok(Inferred::one(boolean(Some(vec![]))))
}

fn get_element(ctx: &mut InferContext<'_>) -> Answer {
    // Since opset 18 a tensor counts as an optional that has it.
    Ok(if ctx.ty(0).as_tensor().is_some() { Inferred::one(ctx.ty(0).clone()) } else { Inferred::default() })
}
