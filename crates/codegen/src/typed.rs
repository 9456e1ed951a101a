//! Typed views: slices of elements with a shape and strides over them.

use std::borrow::Cow;

use bytemuck::{AnyBitPattern, NoUninit};
use relayout_layout::dim::element_count;
use relayout_layout::storage::{FreeOrCopy, StorageId, StorageView, ViewError};

use crate::{Error, Kernel, Options, StridedCopy, permute_with, plan};

/// A tensor over a slice, dense or strided.
///
/// [`narrow`](View::narrow), [`slice`](View::slice), [`split`](View::split), [`transpose`](View::transpose) and
/// [`expand`](View::expand) make views of the same elements and move nothing; where one cannot, its error says why. A
/// [`reshape`](View::free_or_copy) is free or a copy. What moves elements says so in its name.
///
/// ```
/// use relayout_codegen::{FreeOrCopy, Options, View};
/// let image: Vec<i32> = (0..24).collect();
/// let image = View::new(&[4, 6], &image).unwrap();
/// // A crop is a view, and so is its transpose.
/// let crop = image.narrow(1, 2, 3).unwrap();
/// let columns = crop.transpose(&[1, 0]).unwrap();
/// assert_eq!(columns.get(&[0, 1]), Some(8));
/// // Its rows have gaps between them: an axis can be cut in two, but one of all elements is a copy.
/// assert!(crop.free_or_copy(&[2, 2, 3]).is_free());
/// let FreeOrCopy::Copy(why) = crop.free_or_copy(&[6, 2]) else { panic!("a row has 3 elements") };
/// assert!(why.to_string().contains("boundary every 2 elements"));
/// // Rows from the middle are contiguous, so nothing is copied; a crop is.
/// assert!(matches!(image.narrow(0, 1, 2).unwrap().dense().unwrap(), std::borrow::Cow::Borrowed(_)));
/// assert_eq!(crop.dense().unwrap()[..6], [2, 3, 4, 8, 9, 10]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View<'a, T> {
    view: StorageView,
    elems: &'a [T],
}

impl<'a, T: NoUninit> View<'a, T> {
    /// A dense row-major tensor; an error if the slice has not the shape's elements.
    pub fn new(shape: &[usize], elems: &'a [T]) -> Result<Self, Error> {
        let too_large = || Error::TooLarge { shape: shape.to_vec(), unit_bytes: size_of::<T>() };
        let extents = signed(shape).ok_or_else(too_large)?;
        // Slices that begin at one address are of the same memory.
        let view = StorageView::dense(StorageId(elems.as_ptr().addr() as u64), &extents)?;
        Self::over(view, elems)
    }

    /// A view whose storage is the slice; an error if they are not of the same number of elements.
    pub fn over(view: StorageView, elems: &'a [T]) -> Result<Self, Error> {
        if size_of::<T>() == 0 {
            return Err(Error::NoElementBytes);
        }
        if view.storage_elems() == elems.len() as u64 {
            return Ok(Self { view, elems });
        }
        let want = (view.storage_elems() as usize).saturating_mul(size_of::<T>());
        Err(Error::BufferLength { buffer: "source", want, got: size_of_val(elems) })
    }

