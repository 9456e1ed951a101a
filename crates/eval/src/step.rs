//! One op on constants, with everything but the operands known.

use super::arith::{Binary, Unary, cast};
use super::numbers::{Numbers, decode, encode};
use super::shuffle::{broadcast, element, pick, strides};
use super::{Tensor, width};
use relayout_ir::attr::Attr;
use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::form::{Form, View};
use relayout_ir::graph::{Graph, Node};
use relayout_ir::op::read::{Cut, Place, cuts, elements_taken, place_of, reduced};
use relayout_ir::op::{int_or_default, normalize_axis};

/// What is done to the operands.
#[derive(Clone, Debug)]
pub enum Step {
    /// Reshape and its like: the same bytes.
    View,
    /// Place `i` of the result is axis `perm[i]` of the operand.
    Transpose(Vec<usize>),
    /// Broadcast to the result's extents.
    Expand,
    /// The operand again and again, as often along each axis as the result is longer.
    Tile,
    /// A box of the operand: where it starts and how far its elements are apart, per axis.
    Box(Vec<(i64, i64)>),
    /// Along this axis of the first operand, at the indices that the second says.
    Gather(usize),
    /// One after another along this axis.
    Concat(usize),
    /// The one element of this tensor, everywhere.
    Fill(Constant),
    /// The second operand where the first is true, else the third.
    Where,
    /// The first operand with the third written at the places that the second says (`ScatterND`).
    Scatter,
    /// Element by element.
    Binary(Binary),
    /// Element by element.
    Unary(Unary),
    /// The largest along these axes.
    Largest(Vec<usize>),
    /// Not below one operand and not above another, by their places.
    Clip {
        /// Place of the lower bound.
        low: Option<usize>,
        /// Place of the upper bound.
        high: Option<usize>,
    },
    /// To the result's element type.
    Cast,
    /// Quantized numbers as floats; scales along this axis unless there is one.
    Dequantize(usize),
}

impl Step {
    /// The step that result `slot` of a node is; `None` for ops that are not evaluated.
    pub fn recognize(graph: &Graph, node: &Node, slot: usize) -> Option<Step> {
        match &node.form {
            Form::View(View::Transpose(perm)) => return Some(Step::Transpose(perm.clone())),
            Form::View(View::Reshape | View::Same) => return Some(Step::View),
            _ => {}
        }
        let rank = || graph.value(node.operand(0)?).ty.rank();
        let name = node.onnx()?;
        if let Some(op) = Binary::named(name) {
            // Before opset 7 operands were aligned by an attribute.
            return (node.opset >= 7 && node.inputs.len() == 2).then_some(Step::Binary(op));
        }
        if let Some(op) = Unary::named(name) {
            return Some(Step::Unary(op));
        }
        Some(match name {
            "Cast" | "CastLike" => Step::Cast,
            "Clip" if matches!(place_of(name, "min", node.opset), Place::Operand(_)) => {
                let low = node.operand(1).map(|_| 1);
                Step::Clip { low, high: node.operand(2).map(|_| 1 + usize::from(low.is_some())) }
            }
            "Where" => Step::Where,
            "ReduceMax" => Step::Largest(reduced(graph, node)?),
            "Expand" => Step::Expand,
            // Before opset 6 it was another op.
            "Tile" if node.opset >= 6 => Step::Tile,
            "Concat" => Step::Concat(normalize_axis(node.int("axis")?, rank()?)?),
            "Gather" => Step::Gather(normalize_axis(int_or_default(node, "axis")?, rank()?)?),
            "Slice" => Step::Box(sliced(graph, node)?),
            "Split" => Step::Box(split(graph, node, slot)?),
            "ScatterND" if matches!(node.str("reduction"), None | Some("none")) => Step::Scatter,
            "ConstantOfShape" => Step::Fill(match node.attrs.get("value") {
                None => Constant::inline(DType::F32, vec![1], vec![0; 4].into()),
                Some(Attr::Tensor(c)) => c.clone(),
                Some(_) => return None,
            }),
            "DequantizeLinear" if !node.flag("block_size") => {
                Step::Dequantize(normalize_axis(int_or_default(node, "axis")?, rank()?).unwrap_or(0))
            }
            _ => return None,
        })
    }

