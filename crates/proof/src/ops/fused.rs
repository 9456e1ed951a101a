//! Ops of `com.microsoft` that are several ops of ONNX at once: each is those ops. Tested by execution.

use super::blocked::activated;
use super::each::product;
use super::heads::{packed, split};
use super::placed::windows_of;
use super::window::pooled;
use super::{Call, Made, Results, one};
use crate::files::model::Attr;
use crate::lemmas::halves::{BFLOAT16, FLOAT, HALF, narrow};
use crate::terms::pointwise::binary;
use crate::terms::value::Value;
use half::{bf16, f16};

pub(super) fn run(call: &mut Call<'_>) -> Option<Results> {
    let made = match call.name().as_str() {
        "com.microsoft.SkipLayerNormalization" => return Some(skip_layer_norm(call)),
        "com.microsoft.SkipGroupNorm" => return Some(skip_group_norm(call)),
        "com.microsoft.FusedConv" => fused_conv(call),
        "com.microsoft.FusedMatMul" => fused_matmul(call),
        "com.microsoft.GroupNorm" => group_norm(call),
        "com.microsoft.Gelu" | "com.microsoft.QuickGelu" => of_each(call),
        "com.microsoft.MultiHeadAttention" => attention(call),
        "com.microsoft.NhwcMaxPool" => last_pool(call),
        _ => return None,
    };
    Some(made.and_then(one))
}

fn wrong() -> String {
    "its shapes do not fit".to_owned()
}

/// A convolution, the sum with a fourth operand, and the activation of that.
fn fused_conv(call: &mut Call<'_>) -> Made {
    call.single()?;
    let is_own = |(name, _): &&(String, Attr)| !name.starts_with("activation");
    let attrs: Vec<(String, Attr)> = call.attrs.iter().filter(is_own).cloned().collect();
    let inputs: Vec<Option<Value>> = call.inputs.iter().take(3).cloned().collect();
    let mut y = call.inner("Conv", &attrs, &inputs)?;
    if let Some(sum) = call.input(3).cloned() {
        y = call.inner("Add", &[], &[Some(y), Some(sum)])?;
    }
    activated(call, &y)
}

/// A product of matrices, whose operands may be turned: by their last two axes, and before that with the first axis behind the others.
fn fused_matmul(call: &mut Call<'_>) -> Made {
    let alpha = match call.attr("alpha") {
        Some(Attr::Float(alpha)) => *alpha,
        _ => 1.0,
    };
    let (a, b) = operands_of_product(call)?;
    let made = product(call.terms, &a, &b)?;
    if alpha.to_bits() == 1f32.to_bits() {
        return Ok(made);
    }
    // Not the Mul of ONNX: where a runtime multiplies by it is its own matter.
    call.pointwise(&alpha.to_le_bytes(), &[&made], made.dtype)
}

/// The matrices of a product, turned as it says.
pub(super) fn operands_of_product(call: &Call<'_>) -> Result<(Value, Value), String> {
    let (a, b) = (turned(call, 0, "transA", "transBatchA")?, turned(call, 1, "transB", "transBatchB")?);
    let batches = ["transBatchA", "transBatchB"].iter().any(|name| call.int(name, 0) != 0);
    // The runtime turns batches of both, and fails if one has none.
    if batches && (a.rank() != b.rank() || a.rank() < 3) { Err(wrong()) } else { Ok((a, b)) }
}

/// The normalization of a sum, and the sum.
fn skip_layer_norm(call: &mut Call<'_>) -> Results {
    if call.results.iter().skip(1).take(2).any(|named| *named) {
        return Err("the checker does not know its means and deviations".to_owned());
    }
    let (x, skip) = (call.need(0)?, call.need(1)?);
    let [gamma, beta, bias] = [2, 3, 4].map(|at| call.input(at).cloned());
    // The runtime takes rows, or batches of them, and what is added to each batch.
    if !(2..=3).contains(&x.rank()) || skip.rank() < 2 {
        return Err(wrong());
    }
    let (shape, mut sum) = (x.shape(), call.inner("Add", &[], &[Some(x), Some(skip)])?);
    if bias.is_some() {
        sum = call.inner("Add", &[], &[Some(sum), bias])?;
    }
    if sum.shape() != shape {
        return Err(wrong());
    }
    // Another default than that of ONNX.
    let epsilon = call.attr("epsilon").cloned().unwrap_or(Attr::Float(1e-12));
    let attrs = [("axis".to_owned(), Attr::Int(-1)), ("epsilon".to_owned(), epsilon)];
    let y = call.inner("LayerNormalization", &attrs, &[Some(sum.clone()), gamma, beta])?;
    Ok(vec![Some(y), None, None, Some(sum)])
}

