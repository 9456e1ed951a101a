//! Ops that act along some axes, where the order of indices matters, and treat the others alike.

use super::brought;
use super::joins::{self, behind};
use super::picks::{Indices, indices_of, listed, of_repeats, parts_of, pick, range};
use super::rolled::rolled;
use super::{Call, Made, Results, axes_of, axis_of, blocked, movement, one, pads};
use crate::files::model::ReadingOf;
use crate::lemmas::interpolation;
use crate::terms::arg::{Acted, Op};
use crate::terms::name::{Name, Own};
use crate::terms::slots::{self, Fill};
use crate::terms::state::Terms;
use crate::terms::value::Value;
use crate::terms::view::{self, Digit, normal};

pub(super) fn run(call: &mut Call<'_>) -> Option<Results> {
    let made = match call.op {
        "Slice" => slice(call),
        "Gather" if call.input(1).is_some_and(Value::is_constant) => gather(call),
        "Split" => return Some(split(call)),
        "Concat" => concat(call),
        "Pad" => pads::pad(call),
        "Resize" | "Upsample" => resize(call),
        "ArgMax" | "ArgMin" => extreme(call),
        "CumProd" | "CumSum" => cumulate(call),
        "LRN" => lrn(call),
        "TopK" => return Some(top(call)),
        _ => return None,
    };
    Some(made.and_then(one))
}

/// The same for a value that may be blocked: whole blocks of it are blocks of channels, and its images are images.
fn pick_blocked(call: &mut Call<'_>, x: &Value, axis: usize, indices: &[i64]) -> Made {
    let block = call.block.unwrap_or(1);
    let run = |run: &[i64]| run[0] % block == 0 && run.iter().enumerate().all(|(at, i)| run[0] + at as i64 == *i);
    let size = usize::try_from(block).unwrap_or(1);
    let whole = axis == 0 || (indices.len().is_multiple_of(size) && indices.chunks(size).all(run));
    if let Some(logical) = blocked::recognized(call, x, axis).filter(|_| whole) {
        // Slots of channels are those of each image.
        let found = slots::bare(call.terms, &logical, 1).filter(|_| axis == 0);
        let y = match found {
            Some(found) => {
                let y = pick(call.terms, &found.value, axis, indices)?;
                let wide = logical.shape().get(1).copied().unwrap_or(1);
                slots::filled(call.terms, &y, 1, &found.runs, wide, found.fill).ok_or("its slots do not fit")?
            }
            None => pick(call.terms, &logical, axis, indices)?,
        };
        if let Some(y) = blocked::blocked(call, &y) {
            return Ok(y);
        }
    }
    pick(call.terms, x, axis, indices)
}

fn slice(call: &mut Call<'_>) -> Made {
    let mut x = call.need(0)?;
    let starts = call.extents("starts", 1)?.ok_or("no starts are given")?;
    let ends = call.extents("ends", 2)?.ok_or("no ends are given")?;
    let axes = call.list("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let axes = axes_of(&axes, x.rank())?;
    let steps = call.known_list(4)?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] || steps.contains(&0) {
        return Err("its lists do not fit each other".to_owned());
    }
    for (at, &axis) in axes.iter().enumerate() {
        let open = [x.shape()[axis], starts[at], ends[at]].map(|number| call.terms.is_open(number));
        if open != [false; 3] {
            x = part_of_open(call.terms, &x, axis, [starts[at], ends[at], steps[at]])?;
            continue;
        }
        let indices = range(starts[at], ends[at], steps[at], x.shape()[axis])?;
        call.terms.closed(indices.len() as i64)?;
        x = pick_blocked(call, &x, axis, &indices)?;
    }
    Ok(x)
}

