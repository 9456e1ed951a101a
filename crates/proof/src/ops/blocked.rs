//! The ops of `com.microsoft.nchwc`. Their values have shape [N, C, H, W] with C rounded up to blocks of B channels, and lie as
//! [N, C / B, H, W, B]. Which B is a matter of the host; the file says for which hosts it is.
//!
//! Each op is the op of ONNX between movements: out of the blocks, without the slots, the op, and back. Lemmas that are tested by
//! execution: a convolution of zeros with weights and a bias of zero is zero, and weights of zero take nothing from slots.

use super::placed::windows_of;
use super::window::{convolved, pooled, split_diagonal};
use super::{Call, Made, Results, one, picks};
use crate::files::model::Attr;
use crate::lemmas::halves::{FLOAT, HALF, narrow_constant};
use crate::terms::arg::is_finite;
use crate::terms::name::Own;
use crate::terms::picked::picked;
use crate::terms::slots::{Fill, Runs, Stripped, bare, filled, joined, places};
use crate::terms::value::Value;
use crate::terms::windows::Windows;

pub(super) fn run(call: &mut Call<'_>) -> Option<Results> {
    if call.domain != "com.microsoft.nchwc" {
        return None;
    }
    let channels = if call.int("channels_last", 0) != 0 && call.op == "ReorderInput" { 3 } else { 1 };
    if call.input(0).and_then(|x| x.shape().get(channels).copied()).is_some_and(|c| call.terms.is_open(c)) {
        return Some(Err("its channels differ from call to call".to_owned()));
    }
    let made = match call.op {
        "ReorderInput" => reorder_input(call),
        "ReorderOutput" => reorder_output(call),
        "Conv" => convolution(call),
        "MaxPool" | "AveragePool" => pool(call),
        "GlobalAveragePool" => global(call, "GlobalAveragePool"),
        "GlobalMaxPool" => global(call, "GlobalMaxPool"),
        "Upsample" => upsample(call),
        _ => return None,
    };
    Some(made.and_then(one))
}

fn size(call: &Call<'_>) -> Result<i64, String> {
    call.block
        .ok_or_else(|| "the file does not say for which blocks it is (`relayout.block` in its metadata)".to_owned())
}

fn four(x: &Value) -> Result<[i64; 4], String> {
    x.shape().try_into().map_err(|_| "its rank is not 4".to_owned())
}

fn wrong() -> String {
    "its shapes do not fit".to_owned()
}

/// What a blocked value is, as [N, C, H, W] with the slots of C.
fn unblocked(call: &mut Call<'_>, x: &Value) -> Made {
    let (b, [n, c, h, w]) = (size(call)?, four(x)?);
    if c % b != 0 {
        return Err(format!("its {c} channels are no blocks of {b}"));
    }
    let split = call.terms.moved(x, &[n, c / b, h, w, b]).and_then(|v| v.permuted(&[0, 1, 4, 2, 3]));
    split.and_then(|v| call.terms.moved(&v, &[n, c, h, w])).ok_or_else(wrong)
}

/// A value [N, C, H, W] in blocks.
pub(super) fn blocked(call: &mut Call<'_>, x: &Value) -> Option<Value> {
    let (b, [n, c, h, w]) = (call.block?, four(x).ok()?);
    if c % b != 0 {
        return None;
    }
    let split = call.terms.moved(x, &[n, c / b, b, h, w])?.permuted(&[0, 1, 3, 4, 2])?;
    call.terms.moved(&split, &[n, c, h, w])
}

/// What a value is that looks as if it were blocked: then all that happens along its channels, by whole blocks, or to its images
/// happens to that.
pub(super) fn recognized(call: &mut Call<'_>, x: &Value, axis: usize) -> Option<Value> {
    let digits = |v: &Value| v.view.iter().map(Vec::len).sum::<usize>();
    let flat = |call: &Call<'_>, v: &Value| {
        crate::terms::align::term_of(v).is_some_and(|term| call.terms.get(term).is(Own::Flat))
    };
    if axis > 1 || x.is_constant() || call.block.is_none() {
        return None;
    }
    let y = unblocked(call, x).ok()?;
    let simpler = if flat(call, x) { !flat(call, &y) } else { !flat(call, &y) && digits(&y) < digits(x) };
    simpler.then_some(y)
}