    /// Whether it has a result whatever the operands hold, so that it may be left until the bytes are due.
    pub fn never_fails(&self, operands: &[DType], result: DType) -> bool {
        let float = |d: &DType| matches!(d, DType::F32 | DType::F64 | DType::F16 | DType::BF16);
        match self {
            Step::View | Step::Transpose(_) | Step::Box(_) | Step::Concat(_) => true,
            Step::Binary(op) => op.is_arithmetic() && operands.iter().all(float),
            Step::Unary(op) => *op == Unary::Neg && operands.iter().all(float),
            // Widening, or a rounding on which all agree.
            Step::Cast => operands.iter().all(float) && cast_agrees(operands.first().copied(), result),
            _ => false,
        }
    }

    /// The bytes of the result, of this type and these extents.
    ///
    /// # Errors
    /// A sentence that says what the op can't do with these operands.
    pub fn run(&self, operands: &[Tensor], dtype: DType, dims: &[usize]) -> Result<Vec<u8>, String> {
        let operand = |i: usize| operands.get(i).ok_or_else(|| format!("operand {i} is missing"));
        // An operand of the result's type.
        let like = |i: usize| {
            let t = operand(i)?;
            if t.dtype == dtype { Ok(t) } else { Err(format!("{} is not {dtype}", t.dtype)) }
        };
        match self {
            Step::View => Ok(like(0)?.bytes.to_vec()),
            Step::Transpose(perm) => {
                let x = like(0)?;
                let own = strides(&x.dims);
                let read: Option<Vec<i64>> = perm.iter().map(|&p| own.get(p).copied()).collect();
                pick(&x.bytes, x.width()?, dims, 0, &read.ok_or("the permutation is none of its axes")?)
            }
            Step::Expand => {
                let x = like(0)?;
                pick(&x.bytes, x.width()?, dims, 0, &broadcast(&x.dims, dims)?)
            }
            Step::Tile => tile(like(0)?, dims),
            Step::Box(axes) => {
                let x = like(0)?;
                let own = strides(&x.dims);
                let start = axes.iter().zip(&own).map(|((start, _), stride)| start * stride).sum();
                let read: Vec<i64> = axes.iter().zip(&own).map(|((_, step), stride)| step * stride).collect();
                pick(&x.bytes, x.width()?, dims, start, &read)
            }
            Step::Gather(axis) => gather(like(0)?, operand(1)?, *axis),
            Step::Concat(axis) => concat(operands, *axis, dtype, dims),
            Step::Fill(one) => {
                let bytes = one.source.bytes()?;
                if one.dtype != dtype || bytes.len() != width(dtype)? {
                    return Err("the value is not one element of the result's type".to_owned());
                }
                pick(&bytes, width(dtype)?, dims, 0, &vec![0; dims.len()])
            }
            Step::Where => choose(operand(0)?, like(1)?, like(2)?, dims),
            Step::Scatter => scatter(like(0)?, operand(1)?, like(2)?),
            Step::Binary(op) => {
                let (a, b) = (spread(operand(0)?, dims)?, spread(operand(1)?, dims)?);
                encode(&op.apply(&a, &b)?, dtype)
            }
            Step::Clip { low, high } => {
                let bound = |at: &Option<usize>| at.map(|i| spread(like(i)?, dims)).transpose();
                encode(&clip(spread(like(0)?, dims)?, bound(low)?.as_ref(), bound(high)?.as_ref())?, dtype)
            }
            Step::Largest(axes) => encode(&largest(like(0)?, axes)?, dtype),
            Step::Unary(op) => encode(&op.apply(&decode(dtype, &like(0)?.bytes)?)?, dtype),
            Step::Cast => {
                let x = operand(0)?;
                encode(&cast(&decode(x.dtype, &x.bytes)?, x.dtype, dtype)?, dtype)
            }
            Step::Dequantize(axis) => dequantize(operands, *axis, dtype),
        }
    }
}

fn cast_agrees(from: Option<DType>, to: DType) -> bool {
    let empty = |d| if d == DType::F64 { Numbers::F64(Vec::new()) } else { Numbers::F32(Vec::new()) };
    from.is_some_and(|from| to.is_float() && cast(&empty(from), from, to).is_ok())
}

/// The elements of an operand, broadcast.
fn spread(x: &Tensor, dims: &[usize]) -> Result<Numbers, String> {
    decode(x.dtype, &pick(&x.bytes, x.width()?, dims, 0, &broadcast(&x.dims, dims)?)?)
}

