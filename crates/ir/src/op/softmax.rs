//! Softmax and its kin. Before opset 13 all axes from the named one on were one.

use super::elementwise::same;
use super::{Axes, AxisSource, Case, OpDef};
use crate::form::Renumber;

const COERCED: &[Case] = &[Case::new("a* x*!~ -> a* x*!").axis(AxisSource::Attr("axis", 1))];
const ONE_AXIS: &[Case] = &[Case::new("a* [x]~ b* -> a* [x] b*")
    .axis(AxisSource::Attr("axis", -1))
    .renumber(&[Renumber::AxisAttr("axis", -1)])];

pub(super) const OPS: &[OpDef] = &[
    OpDef::onnx("Softmax", (1, 12), Axes::Sig(COERCED), same),
    OpDef::onnx("LogSoftmax", (1, 12), Axes::Sig(COERCED), same),
    OpDef::onnx("Hardmax", (1, 12), Axes::Sig(COERCED), same),
    OpDef::onnx("Softmax", (13, 28), Axes::Sig(ONE_AXIS), same),
    OpDef::onnx("LogSoftmax", (13, 28), Axes::Sig(ONE_AXIS), same),
    OpDef::onnx("Hardmax", (13, 28), Axes::Sig(ONE_AXIS), same),
];
