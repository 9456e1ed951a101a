//! Ops that read or write the places that another operand names. Axes that they do not count along are brought to the order of what the
//! operands are made of, so that it does not matter how these lie.

use super::{Call, Made, Results, axis_of, one, picks};
use crate::terms::arg::Op;
use crate::terms::name::Name;
use crate::terms::pointwise::{back, ordered};
use crate::terms::value::Value;

/// Most places that are looked at one by one.
const WRITTEN: i64 = 1 << 16;

pub(super) fn run(call: &mut Call<'_>) -> Option<Results> {
    let made = match call.name().as_str() {
        "Gather" => gather(call),
        "GatherElements" => elements(call, 1),
        "ScatterElements" => elements(call, 0),
        "GatherND" => gather_nd(call),
        "ScatterND" => scatter_nd(call),
        _ => return None,
    };
    Some(made.and_then(one))
}

fn wrong() -> String {
    "its shapes do not fit".to_owned()
}

/// Places of an axis that are not known before the model runs.
fn gather(call: &mut Call<'_>) -> Made {
    let (x, list) = (call.need(0)?, call.need(1)?);
    let axis = axis_of(call.int("axis", 0), x.rank())?;
    let mut order = ordered(&[&x], (0..x.rank()).filter(|&at| at != axis).collect());
    order.insert(0, axis);
    let of_list = ordered(&[&list], (0..list.rank()).collect());
    let whole = x.permuted(&order).zip(list.permuted(&of_list));
    let (whole, places) = whole.ok_or_else(wrong)?;
    let shape = [places.shape().as_slice(), &whole.shape()[1..]].concat();
    let op = Op { name: Name::Model("Gather"), attrs: &[], dtype: 0 };
    let made = call.terms.placed(&op, &[Some(&whole), Some(&places)], &[(shape, x.dtype)]);
    let made = made.and_then(|mut made| made.pop()).ok_or("its result is empty")?;
    // The axes of the list stand where the axis was.
    let (list_back, own) = (back(&of_list), back(&order));
    let outer = |at: usize| own[at] + list.rank() - 1;
    let mut to: Vec<usize> = (0..axis).map(outer).collect();
    to.extend(list_back);
    to.extend((axis + 1..x.rank()).map(outer));
    made.permuted(&to).ok_or_else(wrong)
}

/// Single elements along an axis, whose places are in the second operand. The result has the shape of operand `like`.
fn elements(call: &mut Call<'_>, like: usize) -> Made {
    let operands: Vec<Value> = (0..call.inputs.len()).map(|at| call.need(at)).collect::<Result<_, _>>()?;
    let rank = operands.first().map_or(0, Value::rank);
    let axis = axis_of(call.int("axis", 0), rank)?;
    if operands.iter().any(|value| value.rank() != rank) {
        return Err(wrong());
    }
    if let Some(y) = written_over(call, &operands, axis) {
        return Ok(y);
    }
    let order = ordered(&operands.iter().collect::<Vec<_>>(), (0..rank).collect());
    let turned: Option<Vec<Value>> = operands.iter().map(|value| value.permuted(&order)).collect();
    let turned = turned.ok_or_else(wrong)?;
    let mut attrs = call.encoded(&["axis"])?;
    attrs.extend(back(&order)[axis].to_le_bytes());
    let op = Op { name: Name::Model(call.op), attrs: &attrs, dtype: 0 };
    let shape = turned.get(like).ok_or_else(wrong)?.shape();
    let made = call.terms.placed(&op, &turned.iter().map(Some).collect::<Vec<_>>(), &[(shape, operands[0].dtype)]);
    let made = made.and_then(|mut made| made.pop()).ok_or("its result is empty")?;
    made.permuted(&back(&order)).ok_or_else(wrong)
}

