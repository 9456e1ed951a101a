//! Ops of constants, computed. Floats are computed in 64 bits and rounded once, which is what one IEEE operation in their own type
//! gives for sums, products, quotients and square roots. Ops that would round otherwise are not computed here: they are terms.

use super::{Call, axes_of, axis_of, picks, turned};
use crate::files::model::{Attr, width};
use crate::terms::picked::picked;
use crate::terms::pointwise::Made;
use crate::terms::quantized::Quantized;
use crate::terms::strided::COPIED;
use crate::terms::value::{Source, Value};
use bytes::Bytes;
use half::f16;
use std::slice;

/// Elements of a constant.
enum Numbers {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
}

/// Elements of a constant from which on what is made of it is kept: both graphs often make the same.
const KEPT: i64 = 4096;

/// Computes an op of constants; `None` if it is none, or one that is not computed.
pub(super) fn run(call: &mut Call<'_>) -> Option<Result<Vec<Value>, String>> {
    if call.inputs.iter().flatten().any(|v| !v.is_constant() || call.terms.has_open(v)) {
        return None;
    }
    if call.inputs.iter().flatten().all(|v| v.count() < KEPT) {
        return computed(call);
    }
    let key = key(call);
    if let Some((_, made)) = call.terms.computed.get(&key) {
        return Some(Ok(made.clone()));
    }
    let made = computed(call)?;
    if let Ok(values) = &made {
        call.terms.computed.insert(key, (call.inputs.to_vec(), values.clone()));
    }
    Some(made)
}

/// The op with what it is told, and where its operands are in memory. What is kept has them, so that nothing else comes to lie there.
fn key(call: &Call<'_>) -> String {
    let place = |value: &Option<Value>| match value {
        Some(Value { source: Source::Constant { data, offset }, view, dtype }) => {
            format!("{:p} {} {offset} {view:?} {dtype}", data.as_ptr(), data.len())
        }
        _ => String::new(),
    };
    let operands: Vec<String> = call.inputs.iter().map(place).collect();
    format!("{} {} {:?} {:?} {operands:?}", call.op, call.opset, call.attrs, call.results)
}

/// Computes an op of constants.
fn computed(call: &mut Call<'_>) -> Option<Result<Vec<Value>, String>> {
    let made = match call.op {
        "ConstantOfShape" => filled(call),
        "Range" => ranged(call),
        "Gather" => gather(call),
        "Slice" => slice(call),
        "Concat" => concat(call),
        "ScatterND" => scatter(call)?,
        "Cast" | "CastLike" => cast(call)?,
        "Where" => choose(call)?,
        "Not" | "Neg" | "Sqrt" | "Floor" | "Ceil" | "Abs" => unary(call)?,
        "Add" | "Sub" | "Mul" | "Div" | "Mod" | "Min" | "Max" | "And" | "Or" | "Equal" | "Less" | "Greater"
        | "LessOrEqual" | "GreaterOrEqual" => binary(call)?,
        "Pow" => power(call)?,
        "ReduceMax" | "ReduceMin" => extreme(call)?,
        "DequantizeLinear" => dequantized(call)?,
        "Split" => return split(call),
        _ => return None,
    };
    Some(made.map(|value| vec![value]))
}

fn numbers(value: &Value) -> Option<Numbers> {
    numbers_of(value, &value.elements()?)
}

fn numbers_of(value: &Value, bytes: &[u8]) -> Option<Numbers> {
    let f = |n: usize, read: fn(&[u8]) -> f64| Numbers::Floats(bytes.chunks_exact(n).map(read).collect());
    Some(match value.dtype {
        1 => f(4, |b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))),
        10 => f(2, |b| f16::from_le_bytes([b[0], b[1]]).to_f64()),
        11 => f(8, |b| f64::from_le_bytes(b.try_into().unwrap_or_default())),
        _ => Numbers::Ints(value.as_ints()?),
    })
}

fn is_float(dtype: u8) -> bool {
    matches!(dtype, 1 | 10 | 11)
}

