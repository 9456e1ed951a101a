//! Convolutions and pools, in a form that does not depend on how a file writes them: padding by numbers, no axes that nothing
//! happens along, and products or scales where that is what a convolution is.

use super::{blocks, filters, picks};
use crate::files::model::width;
use crate::lemmas::real::{operand, through};
use crate::terms::align::term_of;
use crate::terms::arg::{Op, is_finite, numbers};
use crate::terms::flat::under;
use crate::terms::name::{Name, Own};
use crate::terms::picked::picked as columns_of;
use crate::terms::pointwise::{Made, binary, contract, pointwise, together};
use crate::terms::state::Terms;
use crate::terms::value::Value;
use crate::terms::view::{self, View};
use crate::terms::windows::{Convolution, Windows};
use crate::terms::{routed, slots};
use std::rc::Rc;

/// A convolution of [N, C, spatial] with weights [M, C / group, window] and, if there is one, a bias [M].
pub(super) fn convolved(
    terms: &mut Terms,
    x: &Value,
    w: &Value,
    bias: Option<&Value>,
    group: i64,
    mut windows: Windows,
) -> Made {
    let (mut x, mut w) = (x.clone(), w.clone());
    let (shape, weights) = (x.shape(), w.shape());
    let fits = shape.len() >= 3 && weights.len() == shape.len() && group >= 1;
    if let Some(channels) = weights.get(1).and_then(|count| count.checked_mul(group)) {
        terms.fixes(&x, 1, channels);
    }
    if !fits
        || weights[1].checked_mul(group) != Some(shape[1])
        || weights[0] % group != 0
        || windows.kernel != weights[2..]
    {
        return Err(format!("operands of {shape:?} and {weights:?} do not fit"));
    }
    if let Err(why) = windows.slid(terms, &shape[2..]) {
        windows.narrow(terms, &x);
        return Err(why);
    }
    // Zeros add nothing, but for the sign of a zero.
    let bias = bias.filter(|bias| bias.shape() != weights[..1] || bias.zero() != Some(true));
    if let Some(apart) = blocks::dilated(terms, &x, &windows) {
        let y = convolved(terms, &apart.image, &w, bias, group, apart.windows)?;
        return blocks::batched(terms, &y, &apart.place).ok_or_else(|| "its blocks do not split".to_owned());
    }
    if let Some((inner, more)) = zeros_around(terms, &x).filter(|_| windows.takes_more()) {
        x = inner;
        windows.pads.iter_mut().zip(more).for_each(|(pad, more)| *pad += more);
    }
    without_idle_taps(terms, &x, &mut w, &mut windows);
    // Axes of one place stay only as places of the result, which has no axes of extent 1.
    let gone: Vec<usize> = (0..windows.kernel.len()).rev().filter(|&at| no_axis(&windows, &x, at)).collect();
    for &at in &gone {
        windows.without_axis(at);
        x.view.remove(at + 2);
        w.view.remove(at + 2);
    }
    let apart = counted_as_one(terms, &mut x, &mut w, &mut windows);
    let y = over_axes(terms, &x, &w, bias, group, &mut windows)?;
    let convolution = Convolution { x, w, bias: bias.cloned(), group, windows };
    let mut y = by_filter(terms, &convolution, y);
    if let Some((at, extents)) = apart {
        let mut to = y.shape();
        to.splice(at..=at, extents);
        y = terms.moved(&y, &to).ok_or("its axes do not split")?;
    }
    gone.iter().rev().for_each(|&at| y.view.insert(at + 2, Vec::new()));
    Ok(y)
}