fn back(call: &mut Call<'_>, y: &Value) -> Made {
    blocked(call, y).ok_or_else(wrong)
}

fn reorder_input(call: &mut Call<'_>) -> Made {
    let b = size(call)?;
    let mut x = call.need(0)?;
    if call.int("channels_last", 0) != 0 {
        x = x.permuted(&[0, 3, 1, 2]).ok_or("its rank is not 4")?;
    }
    let c = four(&x)?[1];
    if c % 4 != 0 {
        return Err(format!("ONNX Runtime does not reorder {c} channels"));
    }
    let found = bare(call.terms, &x, 1).ok_or_else(wrong)?;
    let y = filled(call.terms, &found.value, 1, &found.runs, (c + b - 1) / b * b, found.fill).ok_or_else(wrong)?;
    back(call, &y)
}

fn reorder_output(call: &mut Call<'_>) -> Made {
    let (b, x) = (size(call)?, call.need(0)?);
    let (physical, channels) = (four(&x)?[1], call.int("channels", 0));
    if channels < 1 || channels > physical || physical - channels >= b {
        return Err(format!("it can't have {channels} of {physical} channels"));
    }
    let logical = unblocked(call, &x)?;
    let y = picks::pick(call.terms, &logical, 1, &picks::listed(0, channels, 1)?)?;
    let last = call.int("channels_last", 0) != 0;
    if last { y.permuted(&[0, 2, 3, 1]).ok_or_else(wrong) } else { Ok(y) }
}

/// Weights, in the order of ONNX, and the real places of the channels that they read.
#[derive(Clone)]
struct Kernel {
    weights: Value,
    bias: Option<Value>,
    group: i64,
    /// Real places of the result's channels.
    rows: Runs,
    /// How many there are with slots.
    filters: i64,
}

/// Weights as ONNX has them: [M, C / group, kh, kw].
fn unpacked(call: &mut Call<'_>, w: &Value, by_out: bool) -> Made {
    let (b, [m, c, kh, kw]) = (size(call)?, four(w)?);
    if m % b != 0 || (!by_out && c % b != 0) {
        return Err("its filters are no whole blocks".to_owned());
    }
    let (split, order): (Vec<i64>, &[usize]) = if by_out {
        (vec![m / b, c, kh, kw, b], &[0, 4, 1, 2, 3])
    } else {
        (vec![m / b, c / b, kh, kw, b, b], &[0, 5, 1, 4, 2, 3])
    };
    let w = call.terms.moved(w, &split).and_then(|v| v.permuted(order)).ok_or_else(wrong)?;
    call.terms.moved(&w, &[m, c, kh, kw]).ok_or_else(wrong)
}

fn convolution(call: &mut Call<'_>) -> Made {
    let (b, x, w) = (size(call)?, call.need(0)?, call.need(1)?);
    let (shape, [m, c, kh, kw], group) = (four(&x)?, four(&w)?, call.int("group", 1));
    let bias = call.input(2).cloned();
    if call.ints("kernel_shape").is_some_and(|kernel| kernel != [kh, kw]) || c.checked_mul(group) != Some(shape[1]) {
        return Err(format!("operands of {shape:?} and {:?} do not fit", w.shape()));
    }
    if bias.as_ref().is_some_and(|bias| bias.shape() != [m]) {
        return Err("its bias does not fit".to_owned());
    }
    let plain = group == 1 && c < b;
    let alone = group > 1 && c == 1 && m == group;
    if !plain && !alone && (c % b != 0 || (m / group) % b != 0) {
        return Err("ONNX Runtime has no such convolution".to_owned());
    }
    let weights = unpacked(call, &w, plain || alone)?;
    let logical = if plain { x } else { unblocked(call, &x)? };
    let windows = windows_of(call, &[kh, kw], &shape[2..])?;
    let whole = Kernel { weights, bias, group, rows: vec![(0, m)], filters: m };
    let scale = alone && [kh, kw] == [1, 1];
    let y = if scale {
        let y = convolved(call.terms, &logical, &whole.weights, whole.bias.as_ref(), group, windows)?;
        real_inside(call, &y)?
    } else {
        let (inner, kernel) = trimmed(call, &logical, whole)?;
        let (y, kernel) = with_zeros(call, &inner, kernel, &windows)?;
        filled(call.terms, &y, 1, &kernel.rows, kernel.filters, Fill::Zero).ok_or_else(wrong)?
    };
    let y = summed(call, y)?;
    let y = activated(call, &y)?;
    // The input may have a gate in other ops, also where slots are around it.
    let y = if call.text("activation").is_some() { real_inside(call, &y)? } else { y };
    back(call, &y)
}

