//! A node of ONNX Runtime for each [`Case`].

use relayout_ir::op::NCHWC;
use relayout_targets::measured::{
    Activation, Attention, AttentionShape, AxisShape, Case, ConvKernel, ConvShape, Copy, ELEMENTWISE, GemmShape, Pool,
    PoolShape, Projection, ProjectionShape, Reorder, ResizeShape, Scaling, Side, Spread, VolumeShape, is_binary,
};

use super::CalibrateError;
use super::sketch::{Sketch, Value};

/// Adds one node to a sketch, as copy `copy` of it: weights are its own, operands shared, unless it reads `input`. Gives the
/// name of what it computes.
pub(super) fn add(
    sketch: &mut Sketch,
    case: &Case,
    copy: usize,
    input: Option<&str>,
    block: u64,
) -> Result<String, CalibrateError> {
    let mut node = Adding { sketch, copy, input, block };
    match case {
        Case::Conv(shape, form) => node.conv(shape, *form),
        Case::Volume(shape) => node.volume(shape),
        Case::Reorder(kind, side, sizes) => node.reorder(*kind, *side, *sizes),
        Case::Transpose(shape, perm, width) => node.transpose(shape, perm, *width),
        Case::Elementwise(op, elements, spread) => node.elementwise(op, *elements, *spread),
        Case::Pool(kind, shape, blocked) => node.pool(*kind, shape, *blocked),
        Case::Resize(mode, shape, blocked) => node.resize(*mode, shape, *blocked),
        Case::Copy { kind, bytes, run } => node.copied(*kind, *bytes, *run),
        Case::Gemm(shape) => node.gemm(shape),
        Case::Softmax(shape) => node.softmax(shape),
        Case::Reduce(shape) => node.reduce(shape),
        Case::Attention(shape, form) => node.attention(shape, *form),
        Case::Projection(shape, form) => node.projection(shape, *form),
        other => Err(CalibrateError::NoModel { case: format!("{other:?}") }),
    }
}

/// Bytes of weights that a copy of a node brings along.
pub(super) fn weight_bytes(case: &Case, block: u64) -> u64 {
    match case {
        Case::Conv(s, ConvKernel::Plain) => 4 * s.m * (s.c / s.group.max(1)) * s.kh * s.kw,
        Case::Volume(s) => weight_bytes(&Case::Conv(s.image, ConvKernel::Plain), block) * s.kd,
        Case::Conv(s, _) => {
            let padded = |c: u64| c.next_multiple_of(block);
            4 * padded(s.m) * padded(s.c / s.group.max(1)) * s.kh * s.kw
        }
        Case::Gemm(s) if s.constant_b => 4 * s.k * s.n,
        Case::Projection(s, _) => 4 * s.inputs * s.heads * s.width,
        _ => 0,
    }
}

/// Bytes that a node leaves, in all of its results; 0 of an op that this version can't make a model of.
pub(super) fn result_bytes(case: &Case, block: u64) -> u64 {
    let padded = |c: u64| c.next_multiple_of(block);
    let floats = |dims: &[u64]| dims.iter().fold(4_u64, |bytes, &dim| bytes.saturating_mul(dim));
    match case {
        Case::Conv(s, ConvKernel::Plain) => floats(&[s.n, s.m, s.oh, s.ow]),
        Case::Conv(s, _) => floats(&[s.n, padded(s.m), s.oh, s.ow]),
        Case::Volume(s) => floats(&[s.image.n, s.image.m, s.od, s.image.oh, s.image.ow]),
        Case::Reorder(_, _, [n, c, h, w]) => floats(&[*n, padded(*c), *h, *w]),
        Case::Transpose(shape, _, width) => (floats(shape) / 4).saturating_mul(*width),
        Case::Elementwise(_, elements, _) => floats(&[*elements]),
        Case::Pool(Pool::Max | Pool::Average, s, _) => floats(&[s.n, padded(s.c), s.oh, s.ow]),
        Case::Pool(_, s, _) => floats(&[s.n, padded(s.c)]),
        Case::Resize(_, s, _) => floats(&[s.n, padded(s.c), s.to[0], s.to[1]]),
        Case::Copy { bytes, .. } => *bytes,
        Case::Gemm(s) => floats(&[s.batch, s.m, s.n]),
        Case::Softmax(s) => floats(&[s.outer, s.length, s.inner]),
        Case::Reduce(s) => floats(&[s.outer, s.inner]),
        Case::Attention(s, _) => floats(&[s.heads, s.queries, s.value_width]),
        Case::Projection(s, _) => floats(&[s.rows, s.heads, s.width]),
        _ => 0,
    }
}