/// Leaves out the first and the last taps that read nothing but padding, wherever the windows are: as those beside one place.
fn without_idle_taps(terms: &Terms, x: &Value, w: &mut Value, windows: &mut Windows) {
    let rank = windows.kernel.len();
    if !w.is_constant() || windows.ceil {
        return;
    }
    for at in (0..rank).filter(|at| !terms.is_open(x.shape()[at + 2])) {
        let reads = |tap: &i64| windows.reads(at, *tap, x.shape()[at + 2]);
        let mut taps = (0..windows.kernel[at].min(TAPS)).filter(reads);
        let Some(first) = taps.next() else { continue };
        let last = taps.last().unwrap_or(first);
        let behind = windows.kernel[at] - 1 - last;
        let dilation = windows.dilations[at];
        let (before, after) = (windows.pads[at] - first * dilation, windows.pads[at + rank] - behind * dilation);
        if (first, behind) == (0, 0) || windows.kernel[at] > TAPS || before < 0 || after < 0 {
            continue;
        }
        if let Some(less) = w.part(at + 2, first, last - first + 1).filter(|_| is_finite(w)) {
            *w = less;
            (windows.kernel[at], windows.pads[at], windows.pads[at + rank]) = (last - first + 1, before, after);
        }
    }
}

/// Most taps along an axis that are looked at one by one.
const TAPS: i64 = 64;

/// Counts neighbouring axes of volumes as one along which windows have one place: which axis that is then, and the extents before.
fn counted_as_one(terms: &mut Terms, x: &mut Value, w: &mut Value, windows: &mut Windows) -> Option<(usize, Vec<i64>)> {
    let rank = windows.kernel.len();
    let padded = |at: usize| windows.pads[at] != 0 || windows.pads[at + rank] != 0;
    let still = |at: &usize| windows.kernel[*at] == 1 && windows.strides[*at] == 1 && !padded(*at);
    let first = (0..rank).find(still)?;
    let count = (first..rank).take_while(still).count();
    if rank < 3 || count < 2 {
        return None;
    }
    let mut to = x.shape();
    let extents: Vec<i64> = to.splice(first + 2..first + 2 + count, [0]).collect();
    to[first + 2] = extents.iter().product();
    *x = terms.moved(x, &to)?;
    for _ in 1..count {
        windows.without_axis(first);
        w.view.remove(first + 2);
    }
    Some((first + 2, extents))
}

/// A product of rows with a constant matrix by its columns, which are filters of one place.
pub(super) fn by_column(terms: &mut Terms, x: &Value, w: &Value, bias: Option<&Value>, y: Value) -> Value {
    let (rows, columns) = (x.rank() == 2 && w.rank() == 2, w.shape().get(1).copied());
    let bias = bias.map(|bias| bias.reshaped(&[bias.count()]).filter(|bias| Some(bias.count()) == columns));
    let (true, Some(w), None | Some(Some(_))) = (rows, w.permuted(&[1, 0]), &bias) else { return y };
    let windows = Windows {
        kernel: Vec::new(),
        strides: Vec::new(),
        dilations: Vec::new(),
        pads: Vec::new(),
        ceil: false,
        ruled: Vec::new(),
    };
    by_filter(terms, &Convolution { x: x.clone(), w, bias: bias.flatten(), group: 1, windows }, y)
}

/// The result by the filters of the input, if it is no term of it.
fn by_filter(terms: &mut Terms, convolution: &Convolution, y: Value) -> Value {
    if terms.is_of_input() {
        filters::note(terms, convolution, &y);
        return y;
    }
    if !terms.lacks(&y) {
        return y;
    }
    let y = terms.real(y);
    if !terms.lacks(&y) {
        return y;
    }
    let found = filters::found(terms, convolution);
    found.or_else(|| of_more_groups(terms, convolution).filter(|found| !terms.lacks(found))).unwrap_or(y)
}

/// The convolution of as many groups as its weights have blocks along a diagonal, if these are more.
fn of_more_groups(terms: &mut Terms, convolution: &Convolution) -> Option<Value> {
    let Convolution { x, w, bias, group, windows } = convolution;
    let (own, groups) = w.is_constant().then(|| split_diagonal(w.clone(), *group).ok())??;
    if groups == *group || !is_finite(w) {
        return None;
    }
    let y = over_axes(terms, x, &own, bias.as_ref(), groups, &mut windows.clone()).ok()?;
    Some(terms.real(y))
}