/// Numbers as a constant. Integers have to fit.
fn constant(dtype: u8, shape: &[i64], numbers: &Numbers) -> Option<Value> {
    let data: Vec<u8> = match (dtype, numbers) {
        (1, Numbers::Floats(list)) => list.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect(),
        (10, Numbers::Floats(list)) => list.iter().flat_map(|v| f16::from_f64(*v).to_le_bytes()).collect(),
        (11, Numbers::Floats(list)) => list.iter().flat_map(|v| v.to_le_bytes()).collect(),
        (7, Numbers::Ints(list)) => list.iter().flat_map(|v| v.to_le_bytes()).collect(),
        (6, Numbers::Ints(list)) => {
            let narrow: Option<Vec<[u8; 4]>> =
                list.iter().map(|v| Some(i32::try_from(*v).ok()?.to_le_bytes())).collect();
            narrow?.concat()
        }
        (2, Numbers::Ints(list)) => list.iter().map(|v| u8::try_from(*v).ok()).collect::<Option<_>>()?,
        (3, Numbers::Ints(list)) => list.iter().map(|v| Some(i8::try_from(*v).ok()? as u8)).collect::<Option<_>>()?,
        (9, Numbers::Ints(list)) => list.iter().map(|v| u8::from(*v != 0)).collect(),
        _ => return None,
    };
    Some(Value::constant(dtype, shape, data.into()))
}

/// Operands in the shape that they broadcast to.
fn spread(call: &Call<'_>) -> Option<(Vec<i64>, Vec<Value>)> {
    if call.is_aligned_by_attribute() {
        return None;
    }
    let operands: Vec<&Value> = call.inputs.iter().flatten().collect();
    let (shape, _) = crate::terms::align::broadcast(&operands)?;
    let wide = operands.iter().map(|v| v.expanded(&shape)).collect::<Option<_>>()?;
    Some((shape, wide))
}

type Computed = Option<Made>;

fn binary(call: &Call<'_>) -> Computed {
    let (shape, wide) = spread(call)?;
    let [a, b] = wide.as_slice() else { return None };
    // What is as large as an operand is in the file is not too large.
    let held = |value: &Value| match &value.source {
        Source::Constant { data, .. } => (data.len() / width(value.dtype).unwrap_or(1).max(1)) as i64,
        _ => 0,
    };
    let most = call.inputs.iter().flatten().map(held).fold(COPIED, i64::max);
    let all = |value: &Value| numbers_of(value, &value.all()?.dense_within(most)?);
    let compares = matches!(call.op, "Equal" | "Less" | "Greater" | "LessOrEqual" | "GreaterOrEqual");
    let result = match (all(a)?, all(b)?) {
        (Numbers::Ints(a), Numbers::Ints(b)) => {
            let fmod = call.int("fmod", 0) != 0;
            let each = a.iter().zip(&b).map(|(a, b)| of_ints(call.op, *a, *b, fmod)).collect::<Option<_>>();
            Numbers::Ints(each?)
        }
        (Numbers::Floats(a), Numbers::Floats(b)) if compares => {
            Numbers::Ints(a.iter().zip(&b).map(|(a, b)| i64::from(holds(call.op, a.partial_cmp(b)))).collect())
        }
        (Numbers::Floats(a), Numbers::Floats(b)) => {
            Numbers::Floats(a.iter().zip(&b).map(|(a, b)| of_floats(call.op, *a, *b)).collect::<Option<_>>()?)
        }
        _ => return None,
    };
    constant(if compares { 9 } else { a.dtype }, &shape, &result).map(Ok)
}

fn holds(op: &str, order: Option<std::cmp::Ordering>) -> bool {
    order.is_some_and(|order| match op {
        "Equal" => order.is_eq(),
        "Less" => order.is_lt(),
        "Greater" => order.is_gt(),
        "LessOrEqual" => order.is_le(),
        _ => order.is_ge(),
    })
}

fn of_ints(op: &str, a: i64, b: i64, fmod: bool) -> Option<i64> {
    match op {
        "Add" => a.checked_add(b),
        "Sub" => a.checked_sub(b),
        "Mul" => a.checked_mul(b),
        "Div" => a.checked_div(b),
        "Mod" if fmod => a.checked_rem(b),
        "Mod" => {
            let rest = a.checked_rem(b)?;
            Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
        }
        "Min" => Some(a.min(b)),
        "Max" => Some(a.max(b)),
        "And" => Some(i64::from(a != 0 && b != 0)),
        "Or" => Some(i64::from(a != 0 || b != 0)),
        _ => Some(i64::from(holds(op, Some(a.cmp(&b))))),
    }
}