/// A slice of an axis that differs from call to call, where it is known how many indices it has.
fn part_of_open(terms: &mut Terms, x: &Value, axis: usize, [start, end, step]: [i64; 3]) -> Made {
    let extent = x.shape()[axis];
    let unknown = || "nobody knows how many indices of an axis it takes".to_owned();
    let (last, first) = (i64::from(i32::MAX), -i64::from(i32::MAX));
    let end = if end == extent || end >= last { i64::MAX } else { end.max(first) };
    if !terms.is_open(extent) || [start, end].iter().any(|number| *number != i64::MAX && terms.is_open(*number)) {
        return Err(unknown());
    }
    let out = match (start, end, step) {
        (0, i64::MAX, 1) => return Ok(x.clone()),
        (-1, i64::MAX, 1) => Some(1),
        // Where the index is not there, the axis would be empty.
        (0.., 0.., 1) if end == start + 1 && terms.has_places(extent, end) => Some(1),
        (0.., i64::MAX, 1..) => terms.quotient_of(extent, step - 1 - start, step),
        (0.., ..0, 1..) if end > first => terms.quotient_of(extent, step - 1 - start + end, step),
        (-1, ..0, ..0) if end == first && step > first => terms.quotient_of(extent, -step - 1, -step),
        _ => None,
    };
    let out = out.ok_or_else(unknown)?;
    if let Some(y) = of_repeats(x, axis, out) {
        return Ok(y);
    }
    if let Some((inner, [start, end])) = joins::inside(terms, x, axis, [start, end]) {
        return part_of_open(terms, &inner, axis, [start, end, step]);
    }
    let acted = Acted { axis, told: vec![start, end, step], out };
    let op = Op { name: Name::Own(Own::Part), attrs: &[], dtype: x.dtype };
    terms.along(&op, x, &[acted]).ok_or_else(|| "its axes do not split".to_owned())
}

fn gather(call: &mut Call<'_>) -> Made {
    let (x, list) = (call.need(0)?, call.need(1)?);
    let axis = movement::axis(call, 0, x.rank())?;
    let extent = x.shape()[axis];
    let indices = list.as_ints().ok_or("its indices are no integers")?;
    let y = if call.terms.is_open(extent) {
        let &[index] = indices.as_slice() else { return Err("its axis differs from call to call".to_owned()) };
        let end = if index == -1 { i64::MAX } else { index + 1 };
        part_of_open(call.terms, &x, axis, [index, end, 1])?
    } else {
        let indices: Vec<i64> = indices.into_iter().map(|i| if i < 0 { i + extent } else { i }).collect();
        match rolled(call, &x, axis, &indices) {
            Some(y) => y?,
            None => pick_blocked(call, &x, axis, &indices)?,
        }
    };
    let mut to = y.shape();
    to.splice(axis..=axis, list.shape());
    y.reshaped(&to).ok_or_else(|| "its shapes do not fit".to_owned())
}

fn split(call: &mut Call<'_>) -> Results {
    let x = call.need(0)?;
    let axis = movement::axis(call, 0, x.rank())?;
    let extent = x.shape()[axis];
    let parts = parts_of(call, extent)?;
    let mut start = 0;
    let mut values = Vec::new();
    for part in parts {
        let indices = listed(start, part, 1)?;
        values.push(Some(pick_blocked(call, &x, axis, &indices)?));
        start += part;
    }
    Ok(values)
}

fn concat(call: &mut Call<'_>) -> Made {
    let values: Vec<Value> = call.inputs.iter().flatten().filter(|v| v.count() > 0).cloned().collect();
    let first = values.first().ok_or("it has no operands")?;
    let axis = axis_of(call.int("axis", i64::from(call.opset < 4)), first.rank())?;
    if let [only] = values.as_slice() {
        return Ok(only.clone());
    }
    if values.iter().any(|v| v.rank() != first.rank() || v.dtype != first.dtype) {
        return Err("its operands have different ranks or types".to_owned());
    }
    let values = adjoined(call.terms, joins::flattened(call.terms, values, axis), axis);
    if let [only] = values.as_slice() {
        return Ok(only.clone());
    }
    if let Some(y) = pads::of_constants(call, &values, axis) {
        return Ok(y);
    }
    let y = concat_parts(call, &values, axis)?;
    joins::note(call.terms, &y, axis, values, false);
    Ok(brought::read(call.terms, y, axis))
}

