//! Arithmetic on extents for inference: what can't be expressed is an anonymous dim, never an overflow.

use super::{InferContext, MAX_RANK};
use crate::dim::Dim;
use crate::op::read::Window;
use crate::types::Shape;

/// Whether no value of its symbols makes it negative, as far as that can be seen.
pub(in crate::op) fn is_extent(d: &Dim) -> bool {
    d.is_never_negative()
}

/// `a / b` as ONNX divides integers, towards zero.
pub(in crate::op) fn quotient(a: &Dim, b: &Dim) -> Option<Dim> {
    match (a.as_const(), b.as_const()) {
        (Some(a), Some(b)) => a.checked_div(b).map(Dim::from),
        (None, Some(b)) if b > 0 => a.exact_div(&Dim::from(b)).or_else(|| {
            // Down and towards zero are the same for what can't be negative.
            is_extent(a).then(|| a.checked_floor_div(b)).flatten()
        }),
        _ => a.exact_div(b),
    }
}

/// Two extents that the op requires to be equal: the one that is known better.
pub(in crate::op) fn agree(a: &Dim, b: &Dim, what: &str) -> Result<Dim, String> {
    match (a.as_const(), b.as_const()) {
        (Some(x), Some(y)) if x != y => Err(format!("{what} differ: {x} and {y}")),
        (None, Some(_)) => Ok(b.clone()),
        _ => Ok(a.clone()),
    }
}

impl InferContext<'_> {
    /// `a + b`.
    pub(in crate::op) fn add(&mut self, a: &Dim, b: &Dim) -> Dim {
        a.checked_add(b).unwrap_or_else(|| self.unknown())
    }

    /// `a * b`.
    pub(in crate::op) fn mul(&mut self, a: &Dim, b: &Dim) -> Dim {
        a.checked_mul(b).unwrap_or_else(|| self.unknown())
    }

    /// Product of all.
    pub(in crate::op) fn product(&mut self, dims: &[Dim]) -> Dim {
        Dim::product(dims).unwrap_or_else(|| self.unknown())
    }

    /// `a / b` where it divides, else unknown.
    pub(in crate::op) fn divide(&mut self, a: &Dim, b: &Dim) -> Dim {
        a.exact_div(b).unwrap_or_else(|| self.unknown())
    }

    /// One axis of a NumPy broadcast.
    fn broadcast_dim(&mut self, a: &Dim, b: &Dim) -> Result<Dim, String> {
        if a == b || b.is_one() {
            return Ok(a.clone());
        }
        match (a.as_const(), b.as_const()) {
            // Whether the symbol is 1 or the same as the number, the result is the number.
            (Some(1), _) | (None, Some(_)) => Ok(b.clone()),
            (Some(_), None) => Ok(a.clone()),
            (Some(x), Some(y)) => Err(format!("extents {x} and {y} do not broadcast")),
            (None, None) => Ok(self.unknown()),
        }
    }

    /// NumPy broadcast of shapes; `None` if a rank is not known.
    pub(in crate::op) fn broadcast(&mut self, shapes: &[Option<&[Dim]>]) -> Result<Option<Shape>, String> {
        let Some(shapes) = shapes.iter().copied().collect::<Option<Vec<_>>>() else { return Ok(None) };
        let mut result: Shape = Vec::new();
        for shape in shapes {
            let (long, short) = if shape.len() > result.len() { (shape, result.as_slice()) } else { (&*result, shape) };
            let head = long.len() - short.len();
            let mut next = long[..head].to_vec();
            for (a, b) in long[head..].iter().zip(short) {
                next.push(self.broadcast_dim(a, b)?);
            }
            result = next;
        }
        check_rank(result.len())?;
        Ok(Some(result))
    }

    /// Number of places of a window along an axis of this extent.
    pub(in crate::op) fn window_extent(&mut self, extent: &Dim, w: &Window) -> Result<Dim, String> {
        Ok(w.places(extent)?.unwrap_or_else(|| self.unknown()))
    }
}

/// Refuses ranks that no layout could number.
pub(in crate::op) fn check_rank(rank: usize) -> Result<(), String> {
    (rank <= MAX_RANK).then_some(()).ok_or_else(|| format!("the result would have {rank} axes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_of_extents_rounds_towards_zero_or_is_not_known() {
        let h = Dim::symbol("H");
        assert_eq!(quotient(&Dim::from(-7), &Dim::from(2)), Some(Dim::from(-3)));
        assert_eq!(quotient(&h, &Dim::from(2)), "H//2".parse().ok());
        assert_eq!(quotient(&h.checked_sub(&Dim::from(3)).unwrap(), &Dim::from(2)), None);
        assert_eq!(quotient(&Dim::from(i64::MIN), &Dim::from(-1)), None);
        assert_eq!(quotient(&h, &Dim::ZERO), None);
    }
}