/// Weights that are zero but for blocks along a diagonal are those of more groups.
pub(super) fn split_diagonal(weights: Value, group: i64) -> Result<(Value, i64), String> {
    let shape = weights.shape();
    let (per, c) = (shape[0] / group, shape[1]);
    let clear = |row: i64, from: i64, to: i64| {
        let columns = |row: Value| columns_of(&row, 1, &(from..to).collect::<Vec<_>>()).ok()?.zero();
        from == to || weights.part(0, row, 1).and_then(columns).unwrap_or(false)
    };
    let diagonal = |parts: i64| {
        let (rows, columns) = (per / parts, c / parts);
        (0..group * per).all(|row| {
            let at = row % per / rows;
            clear(row, 0, at * columns) && clear(row, (at + 1) * columns, c)
        })
    };
    let parts =
        (2..=c.min(per)).rev().filter(|parts| per % parts == 0 && c % parts == 0).find(|parts| diagonal(*parts));
    let Some(parts) = parts else { return Ok((weights, group)) };
    let (rows, columns) = (per / parts, c / parts);
    let data = weights.elements().ok_or("its weights are not there")?;
    let cell = shape[2..].iter().product::<i64>() as usize * width(weights.dtype).ok_or("its weights are not there")?;
    let mut kept = Vec::new();
    for row in 0..group * per {
        let start = (row * c + row % per / rows * columns) as usize * cell;
        kept.extend_from_slice(&data[start..start + columns as usize * cell]);
    }
    let mut to = shape;
    to[1] = columns;
    Ok((Value::constant(weights.dtype, &to, kept.into()), group * parts))
}

fn no_axis(windows: &Windows, x: &Value, at: usize) -> bool {
    windows.kernel[at] == 1 && windows.padding(at) == 0 && windows.pads[at] == 0 && x.shape()[at + 2] == 1
}

pub(super) fn over_axes(
    terms: &mut Terms,
    x: &Value,
    w: &Value,
    bias: Option<&Value>,
    group: i64,
    windows: &mut Windows,
) -> Made {
    if let Some(bias) = bias.filter(|bias| !bias.is_constant()) {
        let (fixed, rest) = addends(terms, bias);
        let y = over_axes(terms, x, w, fixed.as_ref(), group, windows)?;
        let y = terms.real(y);
        return shifted(terms, y, Some(&rest));
    }
    let (channels, filters) = (x.shape()[1], w.shape()[0]);
    // Nobody can list the places that windows stop at along an axis that differs from call to call.
    let listed = !(0..windows.kernel.len()).any(|at| windows.strides[at] > 1 && terms.is_open(x.shape()[at + 2]));
    if listed && windows.single() && (group == 1 || (group == channels && filters == channels)) {
        let x = picked(terms, x, &windows.strides)?;
        let y = if group == 1 { product(terms, &x, w)? } else { scaled(terms, &x, w)? };
        return shifted(terms, y, bias);
    }
    let images = &x.shape()[2..];
    if listed && group == 1 && windows.spans(images) {
        let y = spanned(terms, x, w, windows)?;
        return shifted(terms, y, bias);
    }
    let all = windows.kernel == images && windows.pads.iter().all(|p| *p == 0);
    if all && group == channels && filters == channels && windows.dilations.iter().all(|d| *d == 1) {
        let y = summed(terms, x, w)?;
        return shifted(terms, y, bias);
    }
    if let Some((x, w)) = ordered(terms, x, w).filter(|_| group == 1) {
        return over_axes(terms, &x, &w, bias, group, windows);
    }
    let mut shape = vec![x.shape()[0], filters];
    shape.extend(windows.slid(terms, &x.shape()[2..])?);
    let mut attrs = windows.encoded();
    attrs.extend(format!(" {group}").into_bytes());
    let op = Op { name: Name::Model("Conv"), attrs: &attrs, dtype: 0 };
    let made = terms.placed(&op, &[Some(x), Some(w), bias], &[(shape, x.dtype)]);
    let y = made.and_then(|mut made| made.pop()).ok_or_else(|| "its result is empty".to_owned())?;
    let convolution = Convolution { x: x.clone(), w: w.clone(), bias: bias.cloned(), group, windows: windows.clone() };
    blocks::note(terms, &y, convolution);
    Ok(y)
}

