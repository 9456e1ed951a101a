//! What is left: random numbers, detection, triangles and others. What depends on places is opaque, with the types of its results.

use super::elementwise::same;
use super::infer::{Answer, InferContext, Inferred, check_rank, typed};
use super::query::has_result;
use super::{Axes, AxisSource, Case, OpDef};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::form::Renumber;
use crate::graph::{Graph, Node};

pub(super) const TRIANGLE: &[Case] = &[Case::new("a* m~ n~, _? -> a* m n")];
const RANDOM: &str = "draws random numbers in row-major order";
const DETECTION: &str = "lists the numbers of batches, classes and boxes, in the order of their scores";
const ROI_ALIGN: &[Case] = &[Case::new("n~ c h~ w~, r b~, r -> r c h w")];
const ROI_POOL: &[Case] = &[Case::new("n~ c h~ w~, r b~ -> r c h w")];
// One of the two leading axes is the batch, the other is reversed.
const REVERSE: &[Case] =
    &[Case::new("t~ n a*, n -> t n a*").when(reverses_axis_0), Case::new("n t~ a*, n -> n t a*").when(reverses_axis_1)];
const MATRIX: &[Case] = &[Case::new("a* m~ n~ -> a*")];
const COLUMNS: &[Case] = &[Case::new("n (c k~) l~, _, _ -> n c s*!")];
const GRID: &[Case] = &[Case::new("n a~ b~, _ -> n s*! r~")];
// Slices are compared element by element in row-major order; single elements are sorted, whatever their place.
const UNIQUE: &[Case] = &[
    Case::new("a* -> _, _, _, _").when(sorts_elements),
    Case::new("a*!~ [x]~ b*!~ -> a*! [x] b*!, _, _, _")
        .axis(AxisSource::Attr("axis", 0))
        .when(names_its_axis)
        .renumber(&[Renumber::AxisAttr("axis", 0)]),
];
const CACHE: &[Case] = &[Case::new("n a* [x]~ b*, n a* [x] b*, n? -> n a* [x] b*")
    .axis(AxisSource::Attr("axis", -2))
    .renumber(&[Renumber::AxisAttr("axis", -2)])];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("Trilu", (14, 28), Axes::Sig(TRIANGLE), same),
    OpDef::onnx("RandomNormal", (1, 28), Axes::Opaque(RANDOM), random),
    OpDef::onnx("RandomUniform", (1, 28), Axes::Opaque(RANDOM), random),
    OpDef::onnx("RandomNormalLike", (1, 28), Axes::Opaque(RANDOM), random_like),
    OpDef::onnx("RandomUniformLike", (1, 28), Axes::Opaque(RANDOM), random_like),
    OpDef::onnx("Bernoulli", (15, 28), Axes::Opaque(RANDOM), random_like),
    OpDef::onnx("Multinomial", (7, 28), Axes::Opaque(RANDOM), multinomial),
    OpDef::onnx("NonMaxSuppression", (10, 28), Axes::Opaque(DETECTION), selected_boxes),
    OpDef::onnx("RoiAlign", (10, 28), Axes::Sig(ROI_ALIGN), roi_align),
    OpDef::onnx("ReverseSequence", (10, 28), Axes::Sig(REVERSE), same),
    OpDef::onnx("Det", (11, 28), Axes::Sig(MATRIX), det),
    OpDef::onnx("MaxRoiPool", (1, 28), Axes::Sig(ROI_POOL), roi_pool),
    OpDef::onnx("Col2Im", (18, 28), Axes::Sig(COLUMNS), col_to_image),
    OpDef::onnx("AffineGrid", (20, 28), Axes::Sig(GRID), affine_grid),
    OpDef::onnx("Unique", (11, 28), Axes::Sig(UNIQUE), unique),
    OpDef::onnx("TensorScatter", (24, 28), Axes::Sig(CACHE), same),
];

fn reverses_axis_0(_: &Graph, node: &Node) -> Result<(), String> {
    match (node.int("time_axis").unwrap_or(0), node.int("batch_axis").unwrap_or(1)) {
        (0, 1) => Ok(()),
        _ => Err("has its sequence at another axis".to_owned()),
    }
}

fn reverses_axis_1(_: &Graph, node: &Node) -> Result<(), String> {
    match (node.int("time_axis").unwrap_or(0), node.int("batch_axis").unwrap_or(1)) {
        (1, 0) => Ok(()),
        _ => Err("has its sequence at another axis".to_owned()),
    }
}

fn sorts_elements(_: &Graph, node: &Node) -> Result<(), String> {
    let sorted = node.int("sorted").unwrap_or(1) != 0;
    if sorted && node.int("axis").is_none() && !has_result(node, 1) && !has_result(node, 2) {
        Ok(())
    } else {
        Err("numbers elements in row-major order".to_owned())
    }
}

fn names_its_axis(_: &Graph, node: &Node) -> Result<(), String> {
    node.int("axis").map(|_| ()).ok_or_else(|| "numbers elements in row-major order".to_owned())
}

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

fn roi_pool(ctx: &mut InferContext<'_>) -> Answer {
    let (x, rois) = (ctx.shape_of_rank(0, 4)?, ctx.shape_of_rank(1, 2)?);
    let Some([height, width]) = ctx.node.ints("pooled_shape") else {
        return Err("`pooled_shape` has not two entries".to_owned());
    };
    let shape = vec![rois[0].clone(), x[1].clone(), Dim::from(*height), Dim::from(*width)];
    Ok(Inferred::one(typed(ctx.dtype(0), Some(shape))))
}

fn col_to_image(ctx: &mut InferContext<'_>) -> Answer {
    let x = ctx.shape_of_rank(0, 3)?;
    let Some(image) = ctx.contents(1).map(<[Dim]>::to_vec) else { return Ok(Inferred::one(typed(ctx.dtype(0), None))) };
    let channels = match ctx.contents(2).map(<[Dim]>::to_vec) {
        Some(block) => {
            let block = ctx.product(&block);
            ctx.divide(&x[1], &block)
        }
        None => ctx.unknown(),
    };
    let shape = [&[x[0].clone(), channels], image.as_slice()].concat();
    check_rank(shape.len())?;
    Ok(Inferred::one(typed(ctx.dtype(0), Some(shape))))
}

fn affine_grid(ctx: &mut InferContext<'_>) -> Answer {
    let shape = match ctx.contents(1) {
        Some([batch, _, space @ ..]) if !space.is_empty() => {
            let axes = Dim::from(space.len() as i64);
            Some([std::slice::from_ref(batch), space, &[axes]].concat())
        }
        Some(size) => return Err(format!("its size has {} entries, needs 4 or 5", size.len())),
        None => None,
    };
    Ok(Inferred::one(typed(ctx.dtype(0), shape)))
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