fn of_floats(op: &str, a: f64, b: f64) -> Option<f64> {
    Some(match op {
        "Add" => a + b,
        "Sub" => a - b,
        "Mul" => a * b,
        "Div" => a / b,
        _ => return None,
    })
}

fn unary(call: &Call<'_>) -> Computed {
    let x = call.input(0)?;
    let result = match (call.op, numbers(x)?) {
        ("Not", Numbers::Ints(list)) => Numbers::Ints(list.iter().map(|v| i64::from(*v == 0)).collect()),
        ("Neg", Numbers::Ints(list)) => Numbers::Ints(list.iter().map(|v| v.checked_neg()).collect::<Option<_>>()?),
        ("Abs", Numbers::Ints(list)) => Numbers::Ints(list.iter().map(|v| v.checked_abs()).collect::<Option<_>>()?),
        (op, Numbers::Floats(list)) => {
            let each: fn(f64) -> f64 = match op {
                "Neg" => |v| -v,
                "Sqrt" => f64::sqrt,
                "Floor" => f64::floor,
                "Ceil" => f64::ceil,
                "Abs" => f64::abs,
                _ => return None,
            };
            Numbers::Floats(list.into_iter().map(each).collect())
        }
        _ => return None,
    };
    constant(x.dtype, &x.shape(), &result).map(Ok)
}

/// What quantized numbers stand for; those that only lie otherwise than others stand for the same.
fn dequantized(call: &mut Call<'_>) -> Computed {
    let (x, scale) = (call.need(0).ok()?, call.need(1).ok()?);
    if scale.dtype != 1 || call.int("output_dtype", 1) != 1 {
        return None;
    }
    let read = byte_of(x.dtype)?;
    let block = call.int("block_size", 0);
    let single = scale.count() == 1 && block == 0;
    let axis = if single { None } else { Some(axis_of(call.int("axis", 1), x.rank()).ok()?) };
    if block != 0 {
        return real_numbers(call, &x, read, &blocks(&x.shape(), &scale.shape(), axis?, block)?).map(Ok);
    }
    let zero = call.input(2).cloned();
    let number = |call: &mut Call<'_>, value: &Value| Some(call.terms.constants.number(value.all()?));
    let zero = match zero {
        Some(zero) => Some(number(call, &zero)?),
        None => None,
    };
    let told = (x.dtype, number(call, &scale)?, zero);
    if let Some(known) = turned::found(&call.terms.quantized, told, axis, &x) {
        return Some(Ok(known));
    }
    let y = real_numbers(call, &x, read, &rows(&x.shape(), axis)?)?;
    if x.count() >= KEPT {
        call.terms.quantized.push(Quantized { told, axis, x, y: y.clone() });
    }
    Some(Ok(y))
}

/// What a number of at most eight bits stands for, from the byte that has it.
fn byte_of(dtype: u8) -> Option<fn(u8) -> f32> {
    Some(match dtype {
        17 => |byte| if byte & 0x7f == 0x7f { f32::NAN } else { small(byte, 3, 7) },
        18 => |byte| if byte == 0x80 { f32::NAN } else { small(byte, 3, 8) },
        19 => |byte| f16::from_bits(u16::from(byte) << 8).to_f32(),
        20 => |byte| if byte == 0x80 { f32::NAN } else { small(byte, 2, 16) },
        23 => |byte| small((byte & 8) << 4 | byte & 7, 1, 1),
        2 | 21 | 25 => |byte| f32::from(byte),
        3 => |byte| f32::from(byte as i8),
        22 => |byte| f32::from((byte << 4) as i8 >> 4),
        26 => |byte| f32::from((byte << 6) as i8 >> 6),
        _ => return None,
    })
}

/// A float of a sign, an exponent less this bias, and so many bits behind the point: below the least exponent there is no one before it.
fn small(byte: u8, bits: i32, bias: i32) -> f32 {
    let (exponent, behind) = (i32::from(byte & 0x7f) >> bits, f32::from(byte & ((1 << bits) - 1)));
    let number = if exponent == 0 { behind } else { behind + 2f32.powi(bits) };
    let number = number * 2f32.powi(exponent.max(1) - bias - bits);
    if byte & 0x80 == 0 { number } else { -number }
}

