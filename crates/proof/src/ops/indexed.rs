//! Ops that read or write the places that another operand names. Axes that they do not count along are brought to the order of what the
//! operands are made of, so that it does not matter how these lie.

use super::placed::of_results;
use super::{Call, Made, Results, axis_of, one};
use crate::term::Op;
use crate::value::Value;
use crate::view::Digit;

pub(super) fn run(call: &mut Call<'_>) -> Option<Results> {
    let made = match call.name().as_str() {
        "Gather" => gather(call),
        "GatherElements" => elements(call, 1),
        "ScatterElements" => elements(call, 0),
        "GatherND" => return Some(gather_nd(call)),
        _ => return None,
    };
    Some(made.and_then(one))
}

/// What an axis of a value counts along first.
fn key(value: &Value, axis: usize) -> (u32, i64) {
    let first = value.view[axis].first().filter(|_| !value.is_constant());
    first.map_or((u32::MAX, 0), |&Digit { axis, stride, .. }| (axis, -stride))
}

/// Axes in the order of what values are made of, by the first of them that says it.
pub(super) fn ordered(values: &[&Value], mut axes: Vec<usize>) -> Vec<usize> {
    axes.sort_by_key(|&axis| values.iter().map(|value| key(value, axis)).collect::<Vec<_>>());
    axes
}

/// The order that brings axes back.
pub(super) fn back(order: &[usize]) -> Vec<usize> {
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(to, &from)| back[from] = to);
    back
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
    let op = Op { name: "Gather", attrs: &[], dtype: 0 };
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
    let order = ordered(&operands.iter().collect::<Vec<_>>(), (0..rank).collect());
    let turned: Option<Vec<Value>> = operands.iter().map(|value| value.permuted(&order)).collect();
    let turned = turned.ok_or_else(wrong)?;
    let mut attrs = call.encoded(&["axis"])?;
    attrs.extend(back(&order)[axis].to_le_bytes());
    let op = Op { name: call.op, attrs: &attrs, dtype: 0 };
    let shape = turned.get(like).ok_or_else(wrong)?.shape();
    let made = call.terms.placed(&op, &turned.iter().map(Some).collect::<Vec<_>>(), &[(shape, operands[0].dtype)]);
    let made = made.and_then(|mut made| made.pop()).ok_or("its result is empty")?;
    made.permuted(&back(&order)).ok_or_else(wrong)
}

fn gather_nd(call: &mut Call<'_>) -> Results {
    let (x, list) = (call.need(0)?, call.need(1)?);
    let (shape, places) = (x.shape(), list.shape());
    let batch = usize::try_from(call.int("batch_dims", 0)).map_err(|_| wrong())?;
    let (&depth, outer) = places.split_last().ok_or_else(wrong)?;
    let inner =
        usize::try_from(depth).ok().and_then(|depth| shape.get(batch.checked_add(depth)?..)).ok_or_else(wrong)?;
    let batches = shape.get(..batch).filter(|batches| depth > 0 && outer.get(..batch) == Some(*batches));
    batches.ok_or_else(wrong)?;
    of_results(call, &[([outer, inner].concat(), x.dtype)])
}