/// Clip. Bounds that cross are refused: which of them holds was said only later.
fn clip(x: Numbers, low: Option<&Numbers>, high: Option<&Numbers>) -> Result<Numbers, String> {
    if let (Some(low), Some(high)) = (low, high)
        && Binary::Max.apply(low, high)? != *high
    {
        return Err("the lower bound is above the upper".to_owned());
    }
    let above = if let Some(low) = low { Binary::Max.apply(&x, low)? } else { x };
    if let Some(high) = high { Binary::Min.apply(&above, high) } else { Ok(above) }
}

/// The largest along axes: each place of these as a tensor of its own, and the largest of all, element by element.
fn largest(x: &Tensor, axes: &[usize]) -> Result<Numbers, String> {
    if x.dims.contains(&0) {
        // Another axis may be longer than any list of places along it.
        let nothing = axes.iter().any(|&axis| x.dims.get(axis) == Some(&0));
        return if nothing { Err("there is nothing along these axes".to_owned()) } else { decode(x.dtype, &[]) };
    }
    let own = strides(&x.dims);
    let (mut kept, mut starts) = (x.dims.clone(), vec![0]);
    for &axis in axes {
        let (Some(extent), Some(stride)) = (kept.get_mut(axis), own.get(axis)) else {
            return Err("it has no such axis".to_owned());
        };
        starts = (0..*extent as i64).flat_map(|at| starts.iter().map(move |start| start + at * stride)).collect();
        *extent = 1;
    }
    let part = |start| decode(x.dtype, &pick(&x.bytes, x.width()?, &kept, start, &own)?);
    let (first, rest) = starts.split_first().ok_or("there is nothing along these axes")?;
    rest.iter().try_fold(part(*first)?, |most, &start| Binary::Max.apply(&most, &part(start)?))
}

/// Each axis as two, of which the outer one stands still.
fn tile(x: &Tensor, dims: &[usize]) -> Result<Vec<u8>, String> {
    let (mut extents, mut read) = (Vec::new(), Vec::new());
    for ((&extent, &own), stride) in dims.iter().zip(&x.dims).zip(strides(&x.dims)) {
        extents.extend([extent.checked_div(own).unwrap_or(0), own]);
        read.extend([0, stride]);
    }
    pick(&x.bytes, x.width()?, &extents, 0, &read)
}

fn gather(x: &Tensor, indices: &Tensor, axis: usize) -> Result<Vec<u8>, String> {
    let Numbers::Int(indices) = decode(indices.dtype, &indices.bytes)? else { return Err("indices are floats".into()) };
    let extent = *x.dims.get(axis).ok_or("the axis is none of its axes")?;
    let outer: usize = x.dims[..axis].iter().product();
    let inner = x.dims[axis + 1..].iter().product::<usize>() * x.width()?;
    let mut out = Vec::with_capacity(outer * indices.len() * inner);
    for o in 0..outer {
        for &i in &indices {
            let at = normalize_axis(i, extent).ok_or_else(|| format!("index {i} is out of range for {extent}"))?;
            let from = (o * extent + at) * inner;
            out.extend_from_slice(x.bytes.get(from..from + inner).ok_or("the operand is too short")?);
        }
    }
    Ok(out)
}

fn concat(operands: &[Tensor], axis: usize, dtype: DType, dims: &[usize]) -> Result<Vec<u8>, String> {
    let width = width(dtype)?;
    let outer: usize = dims.get(..axis).ok_or("the axis is none of its axes")?.iter().product();
    let mut out = Vec::new();
    for o in 0..outer {
        for x in operands {
            if x.dtype != dtype || x.dims.len() != dims.len() {
                return Err("the operands are unlike each other".to_owned());
            }
            let run = x.dims[axis..].iter().product::<usize>() * width;
            out.extend_from_slice(x.bytes.get(o * run..(o + 1) * run).ok_or("an operand is too short")?);
        }
    }
    Ok(out)
}

