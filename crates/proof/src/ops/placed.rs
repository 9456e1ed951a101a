//! Ops that find their axes by position: operands are taken in the order of axes in which the op reads them.

use super::window;
use super::{Call, Results, one};
use crate::lemmas::real::{operand, through};
use crate::terms::align::term_of;
use crate::terms::arg::Op;
use crate::terms::name::{Name, Own};
use crate::terms::value::Value;
use crate::terms::windows::Windows;
use std::rc::Rc;

/// The type of places.
const PLACES: u8 = 7;

/// Shape and element type of a result.
pub(super) type Typed = (Vec<i64>, u8);

pub(super) fn run(call: &mut Call<'_>) -> Option<Results> {
    let typed: Result<Vec<Typed>, String> = match call.name().as_str() {
        "Conv" => return Some(convolution(call)),
        "QLinearConv" | "com.microsoft.QLinearConv" => return Some(quantized(call)),
        "ConvTranspose" => return Some(super::transposed::run(call)),
        "MaxPool" | "AveragePool" => return Some(pooling(call)),
        "ConvInteger" => conv(call, 0, 1, 6),
        "LpPool" => call.single().and_then(|()| pool(call)),
        "Trilu" => call.need(0).and_then(|x| like(call, &x)),
        "GridSample" => grid(call),
        "com.microsoft.QLinearGlobalAveragePool" => return Some(global(call)),
        _ => return None,
    };
    Some(typed.and_then(|results| of_results(call, &results)))
}

/// The op with its operands as they are, of these results.
pub(super) fn of_results(call: &mut Call<'_>, results: &[Typed]) -> Results {
    // Only these ops were bound to a signature without overloads.
    let attrs = call.encoded(&[])?;
    let name = call.name();
    let op = Op { name: Name::Model(&name), attrs: &attrs, dtype: 0 };
    let operands: Vec<Option<&Value>> = call.inputs.iter().map(Option::as_ref).collect();
    let made = call.terms.placed(&op, &operands, results).ok_or("its result is empty")?;
    Ok(made.into_iter().map(Some).collect())
}

/// The windows of a convolution or a pool over these spatial axes.
pub(super) fn windows_of(call: &Call<'_>, kernel: &[i64], spatial: &[i64]) -> Result<Windows, String> {
    let rank = kernel.len();
    let list = |name, default: i64| call.ints(name).unwrap_or_else(|| vec![default; rank]);
    let (strides, dilations) = (list("strides", 1), list("dilations", 1));
    let pads = call.ints("pads").unwrap_or_else(|| vec![0; 2 * rank]);
    if [strides.len(), dilations.len(), spatial.len()] != [rank; 3] || pads.len() != 2 * rank {
        return Err("its window does not fit its operand".to_owned());
    }
    if kernel.iter().chain(&strides).chain(&dilations).any(|n| *n < 1) {
        return Err("its window is empty".to_owned());
    }
    if kernel.iter().chain(&strides).chain(&dilations).chain(&pads).any(|n| n.unsigned_abs() > 1 << 30) {
        return Err("its window is too large to be computed with".to_owned());
    }
    let ceil = call.int("ceil_mode", 0) != 0;
    let ruled = vec![None; rank];
    let mut windows = Windows { kernel: kernel.to_vec(), strides, dilations, pads, ceil, ruled };
    let auto = call.text("auto_pad").unwrap_or_default();
    let by_itself = !matches!(auto.as_str(), "" | "NOTSET");
    let gaps = windows.dilations.iter().any(|&dilation| dilation != 1);
    if by_itself && (ceil || auto != "VALID" && gaps && call.op.ends_with("Pool")) {
        return Err(format!("runtimes differ from the standard about auto_pad {auto} with ceil_mode or dilations"));
    }
    if by_itself && gaps && auto != "VALID" {
        return Err(format!(
            "the checker does not know auto_pad {auto} with dilations, which ONNX Runtime does not run"
        ));
    }
    if by_itself && call.ints("pads").is_some_and(|pads| pads.iter().any(|&pad| pad != 0)) {
        return Err(format!("it says both pads and auto_pad {auto}"));
    }
    windows.resolve(call.terms, &auto, spatial)?;
    Ok(windows)
}