/// Most groups that are looked at.
const MOST_GROUPS: i64 = 1 << 16;

/// A normalization of the groups of channels of images [N, H, W, C] in floats of 32 bits, a scale and a shift for each channel, and
/// `SiLU` if it says so.
fn group_norm(call: &mut Call<'_>) -> Made {
    call.single()?;
    let x = call.need(0)?;
    normalized(call, &x)
}

/// The normalization of a sum, and the sum: of images, and of what is added to each of these or to each of their pixels.
fn skip_group_norm(call: &mut Call<'_>) -> Results {
    if call.input(4).is_some() {
        return Err("the checker does not know its bias".to_owned());
    }
    let (x, skip) = (call.need(0)?, call.need(3)?);
    let (shape, other) = (x.shape(), skip.shape());
    let spreads = matches!((&shape[..], &other[..]), (&[n, .., c], &[m, 1, 1, d]) if (n, c) == (m, d));
    if shape != other && !spreads {
        return Err(wrong());
    }
    let sum = call.inner("Add", &[], &[Some(x), Some(skip)])?;
    let y = normalized(call, &sum)?;
    Ok(vec![Some(y), Some(sum)])
}

fn normalized(call: &mut Call<'_>, x: &Value) -> Made {
    let (&[_, _, _, c], groups) = (x.shape().as_slice(), call.int("groups", 0)) else { return Err(wrong()) };
    let activation = call.int("activation", 0);
    let known = call.int("channels_last", 1) != 0 && [0, 1].contains(&activation);
    if !known || !(1..=MOST_GROUPS).contains(&groups) || c % groups != 0 {
        return Err("the checker does not know such a GroupNorm".to_owned());
    }
    let dtype = x.dtype;
    let to = |dtype: u8| [("to".to_owned(), Attr::Int(dtype.into()))];
    let first = x.permuted(&[0, 3, 1, 2]).ok_or_else(wrong)?;
    let first = call.inner("Cast", &to(FLOAT), &[Some(first)])?;
    let [scale, bias] = [1, 2].map(|at| call.need(at).ok().filter(|v| v.shape() == [c] && v.dtype == FLOAT));
    let affine = [scale.ok_or_else(wrong)?, bias.ok_or_else(wrong)?];
    // Of halves, the input has one spelling or the other; of floats, both have one real form.
    let whole = if dtype == HALF { Some(as_op(call, &first, groups, affine.clone())?) } else { None };
    let mut y = match whole.filter(|whole| narrow(call.terms, whole).is_some()) {
        Some(whole) => whole,
        None => as_rows(call, &first, groups, affine)?,
    };
    if dtype == FLOAT {
        y = call.terms.real(y);
    }
    if activation == 1 {
        let gate = call.inner("Sigmoid", &[], &[Some(y.clone())])?;
        y = call.inner("Mul", &[], &[Some(y), Some(gate)])?;
    }
    let y = call.inner("Cast", &to(dtype), &[Some(y)])?;
    y.permuted(&[0, 2, 3, 1]).ok_or_else(wrong)
}

fn epsilon_of(call: &Call<'_>) -> (String, Attr) {
    ("epsilon".to_owned(), call.attr("epsilon").cloned().unwrap_or(Attr::Float(1e-5)))
}

/// The normalization of [N, C, H, W] as the op of ONNX.
fn as_op(call: &mut Call<'_>, x: &Value, groups: i64, [scale, bias]: [Value; 2]) -> Made {
    let attrs = [epsilon_of(call), ("num_groups".to_owned(), Attr::Int(groups))];
    // Since that version it has a number for each channel.
    call.inner_of(21, "GroupNormalization", &attrs, &[Some(x.clone()), Some(scale), Some(bias)])
}

/// The same as rows of groups, a product and a sum.
fn as_rows(call: &mut Call<'_>, x: &Value, groups: i64, affine: [Value; 2]) -> Made {
    let shape = x.shape();
    let &[n, c, h, w] = shape.as_slice() else { return Err(wrong()) };
    let count = (c / groups).checked_mul(h).and_then(|all| all.checked_mul(w)).ok_or_else(wrong)?;
    let rows = call.terms.moved(x, &[n, groups, count]).ok_or_else(wrong)?;
    let same = |number: f32| {
        let bytes: Vec<u8> = (0..groups).flat_map(|_| number.to_le_bytes()).collect();
        Some(Value::constant(FLOAT, &[groups], bytes.into()))
    };
    let epsilon = [epsilon_of(call)];
    let even = call.inner("InstanceNormalization", &epsilon, &[Some(rows), same(1.0), same(0.0)])?;
    let mut y = call.terms.moved(&even, &shape).ok_or_else(wrong)?;
    for (op, list) in ["Mul", "Add"].into_iter().zip(affine) {
        let list = list.reshaped(&[c, 1, 1]).ok_or_else(wrong)?;
        y = call.inner(op, &[], &[Some(y), Some(list)])?;
    }
    Ok(y)
}