    /// The extents.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        self.view.shape()
    }

    /// Where its elements lie in the slice.
    #[must_use]
    pub fn storage_view(&self) -> &StorageView {
        &self.view
    }

    /// An element; `None` outside of the shape.
    #[must_use]
    pub fn get(&self, index: &[i64]) -> Option<T> {
        self.elems.get(usize::try_from(self.view.offset_of(index)?).ok()?).copied()
    }

    fn seen(&self, view: StorageView) -> Self {
        Self { view, elems: self.elems }
    }

    /// Axis `i` of the result is axis `perm[i]` of this one.
    pub fn transpose(&self, perm: &[usize]) -> Result<Self, Error> {
        Ok(self.seen(self.view.transpose(perm)?))
    }

    /// Indices `start..start + len` of an axis.
    pub fn narrow(&self, axis: usize, start: i64, len: i64) -> Result<Self, Error> {
        Ok(self.seen(self.view.narrow(axis, start, len)?))
    }

    /// `count` indices of an axis from `start` in steps of `step`, which may be negative.
    pub fn slice(&self, axis: usize, start: i64, count: i64, step: i64) -> Result<Self, Error> {
        Ok(self.seen(self.view.slice(axis, start, count, step)?))
    }

    /// The axis cut in parts of these lengths.
    pub fn split(&self, axis: usize, sizes: &[i64]) -> Result<Vec<Self>, Error> {
        Ok(self.view.split(axis, sizes)?.into_iter().map(|part| self.seen(part)).collect())
    }

    /// The tensor repeated to a shape, as NumPy broadcasts.
    pub fn expand(&self, shape: &[i64]) -> Result<Self, Error> {
        Ok(self.seen(self.view.expand(shape)?))
    }

    /// The same elements in row-major order with another shape: a view of them, or why it takes a copy.
    #[must_use]
    pub fn free_or_copy(&self, shape: &[i64]) -> FreeOrCopy<Self> {
        match self.view.free_or_copy(shape) {
            FreeOrCopy::Free(view) => FreeOrCopy::Free(self.seen(view)),
            FreeOrCopy::Copy(why) => FreeOrCopy::Copy(why),
        }
    }

    /// The elements in row-major order, if that is how they lie.
    #[must_use]
    pub fn as_slice(&self) -> Option<&'a [T]> {
        let elems = self.elems()?;
        let start = if elems == 0 { 0 } else { usize::try_from(self.view.offset()).ok()? };
        self.view.is_contiguous().then(|| self.elems.get(start..start.checked_add(elems)?)).flatten()
    }

    fn elems(&self) -> Option<usize> {
        usize::try_from(element_count(self.shape().iter().copied())?).ok()
    }

    /// Writes the elements to the places of `to`, a view of the same shape whose storage is `dst`; what is not of that view stays.
    pub fn copy_to(&self, to: &StorageView, dst: &mut [T], options: &Options) -> Result<(), Error>
    where
        T: AnyBitPattern,
    {
        let copy = StridedCopy::between(&self.view, to, size_of::<T>())?;
        Kernel::copying(&copy, options).run(bytemuck::cast_slice(self.elems), bytemuck::cast_slice_mut(dst))
    }

    /// Writes the tensor to `dst` with its axes permuted: axis `i` of the result is axis `perm[i]` of this one.
    pub fn permute_into(&self, perm: &[usize], dst: &mut [T], options: &Options) -> Result<(), Error>
    where
        T: AnyBitPattern,
    {
        if let Some(elems) = self.as_slice() {
            let shape: Vec<usize> = self.shape().iter().map(|&extent| extent as usize).collect();
            let plan = plan(&shape, perm, size_of::<T>())?;
            return permute_with(bytemuck::cast_slice(elems), bytemuck::cast_slice_mut(dst), &plan, options);
        }
        let permuted = self.transpose(perm)?;
        permuted.copy_to(&StorageView::dense(StorageId(0), permuted.shape())?, dst, options)
    }

    /// The tensor with its axes permuted, in a new vector.
    ///
    /// ```
    /// use relayout_codegen::View;
    /// let pixels: Vec<[u8; 3]> = (0..6).map(|i| [i, i, i]).collect();
    /// let image = View::new(&[2, 3], &pixels)?;
    /// assert_eq!(image.permuted(&[1, 0])?[..3], [[0; 3], [3; 3], [1; 3]]);
    /// // A permutation of a strided view reads no more than the view.
    /// assert_eq!(image.narrow(1, 1, 1)?.permuted(&[1, 0])?, [[1; 3], [4; 3]]);
    /// assert!(image.permuted(&[0, 0]).is_err());
    /// # Ok::<(), relayout_codegen::Error>(())
    /// ```
    pub fn permuted(&self, perm: &[usize]) -> Result<Vec<T>, Error>
    where
        T: AnyBitPattern,
    {
        let too_large = || Error::View(ViewError::from(relayout_layout::Refusal::Overflow));
        let mut dst = vec![T::zeroed(); self.elems().ok_or_else(too_large)?];
        self.permute_into(perm, &mut dst, &Options::default())?;
        Ok(dst)
    }

    /// The elements in row-major order: those of the slice where they lie so, else a copy.
    pub fn dense(&self) -> Result<Cow<'a, [T]>, Error>
    where
        T: AnyBitPattern,
    {
        match self.as_slice() {
            Some(elems) => Ok(Cow::Borrowed(elems)),
            None => self.permuted(&(0..self.shape().len()).collect::<Vec<_>>()).map(Cow::Owned),
        }
    }
}