/// Which scale elements have.
struct Rows {
    /// Elements of one step of the axis.
    inner: usize,
    /// Steps of the axis.
    extent: usize,
    /// Steps that share their scales.
    each: usize,
    /// Whether the elements of a step have a scale each, or all of them one.
    apart: bool,
}

impl Rows {
    /// The scales of all elements of a step, where steps are counted over all that is around the axis.
    fn of_step<'n>(&self, step: usize, scales: &'n [f32]) -> Option<&'n [f32]> {
        let blocks = self.extent.div_ceil(self.each);
        let block = step / self.extent * blocks + step % self.extent / self.each;
        if self.apart {
            scales.get(block * self.inner..(block + 1) * self.inner)
        } else {
            scales.get(step % self.extent).map(slice::from_ref)
        }
    }
}

/// One scale, or one for each step of an axis.
fn rows(shape: &[i64], axis: Option<usize>) -> Option<Rows> {
    let extent = |extents: &[i64]| usize::try_from(extents.iter().product::<i64>()).ok().filter(|n| *n != 0);
    Some(match axis {
        None => Rows { inner: extent(shape)?, extent: 1, each: 1, apart: false },
        Some(axis) => {
            Rows { inner: extent(&shape[axis + 1..])?, extent: extent(&shape[axis..=axis])?, each: 1, apart: false }
        }
    })
}

/// Scales of `block` steps of an axis each.
fn blocks(shape: &[i64], scales: &[i64], axis: usize, block: i64) -> Option<Rows> {
    let mut wanted = shape.to_vec();
    let steps = u64::try_from(*wanted.get(axis)?).ok()?.div_ceil(u64::try_from(block).ok().filter(|n| *n != 0)?);
    wanted[axis] = i64::try_from(steps).ok()?;
    let rows = rows(shape, Some(axis))?;
    (wanted == scales).then_some(Rows { each: usize::try_from(block).ok()?, apart: true, ..rows })
}

/// Every byte.
const ALL_BYTES: [u8; 256] = {
    let mut all = [0; 256];
    let mut at = 0;
    while at < all.len() {
        all[at] = at as u8;
        at += 1;
    }
    all
};

/// (x - zero) * scale: the difference is exact, and the product is rounded once.
fn real_numbers(call: &Call<'_>, x: &Value, read: fn(u8) -> f32, rows: &Rows) -> Option<Value> {
    let shape = x.shape();
    let Numbers::Floats(scales) = numbers(&call.need(1).ok()?)? else { return None };
    let scales: Vec<f32> = scales.iter().map(|scale| *scale as f32).collect();
    let zeros: Vec<f32> = match call.input(2) {
        Some(zero) if zero.dtype == x.dtype => zero.elements()?.iter().map(|byte| read(*byte)).collect(),
        Some(_) => return None,
        None => vec![0.0; scales.len()],
    };
    if zeros.len() != scales.len() || !rows.apart && scales.len() != rows.extent {
        return None;
    }
    let known = ALL_BYTES.map(read);
    let elements = x.elements()?;
    let mut data = vec![0; elements.len() * 4];
    let to = data.as_chunks_mut().0.chunks_exact_mut(rows.inner);
    for (step, (from, to)) in elements.chunks_exact(rows.inner).zip(to).enumerate() {
        let real = |byte: &u8, zero: f32, scale: f32| ((known[usize::from(*byte)] - zero) * scale).to_le_bytes();
        match (rows.of_step(step, &zeros)?, rows.of_step(step, &scales)?) {
            (&[zero], &[scale]) if from.len() > ALL_BYTES.len() => {
                let all = ALL_BYTES.map(|byte| real(&byte, zero, scale));
                from.iter().zip(to).for_each(|(byte, to)| *to = all[usize::from(*byte)]);
            }
            (&[zero], &[scale]) => from.iter().zip(to).for_each(|(byte, to)| *to = real(byte, zero, scale)),
            (zeros, scales) => {
                let numbers = zeros.iter().zip(scales);
                from.iter()
                    .zip(to)
                    .zip(numbers)
                    .for_each(|((byte, to), (zero, scale))| *to = real(byte, *zero, *scale));
            }
        }
    }
    Some(Value::constant(1, &shape, data.into()))
}