/// Channels of several axes in the order of these, and the weights in that order; `None` if they are.
fn ordered(terms: &Terms, x: &Value, w: &Value) -> Option<(Value, Value)> {
    let digits = x.view.get(1).filter(|_| w.is_constant() && !x.is_constant())?;
    let mut order: Vec<usize> = (0..digits.len()).collect();
    order.sort_by_key(|&at| (digits[at].axis, -digits[at].stride));
    if order.is_sorted() || digits.iter().any(|digit| terms.is_open(digit.extent)) {
        return None;
    }
    let whole = w.shape();
    let mut apart = whole.clone();
    apart.splice(1..2, digits.iter().map(|digit| digit.extent));
    let mut to: Vec<usize> = vec![0];
    to.extend(order.iter().map(|at| at + 1));
    to.extend(digits.len() + 1..apart.len());
    let w = w.reshaped(&apart)?.permuted(&to)?.reshaped(&whole)?;
    let mut view = x.view.clone();
    view[1] = view::normal(order.iter().map(|&at| digits[at]));
    Some((Value { view, ..x.clone() }, w))
}

/// The constant part of a bias, if there is one, and the rest. Lemma 3: sums may be added up in another order.
fn addends(terms: &mut Terms, bias: &Value) -> (Option<Value>, Value) {
    let parts = term_of(bias).and_then(|term| {
        let term = Rc::clone(terms.get(term));
        let [a, b] = [through(terms, bias, &term, 0)?, through(terms, bias, &term, 1)?];
        (term.name() == Name::Model("Add") && b.is_constant() && !a.is_constant()).then_some((Some(b), a))
    });
    if parts.is_some() {
        terms.by_lemma("sums in another order");
    }
    parts.unwrap_or_else(|| (None, bias.clone()))
}

/// The places that windows of one place each stop at.
fn picked(terms: &mut Terms, x: &Value, strides: &[i64]) -> Made {
    let mut x = x.clone();
    for (at, &stride) in strides.iter().enumerate().filter(|(_, stride)| **stride > 1) {
        let extent = x.shape()[at + 2];
        let indices = picks::range(0, extent, stride, extent)?;
        x = picks::pick(terms, &x, at + 2, &indices)?;
    }
    Ok(x)
}

/// A convolution of windows of one place is a product with a matrix.
fn product(terms: &mut Terms, x: &Value, w: &Value) -> Made {
    let rank = x.rank();
    let (mut left, mut right) = (x.view.clone(), vec![Vec::new(); rank + 1]);
    let channels = std::mem::take(&mut left[1]);
    left.push(channels);
    (right[1], right[rank]) = (w.view[0].clone(), w.view[1].clone());
    let mut shape = x.shape();
    shape.push(shape[1]);
    shape[1] = w.shape()[0];
    let mut y = contract(terms, &shape, (x, left), (w, right), &[rank])?;
    y.view.truncate(rank);
    Ok(y)
}

/// The same where windows have one place along some axes and all of the others: it adds up over those too.
fn spanned(terms: &mut Terms, x: &Value, w: &Value, windows: &Windows) -> Made {
    let rank = x.rank();
    let whole: Vec<usize> = (0..windows.kernel.len()).filter(|&at| windows.kernel[at] > 1).collect();
    let strides: Vec<i64> =
        windows.strides.iter().enumerate().map(|(at, stride)| if whole.contains(&at) { 1 } else { *stride }).collect();
    let x = picked(terms, x, &strides)?;
    let (mut left, mut right, mut shape) = (x.view.clone(), vec![Vec::new(); rank], x.shape());
    right[1].clone_from(&w.view[0]);
    shape[1] = w.shape()[0];
    let channels = std::mem::take(&mut left[1]);
    left.push(channels);
    right.push(w.view[1].clone());
    shape.push(w.shape()[1]);
    for &at in &whole {
        let axis = std::mem::take(&mut left[at + 2]);
        left.push(axis);
        right.push(w.view[at + 2].clone());
        let extent = std::mem::replace(&mut shape[at + 2], 1);
        shape.push(extent);
    }
    let sums: Vec<usize> = (rank..left.len()).collect();
    let mut y = contract(terms, &shape, (&x, left), (w, right), &sums)?;
    y.view.truncate(rank);
    Ok(y)
}