/// The convolution, with filters of zeros behind the last one if that is what the input computes: they look like slots.
fn with_zeros(call: &mut Call<'_>, x: &Value, kernel: Kernel, windows: &Windows) -> Result<(Value, Kernel), String> {
    let made = |call: &mut Call<'_>, kernel: &Kernel| {
        let (weights, bias) = (&kernel.weights, kernel.bias.as_ref());
        let y = convolved(call.terms, x, weights, bias, kernel.group, windows.clone())?;
        Ok::<Value, String>(call.terms.real(y))
    };
    let y = made(call, &kernel)?;
    let [(0, count)] = kernel.rows[..] else { return Ok((y, kernel)) };
    let most = if kernel.group == 1 && call.terms.lacks(&y) { kernel.filters } else { count };
    for more in 1..=most - count {
        let (Some(weights), bias) = (padded(&kernel.weights, more), kernel.bias.as_ref().map(|b| padded(b, more)))
        else {
            break;
        };
        if bias.as_ref().is_some_and(Option::is_none) {
            break;
        }
        let longer = Kernel { weights, bias: bias.flatten(), rows: vec![(0, count + more)], ..kernel.clone() };
        let other = made(call, &longer)?;
        if !call.terms.lacks(&other) {
            return Ok((other, longer));
        }
    }
    Ok((y, kernel))
}

/// A constant with so many more places of zeros along its first axis.
fn padded(x: &Value, more: i64) -> Option<Value> {
    let mut shape = x.shape();
    let mut data = x.elements()?.to_vec();
    let row = data.len() / usize::try_from(*shape.first()?).ok()?;
    data.resize(data.len() + row * usize::try_from(more).ok()?, 0);
    shape[0] += more;
    Some(Value::constant(x.dtype, &shape, data.into()))
}

/// The value by lemma, without its slots.
fn real_inside(call: &mut Call<'_>, y: &Value) -> Made {
    let found = bare(call.terms, y, 1).ok_or_else(wrong)?;
    let inner = call.terms.real(found.value);
    filled(call.terms, &inner, 1, &found.runs, y.shape()[1], found.fill).ok_or_else(wrong)
}

/// The convolution without slots: of the channels of its operand that are real, and those filters that are not all zero.
fn trimmed(call: &mut Call<'_>, x: &Value, kernel: Kernel) -> Result<(Value, Kernel), String> {
    let found = bare(call.terms, x, 1).ok_or_else(wrong)?;
    if !kernel.weights.is_constant() || kernel.bias.as_ref().is_some_and(|bias| !bias.is_constant()) {
        return if found.runs == [(0, x.shape()[1])] {
            Ok((found.value, kernel))
        } else {
            Err("it reads slots with weights that are not known".to_owned())
        };
    }
    let [m, c, ..] = four(&kernel.weights)?;
    let alone = c == 1 && kernel.group == m && m > 1;
    if alone {
        return by_channel(&found, &kernel);
    }
    let size = size(call)?;
    grouped(&found, kernel, size)
}

/// Each channel by itself: the filters of slots are gone, if they make zeros.
fn by_channel(found: &Stripped, kernel: &Kernel) -> Result<(Value, Kernel), String> {
    let real = places(&found.runs);
    let gone = others(&real, kernel.filters);
    let weights = picked(&kernel.weights, 0, &gone)?;
    let rest = zero_rows(kernel.bias.as_ref(), &gone)?
        && if found.fill == Fill::Zero { is_finite(&weights) } else { zero(&weights)? };
    if !rest {
        return Err("it makes of slots what is not zero".to_owned());
    }
    let (weights, bias) = rows_of(kernel, &real)?;
    let rows = found.runs.clone();
    let kernel = Kernel { weights, bias, group: real.len() as i64, rows, filters: kernel.filters };
    Ok((found.value.clone(), kernel))
}