/// The largest or the smallest along some axes: one of the elements itself.
fn extreme(call: &Call<'_>) -> Option<Made> {
    let x = call.input(0)?.clone();
    let axes = match call.list("axes", 1).ok()? {
        Some(axes) if !axes.is_empty() => axes_of(&axes, x.rank()).ok()?,
        _ if call.int("noop_with_empty_axes", 0) != 0 => return None,
        _ => (0..x.rank()).collect(),
    };
    let keeps = call.int("keepdims", 1) != 0;
    let (mut order, mut shape) = (Vec::new(), Vec::new());
    for (axis, extent) in x.shape().into_iter().enumerate() {
        if !axes.contains(&axis) {
            order.push(axis);
        }
        if !axes.contains(&axis) || keeps {
            shape.push(if axes.contains(&axis) { 1 } else { extent });
        }
    }
    let rows: i64 = order.iter().map(|&axis| x.shape()[axis]).product();
    order.extend(axes);
    let largest = call.op == "ReduceMax";
    let each = usize::try_from(x.count().checked_div(rows)?).ok().filter(|each| *each > 0)?;
    let found = match numbers(&x.permuted(&order)?)? {
        Numbers::Ints(list) => {
            let row = |row: &[i64]| if largest { row.iter().max().copied() } else { row.iter().min().copied() };
            Numbers::Ints(list.chunks(each).map(row).collect::<Option<_>>()?)
        }
        // What comes of two zeros, or of what is no number, is a matter of the runtime.
        Numbers::Floats(list) if list.iter().any(|x| x.is_nan() || (*x == 0.0 && x.is_sign_negative())) => return None,
        Numbers::Floats(list) => {
            let row = |row: &[f64]| row.iter().copied().reduce(if largest { f64::max } else { f64::min });
            Numbers::Floats(list.chunks(each).map(row).collect::<Option<_>>()?)
        }
    };
    constant(x.dtype, &shape, &found).map(Ok)
}

/// Powers: those of floats by lemma 4 alone.
fn power(call: &mut Call<'_>) -> Computed {
    let (shape, wide) = spread(call)?;
    let [a, b] = wide.as_slice() else { return None };
    let result = match (numbers(a)?, numbers(b)?) {
        (Numbers::Ints(left), Numbers::Ints(right)) => {
            let each = left.iter().zip(&right).map(|(a, b)| a.checked_pow(u32::try_from(*b).ok()?));
            Numbers::Ints(each.collect::<Option<_>>()?)
        }
        (Numbers::Floats(left), Numbers::Floats(right)) if a.dtype == 1 && call.terms.rounds => {
            call.terms.rounded();
            Numbers::Floats(left.iter().zip(&right).map(|(a, b)| a.powf(*b)).collect())
        }
        _ => return None,
    };
    constant(a.dtype, &shape, &result).map(Ok)
}

fn choose(call: &Call<'_>) -> Computed {
    let (shape, wide) = spread(call)?;
    let [condition, yes, no] = wide.as_slice() else { return None };
    let width = width(yes.dtype)?;
    let (yes_bytes, no_bytes) = (yes.elements()?, no.elements()?);
    let pairs = yes_bytes.chunks_exact(width).zip(no_bytes.chunks_exact(width));
    let data: Vec<u8> = condition
        .as_ints()?
        .iter()
        .zip(pairs)
        .flat_map(|(c, (y, n))| if *c != 0 { y.to_vec() } else { n.to_vec() })
        .collect();
    Some(Ok(Value::constant(yes.dtype, &shape, data.into())))
}

fn cast(call: &Call<'_>) -> Computed {
    let x = call.input(0)?;
    let to = if call.op == "Cast" { call.dtype("to") } else { call.input(1)?.dtype };
    if to == x.dtype {
        return Some(Ok(x.clone()));
    }
    let result = match numbers(x)? {
        Numbers::Ints(list) if to == 9 => Numbers::Ints(list.iter().map(|v| i64::from(*v != 0)).collect()),
        // An integer of more than 53 bits would be rounded twice.
        Numbers::Ints(list) if is_float(to) => {
            let exact = list.iter().all(|v| v.unsigned_abs() < 1 << 53);
            Numbers::Floats(list.iter().map(|v| *v as f64).collect::<Vec<_>>()).filter(exact)?
        }
        Numbers::Floats(list) if to == 9 => Numbers::Ints(list.iter().map(|v| i64::from(*v != 0.0)).collect()),
        Numbers::Floats(list) if !is_float(to) => {
            let fits = list.iter().all(|v| v.is_finite() && v.abs() < 9e15);
            Numbers::Ints(list.iter().map(|v| v.trunc() as i64).collect()).filter(fits)?
        }
        other => other,
    };
    Some(Ok(constant(to, &x.shape(), &result)?))
}

