//! Functions that are other ops, and units of integers: what another optimizer makes of a few ops is read as these ops.
//!
//! A unit of integers, such as `QLinearConv`, is by its definition a `DequantizeLinear` of each operand, the op, and a `QuantizeLinear`. The
//! runtime computes it without floats in between, so it is that over the reals only: that is lemma 7. It is read so in the result if the
//! input computes what it is then, and in the input if the result has fewer of them.

use super::each::product;
use super::{Call, Made, Results};
use crate::files::model::Attr;
use crate::terms::align::term_of;
use crate::terms::arg::Arg;
use crate::terms::name::Own;
use crate::terms::value::Value;

/// Name of lemma 7.
const UNITS: &str = "units of integers";

/// The square root of two, as files have it.
const ROOT: f32 = std::f32::consts::SQRT_2;

/// The factors in the approximation of Gelu by a hyperbolic tangent: sqrt(2 / pi), and that of the third power.
const TANH: [f32; 2] = [0.797_884_6, 0.044_715];

pub(super) fn run(call: &mut Call<'_>) -> Option<Results> {
    let floats = call.input(0).is_some_and(|x| x.dtype == 1);
    let made = match call.name().as_str() {
        "HardSwish" if floats => hard_swish(call),
        "com.microsoft.QuickGelu" if floats => quick_gelu(call),
        "Gelu" if floats => match call.text("approximate").as_deref() {
            None | Some("none") => call.need(0).and_then(|x| gelu(call, x)),
            _ => call.need(0).and_then(|x| tanh_gelu(call, &x)),
        },
        "com.microsoft.Gelu" if floats => call.need(0).and_then(|x| gelu(call, x)),
        "com.microsoft.BiasGelu" if floats => biased(call).and_then(|x| gelu(call, x)),
        "com.microsoft.FastGelu" if floats => biased(call).and_then(|x| tanh_gelu(call, &x)),
        "com.microsoft.FusedGemm" if floats => fused_gemm(call),
        _ => return None,
    };
    Some(call.single().and(made).map(|y| vec![Some(y)]))
}

#[expect(clippy::unnecessary_wraps, reason = "operands may be absent")]
fn number(value: f32) -> Option<Value> {
    Some(Value::constant(1, &[], value.to_le_bytes().to_vec().into()))
}

/// An op of ONNX, as the input has it if that is the same over the reals.
fn real(call: &mut Call<'_>, op: &str, inputs: &[Option<Value>]) -> Made {
    let y = call.inner(op, &[], inputs)?;
    Ok(call.terms.real(y))
}

/// x max(0, min(1, x / 6 + 1/2)), as the standard defines it.
fn hard_swish(call: &mut Call<'_>) -> Made {
    let x = call.need(0)?;
    let attrs = [("alpha", 1.0 / 6.0), ("beta", 0.5)].map(|(name, value)| (name.to_owned(), Attr::Float(value)));
    let gate = call.inner("HardSigmoid", &attrs, &[Some(x.clone())])?;
    real(call, "Mul", &[Some(x), Some(gate)])
}

/// x sigmoid(alpha x)
fn quick_gelu(call: &mut Call<'_>) -> Made {
    let alpha = match call.attr("alpha") {
        Some(Attr::Float(alpha)) => *alpha,
        _ => 1.702,
    };
    let x = call.need(0)?;
    let scaled = real(call, "Mul", &[Some(x.clone()), number(alpha)])?;
    let gate = call.inner("Sigmoid", &[], &[Some(scaled)])?;
    real(call, "Mul", &[Some(x), Some(gate)])
}

/// 1/2 x (1 + erf(x / sqrt(2)))
fn gelu(call: &mut Call<'_>, x: Value) -> Made {
    let scaled = real(call, "Div", &[Some(x.clone()), number(ROOT)])?;
    let erf = call.inner("Erf", &[], &[Some(scaled)])?;
    halved(call, x, erf)
}

/// 1/2 x (1 + f), where f is what the function makes of x.
fn halved(call: &mut Call<'_>, x: Value, f: Value) -> Made {
    let sum = real(call, "Add", &[Some(f), number(1.0)])?;
    let all = real(call, "Mul", &[Some(x), Some(sum)])?;
    real(call, "Mul", &[Some(all), number(0.5)])
}

