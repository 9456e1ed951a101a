//! How views begin: a whole layout, a dense tensor, a tensor with strides of its own, a part of a larger storage.

use smallvec::SmallVec;

use super::{StorageId, StorageView, ViewError};
use crate::dim::Dim;
use crate::strided::{self, Part};
use crate::{Layout, LayoutError, MAX_STORAGE_ELEMS, Refusal};

impl StorageView {
    /// The whole of a storage that holds a tensor of this shape in this layout.
    pub fn new(storage: StorageId, layout: &Layout, shape: &[i64]) -> Result<StorageView, ViewError> {
        let bound = layout.bind(shape).map_err(Refusal::from)?;
        let dims: Vec<Dim> = shape.iter().map(|extent| Dim::from(*extent)).collect();
        let axes = strided::parts_of(layout, &dims)?;
        let shape = SmallVec::from_slice(shape);
        Ok(StorageView { storage, storage_elems: bound.storage_elems(), offset: 0, shape, axes })
    }

    /// The whole of a storage that holds a row-major tensor of this shape.
    pub fn dense(storage: StorageId, shape: &[i64]) -> Result<StorageView, ViewError> {
        let mut strides: SmallVec<[i64; 6]> = SmallVec::from_elem(1, shape.len());
        let mut span = 1i64;
        for (axis, extent) in shape.iter().enumerate().rev() {
            strides[axis] = span;
            span = span.checked_mul((*extent).max(1)).ok_or(Refusal::Layout(LayoutError::TooLarge))?;
        }
        let elems = if shape.contains(&0) { 0 } else { span as u64 };
        StorageView::strided(storage, elems, 0, shape, &strides)
    }

    /// A tensor as NumPy and PyTorch describe it: a stride in elements for each axis, and where index 0 lies in a storage
    /// of `storage_elems` elements.
    ///
    /// ```
    /// use relayout_layout::storage::{StorageId, StorageView};
    /// // Every second row of a 6 x 4 matrix.
    /// let rows = StorageView::strided(StorageId(0), 24, 0, &[3, 4], &[8, 1]).unwrap();
    /// assert_eq!(rows, StorageView::dense(StorageId(0), &[6, 4]).unwrap().slice(0, 0, 3, 2).unwrap());
    /// ```
    pub fn strided(
        storage: StorageId,
        storage_elems: u64,
        offset: i64,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<StorageView, ViewError> {
        if shape.len() != strides.len() {
            return Err(Refusal::from(LayoutError::RankMismatch { layout: strides.len(), shape: shape.len() }).into());
        }
        let too_large = || ViewError::from(Refusal::from(LayoutError::TooLarge));
        if storage_elems > MAX_STORAGE_ELEMS {
            return Err(too_large());
        }
        let (mut first, mut last, mut elems) = (offset, offset, 1i64);
        for (axis, (&extent, &stride)) in shape.iter().zip(strides).enumerate() {
            if extent < 0 {
                return Err(Refusal::from(LayoutError::NegativeExtent { axis, extent }).into());
            }
            elems =
                elems.checked_mul(extent.max(1)).filter(|n| *n as u64 <= MAX_STORAGE_ELEMS).ok_or_else(too_large)?;
            let reach = (extent - 1).max(0).checked_mul(stride).ok_or_else(too_large)?;
            let end = if reach < 0 { &mut first } else { &mut last };
            *end = end.checked_add(reach).ok_or_else(too_large)?;
        }
        if !shape.contains(&0) && (first < 0 || last >= storage_elems as i64) {
            return Err(ViewError::OutOfStorage { first, last, elems: storage_elems });
        }
        let part = |(&extent, &stride): (&i64, &i64)| match extent {
            1 => Vec::new(),
            _ => vec![Part::plain(Dim::from(extent), Dim::from(stride))],
        };
        let axes = shape.iter().zip(strides).map(part).collect();
        Ok(StorageView { storage, storage_elems, offset, shape: SmallVec::from_slice(shape), axes })
    }

    /// The view where its storage is a part of a larger one, from element `at` on: a tensor in an arena, a member of
    /// a concatenation.
    pub fn within(mut self, storage: StorageId, storage_elems: u64, at: u64) -> Result<StorageView, ViewError> {
        let end = at.saturating_add(self.storage_elems);
        if end > storage_elems || storage_elems > MAX_STORAGE_ELEMS {
            let (first, last) = (at as i64, end as i64 - 1);
            return Err(ViewError::OutOfStorage { first, last, elems: storage_elems });
        }
        self.offset += at as i64;
        (self.storage, self.storage_elems) = (storage, storage_elems);
        Ok(self)
    }
}