impl Numbers {
    fn filter(self, holds: bool) -> Option<Numbers> {
        holds.then_some(self)
    }
}

fn filled(call: &Call<'_>) -> Made {
    let shape = call.known(0)?.ok_or("no shape is given")?;
    let (dtype, element) = match call.attr("value") {
        Some(Attr::Tensor(tensor)) => (tensor.dtype, tensor.data.clone()),
        _ => (1, Bytes::from_static(&[0; 4])),
    };
    if shape.iter().any(|d| *d < 0) {
        return Err(format!("shape {shape:?}"));
    }
    if shape.contains(&0) {
        return Ok(Value::constant(dtype, &shape, Bytes::new()));
    }
    let scalar = Value::constant(dtype, &vec![1; shape.len()], element);
    scalar.expanded(&shape).ok_or_else(|| format!("shape {shape:?}"))
}

fn ranged(call: &Call<'_>) -> Made {
    let dtype = call.need(0)?.dtype;
    // Of floats those are known that are integers, all of whose sums are exact.
    let whole = |value: &Value| match numbers(value)? {
        Numbers::Ints(list) => list.first().copied(),
        Numbers::Floats(list) => {
            let exact = |v: &&f64| v.fract() == 0.0 && v.abs() < if dtype == 10 { 1024.0 } else { 1_048_576.0 };
            list.first().filter(exact).map(|v| *v as i64)
        }
    };
    let number = |at| call.input(at).filter(|value| value.dtype == dtype).and_then(whole);
    let (Some(start), Some(end), Some(step)) = (number(0), number(1), number(2)) else {
        return Err("the checker knows ranges of integers only".to_owned());
    };
    let length = if step > 0 { end.checked_sub(start) } else { start.checked_sub(end) };
    let length = length.filter(|_| step != 0).map_or(0, |length| length.max(0).unsigned_abs());
    let count = length.div_ceil(step.unsigned_abs().max(1));
    let count = i64::try_from(count).ok().filter(|count| (1..=COPIED).contains(count));
    let count = count.ok_or_else(|| format!("a range from {start} to {end} by {step}"))?;
    let list: Vec<i64> = (0..count).map(|at| start + at * step).collect();
    let list = if is_float(dtype) {
        Numbers::Floats(list.into_iter().map(|v| v as f64).collect())
    } else {
        Numbers::Ints(list)
    };
    constant(dtype, &[count], &list).ok_or_else(|| "its numbers do not fit their type".to_owned())
}

fn gather(call: &Call<'_>) -> Made {
    let (x, list) = (call.need(0)?, call.need(1)?);
    let axis = axis_of(call.int("axis", 0), x.rank())?;
    let extent = x.shape()[axis];
    let indices = list.as_ints().ok_or("its indices are no integers")?;
    let indices: Vec<i64> = indices.into_iter().map(|i| if i < 0 { i + extent } else { i }).collect();
    let y = picked(&x, axis, &indices)?;
    let mut to = y.shape();
    to.splice(axis..=axis, list.shape());
    y.reshaped(&to).ok_or_else(|| "its shapes do not fit".to_owned())
}

fn slice(call: &Call<'_>) -> Made {
    let mut x = call.need(0)?;
    let starts = call.list("starts", 1)?.ok_or("no starts are given")?;
    let ends = call.list("ends", 2)?.ok_or("no ends are given")?;
    let axes = call.list("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = call.known_list(4)?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] || steps.contains(&0) {
        return Err("its lists do not fit each other".to_owned());
    }
    for (at, axis) in axes.iter().enumerate() {
        let axis = axis_of(*axis, x.rank())?;
        let indices = picks::range(starts[at], ends[at], steps[at], x.shape()[axis])?;
        x = picked(&x, axis, &indices)?;
    }
    Ok(x)
}