/// Values where neighbouring indices of one value stand as one part.
fn adjoined(terms: &mut Terms, values: Vec<Value>, axis: usize) -> Vec<Value> {
    let mut runs: Vec<(Vec<Value>, Option<Indices>)> = Vec::new();
    for value in values {
        let indices = indices_of(terms, &value, axis);
        if let (Some((run, Some(before))), Some(next)) = (runs.last_mut(), &indices)
            && before.takes(terms, next)
        {
            run.push(value);
        } else {
            runs.push((vec![value], indices));
        }
    }
    let joined = |(run, indices): (Vec<Value>, Option<Indices>)| match indices.filter(|_| run.len() > 1) {
        Some(indices) => indices.picked(terms, axis).map_or(run, |whole| vec![whole]),
        None => run,
    };
    runs.into_iter().flat_map(joined).collect()
}

fn concat_parts(call: &mut Call<'_>, values: &[Value], axis: usize) -> Made {
    let first = &values[0];
    if let Some((other, at)) = values
        .iter()
        .find_map(|v| Some((v, (0..v.rank()).find(|&at| at != axis && v.shape()[at] != first.shape()[at])?)))
    {
        if call.terms.is_open(first.shape()[at]) {
            call.terms.fixes(first, at, other.shape()[at]);
        } else {
            call.terms.fixes(other, at, first.shape()[at]);
        }
        call.terms.mismatch((first, at), (other, at));
        if let Some(wide) = call.terms.stretched(&values.iter().collect::<Vec<_>>(), Some(axis)) {
            let op = Op { name: Name::Model("Concat"), attrs: &[], dtype: first.dtype };
            return behind(call.terms, &op, &wide, axis);
        }
    }
    let logical: Option<Vec<Value>> = values.iter().map(|v| blocked::recognized(call, v, axis)).collect();
    let op = Op { name: Name::Model("Concat"), attrs: &[], dtype: first.dtype };
    if let Some(logical) = logical {
        let logical = adjoined(call.terms, logical, axis);
        let y = match logical.as_slice() {
            [only] => only.clone(),
            _ => slotted(call, &op, &logical, axis)?,
        };
        if let Some(y) = blocked::blocked(call, &y) {
            return Ok(y);
        }
    }
    slotted(call, &op, values, axis)
}

/// The same for values that may have slots along the axis: the real places come first, then the slots of all.
fn slotted(call: &mut Call<'_>, op: &Op<'_>, values: &[Value], axis: usize) -> Made {
    let parts: Option<Vec<_>> = values.iter().map(|v| slots::bare(call.terms, v, axis)).collect();
    let dialect = |v: &Value| slots::stripped(call.terms, v, axis).is_some();
    let Some(parts) = parts.filter(|_| call.block.is_some() && values.iter().any(dialect)) else {
        return behind(call.terms, op, values, axis);
    };
    let (mut runs, mut start) = (Vec::new(), 0);
    for (part, value) in parts.iter().zip(values) {
        runs.extend(part.runs.iter().map(|(first, count)| (start + first, *count)));
        start += value.shape()[axis];
    }
    let zero = parts.iter().all(|part| part.fill == Fill::Zero);
    let inner: Vec<Value> = parts.into_iter().map(|part| part.value).collect();
    let y = behind(call.terms, op, &inner, axis)?;
    let fill = if zero { Fill::Zero } else { Fill::Unknown };
    slots::filled(call.terms, &y, axis, &slots::joined(runs), start, fill)
        .ok_or_else(|| "its slots do not fit".to_owned())
}

