//! Constants that hold slices of another one, and zeros.

use super::{bytes_of, width};
use bytes::Bytes;
use relayout_ir::constant::{ConstSource, Constant};
use relayout_ir::dim::element_count;
use std::sync::Arc;

/// A constant in another order along one axis, with zeros where nothing is taken.
#[derive(Debug)]
pub struct Picked {
    /// What is taken from.
    pub from: Constant,
    /// Along this axis.
    pub axis: usize,
    /// By place of the result: the index that is taken, or zeros.
    pub places: Arc<[Option<usize>]>,
}

impl Picked {
    /// The constant, whose bytes are made when they are asked for; `None` where it would be too large, or an index is not there.
    #[must_use]
    pub fn constant(from: Constant, axis: usize, places: Arc<[Option<usize>]>) -> Option<Constant> {
        let extent = usize::try_from(*from.dims.get(axis)?).ok()?;
        let mut dims = from.dims.clone();
        *dims.get_mut(axis)? = i64::try_from(places.len()).ok()?;
        let dtype = from.dtype;
        let there = places.iter().flatten().all(|&place| place < extent);
        let picked = Constant { dtype, dims, source: Arc::new(Picked { from, axis, places }), pending: None };
        picked.size_bytes().filter(|_| there)?;
        Some(picked)
    }
}

impl ConstSource for Picked {
    fn depth(&self) -> usize {
        self.from.source.depth().saturating_add(1)
    }

    fn bytes(&self) -> Result<Bytes, String> {
        let from = bytes_of(&self.from)?;
        let product = |dims: &[i64]| {
            let count = element_count(dims.iter().copied()).and_then(|n| usize::try_from(n).ok());
            count.ok_or("a constant has no such extents")
        };
        let (outer, inner) = self.from.dims.split_at_checked(self.axis).ok_or("the axis is none of its axes")?;
        let (extent, inner) = inner.split_first().ok_or("the axis is none of its axes")?;
        let (outer, extent) = (product(outer)?, product(&[*extent])?);
        let run = product(inner)?.checked_mul(width(self.from.dtype)?).ok_or("the result is too large")?;
        let size = [self.places.len(), run].into_iter().try_fold(outer, usize::checked_mul);
        let mut out = Vec::with_capacity(size.ok_or("the result is too large")?);
        for o in 0..outer {
            for place in self.places.iter() {
                match place {
                    None => out.resize(out.len() + run, 0),
                    Some(at) => {
                        let at = (o * extent + at) * run;
                        out.extend_from_slice(from.get(at..at + run).ok_or("the constant is too short")?);
                    }
                }
            }
        }
        Ok(out.into())
    }

    fn is_available(&self) -> bool {
        self.from.source.is_available()
    }

    fn is_computed(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relayout_ir::dtype::DType;

    fn bytes(from: &[u8], dims: &[i64], axis: usize, places: &[Option<usize>]) -> Option<(Vec<i64>, Vec<u8>)> {
        let from = Constant::inline(DType::U8, dims.to_vec(), from.to_vec().into());
        let picked = Picked::constant(from, axis, places.into())?;
        Some((picked.dims.clone(), picked.source.bytes().expect("they are there").to_vec()))
    }

    #[test]
    fn slices_lie_where_they_are_picked_and_zeros_elsewhere() {
        let rows = bytes(&[1, 2, 3, 4, 5, 6], &[3, 2], 0, &[Some(2), None, Some(0), Some(2)]);
        assert_eq!(rows, Some((vec![4, 2], vec![5, 6, 0, 0, 1, 2, 5, 6])));
        let columns = bytes(&[1, 2, 3, 4, 5, 6], &[3, 2], 1, &[None, Some(1), Some(0)]);
        assert_eq!(columns, Some((vec![3, 3], vec![0, 2, 1, 0, 4, 3, 0, 6, 5])));
        assert_eq!(bytes(&[1, 2], &[2], 0, &[]), Some((vec![0], vec![])));
    }

    #[test]
    fn what_is_not_there_is_not_picked() {
        assert_eq!(bytes(&[1, 2], &[2], 0, &[Some(2)]), None);
        assert_eq!(bytes(&[1, 2], &[2], 1, &[Some(0)]), None);
        let short = Constant::inline(DType::U8, vec![3], vec![1, 2].into());
        assert!(Picked { from: short, axis: 0, places: [Some(2)].into() }.bytes().is_err());
    }
}