fn others(real: &[i64], extent: i64) -> Vec<i64> {
    (0..extent).filter(|place| real.binary_search(place).is_err()).collect()
}

fn rows_of(kernel: &Kernel, rows: &[i64]) -> Result<(Value, Option<Value>), String> {
    let weights = picked(&kernel.weights, 0, rows)?;
    let bias = kernel.bias.as_ref().map(|bias| picked(bias, 0, rows)).transpose()?;
    Ok((weights, bias))
}

fn zero(value: &Value) -> Result<bool, String> {
    value.zero().ok_or_else(wrong)
}

fn zero_rows(bias: Option<&Value>, rows: &[i64]) -> Result<bool, String> {
    bias.map_or(Ok(true), |bias| zero(&picked(bias, 0, rows)?))
}

/// Groups of channels: in each the real channels come first, and so do filters that are not all zero.
fn grouped(found: &Stripped, kernel: Kernel, block: i64) -> Result<(Value, Kernel), String> {
    let [m, c, ..] = four(&kernel.weights)?;
    let (group, real) = (kernel.group, places(&found.runs));
    let columns: Vec<i64> = real.iter().copied().take_while(|place| *place < c).collect();
    let again = (0..group).flat_map(|g| columns.iter().map(move |place| g * c + place));
    if !again.eq(real.iter().copied()) {
        return Err("its groups have slots in other places".to_owned());
    }
    let gone = others(&columns, c);
    if !zero(&picked(&kernel.weights, 1, &gone)?)? {
        return Err("it reads slots".to_owned());
    }
    let weights = picked(&kernel.weights, 1, &columns)?;
    let per = m / group;
    let places = real_rows(&weights, kernel.bias.as_ref(), block);
    let own: Vec<i64> = places.iter().copied().take_while(|row| *row < per).collect();
    let alike = (0..group).flat_map(|g| own.iter().map(move |row| g * per + row)).eq(places.iter().copied());
    let rows = if alike { places } else { (0..m).collect() };
    let kernel = Kernel { weights, ..kernel };
    let (weights, bias) = rows_of(&kernel, &rows)?;
    let runs = joined(rows.iter().map(|row| (*row, 1)));
    let (weights, group) = split_diagonal(weights, group)?;
    Ok((found.value.clone(), Kernel { weights, bias, group, rows: runs, filters: m }))
}

/// The filters but for those at the end of a block that are zero, where the block has others.
fn real_rows(weights: &Value, bias: Option<&Value>, block: i64) -> Vec<i64> {
    let clear = |of: &Value, row: i64| of.part(0, row, 1).and_then(|row| row.zero()).unwrap_or(false);
    let zero = |row: i64| clear(weights, row) && bias.is_none_or(|bias| clear(bias, row));
    let count = weights.shape()[0];
    let mut rows = Vec::new();
    for start in (0..count).step_by(usize::try_from(block).unwrap_or(1)) {
        let whole = block.min(count - start);
        let kept = (0..whole).rev().find(|row| !zero(start + row)).map_or(whole, |row| row + 1);
        rows.extend(start..start + kept);
    }
    rows
}

fn summed(call: &mut Call<'_>, y: Value) -> Made {
    let Some(sum) = call.input(3).cloned() else { return Ok(y) };
    if sum.shape() != y.shape() {
        return Err("its sum has another shape".to_owned());
    }
    let sum = unblocked(call, &sum)?;
    // The input may have the convolution with a scale behind it, or of halves.
    let y = call.terms.real(y);
    // Zeros and zeros are zeros.
    let both = [bare(call.terms, &y, 1).ok_or_else(wrong)?, bare(call.terms, &sum, 1).ok_or_else(wrong)?];
    if both.iter().all(|found| found.fill == Fill::Zero && found.runs == both[0].runs) {
        let inner = both.each_ref().map(|found| Some(found.value.clone()));
        let made = call.inner("Add", &[], &inner)?;
        return filled(call.terms, &made, 1, &both[0].runs, y.shape()[1], Fill::Zero).ok_or_else(wrong);
    }
    call.inner("Add", &[], &[Some(y), Some(sum)])
}

