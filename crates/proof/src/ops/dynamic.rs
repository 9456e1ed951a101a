//! Quantization by the range of what is quantized: scale and zero point are made of all elements as a set. And products of such integers,
//! as numbers again.

use super::{Call, Made, Results, one, pointwise, together};
use crate::files::model::Attr;
use crate::terms::arg::Op;
use crate::terms::name::{Name, Own};
use crate::terms::value::Value;
use crate::terms::view::View;

const BYTES: u8 = 2;

pub(super) fn run(call: &mut Call<'_>) -> Option<Results> {
    match call.name().as_str() {
        "DynamicQuantizeLinear" => Some(call.need(0).and_then(|x| quantized(call, &x))),
        "com.microsoft.MatMulIntegerToFloat" => Some(to_float(call).and_then(one)),
        "com.microsoft.DynamicQuantizeMatMul" => Some(by_range(call).and_then(one)),
        _ => None,
    }
}

/// A product of integers, as numbers: times the scales of both, plus a bias.
fn to_float(call: &mut Call<'_>) -> Made {
    let [a, b, left, right, left_zero, right_zero, bias] = [0, 1, 2, 3, 4, 5, 6].map(|at| call.input(at).cloned());
    scaled(call, &[a, b, left_zero, right_zero], &[left, right], bias)
}

/// The same where the left matrix is quantized by its range.
fn by_range(call: &mut Call<'_>) -> Made {
    let [b, scale, zero, bias] = [1, 2, 3, 4].map(|at| call.input(at).cloned());
    let x = call.need(0)?;
    let Ok([a, left, left_zero]) = <[Option<Value>; 3]>::try_from(quantized(call, &x)?) else {
        return Err("it quantizes nothing".to_owned());
    };
    scaled(call, &[a, b, left_zero, zero], &[left, scale], bias)
}

fn scaled(call: &mut Call<'_>, product: &[Option<Value>], scales: &[Option<Value>; 2], bias: Option<Value>) -> Made {
    if scales.iter().flatten().chain(&bias).any(|value| value.dtype != 1) {
        return Err("the checker knows such products of floats of 32 bits only".to_owned());
    }
    let sums = call.inner("MatMulInteger", &[], product)?;
    let floats = call.inner("Cast", &[("to".to_owned(), Attr::Int(1))], &[Some(sums)])?;
    let scale = call.inner("Mul", &[], scales)?;
    let y = call.inner("Mul", &[], &[Some(floats), Some(scale)])?;
    let y = call.terms.real(y);
    match bias {
        Some(bias) => call.inner("Add", &[], &[Some(y), Some(bias)]),
        None => Ok(y),
    }
}

fn quantized(call: &mut Call<'_>, x: &Value) -> Results {
    let all: Vec<usize> = (0..x.rank()).collect();
    let mut of_all = |own: Own, dtype: u8| {
        let made = together(call.terms, &Op { name: Name::Own(own), attrs: &[], dtype }, &[x], &all, true)?;
        Ok::<Value, String>(Value { view: View::new(), ..made })
    };
    let scale = of_all(Own::DynamicScale, x.dtype)?;
    let zero = of_all(Own::DynamicZero, BYTES)?;
    let op = Op { name: Name::Model("DynamicQuantizeLinear"), attrs: &[], dtype: BYTES };
    let y = pointwise(call.terms, &op, &[x, &scale, &zero])?;
    Ok(vec![Some(y), Some(scale), Some(zero)])
}
