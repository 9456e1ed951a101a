//! What a Pad adds, and takes away.

use super::{Call, Made, axes_of, joins};
use crate::files::model::{Attr, width};
use crate::lemmas::halves::{BFLOAT16, DOUBLE, FLOAT, HALF};
use crate::terms::arg::{Acted, Op};
use crate::terms::name::Name;
use crate::terms::value::Value;

/// Most axes of a Pad of which it is noted what it adds along each.
const NOTED: usize = 3;

/// Places that are added in front of an axis, and behind it.
type Along = (usize, [i64; 2]);

/// What is added, as a Pad is told it.
struct Fill {
    /// The mode, and what constant is added.
    attrs: Vec<u8>,
    /// The constant of mode `constant`.
    value: Option<Value>,
}

pub(super) fn pad(call: &mut Call<'_>) -> Made {
    let x = call.need(0)?;
    let rank = x.rank();
    let pads = call.list("pads", 1)?.ok_or("no pads are given")?;
    let axes = match call.known_list(3)? {
        Some(axes) => axes_of(&axes, rank)?,
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return Err("its pads do not fit its axes".to_owned());
    }
    let mode = call.text("mode").unwrap_or_else(|| "constant".to_owned());
    if !matches!(mode.as_str(), "constant" | "reflect" | "edge" | "wrap") {
        return Err(format!("the checker does not know mode {mode}"));
    }
    let (mut attrs, mut value) = (mode.clone().into_bytes(), None);
    if mode == "constant" {
        let bytes = fill(call, x.dtype)?;
        attrs.extend(&bytes);
        let whole = |width| if bytes.is_empty() { vec![0; width] } else { bytes };
        value = width(x.dtype).map(|width| Value::constant(x.dtype, &[], whole(width).into()));
    }
    let along: Vec<Along> =
        axes.iter().enumerate().map(|(at, &axis)| (axis, [pads[at], pads[at + axes.len()]])).collect();
    let (fill, less) = (Fill { attrs, value }, |(_, by): &Along| by.iter().any(|by| *by < 0));
    if !along.iter().any(less) || fill.value.is_none() {
        return padded(call, &x, &fill, along);
    }
    // Less than no places are places that are taken away.
    let more = along.iter().map(|&(axis, by)| (axis, by.map(|by| by.max(0)))).collect();
    let y = padded(call, &x, &fill, more)?;
    let cut: Vec<&Along> = along.iter().filter(|along| less(along)).collect();
    let list = |of: &dyn Fn(&Along) -> i64| {
        Some(Value::ints(&[cut.len() as i64], &cut.iter().map(|along| of(along)).collect::<Vec<_>>()))
    };
    let starts = list(&|(_, by)| (-by[0]).max(0));
    let ends = list(&|(_, by)| if by[1] < 0 { by[1] } else { i64::MAX });
    call.inner("Slice", &[], &[Some(y), starts, ends, list(&|(axis, _)| *axis as i64)])
}

fn padded(call: &mut Call<'_>, x: &Value, fill: &Fill, mut along: Vec<Along>) -> Made {
    along.retain(|(_, by)| *by != [0, 0]);
    along.sort_unstable();
    let shape = x.shape();
    let mut acted = Vec::new();
    for &(axis, [before, after]) in &along {
        let out = before.checked_add(after).and_then(|more| call.terms.sum_of(&[shape[axis]], more));
        let out = out.ok_or_else(|| format!("pads {before} and {after} of {shape:?}"))?;
        acted.push(Acted { axis, told: vec![before, after], out });
    }
    if acted.is_empty() {
        return Ok(x.clone());
    }
    if acted.iter().any(|a| a.out < 1) {
        return Err("its result is empty".to_owned());
    }
    let op = Op { name: Name::Model("Pad"), attrs: &fill.attrs, dtype: x.dtype };
    let y = call.terms.along(&op, x, &acted).ok_or("its axes do not split")?;
    if let Some(value) = fill.value.as_ref().filter(|_| along.len() <= NOTED && !x.is_constant()) {
        for at in 0..along.len() {
            note(call, &y, x, fill, value, &along, at)?;
        }
    }
    Ok(y)
}

