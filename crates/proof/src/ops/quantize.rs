//! Quantization: what numbers become integers, and integers numbers.

use super::each::per_axis;
use super::{Call, Made, movement, picks, pointwise, signed};
use crate::files::model;
use crate::lemmas::real::{operand, through};
use crate::terms::align::term_of;
use crate::terms::arg::{Op, numbers};
use crate::terms::name::Name;
use crate::terms::routed;
use crate::terms::value::Value;
use std::rc::Rc;

/// The type of sums of products.
const SUMS: u8 = 6;

/// A `QuantizeLinear` or a `DequantizeLinear`.
pub(super) fn run(call: &mut Call<'_>) -> Made {
    let (x, scale) = (call.need(0)?, call.need(1)?);
    let (rank, declared) = (x.rank(), call.dtype("output_dtype"));
    if call.op == "QuantizeLinear" && declared != 0 && call.input(2).is_some_and(|zero| zero.dtype != declared) {
        return Err("its zero point has another type than its result is said to have".to_owned());
    }
    if call.int("block_size", 0) != 0 {
        return quantize_blocks(call, &x, &scale);
    }
    let single = scale.count() == 1;
    if single && call.input(2).is_some_and(|zero| zero.count() != 1) {
        return Err("it has one scale, and more zero points".to_owned());
    }
    let axis = if single { 0 } else { movement::axis(call, 1, rank)? };
    let list = |value: &Value| {
        if value.count() == 1 { value.reshaped(&[]).ok_or_else(String::new) } else { per_axis(value, axis, rank) }
    };
    let scale = list(&scale)?;
    let zero = call.input(2).map(list).transpose()?;
    let dtype = match (call.op, &zero, declared) {
        ("DequantizeLinear", ..) => {
            if declared == 0 {
                scale.dtype
            } else {
                declared
            }
        }
        (_, Some(zero), _) => zero.dtype,
        (_, None, 0) => 2,
        (_, None, declared) => declared,
    };
    let mut without = vec!["axis", "output_dtype"];
    // Without a word it divides in the type of its scale.
    without.extend(Some("precision").filter(|name| matches!(call.dtype(name), 0) || call.dtype(name) == scale.dtype));
    let attrs = call.encoded(&without)?;
    if let Some(y) = bias(call, (&x, &scale, zero.as_ref()), dtype) {
        return Ok(y);
    }
    quantized(call, &attrs, (&x, &scale, zero.as_ref()), dtype)
}

/// Most numbers of a bias that are computed.
const BIAS: i64 = 1 << 20;

/// The floats that known sums stand for, such as those of a bias.
fn bias(call: &Call<'_>, (x, scale, zero): (&Value, &Value, Option<&Value>), dtype: u8) -> Option<Value> {
    let plain = zero.is_none_or(|zero| zero.elements().is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)));
    if call.op != "DequantizeLinear" || (x.dtype, scale.dtype, dtype) != (SUMS, 1, 1) || !plain || x.count() > BIAS {
        return None;
    }
    let (sums, scales) = (x.as_ints()?, scale.expanded(&x.shape())?.elements()?);
    let floats = scales.chunks_exact(4).map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    let data: Vec<u8> = sums.iter().zip(floats).flat_map(|(sum, scale)| (*sum as f32 * scale).to_le_bytes()).collect();
    Some(Value::constant(1, &x.shape(), data.into()))
}

