//! Wrong entries, each with one mistake of the kind that is easily made, and the law that finds it.

use super::case::{Case, case, exact, f, fr, ints};
use relayout::ir::form::{Implicit, Renumber};
use relayout::ir::op::infer::{InferContext, Inferred};
use relayout::ir::op::{Absent, Axes, AxisSource, Case as Reading, OpDef, Reduce};
use relayout_verify::Data;

/// A mistake: what it is, the entry that has it, a case of the op, and words of the law that it breaks.
pub(crate) struct Mistake {
    pub(crate) what: &'static str,
    pub(crate) def: &'static OpDef,
    pub(crate) case: Case,
    pub(crate) law: &'static str,
}

type Infer = fn(&mut InferContext<'_>) -> Result<Inferred, String>;

const fn wrong(name: &'static str, readings: &'static [Reading], infer: Infer) -> OpDef {
    OpDef { name, domain: "", opsets: (1, 26), axes: Axes::Sig(readings), infer }
}

/// The types of the right entry's results: these mistakes are about axes.
fn right(cx: &mut InferContext<'_>) -> Result<Inferred, String> {
    let name = cx.node.onnx().ok_or("not an op of ONNX")?.to_owned();
    let name = relayout::ir::graph::OpName { domain: String::new(), name, overload: String::new() };
    let def = relayout::ir::op::lookup(&name, cx.node.opset).ok_or("is not in the table")?;
    (def.infer)(cx)
}

#[expect(clippy::unnecessary_wraps, reason = "entries share one function type")]
fn first(cx: &mut InferContext<'_>) -> Result<Inferred, String> {
    Ok(Inferred::one(cx.ty(0).clone()))
}

const fn attr(default: i64) -> AxisSource {
    AxisSource::Attr("axis", default)
}

/// An axis that no attribute names, at this place.
const fn at(place: i64) -> AxisSource {
    AxisSource::Attr("nothing", place)
}

const AXIS_0: &[Renumber] = &[Renumber::AxisAttr("axis", 0)];
const SUMMED: Reduce = Reduce { attr: None, input: Some(1), absent: Absent::AllUnlessNoop };

static SOFTMAX: OpDef = wrong("Softmax", &[Reading::new("a* [x]~ b* -> a* [x] b*").axis(attr(-1))], right);
static CONCAT: OpDef =
    wrong("Concat", &[Reading::new("a* [x] b*... -> a* [x] b*").axis(attr(1)).renumber(AXIS_0)], right);
static CONV_CHANNELS: OpDef =
    wrong("Conv", &[Reading::new("a* s*!^, (g co) ci k*!^, (g co)? -> a* s*!^").axis(at(2))], right);
static CONV_SPACE: OpDef =
    wrong("Conv", &[Reading::new("n (g ci) s*^, (g co) ci k*!^, (g co)? -> n (g co) s*^")], right);
static CONV_KERNEL: OpDef =
    wrong("Conv", &[Reading::new("n (g ci) s*!^, (g co) ci k*!, (g co)? -> n (g co) s*!^")], right);
static LAYER: OpDef = wrong("LayerNormalization", &[Reading::new("a* b*~, b*, b*? -> a* b*").axis(attr(-1))], right);
static GATHER: OpDef =
    wrong("Gather", &[Reading::new("a* [x]~ c*, b* -> a* b* c*").axis(attr(0)).renumber(AXIS_0)], right);
static GATHER_LOOKED_UP: OpDef =
    wrong("Gather", &[Reading::new("a* [x] c*, b*@x -> a* b* c*").axis(attr(0)).renumber(AXIS_0)], right);
static REDUCE: OpDef = wrong("ReduceSum", &[Reading::new("a*, _? -> a*").reduce(SUMMED)], right);
static REDUCE_CARRIED: OpDef =
    wrong("ReduceSum", &[Reading::new("a*, _? -> a*").renumber(&[Renumber::AxesInput(1, Implicit::All)])], right);
static PAD: OpDef = wrong("Pad", &[Reading::new("a*~, _, _? -> a*")], right);
static PAD_ONE_RUN: OpDef =
    wrong("Pad", &[Reading::new("a*~, _, _? -> a*").renumber(&[Renumber::PerAxisInput(1, 1)])], right);
static MATMUL: OpDef = wrong("MatMul", &[Reading::new("a* [k], [k] n -> a* n").axis(at(-1))], right);
static BATCH: OpDef =
    wrong("BatchNormalization", &[Reading::new("a* [c] b*, [c], [c], [c], [c] -> a* [c] b*").axis(at(1))], right);
static TOP_K: OpDef = wrong("TopK", &[Reading::new("a* [x]~ b*, _ -> a* [x] b*, a* [x] b*").axis(attr(-1))], right);
static CUM_SUM: OpDef = wrong(
    "CumSum",
    &[Reading::new("a* [x] b*, _ -> a* [x] b*").axis(AxisSource::Input(1)).renumber(&[Renumber::AxisInput(1)])],
    right,
);
static DEQUANTIZE: OpDef = wrong("DequantizeLinear", &[Reading::new("a*, _, _? -> a*")], right);
static GEMM: OpDef = wrong("Gemm", &[Reading::new("m k, n k, _? -> m n")], right);
static TRANSPOSED: OpDef = wrong("Expand", &[Reading::new("a*, _ -> a*")], first);

/// The mistakes.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
pub(crate) fn mistakes() -> Vec<Mistake> {
    let mistake = |what, def, case, law| Mistake { what, def, case, law };
    let conv = || case("Conv", 11, 26).x(f(&[2, 4, 5, 5])).x(f(&[4, 4, 2, 3]));
    let gather =
        || case("Gather", 13, 26).int("axis", 1).x(f(&[2, 3, 4])).x(exact(&[2, 2], Data::I64(vec![0, 2, 1, 1])));
    let sum = || case("ReduceSum", 13, 26).x(f(&[2, 3, 4])).c(ints(&[1]));
    let pad = || case("Pad", 13, 17).x(f(&[4, 5, 6])).c(ints(&[1, 2, 0, 3, 0, 1]));
    let normalized = case("BatchNormalization", 15, 26).x(f(&[3, 3, 3])).x(f(&[3])).x(f(&[3])).x(f(&[3]));
    vec![
        mistake(
            "the axis of Softmax is not renumbered",
            &SOFTMAX,
            case("Softmax", 13, 26).x(f(&[2, 3, 4])),
            "in the order",
        ),
        mistake(
            "the axis of Concat is carried",
            &CONCAT,
            case("Concat", 13, 26).int("axis", 1).x(f(&[2, 3])).x(f(&[2, 4])),
            "the verifier refuses",
        ),
        mistake("the channels of Conv are free", &CONV_CHANNELS, conv(), "in the order"),
        mistake("the spatial axes of Conv are free", &CONV_SPACE, conv(), "in the order"),
        mistake("the kernel of Conv is summed over like channels", &CONV_KERNEL, conv(), "contracted"),
        mistake(
            "the tail of LayerNormalization is free",
            &LAYER,
            case("LayerNormalization", 17, 26).int("axis", 1).x(f(&[3, 4, 4])).x(f(&[4, 4])),
            "in the order",
        ),
        mistake("the axes of Gather's indices may lie apart", &GATHER, gather(), "in the order"),
        mistake("what Gather looks up is summed over", &GATHER_LOOKED_UP, gather(), "contracted"),
        mistake("the axes of ReduceSum are not renumbered", &REDUCE, sum(), "in the order"),
        mistake("the axes of ReduceSum are carried", &REDUCE_CARRIED, sum(), "carried"),
        mistake("pads are not permuted", &PAD, pad(), "in the order"),
        mistake("only the leading pads are permuted", &PAD_ONE_RUN, pad(), "in the order"),
        mistake(
            "the summed axis of MatMul is free",
            &MATMUL,
            case("MatMul", 13, 26).x(f(&[4, 4])).x(f(&[4, 4])),
            "in the order",
        ),
        mistake(
            "the channels of BatchNormalization are free",
            &BATCH,
            normalized.x(fr(&[3], 0.5, 2.0)),
            "in the order",
        ),
        mistake(
            "the axis of TopK is fixed",
            &TOP_K,
            case("TopK", 11, 26).x(f(&[4, 4])).c(ints(&[4])).results(2),
            "in the order",
        ),
        mistake(
            "CumSum carries its axis",
            &CUM_SUM,
            case("CumSum", 14, 26).x(f(&[2, 3])).c(exact(&[], Data::I64(vec![1]))),
            "carried",
        ),
        mistake(
            "scales per channel are not bound to it",
            &DEQUANTIZE,
            case("DequantizeLinear", 13, 26).int("axis", 1).x(super::case::u8s(&[3, 3])).x(fr(&[3], 0.1, 0.9)),
            "in the order",
        ),
        mistake(
            "Gemm has its right operand transposed",
            &GEMM,
            case("Gemm", 13, 26).x(f(&[4, 4])).x(f(&[4, 4])),
            "contracted",
        ),
        mistake(
            "Expand keeps its shape",
            &TRANSPOSED,
            case("Expand", 13, 26).x(f(&[2, 1])).c(ints(&[2, 3])),
            "inferred",
        ),
    ]
}
