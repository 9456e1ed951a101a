//! The decoder of sparse constants: they become constants with zeros.

use crate::error::Error;
use crate::files::decode::{Read, Reader};
use crate::files::model::{Tensor, width};
use crate::files::wire::varints;
use bytes::Bytes;

/// Most bytes that the sparse constants of a file have with their zeros: a small file should not make the checker take memory.
const MOST: usize = 1 << 28;

/// The type of indices.
const INDICES: u8 = 7;

impl Reader {
    /// A sparse constant with its zeros, and the name that it is read by: that of its values.
    pub(crate) fn sparse(&mut self, bytes: &Bytes) -> Read<(String, Tensor)> {
        let (mut values, mut indices, mut dims) = (None, None, Vec::new());
        for (number, field) in self.with_single(bytes, "a sparse constant", &[1, 2])? {
            match number {
                1 => values = Some(self.tensor(&field.bytes())?),
                2 => indices = Some(self.tensor(&field.bytes())?.1),
                3 => dims.extend(varints(field).ok_or_else(|| self.damaged("a sparse constant"))?),
                _ => {}
            }
        }
        let (Some((name, values)), Some(indices)) = (values, indices) else {
            return Err(self.damaged("a sparse constant"));
        };
        let dims: Vec<i64> = dims.into_iter().map(|dim| dim as i64).collect();
        let wrong = |why: &str| {
            let why = format!("the sparse constant `{name}`: {why}");
            Error::Read { file: self.file.clone(), why }
        };
        let room = room(&dims, values.dtype).ok_or_else(|| wrong("its type asks for too much"))?;
        let left = self.sparse.checked_sub(room).ok_or_else(|| Error::Unsupported {
            what: format!("sparse constants of more than {MOST} bytes with their zeros"),
        })?;
        let places = places(&dims, &values, &indices).ok_or_else(|| wrong("its indices are none, or not in order"))?;
        self.sparse = left;
        let size = width(values.dtype).unwrap_or(1);
        let mut data = vec![0; room];
        for (value, place) in values.data.chunks_exact(size).zip(places) {
            data[place * size..(place + 1) * size].copy_from_slice(value);
        }
        Ok((name, Tensor { dims, dtype: values.dtype, data: data.into() }))
    }

    /// So many bytes sparse constants may have.
    pub(crate) const SPARSE: usize = MOST;
}

/// The bytes that a constant has with its zeros.
fn room(dims: &[i64], dtype: u8) -> Option<usize> {
    let size = i64::try_from(width(dtype)?).ok()?;
    let all = dims.iter().try_fold(size, |all, &dim| all.checked_mul(dim).filter(|_| dim >= 0));
    usize::try_from(all?).ok()
}

/// The places of values among all elements, each after the one before: as ONNX has them, by place or by an index for each axis.
fn places(dims: &[i64], values: &Tensor, indices: &Tensor) -> Option<Vec<usize>> {
    let &[count] = values.dims.as_slice() else { return None };
    let numbers: Vec<i64> =
        indices.data.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap_or_default())).collect();
    let rank = dims.len() as i64;
    let places: Vec<i64> = match indices.dims.as_slice() {
        _ if indices.dtype != INDICES => return None,
        [many] if *many == count => numbers,
        [many, each] if *many == count && *each == rank && rank > 0 => {
            numbers.chunks_exact(dims.len()).map(|index| place(dims, index)).collect::<Option<_>>()?
        }
        _ => return None,
    };
    let all: i64 = dims.iter().product();
    let inside = places.iter().all(|place| (0..all).contains(place));
    let rising = places.windows(2).all(|pair| pair[0] < pair[1]);
    (inside && rising).then(|| places.into_iter().map(|place| place as usize).collect())
}

/// The place of an index among all elements.
fn place(dims: &[i64], index: &[i64]) -> Option<i64> {
    let inside = index.iter().zip(dims).all(|(at, dim)| (0..*dim).contains(at));
    inside.then(|| index.iter().zip(dims).fold(0, |place, (at, dim)| place * dim + at))
}