/// A convolution of each channel by itself, whose window is the whole image, is a sum of products.
fn summed(terms: &mut Terms, x: &Value, w: &Value) -> Made {
    let mut right = w.view.clone();
    right.swap(0, 1);
    let spatial: Vec<usize> = (2..x.rank()).collect();
    contract(terms, &x.shape(), (x, x.view.clone()), (w, right), &spatial)
}

/// A convolution of each channel by itself, with windows of one place, is a scale. A scale of ones is none.
fn scaled(terms: &mut Terms, x: &Value, w: &Value) -> Made {
    if numbers(w).is_some_and(|list| list.iter().all(|v| v.to_bits() == 1f64.to_bits())) {
        return Ok(x.clone());
    }
    let mut view: View = vec![Vec::new(); x.rank()];
    view[1].clone_from(&w.view[0]);
    let w = Value { view, ..w.clone() };
    binary(terms, "Mul", x, &w)
}

/// Adds a number per channel.
pub(super) fn shifted(terms: &mut Terms, y: Value, bias: Option<&Value>) -> Made {
    let Some(bias) = bias else { return Ok(y) };
    let mut view: View = vec![Vec::new(); y.rank()];
    if bias.rank() != 1 || (bias.count() != y.shape()[1]) {
        return Err("its bias does not fit".to_owned());
    }
    view[1].clone_from(&bias.view[0]);
    let bias = Value { view, ..bias.clone() };
    binary(terms, "Add", &y, &bias)
}

/// What a Pad of zeros along spatial axes pads, and by how much: starts of all axes, then ends.
fn zeros_around(terms: &Terms, x: &Value) -> Option<(Value, Vec<i64>)> {
    let term = Rc::clone(terms.get(term_of(x)?));
    if term.name() != Name::Model("Pad") || term.attrs != b"constant" {
        return None;
    }
    let inner = under(&term, x)?;
    let first = (term.base.len() - term.along.len()) as u32;
    let spatial = x.rank().checked_sub(2)?;
    let mut more = vec![0; 2 * spatial];
    for (at, (_, told)) in term.along.iter().enumerate() {
        let axis = x.view.iter().position(|digits| digits.iter().any(|d| d.axis == first + at as u32))?;
        let [before, after] = *told.as_slice() else { return None };
        let whole = x.view[axis].len() == 1 && before >= 0 && after >= 0;
        let place = axis.checked_sub(2).filter(|_| whole)?;
        (more[place], more[place + spatial]) = (before, after);
    }
    Some((inner, more))
}

/// A pool over [N, C, spatial]: `name` is that of the op, `counts` whether a mean counts padding.
pub(super) fn pooled(terms: &mut Terms, name: &str, x: &Value, mut windows: Windows, counts: bool) -> Made {
    // Zeros, and numbers that nobody knows, stay what they are.
    if let Some(found) = slots::stripped(terms, x, 1) {
        let y = pooled(terms, name, &found.value, windows, counts)?;
        let y = slots::filled(terms, &y, 1, &found.runs, x.shape()[1], found.fill);
        return y.ok_or_else(|| "its channels do not fit".to_owned());
    }
    if let Some((x, order)) = routed::without(terms, x, 1) {
        let y = pooled(terms, name, &x, windows, counts)?;
        return routed::reordered(terms, &y, 1, &order).ok_or_else(|| "its channels do not fit".to_owned());
    }
    let shape = x.shape();
    if shape.len() != windows.kernel.len() + 2 || shape.len() < 3 {
        return Err("its window does not fit its operand".to_owned());
    }
    if name == "MaxPool"
        && let Some(y) = largest(terms, x, &windows)
    {
        return Ok(y);
    }
    if let Some(at) = (0..windows.kernel.len()).find(|&at| no_axis(&windows, x, at)) {
        return without_axis(terms, name, x, windows, (at, counts));
    }
    if name == "AveragePool"
        && let Some(y) = mean_of_tiles(terms, x, &windows)
    {
        return Ok(y);
    }
    let mut out = shape[..2].to_vec();
    match windows.slid(terms, &shape[2..]) {
        Ok(counts) => out.extend(counts),
        Err(why) => {
            windows.narrow(terms, x);
            return Err(why);
        }
    }
    let padded = windows.ceil || windows.pads.iter().any(|p| *p != 0) || windows.may_reach_out(terms, &shape[2..]);
    let mut attrs = windows.encoded();
    attrs.extend(format!(" {:?} {}", windows.kernel, u8::from(counts && padded)).into_bytes());
    let made = terms.placed(&Op { name: Name::Model(name), attrs: &attrs, dtype: 0 }, &[Some(x)], &[(out, x.dtype)]);
    made.and_then(|mut made| made.pop()).ok_or_else(|| "its result is empty".to_owned())
}