/// Each scale is that of a block of an axis, which becomes two.
fn quantize_blocks(call: &mut Call<'_>, x: &Value, scale: &Value) -> Made {
    let (axis, size) = (movement::axis(call, 1, x.rank())?, call.int("block_size", 0));
    let (mut shape, mut blocks) = (x.shape(), scale.shape());
    let partly = || "the checker does not know scales of blocks that are not whole".to_owned();
    if size < 1 || blocks.get(axis).and_then(|count| count.checked_mul(size)) != Some(shape[axis]) {
        return Err(partly());
    }
    shape.splice(axis..=axis, [blocks[axis], size]);
    blocks.insert(axis + 1, 1);
    let apart = call.terms.moved(x, &shape).ok_or_else(partly)?;
    let mut operands = vec![apart];
    for list in [Some(scale), call.input(2)].into_iter().flatten() {
        operands.push(list.reshaped(&blocks).ok_or_else(partly)?);
    }
    let declared = call.dtype("output_dtype");
    let dtype = match (call.op, call.input(2), declared) {
        ("DequantizeLinear", _, 0) => scale.dtype,
        ("QuantizeLinear", Some(zero), _) => zero.dtype,
        ("QuantizeLinear", None, 0) => 2,
        _ => declared,
    };
    let mut attrs = call.encoded(&["axis", "block_size", "output_dtype"])?;
    attrs.push(u8::from(call.input(2).is_some()));
    let y = call.pointwise(&attrs, &operands.iter().collect::<Vec<_>>(), dtype)?;
    call.terms.moved(&y, &x.shape()).ok_or_else(partly)
}

/// What a `QuantizeLinear` or a `DequantizeLinear` makes of a value. With one scale, of some elements of a value it makes those of what it
/// makes of all, and of these in another order that in this order.
fn quantized(call: &mut Call<'_>, attrs: &[u8], (x, scale, zero): (&Value, &Value, Option<&Value>), dtype: u8) -> Made {
    let single = scale.count() == 1 && zero.is_none_or(|zero| zero.count() == 1);
    if let Some(picked) = Some(x).filter(|_| single).and_then(|x| picks::Picked::recognize(call.terms, x)) {
        let all = quantized(call, attrs, (&picked.of, scale, zero), dtype)?;
        if let Some(y) = picked.again(call.terms, &all, x) {
            return Ok(y);
        }
    }
    let ordered = |axis: usize| Some((axis, routed::without(call.terms, x, axis)?));
    if let Some((axis, (inner, told))) = (0..x.rank()).filter(|_| single).find_map(ordered) {
        let all = quantized(call, attrs, (&inner, scale, zero), dtype)?;
        if let Some(y) = routed::reordered(call.terms, &all, axis, &told) {
            return Ok(y);
        }
    }
    // What divides in another precision cuts off, and rounds, elsewhere.
    let plain = attrs.is_empty();
    if let Some(q) = requantized(call, (x, scale, zero), dtype)?.filter(|_| plain) {
        return Ok(q);
    }
    let all = clipped(call, (x, scale, zero), dtype).filter(|_| plain);
    let x = all.as_ref().unwrap_or(x);
    let scaled = |call: &mut Call<'_>, x: &Value, zero: Option<&Value>, dtype| {
        let attrs = [attrs, &[u8::from(zero.is_some())]].concat();
        let operands: Vec<&Value> = [Some(x), Some(scale), zero].into_iter().flatten().collect();
        call.pointwise(&attrs, &operands, dtype)
    };
    unsigned(call, (x, zero, dtype), scaled)
}

/// Scales for which no product with a difference of integers is denormal or infinite.
const SCALES: std::ops::Range<f32> = 1e-30..1e30;