/// 1/2 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
fn tanh_gelu(call: &mut Call<'_>, x: &Value) -> Made {
    let mut made = None;
    for power in [false, true] {
        let cube = if power {
            call.inner("Pow", &[], &[Some(x.clone()), number(3.0)])?
        } else {
            let square = real(call, "Mul", &[Some(x.clone()), Some(x.clone())])?;
            real(call, "Mul", &[Some(square), Some(x.clone())])?
        };
        let part = real(call, "Mul", &[Some(cube.clone()), number(TANH[1])])?;
        let sum = real(call, "Add", &[Some(x.clone()), Some(part)])?;
        let inner = real(call, "Mul", &[Some(sum), number(TANH[0])])?;
        let f = call.inner("Tanh", &[], &[Some(inner)])?;
        let y = halved(call, x.clone(), f)?;
        if is_of_input(call, &y) {
            return Ok(y);
        }
        made = made.or(Some(y));
    }
    made.ok_or_else(String::new)
}

fn biased(call: &mut Call<'_>) -> Made {
    let x = call.need(0)?;
    match call.input(1).cloned() {
        Some(bias) if bias.rank() != 1 || bias.shape().last() != x.shape().last() => {
            Err("its bias is no list of as many numbers as its rows have".to_owned())
        }
        Some(bias) => real(call, "Add", &[Some(x), Some(bias)]),
        None => Ok(x),
    }
}

/// Activations of a Gemm, with the numbers that each has to be told.
const ACTIVATIONS: &[(&str, &[&str])] = &[
    ("Elu", &["alpha"]),
    ("HardSigmoid", &["alpha", "beta"]),
    ("LeakyRelu", &["alpha"]),
    ("Relu", &[]),
    ("Selu", &["alpha", "gamma"]),
    ("Sigmoid", &[]),
    ("Softplus", &[]),
    ("Softsign", &[]),
    ("Tanh", &[]),
    ("ThresholdedRelu", &["alpha"]),
];

/// A Gemm and an activation.
fn fused_gemm(call: &mut Call<'_>) -> Made {
    let is_own = |(name, _): &&(String, Attr)| !name.starts_with("activation");
    let attrs: Vec<(String, Attr)> = call.attrs.iter().filter(is_own).cloned().collect();
    let inputs = call.inputs.to_vec();
    let y = call.inner("Gemm", &attrs, &inputs)?;
    let y = call.terms.real(y);
    let Some(name) = call.text("activation") else { return Ok(y) };
    let known = ACTIVATIONS.iter().find(|(activation, _)| *activation == name);
    let numbers = |name: &&str| {
        let number = call.attr(&format!("activation_{name}"));
        number.map(|number| ((*name).to_owned(), number.clone()))
    };
    let (_, wanted) = known.ok_or_else(|| format!("the checker does not know activation {name}"))?;
    let told: Option<Vec<(String, Attr)>> = wanted.iter().map(numbers).collect();
    let told = told.ok_or_else(|| format!("the checker does not know what {name} is told without {wanted:?}"))?;
    call.inner(&name, &told, &[Some(y)])
}

/// Whether the input computes a value, or has it with the places of an axis in another order.
fn is_of_input(call: &Call<'_>, y: &Value) -> bool {
    let known = |term| !call.terms.is_foreign(call.terms.beneath(in_own_order(call, term)).0);
    y.is_constant() || term_of(y).is_some_and(known)
}

/// The term whose places of an axis this one has in another order; the term itself, if it has none of another.
fn in_own_order(call: &Call<'_>, term: u32) -> u32 {
    let made = call.terms.get(term);
    match made.args.as_slice() {
        [Arg::Term { term: inner, .. }] if made.is(Own::Routed) => *inner,
        _ => term,
    }
}

/// What a node of the result is over the reals, if the input computes that, and not what the node says.
pub(super) fn otherwise(call: &mut Call<'_>, made: Option<&Results>) -> Option<Value> {
    let own = match made {
        Some(Ok(values)) => values.first()?.as_ref().is_some_and(|y| is_of_input(call, y)),
        Some(Err(_)) | None => false,
    };
    if own || call.terms.is_of_input() || call.single().is_err() {
        return None;
    }
    let (y, lemma) = match call.op {
        "FusedMatMul" if call.domain == "com.microsoft" => (scaled_product(call).ok()?, None),
        "Gemm" if call.domain.is_empty() => (scaled_gemm(call).ok()?, None),
        _ => (unit(call)?.ok()?, Some(UNITS)),
    };
    if !is_of_input(call, &y) {
        return None;
    }
    if let Some(lemma) = lemma {
        call.terms.by_lemma(lemma);
    }
    Some(y)
}

