//! Reductions: axes are named by number, kept with extent 1 or dropped.

use super::infer::{Answer, InferContext, Inferred, typed};
use super::read::{keeps_axes, reduced_by};
use super::{Absent, Axes, AxisSource, Case, OpDef, Reduce};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::form::{Implicit, Renumber};
use crate::types::Shape;

pub(super) const OF_ATTR: Reduce = Reduce { attr: Some("axes"), input: None, absent: Absent::All };
const OF_INPUT: Reduce = Reduce { attr: None, input: Some(1), absent: Absent::AllUnlessNoop };
const OF_ONE: Reduce = Reduce { attr: Some("axis"), input: None, absent: Absent::Axis(0) };

const BY_ATTR: &[Case] =
    &[Case::new("a* -> a*").reduce(OF_ATTR).renumber(&[Renumber::AxesAttr("axes", Implicit::All)])];
const BY_INPUT: &[Case] =
    &[Case::new("a*, _? -> a*").reduce(OF_INPUT).renumber(&[Renumber::AxesInput(1, Implicit::All)])];
const ARG: &[Case] = &[Case::new("a* [x]~ b* -> a* [x] b*")
    .axis(AxisSource::Attr("axis", 0))
    .reduce(OF_ONE)
    .renumber(&[Renumber::AxisAttr("axis", 0)])];

const fn by_attr(name: &'static str, last: i64) -> OpDef {
    OpDef::onnx(name, (1, last), Axes::Sig(BY_ATTR), reduce_by_attr)
}

const fn by_input(name: &'static str, first: i64) -> OpDef {
    OpDef::onnx(name, (first, 28), Axes::Sig(BY_INPUT), reduce_by_input)
}

pub(super) const OPS: &[OpDef] = &[
    by_attr("ReduceL1", 17),
    by_attr("ReduceL2", 17),
    by_attr("ReduceLogSum", 17),
    by_attr("ReduceLogSumExp", 17),
    by_attr("ReduceMax", 17),
    by_attr("ReduceMean", 17),
    by_attr("ReduceMin", 17),
    by_attr("ReduceProd", 17),
    by_attr("ReduceSum", 12),
    by_attr("ReduceSumSquare", 17),
    by_input("ReduceL1", 18),
    by_input("ReduceL2", 18),
    by_input("ReduceLogSum", 18),
    by_input("ReduceLogSumExp", 18),
    by_input("ReduceMax", 18),
    by_input("ReduceMean", 18),
    by_input("ReduceMin", 18),
    by_input("ReduceProd", 18),
    by_input("ReduceSum", 13),
    by_input("ReduceSumSquare", 18),
    OpDef::onnx("ArgMax", (1, 28), Axes::Sig(ARG), arg),
    OpDef::onnx("ArgMin", (1, 28), Axes::Sig(ARG), arg),
];

fn reduce_by_attr(ctx: &mut InferContext<'_>) -> Answer {
    reduce(ctx, &OF_ATTR)
}

fn reduce_by_input(ctx: &mut InferContext<'_>) -> Answer {
    reduce(ctx, &OF_INPUT)
}

fn reduce(ctx: &mut InferContext<'_>, by: &Reduce) -> Answer {
    let keep = keeps_axes(ctx.node);
    let Some(shape) = ctx.shape(0) else { return Ok(Inferred::one(typed(ctx.dtype(0), None))) };
    let Some(axes) = reduced_by(ctx.graph, ctx.node, by, shape.len())? else {
        // Only if the axes stay is the rank known.
        let shape = keep.then(|| ctx.unknown_shape(shape.len()));
        return Ok(Inferred::one(typed(ctx.dtype(0), shape)));
    };
    let contents = if axes.is_empty() { None } else { reduced_contents(ctx) };
    Ok(Inferred::one(typed(ctx.dtype(0), Some(without(shape, &axes, keep)))).with(contents))
}

/// A shape without these axes, or with extent 1 along them.
pub(super) fn without(shape: &[Dim], reduced: &[usize], keep: bool) -> Shape {
    let dims = shape.iter().enumerate().filter_map(|(i, d)| match (reduced.contains(&i), keep) {
        (false, _) => Some(d.clone()),
        (true, true) => Some(Dim::ONE),
        (true, false) => None,
    });
    dims.collect()
}

/// The one number that a vector of known contents is reduced to.
fn reduced_contents(ctx: &InferContext<'_>) -> Option<Vec<Dim>> {
    let contents = ctx.contents(0).filter(|_| ctx.rank(0) == Some(1))?;
    let value = match ctx.node.onnx()? {
        "ReduceProd" => Dim::product(contents),
        "ReduceSum" => contents.iter().try_fold(Dim::ZERO, |sum, d| sum.checked_add(d)),
        "ReduceMax" => contents.iter().map(Dim::as_const).collect::<Option<Vec<_>>>()?.into_iter().max().map(Dim::from),
        "ReduceMin" => contents.iter().map(Dim::as_const).collect::<Option<Vec<_>>>()?.into_iter().min().map(Dim::from),
        _ => None,
    };
    Some(vec![value?])
}

fn arg(ctx: &mut InferContext<'_>) -> Answer {
    let ty = |shape| Ok(Inferred::one(typed(Some(DType::I64), shape)));
    let Some(shape) = ctx.shape(0) else { return ty(None) };
    let axes = reduced_by(ctx.graph, ctx.node, &OF_ONE, shape.len())?.unwrap_or_default();
    ty(Some(without(shape, &axes, keeps_axes(ctx.node))))
}