/// The activation that a convolution has.
pub(super) fn activated(call: &mut Call<'_>, y: &Value) -> Made {
    let Some(name) = call.text("activation") else { return Ok(y.clone()) };
    let given = match call.attr("activation_params") {
        Some(Attr::Floats(list)) => list.clone(),
        _ => Vec::new(),
    };
    let scalar = |value: f32| {
        let bound = Value::constant(FLOAT, &[], value.to_le_bytes().to_vec().into());
        if y.dtype == HALF { narrow_constant(&bound) } else { Some(bound) }.ok_or("its bound is no half")
    };
    let float = |name: &str, value: f32| (name.to_owned(), Attr::Float(value));
    let (attrs, more) = match (name.as_str(), given.as_slice()) {
        ("Relu" | "Sigmoid" | "Tanh" | "HardSwish", []) => (Vec::new(), Vec::new()),
        ("LeakyRelu", [alpha]) => (vec![float("alpha", *alpha)], Vec::new()),
        ("HardSigmoid", [alpha, beta]) => (vec![float("alpha", *alpha), float("beta", *beta)], Vec::new()),
        ("Clip", [least, most]) => (Vec::new(), vec![Some(scalar(*least)?), Some(scalar(*most)?)]),
        _ => return Err(format!("the checker does not know activation {name} with {given:?}")),
    };
    let mut inputs = vec![Some(y.clone())];
    inputs.extend(more);
    let y = call.inner(&name, &attrs, &inputs)?;
    // The input may have a gate in other ops.
    Ok(if name == "HardSigmoid" { call.terms.real(y) } else { y })
}

fn pool(call: &mut Call<'_>) -> Made {
    let x = call.need(0)?;
    let kernel = call.ints("kernel_shape").ok_or("it has no window")?;
    let windows = windows_of(call, &kernel, &four(&x)?[2..])?;
    let counts = call.int("count_include_pad", 0) != 0;
    let logical = unblocked(call, &x)?;
    let found = bare(call.terms, &logical, 1).ok_or_else(wrong)?;
    let y = pooled(call.terms, call.op, &found.value, windows, counts)?;
    let y = filled(call.terms, &y, 1, &found.runs, logical.shape()[1], found.fill).ok_or_else(wrong)?;
    back(call, &y)
}

/// An op of ONNX on the value without blocks and slots.
fn global(call: &mut Call<'_>, name: &str) -> Made {
    let x = call.need(0)?;
    inside(call, &x, name, &[], &[])
}

fn inside(call: &mut Call<'_>, x: &Value, name: &str, attrs: &[(String, Attr)], more: &[Option<Value>]) -> Made {
    let logical = unblocked(call, x)?;
    let found = bare(call.terms, &logical, 1).ok_or_else(wrong)?;
    let mut inputs = vec![Some(found.value.clone())];
    inputs.extend(more.iter().cloned());
    let y = call.inner(name, attrs, &inputs)?;
    let y = filled(call.terms, &y, 1, &found.runs, logical.shape()[1], found.fill).ok_or_else(wrong)?;
    back(call, &y)
}

fn upsample(call: &mut Call<'_>) -> Made {
    let x = call.need(0)?;
    let scales = call.ints("scales").filter(|s| s.len() == 4 && s.iter().all(|s| *s > 0) && s[..2] == [1, 1]);
    let scales = scales.ok_or("its scales are not those of spatial axes")?;
    let text = |name: &str, value: &str| (name.to_owned(), Attr::Text(value.as_bytes().to_vec()));
    let mode = call.text("mode").unwrap_or_else(|| "nearest".to_owned());
    let places = call.text("coordinate_transformation_mode").unwrap_or_else(|| "asymmetric".to_owned());
    let attrs = match mode.as_str() {
        "nearest" if places == "asymmetric" => {
            vec![
                text("mode", "nearest"),
                text("coordinate_transformation_mode", &places),
                text("nearest_mode", "floor"),
            ]
        }
        "linear" if matches!(places.as_str(), "asymmetric" | "half_pixel" | "align_corners") => {
            vec![text("mode", "linear"), text("coordinate_transformation_mode", &places)]
        }
        _ => return Err(format!("ONNX Runtime has no mode {mode} with {places}")),
    };
    let data: Vec<u8> = scales.iter().flat_map(|s| (*s as f32).to_le_bytes()).collect();
    let more = [None, Some(Value::constant(1, &[4], data.into()))];
    inside(call, &x, "Resize", &attrs, &more)
}