/// Whether an op of this name is a unit of integers.
pub(crate) fn is_unit(op: &str) -> bool {
    op.starts_with("QLinear") || op == "QGemm"
}

/// What a unit of the input is by its definition, where the result has no such unit for it.
pub(super) fn of_input(call: &mut Call<'_>) -> Option<Value> {
    if !call.terms.parted || !call.terms.is_of_input() || !is_unit(call.op) || call.single().is_err() {
        return None;
    }
    let y = unit(call)?.ok()?;
    call.terms.read_by_lemma(UNITS);
    Some(y)
}

/// A product times its factor.
fn scaled_product(call: &mut Call<'_>) -> Made {
    let Some(Attr::Float(alpha)) = call.attr("alpha").cloned() else { return Err(String::new()) };
    let (a, b) = super::fused::operands_of_product(call)?;
    let y = product(call.terms, &a, &b)?;
    real(call, "Mul", &[Some(y), number(alpha)])
}

/// A product times alpha, and a bias times beta.
fn scaled_gemm(call: &mut Call<'_>) -> Made {
    let factor = |name: &str| match call.attr(name) {
        Some(Attr::Float(factor)) => *factor,
        _ => 1.0,
    };
    let (alpha, beta) = (factor("alpha"), factor("beta"));
    // Without factors it is what it says. To read it so would never end.
    if [alpha, beta].iter().all(|factor| factor.to_bits() == 1f32.to_bits()) {
        return Err("it has no factor".to_owned());
    }
    let is_own = |(name, _): &&(String, Attr)| name != "alpha" && name != "beta";
    let attrs: Vec<(String, Attr)> = call.attrs.iter().filter(is_own).cloned().collect();
    let inputs: Vec<Option<Value>> = call.inputs.iter().take(2).cloned().collect();
    let y = call.inner("Gemm", &attrs, &inputs)?;
    let y = real(call, "Mul", &[Some(y), number(alpha)])?;
    match call.input(2).cloned() {
        None => Ok(y),
        Some(bias) => {
            let bias = real(call, "Mul", &[Some(bias), number(beta)])?;
            real(call, "Add", &[Some(y), Some(bias)])
        }
    }
}

/// How the operands of a unit lie: of each float the places of its integers, scale and zero point.
struct Unit {
    op: &'static str,
    operands: Vec<[usize; 3]>,
    /// Scale and zero point of the result.
    result: [usize; 2],
    /// Integers that are added, whose scale is the product of those of the first two operands.
    bias: Option<usize>,
}

fn unit(call: &mut Call<'_>) -> Option<Made> {
    let pair = |op| Unit { op, operands: vec![[0, 1, 2], [3, 4, 5]], result: [6, 7], bias: None };
    let single = |op| Unit { op, operands: vec![[0, 1, 2]], result: [3, 4], bias: None };
    let unit = match call.name().as_str() {
        "QLinearConv" | "com.microsoft.QLinearConv" => Unit { bias: Some(8), ..pair("Conv") },
        "QLinearMatMul" => pair("MatMul"),
        "com.microsoft.QGemm" => Unit { bias: Some(6), result: [7, 8], ..pair("Gemm") },
        "com.microsoft.QLinearAdd" => pair("Add"),
        "com.microsoft.QLinearMul" => pair("Mul"),
        "com.microsoft.QLinearSigmoid" => single("Sigmoid"),
        "com.microsoft.QLinearLeakyRelu" => single("LeakyRelu"),
        "com.microsoft.QLinearAveragePool" => single("AveragePool"),
        "com.microsoft.QLinearGlobalAveragePool" => single("GlobalAveragePool"),
        "com.microsoft.QLinearSoftmax" => single("Softmax"),
        "com.microsoft.QLinearReduceMean" => single("ReduceMean"),
        "com.microsoft.QLinearConcat" => {
            let triples = (2..call.inputs.len()).step_by(3).map(|at| [at, at + 1, at + 2]).collect();
            Unit { op: "Concat", operands: triples, result: [0, 1], bias: None }
        }
        _ => return None,
    };
    Some(as_floats(call, &unit))
}

