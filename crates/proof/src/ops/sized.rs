//! Arithmetic on extents that differ from call to call: what a model makes of the shapes of its values to say other shapes.

use super::picks::range;
use super::{Call, Results, axis_of, one};
use crate::files::model::Attr;
use crate::terms::arg::Op;
use crate::terms::name::{Name, Own};
use crate::terms::value::Value;
use crate::terms::view::{Digit, normal};

/// What an op makes of lists of extents, or of the shape of an operand; `None` for what is no such list.
pub(crate) fn run(call: &mut Call<'_>) -> Option<Results> {
    call.terms.symbolic.as_ref()?;
    if !call.domain.is_empty() {
        return None;
    }
    match call.op {
        "Shape" => return shape(call).map(one),
        "Size" => {
            let x = call.input(0).filter(|x| !x.is_opaque() && call.terms.has_open(x))?;
            let count = x.count();
            return call.terms.list(&[], &[count], 7).map(one);
        }
        _ => {}
    }
    if !call.inputs.iter().flatten().any(|value| call.terms.is_list(value)) {
        return None;
    }
    let made = match call.op {
        "Cast" => cast(call),
        "Concat" => concat(call),
        "ConstantOfShape" => filled(call),
        "Gather" => gather(call),
        "Identity" | "Reshape" | "Squeeze" | "Unsqueeze" => None,
        "Range" => counted(call),
        "ReduceProd" => product(call),
        "Slice" => slice(call),
        "Where" => chosen(call),
        _ => arithmetic(call),
    };
    made.map(one)
}

/// The numbers of an operand, and its type.
fn numbers(call: &Call<'_>, at: usize) -> Option<(Vec<i64>, u8)> {
    let value = call.input(at)?;
    Some((call.terms.numbers_of(value)?, value.dtype))
}

/// A list of one axis.
fn list(call: &mut Call<'_>, numbers: &[i64], dtype: u8) -> Option<Value> {
    call.terms.list(&[numbers.len() as i64], numbers, dtype)
}

fn shape(call: &mut Call<'_>) -> Option<Value> {
    let x = call.input(0).filter(|x| !x.is_opaque() && call.terms.has_open(x))?;
    let shape = x.shape();
    let rank = shape.len() as i64;
    let place = |n: i64| (if n < 0 { n + rank } else { n }).clamp(0, rank) as usize;
    let (start, end) = (place(call.int("start", 0)), place(call.int("end", rank)));
    list(call, shape.get(start..end.max(start))?, 7)
}

/// To another type of integers that has room for it.
fn cast(call: &mut Call<'_>) -> Option<Value> {
    let to = Some(call.dtype("to")).filter(|to| matches!(to, 6 | 7))?;
    let (numbers, _) = numbers(call, 0)?;
    let shape = call.input(0)?.shape();
    call.terms.list(&shape, &numbers, to)
}

fn concat(call: &mut Call<'_>) -> Option<Value> {
    axis_of(call.int("axis", i64::from(call.opset < 4)), 1).ok()?;
    let (mut all, mut types) = (Vec::new(), Vec::new());
    for at in 0..call.inputs.len() {
        call.input(at).filter(|value| value.rank() == 1)?;
        let (numbers, dtype) = numbers(call, at)?;
        all.extend(numbers);
        types.push(dtype);
    }
    types.dedup();
    list(call, &all, Some(types).filter(|types| types.len() == 1)?[0])
}

fn gather(call: &mut Call<'_>) -> Option<Value> {
    let ((from, dtype), (places, _)) = (numbers(call, 0)?, numbers(call, 1)?);
    axis_of(call.int("axis", 0), 1).ok()?;
    call.input(0).filter(|value| value.rank() == 1)?;
    let count = from.len() as i64;
    let at = |place: &i64| from.get(usize::try_from(if *place < 0 { place + count } else { *place }).ok()?).copied();
    let picked: Vec<i64> = places.iter().map(at).collect::<Option<_>>()?;
    let shape = call.input(1)?.shape();
    call.terms.list(&shape, &picked, dtype)
}

fn slice(call: &mut Call<'_>) -> Option<Value> {
    let (from, dtype) = numbers(call, 0).filter(|_| call.input(0).is_some_and(|value| value.rank() == 1))?;
    let one = |name: &str, at: usize, default: i64| -> Option<i64> {
        let list = match call.ints(name) {
            Some(list) => list,
            None if call.input(at).is_none() => vec![default],
            None => numbers(call, at)?.0,
        };
        Some(list).filter(|list| list.len() == 1 && !call.terms.is_open(list[0])).map(|list| list[0])
    };
    let (start, end, step) = (one("starts", 1, 0)?, one("ends", 2, 0)?, one("steps", 4, 1)?);
    axis_of(one("axes", 3, 0)?, 1).ok().filter(|_| step != 0)?;
    let picked = range(start, end, step, from.len() as i64).ok()?;
    let picked: Vec<i64> = picked.into_iter().map(|at| from[at as usize]).collect();
    list(call, &picked, dtype)
}