/// Joins of quantized parts: what each part's numbers mean is known and part of the op.
pub(super) fn run_quantized(call: &mut Call<'_>) -> Option<Results> {
    (call.name() == "com.microsoft.QLinearConcat").then(|| quantized_concat(call).and_then(one))
}

fn quantized_concat(call: &mut Call<'_>) -> Made {
    let mut attrs = call.encoded(&["axis"])?;
    let (mut values, dtype) = (Vec::new(), call.need(1)?.dtype);
    for at in 0..call.inputs.len() {
        let value = call.need(at)?;
        if at >= 2 && (at - 2) % 3 == 0 {
            values.push(value);
        } else {
            attrs.push(value.dtype);
            attrs.extend(value.elements().filter(|_| value.count() == 1).ok_or("its scales are not known")?);
        }
    }
    let rank = values.first().ok_or("it has no operands")?.rank();
    let axis = axis_of(call.int("axis", 0), rank)?;
    behind(call.terms, &Op { name: Name::Model("com.microsoft.QLinearConcat"), attrs: &attrs, dtype }, &values, axis)
}

fn resize(call: &mut Call<'_>) -> Made {
    let x = call.need(0)?;
    let (rank, shape) = (x.rank(), x.shape());
    if shape.contains(&0) {
        return Err("its operand is empty".to_owned());
    }
    if is_unknown_resize(call) {
        return Err("the checker does not know this mode".to_owned());
    }
    let old = call.opset < 11;
    let axes = call.ints("axes").map_or_else(|| Ok((0..rank).collect()), |axes| axes_of(&axes, rank))?;
    let scales = match call.attr("scales") {
        Some(crate::files::model::Attr::Floats(list)) => Some(list.clone()),
        _ => call.input(if old { 1 } else { 2 }).and_then(floats).filter(|list| !list.is_empty()),
    };
    let sizes = if scales.is_some() { None } else { call.extents("", 3)? };
    if scales.as_ref().map(Vec::len).or(sizes.as_ref().map(Vec::len)) != Some(axes.len()) {
        return Err("its scales or sizes are not known".to_owned());
    }
    let mut acted = Vec::new();
    for (at, &axis) in axes.iter().enumerate() {
        let extent = shape[axis];
        let (out, told) = match (&scales, &sizes) {
            (Some(scales), _) => (scaled(call, extent, scales[at])?, i64::from(scales[at].to_bits())),
            (None, Some(sizes)) => (sizes[at], -1),
            (None, None) => (extent, -1),
        };
        let unit = scales.as_ref().is_none_or(|s| (s[at] - 1.0).abs() == 0.0);
        if out != extent || !unit {
            acted.push(Acted { axis, told: vec![told, out], out });
        }
    }
    if acted.iter().any(|a| a.out < 1) {
        return Err("its result is empty".to_owned());
    }
    let (x, mut acted) = of_one_place(call, x, acted);
    if acted.is_empty() {
        return Ok(x);
    }
    if old && call.reading == ReadingOf::Onnx {
        return Err("the checker does not know which places this operator set reads".to_owned());
    }
    if let Some(y) = repeated(call, &x, &acted) {
        return Ok(y);
    }
    for a in &mut acted {
        // A scale that is a whole number says no more than the extents do.
        if a.out % shape[a.axis] == 0 && (a.told[0] == -1 || whole(a.told[0], a.out / shape[a.axis])) {
            a.told = vec![-1, a.out];
        }
    }
    let open = |a: &Acted| call.terms.is_open(a.out) || call.terms.is_open(shape[a.axis]);
    if old && acted.iter().any(|a| open(a) && a.out % shape[a.axis] != 0) {
        return Err("nobody knows whether it makes an axis narrower".to_owned());
    }
    let narrower = acted.iter().any(|a| a.out < shape[a.axis]);
    let attrs = modes(call, narrower)?;
    interpolation::note(call.terms, &attrs, &shape, &acted);
    let op = Op { name: Name::Model("Resize"), attrs: &attrs, dtype: x.dtype };
    call.terms.along(&op, &x, &acted).ok_or_else(|| "its axes do not split".to_owned())
}