fn convolution(call: &mut Call<'_>) -> Results {
    let (x, w) = (call.need(0)?, call.need(1)?);
    let (shape, weights) = (x.shape(), w.shape());
    if shape.len() < 3 || weights.len() != shape.len() {
        return Err(format!("operands of {shape:?} and {weights:?} do not fit"));
    }
    if call.ints("kernel_shape").is_some_and(|kernel| kernel != weights[2..]) {
        return Err(format!("its window is not that of its weights {weights:?}"));
    }
    let windows = windows_of(call, &weights[2..], &shape[2..])?;
    let bias = call.input(2).cloned();
    window::convolved(call.terms, &x, &w, bias.as_ref(), call.int("group", 1), windows).and_then(one)
}

/// A convolution of quantized numbers. That of `com.microsoft` may have its channels last.
fn quantized(call: &mut Call<'_>) -> Results {
    let wrong = || "its shapes do not fit".to_owned();
    let (mut x, w, dtype) = (call.need(0)?, call.need(3)?, call.need(7)?.dtype);
    let rank = x.rank();
    let last = !call.domain.is_empty() && call.int("channels_last", 0) != 0;
    if rank < 3 || w.rank() != rank {
        return Err(wrong());
    }
    if last {
        let order: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
        x = x.permuted(&order).ok_or_else(wrong)?;
    }
    let (shape, weights, group) = (x.shape(), w.shape(), call.int("group", 1));
    let kernel = call.ints("kernel_shape").unwrap_or_else(|| weights[2..].to_vec());
    if kernel != weights[2..] || group < 1 || weights[1].checked_mul(group) != Some(shape[1]) || weights[0] % group != 0
    {
        return Err(wrong());
    }
    let mut windows = windows_of(call, &kernel, &shape[2..])?;
    let mut out = vec![shape[0], weights[0]];
    out.extend(windows.slid(call.terms, &shape[2..])?);
    let mut attrs = windows.encoded();
    attrs.extend(format!(" {group}").into_bytes());
    let mut operands: Vec<Option<&Value>> = call.inputs.iter().map(Option::as_ref).collect();
    operands[0] = Some(&x);
    let op = Op { name: Name::Model("QLinearConv"), attrs: &attrs, dtype: 0 };
    let y = call.terms.placed(&op, &operands, &[(out, dtype)]).and_then(|mut made| made.pop()).ok_or_else(wrong)?;
    let back: Vec<usize> = if last { [0].into_iter().chain(2..rank).chain([1]).collect() } else { (0..rank).collect() };
    one(y.permuted(&back).ok_or_else(wrong)?)
}

/// The integers of which a value is the floats, with scale and zero point. The floats rise with them, so the largest float is that of the
/// largest integer. Where units stay whole pools are read as they are written.
fn of_integers(call: &Call<'_>, x: &Value) -> Option<(Value, Value, Option<Value>)> {
    let term = Rc::clone(call.terms.get(term_of(x).filter(|_| call.terms.parted && call.op == "MaxPool")?));
    let operand = |at| operand(call.terms, &term, at).filter(|value| value.count() == 1)?.reshaped(&[]);
    let of_bytes = term.name() == Name::Model("DequantizeLinear") && x.dtype == 1;
    let scale = operand(1).filter(|_| of_bytes)?;
    let rises = scale.elements().and_then(|bytes| bytes.as_ref().try_into().ok()).map(f32::from_le_bytes);
    let rises = rises.is_some_and(|scale| scale > 0.0 && scale.is_finite());
    let zero = if term.args.len() > 2 { Some(operand(2)?) } else { None };
    Some((through(call.terms, x, &term, 0).filter(|q| rises && matches!(q.dtype, 2..=3))?, scale, zero))
}