/// The product of all numbers of a list.
fn product(call: &mut Call<'_>) -> Option<Value> {
    let (from, dtype) = numbers(call, 0).filter(|_| call.input(0).is_some_and(|value| value.rank() == 1))?;
    let axes = match call.ints("axes") {
        Some(axes) => axes,
        None if call.input(1).is_none() => Some(vec![0]).filter(|_| call.int("noop_with_empty_axes", 0) == 0)?,
        None => numbers(call, 1)?.0,
    };
    (axes == [0] || axes == [-1]).then_some(())?;
    let all = from.iter().try_fold(1_i64, |all, number| all.checked_mul(*number))?;
    let shape: &[i64] = if call.int("keepdims", 1) != 0 { &[1] } else { &[] };
    call.terms.list(shape, &[all], dtype)
}

/// The numbers from one on, up to an extent.
fn counted(call: &mut Call<'_>) -> Option<Value> {
    let [(start, dtype), (end, _), (step, _)] = [numbers(call, 0)?, numbers(call, 1)?, numbers(call, 2)?];
    let (&[start], &[end], &[1]) = (start.as_slice(), end.as_slice(), step.as_slice()) else { return None };
    let count = call.terms.sum_of(&[end], start.checked_neg()?).filter(|_| !call.terms.is_open(start))?;
    let attrs = start.to_le_bytes();
    call.terms
        .placed(&Op { name: Name::Own(Own::RangeOfExtents), attrs: &attrs, dtype }, &[], &[(vec![count], dtype)])?
        .pop()
}

/// A constant of one number, repeated.
fn filled(call: &mut Call<'_>) -> Option<Value> {
    let (shape, _) = numbers(call, 0)?;
    let one = match call.attr("value") {
        Some(Attr::Tensor(tensor)) => Value::of_tensor(tensor).splat().filter(|value| value.count() == 1)?,
        _ => Value::constant(1, &[], vec![0; 4].into()),
    };
    shape.iter().all(|extent| *extent > 0).then_some(())?;
    crate::terms::value::count_of(&shape).ok()?;
    Some(Value { view: shape.into_iter().map(|extent| normal([Digit::repeat(extent)])).collect(), ..one })
}

/// Two or three lists that broadcast, number by number.
fn together<const N: usize>(call: &Call<'_>) -> Option<(Vec<[i64; N]>, Vec<i64>)> {
    (call.inputs.len() == N).then_some(())?;
    let operands: Vec<&Value> = call.inputs.iter().flatten().collect();
    let (shape, _) = crate::terms::align::broadcast(&operands).filter(|_| operands.len() == N)?;
    let wide =
        operands.iter().map(|value| call.terms.numbers_of(&value.expanded(&shape)?)).collect::<Option<Vec<_>>>()?;
    let row = |at: usize| std::array::from_fn(|operand| wide[operand][at]);
    Some(((0..wide[0].len()).map(row).collect(), shape))
}

fn chosen(call: &mut Call<'_>) -> Option<Value> {
    let (rows, shape) = together::<3>(call)?;
    let picked: Vec<i64> = rows.into_iter().map(|[condition, yes, no]| if condition != 0 { yes } else { no }).collect();
    let dtype = call.input(1)?.dtype;
    call.terms.list(&shape, &picked, dtype)
}

/// The open one of two extents, and the other one, if that is none.
fn one_open(call: &Call<'_>, [a, b]: [i64; 2]) -> Option<(i64, i64)> {
    match [a, b].map(|n| call.terms.is_open(n)) {
        [true, false] => Some((a, b)),
        [false, true] => Some((b, a)),
        _ => None,
    }
}

/// Integers of two lists. An open extent is 1 at least, so it is no number below that.
fn arithmetic(call: &mut Call<'_>) -> Option<Value> {
    let (rows, shape) = together::<2>(call)?;
    let dtype = call.input(0)?.dtype;
    if call.op == "Equal" {
        let differs = |row: &[i64; 2]| match one_open(call, *row) {
            Some((open, closed)) => (closed < 1 && call.terms.is_positive(open)).then_some(0),
            None => row.iter().all(|n| !call.terms.is_open(*n)).then(|| u8::from(row[0] == row[1])),
        };
        let made: Option<Vec<u8>> = rows.iter().map(differs).collect();
        return Some(Value::constant(9, &shape, made?.into()));
    }
    let mut made = Vec::new();
    for [a, b] in rows {
        let [open_a, open_b] = [a, b].map(|n| call.terms.is_open(n));
        made.push(match call.op {
            "Add" => call.terms.sum_of(&[a, b], 0)?,
            "Sub" if !open_b => call.terms.sum_of(&[a], b.checked_neg()?)?,
            "Mul" => a.checked_mul(b)?,
            "Div" if b > 0 && a % b == 0 => a / b,
            // Integers are rounded towards zero: extents are above that, and a sum may be below.
            "Div" if open_a && !open_b && b > 0 && call.terms.is_positive(a) => call.terms.quotient_of(a, 0, b)?,
            "Max" => {
                let (open, _) = one_open(call, [a, b]).filter(|(_, closed)| *closed <= 1)?;
                Some(open).filter(|open| call.terms.is_positive(*open))?
            }
            _ => return None,
        });
    }
    call.terms.list(&shape, &made, dtype)
}