/// The same without an axis of one place along which nothing happens. Without any other it is the operand.
fn without_axis(terms: &mut Terms, name: &str, x: &Value, mut windows: Windows, (at, counts): (usize, bool)) -> Made {
    windows.without_axis(at);
    if windows.kernel.is_empty() {
        return Ok(x.clone());
    }
    let mut less = x.clone();
    less.view.remove(at + 2);
    let mut y = pooled(terms, name, &less, windows, counts)?;
    y.view.insert(at + 2, Vec::new());
    Ok(y)
}

/// A mean over windows that lie side by side is one over axes: as a pool over all of an image is.
fn mean_of_tiles(terms: &mut Terms, x: &Value, windows: &Windows) -> Option<Value> {
    let shape = x.shape();
    let side_by_side = windows.kernel == windows.strides && windows.pads.iter().all(|&pad| pad == 0);
    let side_by_side = side_by_side && windows.ruled.iter().all(Option::is_none);
    let close = windows.dilations.iter().zip(&windows.kernel).all(|(&dilation, &kernel)| dilation == 1 || kernel == 1);
    if x.dtype != 1 || !side_by_side || !close || windows.kernel.iter().all(|&kernel| kernel == 1) {
        return None;
    }
    let (mut split, mut within) = (shape[..2].to_vec(), Vec::new());
    for (&extent, &kernel) in shape[2..].iter().zip(&windows.kernel) {
        if extent % kernel != 0 {
            return None;
        }
        split.push(extent / kernel);
        within.push(split.len());
        split.push(kernel);
    }
    let tiles = terms.moved(x, &split)?;
    let op = Op { name: Name::Model("ReduceMean"), attrs: &[], dtype: x.dtype };
    let mut y = together(terms, &op, &[&tiles], &within, true).ok()?;
    within.iter().rev().for_each(|&axis| drop(y.view.remove(axis)));
    Some(y)
}

/// The largest numbers of windows over integers as floats: the floats of the largest integers, since a larger integer is no smaller
/// float. Signed bytes that are unsigned ones less 128 are no different.
fn largest(terms: &mut Terms, x: &Value, windows: &Windows) -> Option<Value> {
    let term = Rc::clone(terms.get(term_of(x)?));
    let is_number =
        |at: usize| operand(terms, &term, at).is_some_and(|value| value.is_constant() && value.count() == 1);
    let scaled = |terms: &Terms| {
        let known = operand(terms, &term, 1).and_then(|scale| numbers(&scale));
        known.is_some_and(|scale| scale.len() == 1 && scale[0] > 0.0 && scale[0].is_finite())
    };
    let grows = match term.name() {
        Name::Own(Own::Signed) => true,
        Name::Model("DequantizeLinear") => (1..term.args.len()).all(is_number) && scaled(terms),
        _ => false,
    };
    let q = through(terms, x, &term, 0).filter(|q| grows && matches!(q.dtype, 2..=5) && windows.is_never_empty())?;
    let mut operands = vec![pooled(terms, "MaxPool", &q, windows.clone(), false).ok()?];
    for at in 1..term.args.len() {
        operands.push(operand(terms, &term, at)?.reshaped(&[])?);
    }
    let op = Op { name: term.name(), attrs: &term.attrs, dtype: term.dtype };
    pointwise(terms, &op, &operands.iter().collect::<Vec<_>>()).ok()
}