/// A function of each element by itself.
fn of_each(call: &mut Call<'_>) -> Made {
    call.single()?;
    let x = call.need(0)?;
    let attrs = call.encoded(&[])?;
    call.pointwise(&attrs, &[&x], x.dtype)
}

fn turned(call: &Call<'_>, at: usize, turns: &str, batches: &str) -> Made {
    let mut x = call.need(at)?;
    let rank = x.rank();
    if rank < 2 {
        return if call.int(turns, 0) == 0 && call.int(batches, 0) == 0 { Ok(x) } else { Err(wrong()) };
    }
    if call.int(batches, 0) != 0 {
        let mut order: Vec<usize> = (1..rank - 1).collect();
        order.extend([0, rank - 1]);
        x = x.permuted(&order).ok_or_else(wrong)?;
    }
    if call.int(turns, 0) != 0 {
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank - 2, rank - 1);
        x = x.permuted(&order).ok_or_else(wrong)?;
    }
    Ok(x)
}

/// Softmax(scale Q K) V for each head, of [batch, place, head and number].
fn attention(call: &mut Call<'_>) -> Made {
    call.single()?;
    let heads = call.int("num_heads", 0);
    let plain = call.inputs.iter().skip(3).all(Option::is_none) && call.int("unidirectional", 0) == 0;
    if !plain || heads < 1 {
        return Err("the checker knows attention of queries, keys and values only".to_owned());
    }
    let [q, k, v] = [0, 1, 2].map(|at| call.need(at).and_then(|x| split(call, &x, heads)));
    let (q, k, v) = (q?, k?, v?);
    let size = q.shape()[3];
    let scale = match call.attr("scale") {
        // The runtime takes zero for what is not said.
        Some(Attr::Float(scale)) if *scale != 0.0 => *scale,
        _ => 1.0 / (size as f32).sqrt(),
    };
    let turned = k.permuted(&[0, 1, 3, 2]).ok_or_else(wrong)?;
    let mut scores = product(call.terms, &q, &turned)?;
    if scale.to_bits() != 1f32.to_bits() {
        let scale = factor(call, scores.dtype, scale);
        scores = binary(call.terms, "Mul", &scores, &scale)?;
        scores = call.terms.real(scores);
    }
    let weights = softmax(call, scores)?;
    let weights = call.terms.real(weights);
    let y = product(call.terms, &weights, &v)?;
    packed(call, &y)
}

/// A factor of scores, in their type.
fn factor(call: &mut Call<'_>, dtype: u8, number: f32) -> Value {
    let (bytes, rounded) = match dtype {
        HALF => (f16::from_f32(number).to_le_bytes().to_vec(), f16::from_f32(number).to_f32()),
        BFLOAT16 => (bf16::from_f32(number).to_le_bytes().to_vec(), bf16::from_f32(number).to_f32()),
        _ => (number.to_le_bytes().to_vec(), number),
    };
    if rounded.to_bits() != number.to_bits() {
        call.terms.rounded();
    }
    Value::constant(dtype, &[], bytes.into())
}

fn softmax(call: &mut Call<'_>, x: Value) -> Made {
    let attrs = [("axis".to_owned(), Attr::Int(-1))];
    call.inner("Softmax", &attrs, &[Some(x)])
}

/// A pool of [N, spatial, C].
fn last_pool(call: &mut Call<'_>) -> Made {
    let x = call.need(0)?;
    let rank = x.rank();
    let kernel = call.ints("kernel_shape").ok_or("it has no window")?;
    if rank < 3 || kernel.len() != rank - 2 {
        return Err(wrong());
    }
    let mut to: Vec<usize> = vec![0, rank - 1];
    to.extend(1..rank - 1);
    let first = x.permuted(&to).ok_or_else(wrong)?;
    let windows = windows_of(call, &kernel, &first.shape()[2..])?;
    let y = pooled(call.terms, "MaxPool", &first, windows, false)?;
    let mut back: Vec<usize> = vec![0];
    back.extend(2..rank);
    back.push(1);
    y.permuted(&back).ok_or_else(wrong)
}
