//! The checker's own table: what each op does along which axis.

mod along;
mod blocked;
mod blocks;
mod bounds;
mod brought;
mod call;
mod dynamic;
mod each;
mod filters;
mod fold;
mod fused;
mod halves;
mod heads;
mod indexed;
mod integers;
mod joins;
mod movement;
mod needless;
mod pads;
mod parts;
mod picks;
mod placed;
mod quantize;
mod recurrent;
mod reduced;
mod rolled;
mod same_places;
mod signed;
mod sized;
mod sums;
mod tap_sums;
mod transposed;
mod turned;
mod units;
mod window;
mod windows;

use crate::files::model::Attr;
use crate::terms::pointwise::{Made, over, pointwise, together};
use crate::terms::value::Value;
use call::{BROADCASTS_SINCE, axes_of, one};
use halves::of_halves;

pub(crate) use crate::terms::pointwise::{back, is_apart, ordered};
pub(crate) use call::{Call, Results, axis_of};
pub(crate) use each::choose;
pub(crate) use sized::run as of_extents;
pub(crate) use units::is_unit;

/// What the results of an op are; `None` if it is not in the table.
pub(crate) fn run(call: &mut Call<'_>) -> Option<Results> {
    if let Some(y) = units::of_input(call) {
        return Some(one(y));
    }
    let made = plainly(call);
    if let Some(y) = units::otherwise(call, made.as_ref()) {
        return Some(one(y));
    }
    Some(made?.map(|made| of_halves(call, made, plainly)))
}

/// Ops besides those that treat indices alike which do no more with an extent that differs from call to call than they ask `Terms` for.
const OPEN: &[&str] = &[
    "ArgMax",
    "ArgMin",
    "AveragePool",
    "Concat",
    "Constant",
    "Conv",
    "ConvInteger",
    "ConvTranspose",
    "CumProd",
    "CumSum",
    "DepthToSpace",
    "Dropout",
    "DynamicQuantizeLinear",
    "Expand",
    "Flatten",
    "GRU",
    "Gather",
    "GatherElements",
    "GatherND",
    "GridSample",
    "Identity",
    "LRN",
    "LSTM",
    "LpPool",
    "MatMulInteger",
    "MaxPool",
    "Pad",
    "QLinearConv",
    "QLinearMatMul",
    "RNN",
    "Reshape",
    "Resize",
    "ScatterElements",
    "ScatterND",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "Tile",
    "TopK",
    "Transpose",
    "Trilu",
    "Unsqueeze",
    "Upsample",
];

/// The same of ONNX Runtime's own ops.
const OPEN_OF_RUNTIME: &[&str] = &[
    "BiasGelu",
    "DynamicQuantizeLSTM",
    "DynamicQuantizeMatMul",
    "FastGelu",
    "FusedConv",
    "FusedGemm",
    "FusedMatMul",
    "Gelu",
    "GroupNorm",
    "MatMulIntegerToFloat",
    "NhwcMaxPool",
    "QLinearConcat",
    "QLinearConv",
    "QLinearGlobalAveragePool",
    "QuickGelu",
    "SkipGroupNorm",
    "SkipLayerNormalization",
];

/// Whether the table says what an op does of extents that differ from call to call.
pub(crate) fn takes_open(domain: &str, op: &str) -> bool {
    match domain {
        "" => each::is_alike(op) || OPEN.contains(&op),
        "com.microsoft" => OPEN_OF_RUNTIME.contains(&op),
        "com.microsoft.nchwc" => true,
        _ => false,
    }
}

/// Whether a message says that the table has no such use of an op, rather than that its operands do not fit it.
pub(crate) fn is_unknown(why: &str) -> bool {
    ["the checker does not know ", "the checker knows "].iter().any(|begin| why.starts_with(begin))
}

/// The same, as the op says it.
fn plainly(call: &mut Call<'_>) -> Option<Results> {
    if let Some(made) = units::run(call) {
        return Some(made);
    }
    if call.domain.is_empty() {
        if let Some(made) = fold::run(call) {
            return Some(made.map(|values| values.into_iter().map(Some).collect()));
        }
        for family in [movement::run, each::run, along::run] {
            if let Some(made) = family(call) {
                return Some(made);
            }
        }
    }
    for family in [
        along::run_quantized,
        blocked::run,
        fused::run,
        dynamic::run,
        indexed::run,
        recurrent::run,
        integers::run,
        heads::run,
    ] {
        if let Some(made) = family(call) {
            return Some(made);
        }
    }
    placed::run(call)
}

impl Call<'_> {
    /// What an op of ONNX makes of these operands.
    fn inner(&mut self, op: &str, attrs: &[(String, Attr)], inputs: &[Option<Value>]) -> Made {
        self.inner_of(17, op, attrs, inputs)
    }

    /// What an op of ONNX of this version makes of these operands.
    fn inner_of(&mut self, opset: i64, op: &str, attrs: &[(String, Attr)], inputs: &[Option<Value>]) -> Made {
        let (domain, results, block, reading) = ("", vec![true], self.block, self.reading);
        let mut inner = Call { op, domain, opset, attrs, inputs, results, block, reading, terms: self.terms };
        let made = run(&mut inner).ok_or_else(|| format!("the checker does not know {op}"))?;
        made?.pop().flatten().ok_or_else(|| format!("{op} makes nothing"))
    }
}