fn signed(shape: &[usize]) -> Option<Vec<i64>> {
    shape.iter().map(|&extent| i64::try_from(extent).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::View;
    use crate::{Error, Options, StorageId, StorageView};

    #[test]
    fn elements_of_any_plain_type_are_permuted() {
        let shape = [2, 3];
        let floats = View::new(&shape, &[0.0_f64, 1.0, 2.0, 3.0, 4.0, 5.0]).expect("it fits");
        assert_eq!(floats.permuted(&[1, 0]), Ok(vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0]));
        let pixels = View::new(&shape, &[[0_u8, 1, 2], [1; 3], [2; 3], [3; 3], [4; 3], [5; 3]]).expect("it fits");
        assert_eq!(pixels.permuted(&[1, 0]).map(|moved| moved[1]), Ok([3, 3, 3]));
    }

    #[test]
    fn slices_that_do_not_fit_are_refused() {
        let short = Error::BufferLength { buffer: "source", want: 24, got: 20 };
        assert_eq!(View::new(&[2, 3], &[0_i32; 5]).err(), Some(short));
        let view = View::new(&[2, 3], &[0_i32; 6]).expect("it fits");
        let long = Error::BufferLength { buffer: "destination", want: 24, got: 28 };
        assert_eq!(view.permute_into(&[1, 0], &mut [0; 7], &Options::default()), Err(long));
        assert!(matches!(view.permuted(&[1, 1]), Err(Error::NotAPermutation { .. })));
        assert_eq!(View::new(&[2], &[(), ()]).err(), Some(Error::NoElementBytes));
    }

    #[test]
    fn parts_of_a_tensor_are_permuted_where_they_lie() {
        let elems: Vec<u16> = (0..30).collect();
        let view = View::new(&[5, 6], &elems).expect("it fits");
        let right = view.narrow(1, 4, 2).expect("a range");
        assert_eq!(right.permuted(&[1, 0]), Ok(vec![4, 10, 16, 22, 28, 5, 11, 17, 23, 29]));
        let rows = view.narrow(0, 3, 2).expect("a range");
        assert_eq!(rows.as_slice(), Some(&elems[18..]));
        assert_eq!(rows.permuted(&[1, 0]).map(|moved| moved[..4].to_vec()), Ok(vec![18, 24, 19, 25]));
        let mirrored = view.slice(0, 4, 5, -2).map(|_| ());
        assert!(matches!(mirrored, Err(Error::View(_))), "5 steps of -2 from row 4 leave the tensor");
        let mirrored = view.slice(0, 4, 3, -2).expect("rows 4, 2 and 0").narrow(1, 0, 1).expect("a column");
        assert_eq!(mirrored.dense().expect("a copy")[..], [24, 12, 0]);
        let empty = view.narrow(0, 5, 0).expect("nothing");
        assert_eq!(empty.as_slice(), Some(&[][..]));
    }

    #[test]
    fn repeats_are_read_and_not_written() {
        let row = View::new(&[1, 3], &[7_u8, 8, 9]).expect("it fits").expand(&[2, 3]).expect("one row");
        assert_eq!(row.dense().expect("a copy")[..], [7, 8, 9, 7, 8, 9]);
        let to = StorageView::dense(StorageId(0), &[1, 3]).and_then(|to| to.expand(&[2, 3])).expect("one row");
        assert_eq!(row.copy_to(&to, &mut [0; 3], &Options::default()), Err(Error::Repeats));
    }
}
