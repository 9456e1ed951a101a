//! Values: a constant or a term, seen through an index map.

use crate::files::model::{Tensor, width};
use crate::terms::strided::Elements;
use crate::terms::view::{self, Digit, View, normal};
use bytes::Bytes;

/// What a value is made of.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Elements of a buffer. Digits count elements from the first one at `offset`.
    Constant { data: Bytes, offset: i64 },
    /// What an op computes, by the number of its term.
    Term(u32),
    /// The same, of a shape and a type that the checker does not know. The map says nothing.
    Opaque(u32),
}

/// A value of either graph: its element type as ONNX numbers it, and for each axis what it reads.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) source: Source,
    pub(crate) view: View,
    pub(crate) dtype: u8,
}

impl Value {
    /// A constant in row-major order.
    pub(crate) fn constant(dtype: u8, shape: &[i64], data: Bytes) -> Value {
        Value { source: Source::Constant { data, offset: 0 }, view: view::row_major(shape), dtype }
    }

    pub(crate) fn of_tensor(tensor: &Tensor) -> Value {
        Value::constant(tensor.dtype, &tensor.dims, tensor.data.clone())
    }

    pub(crate) fn ints(shape: &[i64], values: &[i64]) -> Value {
        let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Value::constant(7, shape, data.into())
    }

    pub(crate) fn shape(&self) -> Vec<i64> {
        view::shape(&self.view)
    }

    pub(crate) fn rank(&self) -> usize {
        self.view.len()
    }

    /// A value of which only the term is known.
    pub(crate) fn opaque(term: u32) -> Value {
        Value { source: Source::Opaque(term), view: View::new(), dtype: 0 }
    }

    /// Whether its shape and its type are not known.
    pub(crate) fn is_opaque(&self) -> bool {
        matches!(self.source, Source::Opaque(_))
    }

    pub(crate) fn is_constant(&self) -> bool {
        matches!(self.source, Source::Constant { .. })
    }

    pub(crate) fn count(&self) -> i64 {
        self.shape().iter().product()
    }

    /// Refuses a value of so many elements that they can't be counted.
    pub(crate) fn counted(self) -> Result<Value, String> {
        let shape = self.shape();
        count_of(&shape).map(|_| self)
    }

    /// The elements of a constant in row-major order, as bytes.
    pub(crate) fn elements(&self) -> Option<Bytes> {
        self.all()?.dense()
    }

    /// The elements of a constant in row-major order.
    pub(crate) fn all(&self) -> Option<Elements> {
        self.listed(self.view.iter().flatten().copied())
    }

    /// The elements of a constant that these digits read.
    pub(crate) fn listed(&self, digits: impl IntoIterator<Item = Digit>) -> Option<Elements> {
        let Source::Constant { data, offset } = &self.source else { return None };
        Elements::new(data, *offset, digits.into_iter().map(|d| (d.extent, d.stride)), width(self.dtype)?)
    }

    /// `count` indices of an axis of a constant from `first` on; `None` if they have no digits.
    pub(crate) fn part(&self, axis: usize, first: i64, count: i64) -> Option<Value> {
        let Source::Constant { data, offset } = &self.source else { return None };
        let (from, digits) = narrowed(self.view.get(axis)?, first, count)?;
        let source = Source::Constant { data: data.clone(), offset: offset + from };
        let mut view = self.view.clone();
        view[axis] = normal(digits);
        Some(Value { source, view, dtype: self.dtype })
    }

    /// Whether all bytes of all elements of a constant are zero.
    pub(crate) fn zero(&self) -> Option<bool> {
        Some(self.all()?.zero())
    }

    /// The value with its axes in another order.
    pub(crate) fn permuted(&self, order: &[usize]) -> Option<Value> {
        Some(Value { view: view::permute(&self.view, order)?, ..self.clone() })
    }

    /// The value with other extents; a constant whose elements are in the way is copied.
    pub(crate) fn reshaped(&self, to: &[i64]) -> Option<Value> {
        if to.iter().any(|d| *d < 0) || count_of(to) != Ok(self.count()) {
            return None;
        }
        if self.count() == 0 {
            return self.is_constant().then(|| Value::constant(self.dtype, to, Bytes::new()));
        }
        match view::reshape(&self.view, to) {
            Some(view) => Some(Value { view, ..self.clone() }),
            None => Some(Value::constant(self.dtype, to, self.elements()?)),
        }
    }

    /// The value repeated along axes of extent 1, and in front, to another shape.
    pub(crate) fn expanded(&self, to: &[i64]) -> Option<Value> {
        let missing = to.len().checked_sub(self.rank())?;
        let mut view: View = vec![Vec::new(); missing];
        view.extend(self.view.iter().cloned());
        for (axis, &extent) in view.iter_mut().zip(to) {
            match view::extent(axis) {
                have if have == extent => {}
                1 => *axis = view::normal([Digit::repeat(extent)]),
                _ => return None,
            }
        }
        Some(Value { view, ..self.clone() })
    }

    /// Constant integers, booleans as 0 and 1.
    pub(crate) fn as_ints(&self) -> Option<Vec<i64>> {
        let bytes = self.elements()?;
        let ints = match self.dtype {
            7 => bytes.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap_or_default())).collect(),
            6 => {
                bytes.chunks_exact(4).map(|b| i64::from(i32::from_le_bytes(b.try_into().unwrap_or_default()))).collect()
            }
            2 | 9 => bytes.iter().map(|b| i64::from(*b)).collect(),
            3 => bytes.iter().map(|b| i64::from(*b as i8)).collect(),
            _ => return None,
        };
        Some(ints)
    }

    /// Whether every element of a constant has the same bytes, so that its shape says nothing.
    pub(crate) fn splat(&self) -> Option<Value> {
        let Source::Constant { data, offset } = &self.source else { return None };
        let width = width(self.dtype)?;
        if self.count() == 0 {
            return None;
        }
        let at = usize::try_from(*offset).ok()? * width;
        data.get(at..at + width)?;
        // All are the same if each is its neighbour.
        let alike = |bytes: &[u8]| bytes[width..] == bytes[..bytes.len() - width];
        let same = alike(data) || (self.count() < 4096 && alike(&self.elements()?));
        let view = vec![Vec::new(); self.rank()];
        same.then(|| Value {
            source: Source::Constant { data: data.slice(at..at + width), offset: 0 },
            view,
            dtype: self.dtype,
        })
    }
}

/// Where indices of an axis start, in elements, and the digits that count them.
fn narrowed(digits: &[Digit], first: i64, count: i64) -> Option<(i64, Vec<Digit>)> {
    let Some((outer, rest)) = digits.split_first() else { return (first == 0 && count == 1).then(|| (0, Vec::new())) };
    let inner = Some(view::extent(rest)).filter(|inner| *inner > 0)?;
    let start = first / inner * outer.stride;
    if first % inner == 0 && count % inner == 0 {
        let outer = Digit { extent: count / inner, ..*outer };
        return Some((start, [&[outer], rest].concat()));
    }
    let (more, digits) = narrowed(rest, first % inner, count).filter(|_| first % inner + count <= inner)?;
    Some((start + more, digits))
}

/// Most elements of a value: more than any memory holds, and few enough to compute with.
const MOST: i64 = 1 << 48;

/// How many elements a shape has.
pub(crate) fn count_of(shape: &[i64]) -> Result<i64, String> {
    let count = shape.iter().try_fold(1_i64, |count, &extent| count.checked_mul(extent));
    count.filter(|&count| count <= MOST).ok_or_else(|| format!("{shape:?} has more elements than can be counted"))
}