fn split(call: &Call<'_>) -> Option<Result<Vec<Value>, String>> {
    let x = call.input(0)?;
    let axis = axis_of(call.int("axis", 0), x.rank()).ok()?;
    let parts = match picks::parts_of(call, x.shape()[axis]) {
        Ok(parts) => parts,
        Err(why) => return Some(Err(why)),
    };
    let mut start = 0;
    let part = |count: &i64| {
        let indices = picks::listed(start, *count, 1)?;
        start += count;
        picked(x, axis, &indices)
    };
    Some(parts.iter().map(part).collect())
}

fn concat(call: &Call<'_>) -> Made {
    let values: Vec<&Value> = call.inputs.iter().flatten().collect();
    let first = values.first().ok_or("it has no operands")?;
    let axis = axis_of(call.int("axis", i64::from(call.opset < 4)), first.rank())?;
    let mut shape = first.shape();
    let mut parts = Vec::new();
    shape[axis] = 0;
    for value in &values {
        let own = value.shape();
        let fits = own.len() == shape.len() && (0..own.len()).all(|at| at == axis || own[at] == shape[at]);
        let width =
            width(value.dtype).filter(|_| fits && value.dtype == first.dtype).ok_or("its operands do not fit")?;
        shape[axis] += own[axis];
        let bytes = value.elements().ok_or("the checker does not read its elements")?;
        parts.push((bytes, own[axis..].iter().product::<i64>() as usize * width));
    }
    let outer: i64 = shape[..axis].iter().product();
    let mut data = Vec::new();
    for block in 0..outer as usize {
        data.extend(parts.iter().flat_map(|(bytes, run)| bytes[block * run..(block + 1) * run].iter().copied()));
    }
    Ok(Value::constant(first.dtype, &shape, data.into()))
}

fn scatter(call: &Call<'_>) -> Computed {
    if call.text("reduction").is_some_and(|r| r != "none") {
        return None;
    }
    let (x, list, updates) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let (shape, places) = (x.shape(), list.shape());
    let depth = usize::try_from(*places.last()?).ok().filter(|d| (1..=shape.len()).contains(d))?;
    let width = width(x.dtype)?;
    let run = shape[depth..].iter().product::<i64>() as usize * width;
    let mut data = x.elements()?.to_vec();
    let (updates, indices) = (updates.elements()?, list.as_ints()?);
    if updates.len() != indices.len() / depth * run {
        return Some(Err("its updates do not fit its indices".to_owned()));
    }
    for (update, place) in updates.chunks_exact(run.max(1)).zip(indices.chunks_exact(depth)) {
        let mut at = 0;
        for (index, extent) in place.iter().zip(&shape) {
            let index = if *index < 0 { index + extent } else { *index };
            if index < 0 || index >= *extent {
                return Some(Err("an index is beyond its axis".to_owned()));
            }
            at = at * *extent as usize + index as usize;
        }
        data[at * run..(at + 1) * run].copy_from_slice(update);
    }
    Some(Ok(Value::constant(x.dtype, &shape, data.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_floats_are_what_their_bits_say() {
        let read =
            |dtype: u8, bytes: &[u8]| bytes.iter().map(|byte| byte_of(dtype).unwrap()(*byte)).collect::<Vec<_>>();
        assert_eq!(read(17, &[0x38, 0xb8, 0x7e, 0x01, 0x08]), [1.0, -1.0, 448.0, 0.001_953_125, 0.015_625]);
        assert_eq!(read(18, &[0x40, 0xc0, 0x7f, 0x01, 0x08]), [1.0, -1.0, 240.0, 0.000_976_562_5, 0.007_812_5]);
        assert_eq!(read(19, &[0x3c, 0xbc, 0x7b, 0x7c]), [1.0, -1.0, 57344.0, f32::INFINITY]);
        assert_eq!(read(20, &[0x40, 0xc0, 0x7f, 0x04]), [1.0, -1.0, 57344.0, 0.000_030_517_578]);
        assert_eq!(read(23, &[0, 1, 2, 3, 4, 5, 6, 7, 9]), [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.5]);
        assert!(
            [(17, 0x7f), (17, 0xff), (18, 0x80), (19, 0x7e), (20, 0x80)].iter().all(|&(dtype, byte)| byte_of(dtype)
                .unwrap()(
                byte
            )
            .is_nan())
        );
    }
}
