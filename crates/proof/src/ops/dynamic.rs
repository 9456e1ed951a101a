//! Quantization by the range of what is quantized: scale and zero point are made of all elements as a set.

use super::{Call, Results, pointwise, together};
use crate::term::Op;
use crate::value::Value;
use crate::view::View;

const BYTES: u8 = 2;

pub(super) fn run(call: &mut Call<'_>) -> Option<Results> {
    (call.name() == "DynamicQuantizeLinear").then(|| quantized(call))
}

fn quantized(call: &mut Call<'_>) -> Results {
    let x = call.need(0)?;
    let all: Vec<usize> = (0..x.rank()).collect();
    let mut of_all = |name: &str, dtype: u8| {
        let made = together(call.terms, &Op { name, attrs: &[], dtype }, &[&x], &all, true)?;
        Ok::<Value, String>(Value { view: View::new(), ..made })
    };
    let scale = of_all("DynamicQuantizeLinear.scale", x.dtype)?;
    let zero = of_all("DynamicQuantizeLinear.zero", BYTES)?;
    let op = Op { name: "DynamicQuantizeLinear", attrs: &[], dtype: BYTES };
    let y = pointwise(call.terms, &op, &[&x, &scale, &zero])?;
    Ok(vec![Some(y), Some(scale), Some(zero)])
}