/// A unit as ops on floats.
fn as_floats(call: &mut Call<'_>, unit: &Unit) -> Made {
    let last = call.int("channels_last", 0) != 0;
    if last && !matches!(unit.op, "Conv" | "AveragePool" | "GlobalAveragePool") {
        return Err("its channels are last".to_owned());
    }
    let mut floats = Vec::new();
    let single = |at: &usize| call.input(*at).is_none_or(|value| value.count() == 1);
    if !unit.result.iter().all(single) {
        return Err("it has more scales than one".to_owned());
    }
    for (at, &[x, scale, zero]) in unit.operands.iter().enumerate() {
        // Scales of the left matrix are those of its rows.
        let by_axis = at == 1 && matches!(unit.op, "Conv" | "Gemm" | "MatMul");
        if !by_axis && [scale, zero].iter().any(|at| call.input(*at).is_some_and(|value| value.count() != 1)) {
            return Err("it has more scales than one".to_owned());
        }
        // Filters have a scale each, and columns of matrices.
        let axis = if at == 1 && unit.op == "Gemm" { 1 - i64::from(call.int("transB", 0) != 0) } else { 0 };
        let axis = if unit.op == "MatMul" { -1 } else { axis };
        let [mut x, scale, zero] = [x, scale, zero].map(|at| call.input(at).cloned());
        if last && at == 0 {
            x = Some(channels(&call.need(unit.operands[0][0])?, |rank| rank - 1, 1)?);
        }
        floats.push(Some(dequantized(call, [x, scale, zero], axis)?));
    }
    if let Some(bias) = unit.bias.and_then(|at| call.input(at)).cloned() {
        let [a, b] = [unit.operands[0][1], unit.operands[1][1]].map(|at| call.input(at).cloned());
        let scale = call.inner("Mul", &[], &[a, b])?;
        floats.push(Some(dequantized(call, [Some(bias), Some(scale), None], 0)?));
    }
    let y = inside(call, unit, &floats)?;
    let y = call.terms.real(y);
    let y = if last { channels(&y, |_| 1, y.rank() - 1)? } else { y };
    let [scale, zero] = unit.result.map(|at| call.input(at).cloned());
    if scale.is_none() && unit.op == "Gemm" {
        return Ok(y);
    }
    call.inner("QuantizeLinear", &[], &[Some(y), scale, zero])
}

/// A value with the axis of its channels, which is in the one place, in another one.
fn channels(x: &Value, from: impl Fn(usize) -> usize, to: usize) -> Made {
    let mut order: Vec<usize> = (0..x.rank()).collect();
    if order.len() < 3 {
        return Err("it has no places".to_owned());
    }
    let axis = order.remove(from(order.len()));
    order.insert(to, axis);
    x.permuted(&order).ok_or_else(|| "its axes do not split".to_owned())
}

/// The op on floats.
fn inside(call: &mut Call<'_>, unit: &Unit, floats: &[Option<Value>]) -> Made {
    let attrs: Vec<(String, Attr)> =
        call.attrs.iter().filter(|(name, _)| !matches!(name.as_str(), "channels_last" | "opset")).cloned().collect();
    let alpha = matches!(call.attr("alpha"), Some(Attr::Float(alpha)) if alpha.to_bits() != 1f32.to_bits());
    if unit.op == "Gemm" && alpha || unit.op == "Softmax" && call.int("opset", 0) < 13 {
        return Err("the checker does not know its factor".to_owned());
    }
    call.inner(unit.op, &attrs, floats)
}

fn dequantized(call: &mut Call<'_>, operands: [Option<Value>; 3], axis: i64) -> Made {
    let rank = operands[0].as_ref().map_or(0, Value::rank) as i64;
    let axis = if axis < 0 { axis + rank } else { axis };
    let scales = operands[1].clone().filter(|scale| scale.count() == 1).map(|scale| scale.reshaped(&[]));
    let [x, scale, zero] = operands;
    let scale = scales.map_or(scale, |single| single);
    call.inner("DequantizeLinear", &[("axis".to_owned(), Attr::Int(axis))], &[x, scale, zero])
}
