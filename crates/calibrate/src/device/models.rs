//! A model for each case: copies of its op beside each other, each with weights of its own, that read one tensor.

use crate::CalibrateError;
use crate::sketch::{Sketch, Value};
use relayout_targets::device::{Case, ConvCase, NORM_CHANNELS, NORM_GROUPS};

/// Copies of an op in a model, at most.
const COPIES: u64 = 16;
/// Bytes that the results of a model have together, about.
const RESULTS: u64 = 128 << 20;
/// Images are no wider than this; of more pixels there are several.
const WIDEST: u64 = 64;
/// Channels of a Transpose, of a sum, and rows of a product.
const WIDE: u64 = 64;
/// Channels of an image that is resized.
const RESIZED_CHANNELS: u64 = 16;

/// A model that is timed.
pub(super) struct CaseModel {
    pub(super) bytes: Vec<u8>,
    /// The op that counts.
    pub(super) op: &'static str,
    pub(super) copies: u64,
    /// Whether it is for sessions in which the provider runs convolutions channels last.
    pub(super) channels_last: bool,
}

/// A model of no such op: what a call takes.
pub(super) fn nothing() -> Result<CaseModel, CalibrateError> {
    let (bytes, _) = Sketch::new().finish()?;
    Ok(CaseModel { bytes, op: "Identity", copies: 0, channels_last: false })
}

/// The model of a case.
pub(super) fn of(case: &Case, half: bool) -> Result<CaseModel, CalibrateError> {
    let (left, op, channels_last) = match *case {
        Case::Transpose(n) => (n, "Transpose", false),
        Case::Conv(conv) => (conv.pixels * conv.channels, "Conv", conv.channels_last),
        Case::Product { outputs, .. } => (outputs, "MatMul", false),
        Case::Resize(n) => (n, "Resize", false),
        Case::Sum(n) => (n, "Add", false),
        Case::Norm { channels_last, elements } => {
            (elements, if channels_last { "GroupNorm" } else { "InstanceNormalization" }, channels_last)
        }
    };
    let bytes = if half { 2 } else { 4 };
    let copies = (RESULTS / (bytes * left.max(1))).clamp(1, COPIES);
    let mut drawn = Drawing { sketch: Sketch::new(), half };
    for copy in 0..copies {
        let y = drawn.node(case, copy)?;
        drawn.sketch.leaves(&y, half);
    }
    let (bytes, _) = drawn.sketch.finish()?;
    Ok(CaseModel { bytes, op, copies, channels_last })
}

struct Drawing {
    sketch: Sketch,
    half: bool,
}

impl Drawing {
    /// Adds a copy of a node; its result.
    fn node(&mut self, case: &Case, copy: u64) -> Result<String, CalibrateError> {
        let y = format!("y{copy}");
        match *case {
            Case::Transpose(n) => {
                let x = self.reads(&[1, WIDE, n / WIDE]);
                Ok(self.sketch.node("Transpose", "", &[&x], &y, &[("perm", Value::Ints(&[0, 2, 1]))]))
            }
            Case::Conv(conv) => self.convolution(&conv, copy, &y),
            Case::Product { inputs, outputs } => {
                let rows = WIDE.min(outputs);
                let x = self.reads(&[inputs, outputs / rows]);
                let w = self.weights(&format!("w{copy}"), &[rows, inputs])?;
                Ok(self.sketch.node("MatMul", "", &[&w, &x], &y, &[]))
            }
            Case::Resize(n) => {
                let side = (n / (4 * RESIZED_CHANNELS)).isqrt();
                let x = self.reads(&[1, RESIZED_CHANNELS, side, side]);
                let scales = self.sketch.numbers("scales", &[4], &[1.0, 1.0, 2.0, 2.0]);
                Ok(self.sketch.node("Resize", "", &[&x, "", &scales], &y, &[("mode", Value::Text("linear"))]))
            }
            Case::Sum(n) => {
                let x = self.reads(&[1, n / WIDE, WIDE]);
                let bias = self.weights(&format!("b{copy}"), &[WIDE])?;
                Ok(self.sketch.node("Add", "", &[&x, &bias], &y, &[]))
            }
            Case::Norm { channels_last: false, elements } => {
                let x = self.reads(&[1, NORM_GROUPS, elements / NORM_GROUPS]);
                let [scale, bias] = [self.weights("scale", &[NORM_GROUPS])?, self.weights("bias", &[NORM_GROUPS])?];
                Ok(self.sketch.node("InstanceNormalization", "", &[&x, &scale, &bias], &y, &[]))
            }
            Case::Norm { channels_last: true, elements } => {
                let side = (elements / NORM_CHANNELS).isqrt();
                let x = self.reads(&[1, side, side, NORM_CHANNELS]);
                let [scale, bias] = ["scale", "bias"].map(|name| self.sketch.floats(name, &[NORM_CHANNELS]));
                let attributes = [
                    ("groups", Value::Int(NORM_GROUPS)),
                    ("channels_last", Value::Int(1)),
                    ("activation", Value::Int(0)),
                    ("epsilon", Value::Float(1e-5)),
                ];
                Ok(self.sketch.node("GroupNorm", "com.microsoft", &[&x, &scale?, &bias?], &y, &attributes))
            }
        }
    }

    /// A convolution. Channels last it stands between two Transposes, which vanish where the provider runs it so.
    fn convolution(&mut self, conv: &ConvCase, copy: u64, y: &str) -> Result<String, CalibrateError> {
        let ConvCase { channels_last, depthwise, taps, channels, pixels } = *conv;
        let side = pixels.isqrt().clamp(1, WIDEST);
        let (images, kernel) = ((pixels / (side * side)).max(1), taps.isqrt());
        let read = if depthwise { 1 } else { channels };
        let w = self.weights(&format!("w{copy}"), &[channels, read, kernel, kernel])?;
        let pad = kernel / 2;
        let attributes =
            [("group", Value::Int(if depthwise { channels } else { 1 })), ("pads", Value::Ints(&[pad, pad, pad, pad]))];
        if !channels_last {
            let x = self.reads(&[images, channels, side, side]);
            return Ok(self.sketch.node("Conv", "", &[&x, &w], y, &attributes));
        }
        let x = self.reads(&[images, side, side, channels]);
        let [first, made] = [format!("first{copy}"), format!("made{copy}")];
        self.sketch.node("Transpose", "", &[&x], &first, &[("perm", Value::Ints(&[0, 3, 1, 2]))]);
        self.sketch.node("Conv", "", &[&first, &w], &made, &attributes);
        Ok(self.sketch.node("Transpose", "", &[&made], y, &[("perm", Value::Ints(&[0, 2, 3, 1]))]))
    }

    fn reads(&mut self, dims: &[u64]) -> String {
        self.sketch.reads("x", dims, self.half)
    }

    fn weights(&mut self, name: &str, dims: &[u64]) -> Result<String, CalibrateError> {
        if self.half { self.sketch.halves(name, dims) } else { self.sketch.floats(name, dims) }
    }
}