/// What is written in all places of an axis, into each once: nothing is left of what was there.
fn written_over(call: &mut Call<'_>, operands: &[Value], axis: usize) -> Option<Value> {
    let [x, list, parts] = operands else { return None };
    let replaces = call.op == "ScatterElements" && call.text("reduction").is_none_or(|how| how == "none");
    let shape = x.shape();
    let known = list.is_constant() && !call.terms.has_open(list) && list.count() <= WRITTEN;
    let whole = list.shape() == shape && parts.shape() == shape && parts.dtype == x.dtype;
    (replaces && known && whole).then_some(())?;
    let places = list.as_ints()?;
    let (extent, inner) = (usize::try_from(shape[axis]).ok()?, shape[axis + 1..].iter().product::<i64>());
    let inner = usize::try_from(inner).ok()?;
    let line: Vec<i64> = places.iter().step_by(inner).take(extent).copied().collect();
    let alike = places.iter().enumerate().all(|(at, place)| line[at / inner % extent] == *place);
    let mut from = vec![-1; extent];
    for (at, place) in line.iter().enumerate() {
        *from.get_mut(usize::try_from(*place).ok()?)? = at as i64;
    }
    (alike && !from.contains(&-1)).then_some(())?;
    picks::pick(call.terms, parts, axis, &from).ok()
}

/// Parts of a value at places of its first axes: the axes of a part may lie in any order.
fn gather_nd(call: &mut Call<'_>) -> Made {
    let (x, list) = (call.need(0)?, call.need(1)?);
    let (shape, places) = (x.shape(), list.shape());
    let batch = usize::try_from(call.int("batch_dims", 0)).map_err(|_| wrong())?;
    let (&depth, outer) = places.split_last().ok_or_else(wrong)?;
    let first = usize::try_from(depth).ok().and_then(|depth| batch.checked_add(depth)).ok_or_else(wrong)?;
    let batches = shape.get(..batch).filter(|batches| depth > 0 && outer.get(..batch) == Some(*batches));
    batches.filter(|_| first <= x.rank()).ok_or_else(wrong)?;
    let order = parts_last(first, &[&x]);
    let whole = x.permuted(&order).ok_or_else(wrong)?;
    let made = [outer, &whole.shape()[first..]].concat();
    let made = placed(call, &[&whole, &list], made)?;
    // The places are where the first axes were.
    let back = back(&order);
    let to = (0..outer.len()).chain(back[first..].iter().map(|at| at - first + outer.len()));
    made.permuted(&to.collect::<Vec<_>>()).ok_or_else(wrong)
}

/// The same where parts are written.
fn scatter_nd(call: &mut Call<'_>) -> Made {
    let (x, list, parts) = (call.need(0)?, call.need(1)?, call.need(2)?);
    let (shape, places) = (x.shape(), list.shape());
    let (&depth, outer) = places.split_last().ok_or_else(wrong)?;
    let first = usize::try_from(depth).ok().filter(|first| *first <= x.rank());
    let Some(first) = first.filter(|first| parts.shape() == [outer, &shape[*first..]].concat()) else {
        return placed(call, &[&x, &list, &parts], shape);
    };
    let inner = [&x.view[..first], &parts.view[outer.len()..]].concat();
    let order = parts_last(first, &[&x, &Value { view: inner, ..parts.clone() }]);
    let of_parts: Vec<usize> =
        (0..outer.len()).chain(order[first..].iter().map(|axis| axis - first + outer.len())).collect();
    let whole = x.permuted(&order).zip(parts.permuted(&of_parts));
    let (whole, parts) = whole.ok_or_else(wrong)?;
    let made = placed(call, &[&whole, &list, &parts], whole.shape())?;
    made.permuted(&back(&order)).ok_or_else(wrong)
}

/// The first axes as they lie, and the others in the order of what values are made of.
fn parts_last(first: usize, values: &[&Value]) -> Vec<usize> {
    (0..first).chain(ordered(values, (first..values[0].rank()).collect())).collect()
}

/// The op of operands as they lie.
fn placed(call: &mut Call<'_>, operands: &[&Value], shape: Vec<i64>) -> Made {
    let attrs = call.encoded(&[])?;
    let op = Op { name: Name::Model(call.op), attrs: &attrs, dtype: 0 };
    let operands: Vec<Option<&Value>> = operands.iter().map(|value| Some(*value)).collect();
    let made = call.terms.placed(&op, &operands, &[(shape, call.need(0)?.dtype)]);
    made.and_then(|mut made| made.pop()).ok_or_else(|| "its result is empty".to_owned())
}