/// Notes what a Pad is along one of its axes: what it adds, the Pad along the others, and what it adds.
fn note(
    call: &mut Call<'_>,
    y: &Value,
    x: &Value,
    fill: &Fill,
    value: &Value,
    along: &[Along],
    at: usize,
) -> Result<(), String> {
    let (axis, by) = along[at];
    let others = along.iter().filter(|other| other.0 != axis).copied().collect();
    let inner = padded(call, x, fill, others)?;
    let added = |count: i64| {
        let mut shape = y.shape();
        shape[axis] = count;
        value.expanded(&shape).filter(|_| count > 0)
    };
    let parts = [added(by[0]), Some(inner), added(by[1])].into_iter().flatten().collect();
    joins::note(call.terms, y, axis, parts, true);
    Ok(())
}

/// Parts of a Concat of which the first or the last are one number: a Pad adds these to the others.
pub(super) fn of_constants(call: &mut Call<'_>, values: &[Value], axis: usize) -> Option<Value> {
    let first = values.iter().position(|value| !value.is_constant())?;
    let last = values.iter().rposition(|value| !value.is_constant())?;
    let (front, back) = (first.checked_sub(1), Some(last + 1).filter(|at| *at < values.len()));
    let one = front.or(back).filter(|_| call.block.is_none() && !values.iter().any(Value::is_opaque))?;
    let number = values[one].splat()?.elements()?;
    let shape = values[first].shape();
    let same = |value: &Value| {
        let alike = value.shape().iter().enumerate().all(|(at, extent)| at == axis || shape.get(at) == Some(extent));
        alike && value.splat().and_then(|one| one.elements()).is_some_and(|one| one == number)
    };
    let before = values[..first].iter().rev().take_while(|value| same(value)).count();
    let after = values[last + 1..].iter().take_while(|value| same(value)).count();
    let (start, end) = (first - before, last + 1 + after);
    let count = |values: &[Value]| values.iter().map(|value| value.shape()[axis]).sum::<i64>();
    let by = [count(&values[start..first]), count(&values[last + 1..end])];
    (by != [0, 0]).then_some(())?;
    let op = |call: &mut Call<'_>, values: &[Value]| {
        let attrs = [("axis".to_owned(), Attr::Int(axis as i64))];
        let operands: Vec<Option<Value>> = values.iter().cloned().map(Some).collect();
        call.inner("Concat", &attrs, &operands).ok()
    };
    let inner = op(call, &values[first..=last])?;
    let mut pads = vec![0; 2 * inner.rank()];
    (pads[axis], pads[axis + inner.rank()]) = (by[0], by[1]);
    let pads = Value::ints(&[pads.len() as i64], &pads);
    let number = Value::constant(inner.dtype, &[], number);
    let y = call.inner("Pad", &[], &[Some(inner), Some(pads), Some(number)]).ok()?;
    if start == 0 && end == values.len() {
        return Some(y);
    }
    op(call, &[&values[..start], &[y], &values[end..]].concat())
}

/// The bytes that a Pad fills with; none for zeros, whose sign is not followed.
fn fill(call: &Call<'_>, dtype: u8) -> Result<Vec<u8>, String> {
    let bytes = match (call.input(2), call.attr("value")) {
        (Some(value), _) if value.dtype == dtype => value.elements().ok_or("its fill is not known")?.to_vec(),
        (None, Some(Attr::Float(value))) if dtype == 1 => value.to_le_bytes().to_vec(),
        (Some(_), _) | (None, Some(_)) => return Err("its fill has another type".to_owned()),
        (None, None) => Vec::new(),
    };
    let (last, others) = bytes.split_last().map_or((0, &[][..]), |(last, others)| (*last, others));
    // These types have a sign in their last bit.
    let negative = matches!(dtype, FLOAT | HALF | DOUBLE | BFLOAT16) && last == 0x80;
    let zero = (last == 0 || negative) && others.iter().all(|b| *b == 0);
    Ok(if zero { Vec::new() } else { bytes })
}