fn choose(condition: &Tensor, a: &Tensor, b: &Tensor, dims: &[usize]) -> Result<Vec<u8>, String> {
    let Numbers::Int(condition) = spread(condition, dims)? else { return Err("the condition is a float".to_owned()) };
    let width = a.width()?;
    let a = pick(&a.bytes, width, dims, 0, &broadcast(&a.dims, dims)?)?;
    let b = pick(&b.bytes, width, dims, 0, &broadcast(&b.dims, dims)?)?;
    let mut out = Vec::with_capacity(a.len());
    for (i, &c) in condition.iter().enumerate() {
        out.extend_from_slice(element(if c != 0 { &a } else { &b }, width, i as i64)?);
    }
    Ok(out)
}

fn scatter(x: &Tensor, indices: &Tensor, updates: &Tensor) -> Result<Vec<u8>, String> {
    let depth = *indices.dims.last().ok_or("the indices have no axis")?;
    let Numbers::Int(indices) = decode(indices.dtype, &indices.bytes)? else { return Err("indices are floats".into()) };
    let own = strides(&x.dims);
    let run = x.dims.get(depth..).ok_or("the indices are too long")?.iter().product::<usize>() * x.width()?;
    let mut out = x.bytes.to_vec();
    let mut from = 0;
    for index in indices.chunks_exact(depth.max(1)) {
        let mut place = 0;
        for ((&i, &extent), stride) in index.iter().zip(&x.dims).zip(&own) {
            let at = normalize_axis(i, extent).ok_or_else(|| format!("index {i} is out of range for {extent}"))?;
            place += at * *stride as usize;
        }
        let at = place * x.width()?;
        let update = updates.bytes.get(from..from + run).ok_or("there are too few updates")?;
        out.get_mut(at..at + run).ok_or("the operand is too short")?.copy_from_slice(update);
        from += run;
    }
    Ok(out)
}

fn dequantize(operands: &[Tensor], axis: usize, dtype: DType) -> Result<Vec<u8>, String> {
    let [x, scale, rest @ ..] = operands else { return Err("there is no scale".to_owned()) };
    let narrow = matches!(x.dtype, DType::I8 | DType::U8 | DType::I32);
    if !narrow || dtype != DType::F32 || scale.dtype != DType::F32 {
        return Err(format!("{} with scales of {} is not evaluated", x.dtype, scale.dtype));
    }
    let Numbers::Int(x_numbers) = decode(x.dtype, &x.bytes)? else { return Err("the numbers are floats".to_owned()) };
    let along = |t: &Tensor| -> Result<Numbers, String> {
        let count: usize = t.dims.iter().product();
        let mut read = vec![0; x.dims.len()];
        if count != 1 {
            if t.dims.len() != 1 || x.dims.get(axis) != Some(&count) {
                return Err("the scales are neither one nor one per index of the axis".to_owned());
            }
            read[axis] = 1;
        }
        decode(t.dtype, &pick(&t.bytes, t.width()?, &x.dims, 0, &read)?)
    };
    let Numbers::F32(scales) = along(scale)? else { return Err("the scales are not floats".to_owned()) };
    let zeros = match rest.first() {
        Some(zero) => along(zero)?,
        None => Numbers::Int(vec![0; x_numbers.len()]),
    };
    let Numbers::Int(zeros) = zeros else { return Err("the zero points are floats".to_owned()) };
    let each = x_numbers.iter().zip(&zeros).zip(&scales).map(|((x, z), s)| (x - z) as f32 * s);
    encode(&Numbers::F32(each.collect()), dtype)
}

/// Start and step of a Slice per axis, clamped to the operand.
fn sliced(graph: &Graph, node: &Node) -> Option<Vec<(i64, i64)>> {
    let shape = graph.value(node.operand(0)?).ty.const_shape()?;
    let mut boxes = vec![(0, 1); shape.len()];
    for Cut { axis, start, end, step } in cuts(graph, node)? {
        boxes[axis] = (elements_taken(shape[axis], start, end, step).0.max(0), step);
    }
    Some(boxes)
}

/// Start per axis of one result of a Split.
fn split(graph: &Graph, node: &Node, slot: usize) -> Option<Vec<(i64, i64)>> {
    let rank = graph.value(node.operand(0)?).ty.rank()?;
    let axis = normalize_axis(int_or_default(node, "axis")?, rank)?;
    let mut start = 0i64;
    for before in node.outputs.get(..slot)? {
        start += graph.value((*before)?).ty.const_shape()?.get(axis)?;
    }
    let mut boxes = vec![(0, 1); rank];
    boxes[axis] = (start, 1);
    Some(boxes)
}
