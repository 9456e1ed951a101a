//! Indices of an axis of a constant.

use crate::files::model::width;
use crate::terms::pointwise::Made;
use crate::terms::value::Value;
use bytes::Bytes;

/// These indices of an axis of a constant.
pub(crate) fn picked(x: &Value, axis: usize, indices: &[i64]) -> Made {
    let shape = x.shape();
    if indices.iter().any(|i| *i < 0 || *i >= shape[axis]) {
        return Err(format!("indices beyond axis {axis} of {shape:?}"));
    }
    let mut to = shape.clone();
    to[axis] = indices.len() as i64;
    let Some(first) = indices.first() else { return Ok(Value::constant(x.dtype, &to, Bytes::new())) };
    if indices.iter().zip(*first..).all(|(index, wanted)| *index == wanted)
        && let Some(part) = x.part(axis, *first, indices.len() as i64)
    {
        return Ok(part);
    }
    let wrong = || "the checker does not read its elements".to_owned();
    let (bytes, width) = (x.elements().ok_or_else(wrong)?, width(x.dtype).ok_or_else(wrong)?);
    let inner = shape[axis + 1..].iter().product::<i64>() as usize * width;
    let outer: i64 = shape[..axis].iter().product();
    let mut data = Vec::new();
    for block in 0..outer as usize {
        for index in indices {
            let at = (block * shape[axis] as usize + *index as usize) * inner;
            data.extend_from_slice(&bytes[at..at + inner]);
        }
    }
    Ok(Value::constant(x.dtype, &to, data.into()))
}