/// So many operands are read in turns: as networks do, copies together read and write more than one operand and its result.
pub(super) const OPERANDS: usize = 4;

struct Adding<'a> {
    sketch: &'a mut Sketch,
    copy: usize,
    input: Option<&'a str>,
    block: u64,
}

impl Adding<'_> {
    /// The first operand: what is given, or a constant that every fourth copy shares.
    fn x(&mut self, dims: &[u64]) -> Result<String, CalibrateError> {
        match self.input {
            Some(name) => Ok(name.to_owned()),
            None => self.sketch.floats(&self.operand("x"), dims),
        }
    }

    /// The name of an operand that every fourth copy shares.
    fn operand(&self, what: &str) -> String {
        format!("{what}.{}", self.copy % OPERANDS)
    }

    fn name(&self, what: &str) -> String {
        format!("{what}.{}", self.copy)
    }

    fn output(&self) -> String {
        let before = self.input.unwrap_or_default();
        format!("{before}y.{}", self.copy)
    }

    fn node(&mut self, op: &str, domain: &str, inputs: &[&str], attributes: &[(&str, Value<'_>)]) -> String {
        let output = self.output();
        self.sketch.node(op, domain, inputs, &output, attributes)
    }

    fn conv(&mut self, s: &ConvShape, form: ConvKernel) -> Result<String, CalibrateError> {
        let padded = |c: u64| c.next_multiple_of(self.block);
        let groups = s.group.max(1);
        let (cg, mg) = (s.c / groups, s.m / groups);
        let (c, m, inputs, group) = match form {
            ConvKernel::Plain => (s.c, s.m, cg, groups),
            ConvKernel::Blocked if s.is_depthwise() => (padded(s.c), padded(s.c), 1, padded(s.c)),
            ConvKernel::Blocked => (groups * padded(cg), groups * padded(mg), padded(cg), groups),
            ConvKernel::BlockedFromNchw => (s.c, padded(s.m), s.c, 1),
        };
        let x = self.x(&[s.n, c, s.h, s.w])?;
        let weights = self.sketch.floats(&self.name("w"), &[m, inputs, s.kh, s.kw])?;
        let bias = self.sketch.floats(&self.name("b"), &[m])?;
        let [rows, columns] = s.pads();
        let pads = [rows[0], columns[0], rows[1], columns[1]];
        let kernel = [s.kh, s.kw];
        let mut attributes = vec![
            ("kernel_shape", Value::Ints(&kernel)),
            ("pads", Value::Ints(&pads)),
            ("strides", Value::Ints(&s.stride)),
            ("dilations", Value::Ints(&s.dilation)),
            ("group", Value::Int(group)),
        ];
        if let Some(activation) = s.activation {
            attributes.push(("activation", Value::Text(activation.name())));
            let parameters: &[f32] = match activation {
                Activation::LeakyRelu => &[0.01],
                Activation::Clip => &[0.0, 6.0],
                Activation::HardSigmoid => &[0.2, 0.5],
                _ => &[],
            };
            if !parameters.is_empty() {
                attributes.push(("activation_params", Value::Floats(parameters)));
            }
        }
        let (op, domain) = match (form, s.activation) {
            (ConvKernel::Plain, None) => ("Conv", ""),
            (ConvKernel::Plain, Some(_)) => ("FusedConv", "com.microsoft"),
            _ => ("Conv", NCHWC),
        };
        Ok(self.node(op, domain, &[&x, &weights, &bias], &attributes))
    }

    fn volume(&mut self, v: &VolumeShape) -> Result<String, CalibrateError> {
        let s = &v.image;
        let group = s.group.max(1);
        let x = self.x(&[s.n, s.c, v.d, s.h, s.w])?;
        let weights = self.sketch.floats(&self.name("w"), &[s.m, s.c / group, v.kd, s.kh, s.kw])?;
        let bias = self.sketch.floats(&self.name("b"), &[s.m])?;
        let ([rows, columns], frames) = (s.pads(), v.frame_pads());
        let attributes = [
            ("kernel_shape", Value::Ints(&[v.kd, s.kh, s.kw])),
            ("pads", Value::Ints(&[frames[0], rows[0], columns[0], frames[1], rows[1], columns[1]])),
            ("strides", Value::Ints(&[v.stride, s.stride[0], s.stride[1]])),
            ("dilations", Value::Ints(&[v.dilation, s.dilation[0], s.dilation[1]])),
            ("group", Value::Int(group)),
        ];
        Ok(self.node("Conv", "", &[&x, &weights, &bias], &attributes))
    }

    fn reorder(&mut self, kind: Reorder, side: Side, [n, c, h, w]: [u64; 4]) -> Result<String, CalibrateError> {
        let last = Value::Int(u64::from(side == Side::ChannelsLast));
        if kind == Reorder::Input {
            let dims = if side == Side::Nchw { [n, c, h, w] } else { [n, h, w, c] };
            let x = self.x(&dims)?;
            return Ok(self.node("ReorderInput", NCHWC, &[&x], &[("channels_last", last)]));
        }
        let x = self.x(&[n, c.next_multiple_of(self.block), h, w])?;
        Ok(self.node("ReorderOutput", NCHWC, &[&x], &[("channels", Value::Int(c)), ("channels_last", last)]))
    }

    fn transpose(&mut self, shape: &[u64], perm: &[usize], width: u64) -> Result<String, CalibrateError> {
        let x = self.sketch.elements(&self.operand("x"), shape, width)?;
        let perm: Vec<u64> = perm.iter().map(|&axis| axis as u64).collect();
        Ok(self.node("Transpose", "", &[&x], &[("perm", Value::Ints(&perm))]))
    }

    fn elementwise(&mut self, op: &str, elements: u64, spread: Spread) -> Result<String, CalibrateError> {
        let block = self.block;
        let (dims, other) = match spread {
            Spread::Same => (vec![elements], vec![elements]),
            Spread::Scalar => (vec![elements], vec![1]),
            Spread::Channel { pixels } => (vec![elements / pixels, pixels], vec![elements / pixels, 1]),
            Spread::Last { channels } => (vec![elements / channels, channels], vec![channels]),
            Spread::Blocked { pixels } => {
                let blocks = elements / pixels / block;
                (vec![1, blocks, pixels, block], vec![1, blocks, 1, block])
            }
        };
        let positive = matches!(op, "Log" | "Sqrt" | "Pow" | "Div" | "Reciprocal");
        let name = self.operand("x");
        let x = if positive { self.sketch.positives(&name, &dims)? } else { self.sketch.floats(&name, &dims)? };
        let domain = ELEMENTWISE.iter().find(|(name, _)| *name == op).map_or("", |(_, domain)| domain);
        let mut inputs = vec![x];
        match op {
            // A square, as in a norm: the runtime multiplies, where another exponent takes a logarithm.
            "Pow" => inputs.push(self.sketch.numbers("two", &[], &[2.0])),
            "Clip" => {
                inputs.push(self.sketch.numbers("low", &[], &[0.0]));
                inputs.push(self.sketch.numbers("high", &[], &[6.0]));
            }
            _ if is_binary(op) => inputs.push(self.sketch.positives(&self.operand("other"), &other)?),
            _ => {}
        }
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        Ok(self.node(op, domain, &inputs, &[]))
    }

    fn pool(&mut self, kind: Pool, s: &PoolShape, blocked: bool) -> Result<String, CalibrateError> {
        let (c, domain) = if blocked { (s.c.next_multiple_of(self.block), NCHWC) } else { (s.c, "") };
        let x = self.x(&[s.n, c, s.h, s.w])?;
        let op = match kind {
            Pool::Max => "MaxPool",
            Pool::Average => "AveragePool",
            Pool::GlobalMax => return Ok(self.node("GlobalMaxPool", domain, &[&x], &[])),
            Pool::GlobalAverage => return Ok(self.node("GlobalAveragePool", domain, &[&x], &[])),
        };
        let [rows, columns] = s.windows().pads();
        let pads = [rows[0], columns[0], rows[1], columns[1]];
        let attributes = [
            ("kernel_shape", Value::Ints(&s.kernel)),
            ("strides", Value::Ints(&s.stride)),
            ("pads", Value::Ints(&pads)),
        ];
        Ok(self.node(op, domain, &[&x], &attributes))
    }

    fn resize(&mut self, mode: Scaling, s: &ResizeShape, blocked: bool) -> Result<String, CalibrateError> {
        let c = if blocked { s.c.next_multiple_of(self.block) } else { s.c };
        let x = self.x(&[s.n, c, s.from[0], s.from[1]])?;
        let scale = [s.to[0] / s.from[0].max(1), s.to[1] / s.from[1].max(1)];
        let (text, transformation) = match mode {
            Scaling::Nearest => ("nearest", "asymmetric"),
            Scaling::Linear => ("linear", "half_pixel"),
        };
        let mut attributes =
            vec![("mode", Value::Text(text)), ("coordinate_transformation_mode", Value::Text(transformation))];
        if blocked {
            let scales = [1, 1, scale[0], scale[1]];
            attributes.push(("scales", Value::Ints(&scales)));
            return Ok(self.node("Upsample", NCHWC, &[&x], &attributes));
        }
        if mode == Scaling::Nearest {
            attributes.push(("nearest_mode", Value::Text("floor")));
        }
        let scales = self.sketch.numbers("scales", &[4], &[1.0, 1.0, scale[0] as f32, scale[1] as f32]);
        Ok(self.node("Resize", "", &[&x, "", &scales], &attributes))
    }

    fn copied(&mut self, kind: Copy, bytes: u64, run: u64) -> Result<String, CalibrateError> {
        let columns = (run / 4).max(1);
        let rows = |at_once: u64| (bytes / (4 * at_once)).max(1);
        match kind {
            Copy::Concat => {
                let dims = [rows(2 * columns), columns];
                let (x, other) = (self.x(&dims)?, self.sketch.floats(&self.operand("other"), &dims)?);
                Ok(self.node("Concat", "", &[&x, &other], &[("axis", Value::Int(1))]))
            }
            Copy::Split => {
                let x = self.x(&[rows(2 * columns), 2 * columns])?;
                let name = self.node("Split", "", &[&x], &[("axis", Value::Int(1))]);
                self.sketch.another_output(format!("{name}.second"));
                Ok(name)
            }
            Copy::Slice | Copy::StridedSlice => {
                let x = self.x(&[rows(columns), 2 * columns])?;
                let (end, step) = if kind == Copy::Slice { (columns, 1) } else { (2 * columns, 2) };
                let starts = self.sketch.ints("starts", &[0]);
                let ends = self.sketch.ints("ends", &[end]);
                let axes = self.sketch.ints("axes", &[1]);
                let steps = self.sketch.ints("steps", &[step]);
                Ok(self.node("Slice", "", &[&x, &starts, &ends, &axes, &steps], &[]))
            }
            Copy::Pad => {
                let x = self.x(&[rows(columns).saturating_sub(2).max(1), columns.saturating_sub(2).max(1)])?;
                let pads = self.sketch.ints("pads", &[1, 1, 1, 1]);
                Ok(self.node("Pad", "", &[&x, &pads], &[]))
            }
        }
    }

    fn gemm(&mut self, s: &GemmShape) -> Result<String, CalibrateError> {
        let b = if s.transposed_b { [s.n, s.k] } else { [s.k, s.n] };
        if s.constant_b {
            let x = self.x(&[s.batch * s.m, s.k])?;
            let weights = self.sketch.floats(&self.name("w"), &b)?;
            if s.transposed_b {
                return Ok(self.node("Gemm", "", &[&x, &weights], &[("transB", Value::Int(1))]));
            }
            return Ok(self.node("MatMul", "", &[&x, &weights], &[]));
        }
        let x = self.x(&[s.batch, s.m, s.k])?;
        let other = self.sketch.fed("other", &[s.batch, b[0], b[1]])?;
        if s.transposed_b {
            return Ok(self.node("FusedMatMul", "com.microsoft", &[&x, &other], &[("transB", Value::Int(1))]));
        }
        Ok(self.node("MatMul", "", &[&x, &other], &[]))
    }

    fn softmax(&mut self, s: &AxisShape) -> Result<String, CalibrateError> {
        let x = self.x(&dims(s))?;
        Ok(self.node("Softmax", "", &[&x], &[("axis", Value::Int(1))]))
    }

    fn attention(&mut self, s: &AttentionShape, form: Attention) -> Result<String, CalibrateError> {
        let (heads, name) = (s.heads, self.output());
        if form == Attention::Whole {
            let x = self.x(&[1, s.queries, heads * s.width])?;
            let keys = self.sketch.fed("keys", &[1, s.keys, heads * s.width])?;
            let values = self.sketch.fed("values", &[1, s.keys, heads * s.value_width])?;
            let attributes = [("num_heads", Value::Int(heads))];
            return Ok(self.node("MultiHeadAttention", "com.microsoft", &[&x, &keys, &values], &attributes));
        }
        let x = self.x(&[1, heads, s.queries, s.width])?;
        // Constants would be packed on load.
        let keys = self.sketch.fed("keys", &[1, heads, s.keys, s.width])?;
        let values = self.sketch.fed("values", &[1, heads, s.keys, s.value_width])?;
        let (scores, shares) = (format!("{name}.scores"), format!("{name}.shares"));
        let turned = [("transB", Value::Int(1))];
        let scores = self.sketch.node("FusedMatMul", "com.microsoft", &[&x, &keys], &scores, &turned);
        let shares = self.sketch.node("Softmax", "", &[&scores], &shares, &[("axis", Value::Int(3))]);
        Ok(self.sketch.node("MatMul", "", &[&shares, &values], &name, &[]))
    }

    fn projection(&mut self, s: &ProjectionShape, form: Projection) -> Result<String, CalibrateError> {
        let apart = matches!(form, Projection::Apart | Projection::ApartBias);
        let x = self.x(&[s.rows, s.inputs])?;
        let weights = if apart { vec![s.heads, s.inputs, s.width] } else { vec![s.inputs, s.heads * s.width] };
        let weights = self.sketch.floats(&self.name("w"), &weights)?;
        if matches!(form, Projection::Together | Projection::Apart) {
            return Ok(self.node("MatMul", "", &[&x, &weights], &[]));
        }
        let bias = if apart { vec![s.heads, 1, s.width] } else { vec![s.heads * s.width] };
        let bias = self.sketch.floats(&self.name("b"), &bias)?;
        if !apart {
            return Ok(self.node("Gemm", "", &[&x, &weights, &bias], &[]));
        }
        let name = self.output();
        let product = format!("{name}.product");
        let product = self.sketch.node("MatMul", "", &[&x, &weights], &product, &[]);
        Ok(self.sketch.node("Add", "", &[&product, &bias], &name, &[]))
    }

    fn reduce(&mut self, s: &AxisShape) -> Result<String, CalibrateError> {
        let x = self.x(&dims(s))?;
        Ok(self.node("ReduceMean", "", &[&x], &[("axes", Value::Ints(&[1]))]))
    }
}

/// Dims of which axis 1 is read whole; nothing stands behind it where it is the last.
fn dims(s: &AxisShape) -> Vec<u64> {
    if s.inner > 1 { vec![s.outer, s.length, s.inner] } else { vec![s.outer, s.length] }
}