fn pooling(call: &mut Call<'_>) -> Results {
    let indices = call.op == "MaxPool" && call.results.get(1) == Some(&true);
    if !indices {
        call.single()?;
    }
    let x = call.need(0)?;
    let kernel = call.ints("kernel_shape").ok_or("it has no window")?;
    let windows = windows_of(call, &kernel, x.shape().get(2..).unwrap_or_default())?;
    let counts = call.int("count_include_pad", 0) != 0;
    if let Some((q, scale, zero)) = of_integers(call, &x).filter(|_| !indices) {
        let y = window::pooled(call.terms, call.op, &q, windows, counts)?;
        return one(call.inner("DequantizeLinear", &[], &[Some(y), Some(scale), zero])?);
    }
    let y = window::pooled(call.terms, call.op, &x, windows, counts)?;
    if !indices {
        return one(y);
    }
    // Places are counted over the whole operand, as it lies.
    let attrs = call.encoded(&[])?;
    let op = Op { name: Name::Own(Own::MaxPoolIndices), attrs: &attrs, dtype: 0 };
    let made = call.terms.placed(&op, &[Some(&x)], &[(y.shape(), PLACES)]).and_then(|mut made| made.pop());
    Ok(vec![Some(y), Some(made.ok_or("its result is empty")?)])
}

fn like(call: &Call<'_>, shaped: &Value) -> Result<Vec<Typed>, String> {
    Ok(vec![(shaped.shape(), call.need(0)?.dtype)])
}

fn conv(call: &mut Call<'_>, x: usize, w: usize, dtype: u8) -> Result<Vec<Typed>, String> {
    let (x, w) = (call.need(x)?, call.need(w)?);
    let (shape, weights) = (x.shape(), w.shape());
    if shape.len() < 3 || weights.len() != shape.len() || weights[1].checked_mul(call.int("group", 1)) != Some(shape[1])
    {
        return Err(format!("operands of {shape:?} and {weights:?} do not fit"));
    }
    if call.ints("kernel_shape").is_some_and(|kernel| kernel != weights[2..]) {
        return Err(format!("its window is not that of its weights {weights:?}"));
    }
    let mut windows = windows_of(call, &weights[2..], &shape[2..])?;
    let mut out = vec![shape[0], weights[0]];
    out.extend(windows.slid(call.terms, &shape[2..])?);
    Ok(vec![(out, if dtype == 0 { x.dtype } else { dtype })])
}

fn pool(call: &mut Call<'_>) -> Result<Vec<Typed>, String> {
    let x = call.need(0)?;
    let shape = x.shape();
    let kernel = call.ints("kernel_shape").ok_or("it has no window")?;
    if shape.len() != kernel.len() + 2 {
        return Err("its window does not fit its operand".to_owned());
    }
    let mut out = shape[..2].to_vec();
    out.extend(windows_of(call, &kernel, &shape[2..])?.slid(call.terms, &shape[2..])?);
    Ok(vec![(out, x.dtype)])
}

fn grid(call: &Call<'_>) -> Result<Vec<Typed>, String> {
    let (x, grid) = (call.need(0)?, call.need(1)?);
    let (shape, places) = (x.shape(), grid.shape());
    if shape.len() < 3 || places.len() != shape.len() {
        return Err("its operands do not fit".to_owned());
    }
    let mut out = shape[..2].to_vec();
    out.extend(&places[1..places.len() - 1]);
    Ok(vec![(out, x.dtype)])
}

/// The mean of quantized numbers over all spatial axes.
fn global(call: &mut Call<'_>) -> Results {
    let x = call.need(0)?;
    let rank = x.rank();
    let last = call.int("channels_last", 0) != 0;
    let spatial: Vec<usize> = if last { (1..rank.saturating_sub(1)).collect() } else { (2..rank).collect() };
    if spatial.is_empty() || call.inputs.iter().skip(1).any(|v| v.as_ref().is_none_or(|v| v.count() != 1)) {
        return Err("its shapes do not fit".to_owned());
    }
    let numbers = call.inputs.iter().skip(1).flatten().map(|v| v.reshaped(&[]));
    let numbers: Vec<Value> = numbers.collect::<Option<_>>().ok_or("its scales do not fit")?;
    let operands: Vec<&Value> = [&x].into_iter().chain(&numbers).collect();
    let op = Op { name: Name::Model("com.microsoft.QLinearGlobalAveragePool"), attrs: &[], dtype: x.dtype };
    super::together(call.terms, &op, &operands, &spatial, true).and_then(one)
}
