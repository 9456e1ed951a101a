//! Ops of language models: attention, turned positions, caches, and norms of rows.
//!
//! Heads may be an axis, or packed into the last one: both are the op with the axis.

use super::{Call, Made, Results, axis_of, back, each, one, ordered};
use crate::files::exact::exact;
use crate::files::model::Attr;
use crate::terms::arg::Op;
use crate::terms::name::Name;
use crate::terms::value::Value;

pub(super) fn run(call: &mut Call<'_>) -> Option<Results> {
    if !call.domain.is_empty() {
        return None;
    }
    match call.op {
        "Attention" => Some(attention(call)),
        "RotaryEmbedding" => Some(rotary(call).and_then(one)),
        "TensorScatter" => Some(scatter(call).and_then(one)),
        "RMSNormalization" => Some(each::rows_norm(call).and_then(one)),
        _ => None,
    }
}

fn wrong() -> String {
    "its shapes do not fit".to_owned()
}

/// [batch, head, position, number] of an operand, whether it is packed or not.
fn headed(call: &mut Call<'_>, at: usize, heads: &str) -> Made {
    let x = call.need(at)?;
    if x.rank() == 4 {
        return Ok(x);
    }
    let heads = call.int(heads, 0);
    split(call, &x, heads)
}

/// [batch, position, head and number] as [batch, head, position, number].
pub(super) fn split(call: &mut Call<'_>, x: &Value, heads: i64) -> Made {
    let &[n, s, all] = x.shape().as_slice() else { return Err(wrong()) };
    if heads < 1 || all % heads != 0 {
        return Err(wrong());
    }
    let apart = call.terms.moved(x, &[n, s, heads, all / heads]);
    apart.and_then(|v| v.permuted(&[0, 2, 1, 3])).ok_or_else(wrong)
}

/// [batch, head, position, number] as [batch, position, head and number].
pub(super) fn packed(call: &mut Call<'_>, y: &Value) -> Made {
    let [n, h, s, d] = y.shape().try_into().map_err(|_| wrong())?;
    let rows = y.permuted(&[0, 2, 1, 3]).ok_or_else(wrong)?;
    call.terms.moved(&rows, &[n, s, h * d]).ok_or_else(wrong)
}

/// What the op is told besides how many heads there are.
fn told(call: &Call<'_>, without: &[&str]) -> Result<Vec<u8>, String> {
    let kept: Vec<(String, Attr)> =
        call.attrs.iter().filter(|(name, _)| !without.contains(&name.as_str())).cloned().collect();
    exact(call.opset, &kept)
}

fn attention(call: &mut Call<'_>) -> Results {
    let rank = call.need(0)?.rank();
    let (q, k) = (headed(call, 0, "q_num_heads")?, headed(call, 1, "kv_num_heads")?);
    let v = headed(call, 2, "kv_num_heads")?;
    let ([n, heads, s, d], [n_k, kv, t, d_k], [n_v, kv_v, t_v, width]) = (quad(&q)?, quad(&k)?, quad(&v)?);
    if [n_k, n_v, d_k, kv_v, t_v] != [n, n, d, kv, t] || kv < 1 || heads % kv != 0 {
        return Err(wrong());
    }
    let total = match call.input(4) {
        Some(past) => quad(past)?[2] + t,
        None => t,
    };
    let attrs = told(call, &["q_num_heads", "kv_num_heads"])?;
    let shapes = [vec![n, heads, s, width], vec![n, kv, total, d], vec![n, kv, total, width], vec![n, heads, s, total]];
    let types = [q.dtype, k.dtype, v.dtype, q.dtype];
    let results: Vec<(Vec<i64>, u8)> = shapes.into_iter().zip(types).collect();
    let mut operands = vec![Some(&q), Some(&k), Some(&v)];
    operands.extend(call.inputs.iter().skip(3).map(Option::as_ref));
    while operands.last().is_some_and(Option::is_none) {
        operands.pop();
    }
    let op = Op { name: Name::Model("Attention"), attrs: &attrs, dtype: 0 };
    let mut made = call.terms.placed(&op, &operands, &results).ok_or("its result is empty")?;
    if rank == 3 {
        made[0] = packed(call, &made[0])?;
    }
    Ok(made.into_iter().map(Some).collect())
}

fn quad(value: &Value) -> Result<[i64; 4], String> {
    value.shape().try_into().map_err(|_| wrong())
}

fn rotary(call: &mut Call<'_>) -> Made {
    call.single()?;
    let rank = call.need(0)?.rank();
    let x = headed(call, 0, "num_heads")?;
    let attrs = told(call, &["num_heads"])?;
    let mut operands = vec![Some(&x)];
    operands.extend(call.inputs.iter().skip(1).map(Option::as_ref));
    let op = Op { name: Name::Model("RotaryEmbedding"), attrs: &attrs, dtype: 0 };
    let made = call.terms.placed(&op, &operands, &[(x.shape(), x.dtype)]);
    let y = made.and_then(|mut made| made.pop()).ok_or("its result is empty")?;
    if rank == 3 { packed(call, &y) } else { Ok(y) }
}

/// Rows of a cache that others take the place of: the axes between batch and rows are brought to an order of their own.
fn scatter(call: &mut Call<'_>) -> Made {
    let (past, update) = (call.need(0)?, call.need(1)?);
    let axis = axis_of(call.int("axis", -2), past.rank())?;
    if axis == 0 || update.rank() != past.rank() {
        return Err(wrong());
    }
    let others = (1..past.rank()).filter(|&at| at != axis).collect();
    let mut order = vec![0];
    order.extend(ordered(&[&past, &update], others));
    order.push(axis);
    let turned = past.permuted(&order).zip(update.permuted(&order));
    let (whole, rows) = turned.ok_or_else(wrong)?;
    let attrs = told(call, &["axis"])?;
    let op = Op { name: Name::Model("TensorScatter"), attrs: &attrs, dtype: 0 };
    let operands = [Some(&whole), Some(&rows), call.inputs.get(2).and_then(Option::as_ref)];
    let made = call.terms.placed(&op, &operands, &[(whole.shape(), past.dtype)]);
    let made = made.and_then(|mut made| made.pop()).ok_or("its result is empty")?;
    made.permuted(&back(&order)).ok_or_else(wrong)
}