/// The integers that became floats and are made of these again: each is the one that it was, since the floats are off by less than
/// a hundredth of a step.
fn requantized(
    call: &mut Call<'_>,
    (x, scale, zero): (&Value, &Value, Option<&Value>),
    dtype: u8,
) -> Result<Option<Value>, String> {
    let Some(term) = term_of(x).filter(|_| call.op == "QuantizeLinear" && x.dtype == 1 && scale.dtype == 1) else {
        return Ok(None);
    };
    let term = Rc::clone(call.terms.get(term));
    let known = scale.elements().and_then(|bytes| bytes.as_ref().try_into().ok()).map(f32::from_le_bytes);
    let fits = term.name() == Name::Model("DequantizeLinear") && known.is_some_and(|scale| SCALES.contains(&scale));
    let Some(q) = through(call.terms, x, &term, 0).filter(|_| fits) else { return Ok(None) };
    let op = Op { name: Name::Model("DequantizeLinear"), attrs: &term.attrs, dtype: x.dtype };
    let none = || Value::constant(dtype, &[], vec![0; model::width(dtype).unwrap_or(1)].into());
    let zero = zero.cloned().unwrap_or_else(none);
    // Signed bytes may be said as unsigned ones.
    for zero in [signed::shifted(&zero), Some(zero)].into_iter().flatten() {
        if q.dtype != zero.dtype || !matches!(q.dtype, 2..=5) {
            continue;
        }
        let mut makes = |operands: &[&Value]| {
            pointwise(call.terms, &op, operands).is_ok_and(|made| call.terms.same(&made, x) == Some(true))
        };
        let absent = zero.elements().is_some_and(|bytes| bytes.iter().all(|b| *b == 0));
        if makes(&[&q, scale, &zero]) || absent && makes(&[&q, scale]) {
            return if q.dtype == dtype { Ok(Some(q)) } else { signed::signed(call.terms, &q).map(Some) };
        }
    }
    Ok(None)
}

/// What was cut off before it is quantized, if quantizing cuts off as much: the ends of a `Relu` or a `Clip` become the least and the
/// largest integer, and all beyond them does too. What is no number becomes any integer anyway.
fn clipped(call: &Call<'_>, (x, scale, zero): (&Value, &Value, Option<&Value>), dtype: u8) -> Option<Value> {
    let term = Rc::clone(call.terms.get(term_of(x)?));
    if call.op != "QuantizeLinear" || [x.dtype, scale.dtype] != [1, 1] {
        return None;
    }
    let bound = |given: bool, at: usize, none: f64| {
        let known = |value: Value| numbers(&value).filter(|list| list.len() == 1).map(|list| list[0]);
        if given { operand(call.terms, &term, at).and_then(known) } else { Some(none) }
    };
    let (least, most) = match (term.name(), term.attrs.as_slice()) {
        (Name::Model("Relu"), _) => (0.0, f64::INFINITY),
        (Name::Model("Clip"), [1, low, high]) => {
            let (low, high) = (*low != 0, *high != 0);
            (bound(low, 1, f64::NEG_INFINITY)?, bound(high, 1 + usize::from(low), f64::INFINITY)?)
        }
        _ => return None,
    };
    let (first, last) = match dtype {
        2 => (0, 255),
        3 => (-128, 127),
        4 => (0, 65535),
        5 => (-32768, 32767),
        _ => return None,
    };
    let zeros = zero.map_or(Some(vec![0]), Value::as_ints)?;
    let scales = numbers(scale)?;
    let cuts = |zero: i64| {
        let [below, above] = [first - zero, last - zero].map(|steps| steps as f64);
        scales.iter().all(|&scale| scale > 0.0 && scale.is_finite() && least <= below * scale && most >= above * scale)
    };
    (!scales.is_empty() && zeros.into_iter().all(cuts)).then(|| through(call.terms, x, &term, 0))?
}

/// The same with unsigned bytes in the place of signed ones, where the zero point is known.
fn unsigned(
    call: &mut Call<'_>,
    (x, zero, dtype): (&Value, Option<&Value>, u8),
    scaled: impl FnOnce(&mut Call<'_>, &Value, Option<&Value>, u8) -> Made,
) -> Made {
    let none = Value::constant(signed::SIGNED, &[], [0].as_slice().into());
    let known = signed::shifted(zero.unwrap_or(&none));
    match known {
        Some(known) if call.op == "QuantizeLinear" && dtype == signed::SIGNED => {
            let bytes = scaled(call, x, Some(&known), signed::UNSIGNED)?;
            signed::signed(call.terms, &bytes)
        }
        Some(known) if call.op == "DequantizeLinear" => match signed::unsigned(call.terms, x) {
            Some(bytes) => scaled(call, &bytes, Some(&known), dtype),
            None => scaled(call, x, zero, dtype),
        },
        _ => scaled(call, x, zero, dtype),
    }
}
