//! What is left: random numbers, detection, triangles and others. Most are opaque, with the types of their results.

use super::elementwise::same;
use super::infer::{Answer, InferContext, Inferred, typed};
use super::{Axes, Case, OpDef};
use crate::dim::Dim;
use crate::dtype::DType;

const TRIANGLE: &[Case] = &[Case::new("a* m n, _? -> a* m n")];
const RANDOM: &str = "draws random numbers in row-major order";
const DETECTION: &str = "reads boxes by position";
const SEQUENCES: &str = "reverses by sequence and batch axes, by position";
const MATRIX: &str = "reads matrices by position";
const UNIQUE: &str = "compares elements in row-major order";
const CACHE: &str = "writes into a cache by position";

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("Trilu", (14, 26), Axes::Sig(TRIANGLE), same),
    OpDef::onnx("RandomNormal", (1, 26), Axes::Opaque(RANDOM), random),
    OpDef::onnx("RandomUniform", (1, 26), Axes::Opaque(RANDOM), random),
    OpDef::onnx("RandomNormalLike", (1, 26), Axes::Opaque(RANDOM), random_like),
    OpDef::onnx("RandomUniformLike", (1, 26), Axes::Opaque(RANDOM), random_like),
    OpDef::onnx("Bernoulli", (15, 26), Axes::Opaque(RANDOM), random_like),
    OpDef::onnx("Multinomial", (7, 26), Axes::Opaque(RANDOM), multinomial),
    OpDef::onnx("NonMaxSuppression", (10, 26), Axes::Opaque(DETECTION), selected_boxes),
    OpDef::onnx("RoiAlign", (10, 26), Axes::Opaque(DETECTION), roi_align),
    OpDef::onnx("ReverseSequence", (10, 26), Axes::Opaque(SEQUENCES), same),
    OpDef::onnx("Det", (11, 26), Axes::Opaque(MATRIX), det),
    OpDef::onnx("Unique", (11, 26), Axes::Opaque(UNIQUE), unique),
    OpDef::onnx("TensorScatter", (24, 26), Axes::Opaque(CACHE), same),
];

fn random(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype_attr("dtype")?.unwrap_or(DType::F32);
    let shape = ctx.node.ints("shape").ok_or("lacks `shape`")?;
    Ok(Inferred::one(typed(Some(dtype), Some(shape.iter().copied().map(Dim::from).collect()))))
}

fn random_like(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype_attr("dtype")?.or(ctx.dtype(0));
    Ok(Inferred::one(typed(dtype, ctx.shape(0).map(<[Dim]>::to_vec))))
}

fn multinomial(ctx: &mut InferContext<'_>) -> Answer {
    let dtype = ctx.dtype_attr("dtype")?.unwrap_or(DType::I32);
    let batch = ctx.shape_of_rank(0, 2)?.swap_remove(0);
    let samples = Dim::from(ctx.int("sample_size", 1));
    Ok(Inferred::one(typed(Some(dtype), Some(vec![batch, samples]))))
}

fn selected_boxes(ctx: &mut InferContext<'_>) -> Answer {
    let count = ctx.unknown();
    Ok(Inferred::one(typed(Some(DType::I64), Some(vec![count, Dim::from(3)]))))
}

fn roi_align(ctx: &mut InferContext<'_>) -> Answer {
    let (x, rois) = (ctx.shape_of_rank(0, 4)?, ctx.shape_of_rank(1, 2)?);
    let (height, width) = (Dim::from(ctx.int("output_height", 1)), Dim::from(ctx.int("output_width", 1)));
    Ok(Inferred::one(typed(ctx.dtype(0), Some(vec![rois[0].clone(), x[1].clone(), height, width]))))
}

fn det(ctx: &mut InferContext<'_>) -> Answer {
    let shape = ctx.shape_from_rank(0, 2)?.map(|s| s[..s.len() - 2].to_vec());
    Ok(Inferred::one(typed(ctx.dtype(0), shape)))
}

fn unique(ctx: &mut InferContext<'_>) -> Answer {
    let found = ctx.unknown();
    let shape = match (ctx.node.int("axis"), ctx.shape(0)) {
        (None, _) => Some(vec![found.clone()]),
        (Some(axis), Some(shape)) => {
            let axis = ctx.axis(axis, shape.len())?;
            let mut shape = shape.to_vec();
            shape[axis] = found.clone();
            Some(shape)
        }
        (Some(_), None) => None,
    };
    let inverse = ctx.unknown();
    let list = |n: Dim| typed(Some(DType::I64), Some(vec![n]));
    Ok(Inferred::many(vec![typed(ctx.dtype(0), shape), list(found.clone()), list(inverse), list(found)]))
}