fn is_unknown_resize(call: &Call<'_>) -> bool {
    let policy = call.text("keep_aspect_ratio_policy").is_some_and(|policy| policy != "stretch");
    let crops = call.text("coordinate_transformation_mode").as_deref() == Some("tf_crop_and_resize");
    policy || crops || call.text("mode").is_some_and(|m| !matches!(m.as_str(), "nearest" | "linear" | "cubic"))
}

/// An extent times a scale, rounded down.
fn scaled(call: &mut Call<'_>, extent: i64, scale: f32) -> Result<i64, String> {
    let terms = &mut *call.terms;
    if !terms.is_open(extent) {
        // The standard's product is exact: 24 bits times 29 are at most the 53 of a double.
        let out = match call.reading {
            ReadingOf::OnnxRuntime => (extent as f32 * scale).floor() as i64,
            ReadingOf::Onnx if extent < 1 << 29 => (extent as f64 * f64::from(scale)).floor() as i64,
            ReadingOf::Onnx => return Err("the checker does not know what extent it makes".to_owned()),
        };
        return terms.closed(out).map(|()| out);
    }
    let whole = |scale: f32| Some(scale).filter(|scale| scale.fract() == 0.0 && (1.0..=1024.0).contains(scale));
    let out = match (whole(scale), whole(scale.recip())) {
        (Some(times), _) => extent.checked_mul(times as i64),
        // Powers of two alone have no rounding of their own.
        (None, Some(by)) if (by as i64).count_ones() == 1 => terms.quotient_of(extent, 0, by as i64),
        _ => None,
    };
    out.ok_or_else(|| "nobody knows what extent it makes".to_owned())
}

fn whole(bits: i64, scale: i64) -> bool {
    u32::try_from(bits).is_ok_and(|bits| f32::from_bits(bits).to_bits() == (scale as f32).to_bits())
}

/// The mode, and that of coordinates, and what else the mode reads.
fn modes(call: &Call<'_>, narrower: bool) -> Result<Vec<u8>, String> {
    let text = |name: &str, default: &str| call.text(name).unwrap_or_else(|| default.to_owned());
    let old = if call.opset < 11 { "asymmetric" } else { "half_pixel" };
    let mode = text("mode", "nearest");
    let places = text("coordinate_transformation_mode", old);
    // Before operator set 11 the standard does not say which place is nearest. ONNX Runtime rounds up where there are fewer.
    let old = if narrower { "old" } else { "floor" };
    let rounds = text("nearest_mode", if call.opset < 11 { old } else { "round_prefer_floor" });
    let mut without =
        vec!["scales", "axes", "keep_aspect_ratio_policy", "mode", "coordinate_transformation_mode", "nearest_mode"];
    if call.int("antialias", 0) == 0 {
        without.push("antialias");
    }
    if mode == "linear" {
        without.extend(
            ["cubic_coeff_a", "exclude_outside", "extrapolation_value"]
                .iter()
                .filter(|n| **n != "exclude_outside" || call.int("exclude_outside", 0) == 0),
        );
    }
    let rounds = if mode == "nearest" { rounds } else { String::new() };
    let mut attrs = call.encoded(&without)?;
    attrs.extend(format!("{mode} {places} {rounds}").into_bytes());
    Ok(attrs)
}

/// The nearest place, where each place is repeated a whole number of times.
fn repeated(call: &Call<'_>, x: &Value, acted: &[Acted]) -> Option<Value> {
    let text = |name: &str, default: &str| call.text(name).unwrap_or_else(|| default.to_owned());
    let old = call.opset < 11;
    let places = text("coordinate_transformation_mode", if old { "asymmetric" } else { "half_pixel" });
    let rounds = text("nearest_mode", if old { "floor" } else { "round_prefer_floor" });
    let floors = match (places.as_str(), rounds.as_str()) {
        ("asymmetric", "floor") => true,
        ("half_pixel", rounds) => rounds.starts_with("round_prefer"),
        _ => false,
    };
    if text("mode", "nearest") != "nearest" || !floors {
        return None;
    }
    let mut y = x.clone();
    for a in acted {
        let extent = view::extent(&x.view[a.axis]);
        let times = a.out / extent;
        if a.out % extent != 0 || !(a.told[0] == -1 || whole(a.told[0], times)) {
            return None;
        }
        y.view[a.axis] = normal(x.view[a.axis].iter().copied().chain([Digit::repeat(times)]));
    }
    Some(y)
}

/// What interpolates between places of an axis of one place is that place each time. The other axes are left.
fn of_one_place(call: &Call<'_>, mut x: Value, acted: Vec<Acted>) -> (Value, Vec<Acted>) {
    if call.text("mode").is_none_or(|mode| mode != "linear") {
        return (x, acted);
    }
    let (single, others): (Vec<_>, Vec<_>) = acted.into_iter().partition(|a| view::extent(&x.view[a.axis]) == 1);
    for a in single {
        x.view[a.axis] = normal([Digit::repeat(a.out)]);
    }
    (x, others)
}

fn floats(value: &Value) -> Option<Vec<f32>> {
    let bytes = value.elements().filter(|_| value.dtype == 1)?;
    Some(bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap_or_default())).collect())
}

fn extreme(call: &mut Call<'_>) -> Made {
    let x = call.need(0)?;
    let axis = movement::axis(call, 0, x.rank())?;
    let attrs = call.encoded(&["axis", "keepdims"])?;
    let op = Op { name: Name::Model(call.op), attrs: &attrs, dtype: 7 };
    let acted = Acted { axis, told: Vec::new(), out: 1 };
    let mut y = call.terms.along(&op, &x, &[acted]).ok_or("its axes do not split")?;
    if call.int("keepdims", 1) == 0 {
        y.view.remove(axis);
    }
    Ok(y)
}

fn cumulate(call: &mut Call<'_>) -> Made {
    let x = call.need(0)?;
    let axis = call.known(1)?.and_then(|a| a.first().copied()).ok_or("its axis is not known")?;
    let axis = axis_of(axis, x.rank())?;
    same_extent(call, &x, axis, &[])
}

fn lrn(call: &mut Call<'_>) -> Made {
    let x = call.need(0)?;
    if x.rank() < 2 {
        return Err("its rank is below 2".to_owned());
    }
    same_extent(call, &x, 1, &[])
}

fn same_extent(call: &mut Call<'_>, x: &Value, axis: usize, without: &[&str]) -> Made {
    let attrs = call.encoded(without)?;
    let op = Op { name: Name::Model(call.op), attrs: &attrs, dtype: x.dtype };
    let acted = Acted { axis, told: Vec::new(), out: x.shape()[axis] };
    call.terms.along(&op, x, &[acted]).ok_or_else(|| "its axes do not split".to_owned())
}

fn top(call: &mut Call<'_>) -> Results {
    let x = call.need(0)?;
    let axis = movement::axis(call, -1, x.rank())?;
    let known = call.known(1)?.and_then(|k| k.first().copied());
    let k = known.unwrap_or_else(|| call.int("k", 0));
    if k < 1 || k > x.shape()[axis] || call.terms.is_open(x.shape()[axis]) {
        return Err(format!("its number {k} is not known"));
    }
    let attrs = call.encoded(&["axis", "k"])?;
    let mut values = Vec::new();
    for (name, dtype) in [(Name::Model("TopK"), x.dtype), (Name::Own(Own::TopKIndices), 7)] {
        let op = Op { name, attrs: &attrs, dtype };
        let acted = Acted { axis, told: vec![k], out: k };
        values.push(Some(call.terms.along(&op, &x, &[acted]).ok_or("its axes do not split")?));
    }
    Ok(values)
}
