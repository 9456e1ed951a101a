//! Typed views: slices of elements, or a shape with a slice that has to fit it.

use bytemuck::{AnyBitPattern, NoUninit};

use crate::{Error, Options, permute_with, plan};

/// A dense row-major tensor over a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View<'a, T> {
    shape: &'a [usize],
    elems: &'a [T],
}

impl<'a, T: NoUninit> View<'a, T> {
    /// A view; an error if the slice has not the shape's elements.
    pub fn new(shape: &'a [usize], elems: &'a [T]) -> Result<Self, Error> {
        let identity: Vec<usize> = (0..shape.len()).collect();
        let want = plan(shape, &identity, size_of::<T>())?.bytes();
        let got = size_of_val(elems);
        if want == got { Ok(Self { shape, elems }) } else { Err(Error::BufferLength { buffer: "source", want, got }) }
    }

    /// The extents.
    #[must_use]
    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    /// Writes the tensor to `dst` with its axes permuted: axis `i` of the result is axis `perm[i]` of this one.
    pub fn permute_into(&self, perm: &[usize], dst: &mut [T], options: &Options) -> Result<(), Error>
    where
        T: AnyBitPattern,
    {
        let plan = plan(self.shape, perm, size_of::<T>())?;
        permute_with(bytemuck::cast_slice(self.elems), bytemuck::cast_slice_mut(dst), &plan, options)
    }

    /// The same into a new vector.
    pub fn permuted(&self, perm: &[usize]) -> Result<Vec<T>, Error>
    where
        T: AnyBitPattern,
    {
        let mut dst = vec![T::zeroed(); self.elems.len()];
        self.permute_into(perm, &mut dst, &Options::default())?;
        Ok(dst)
    }
}

#[cfg(test)]
mod tests {
    use super::View;
    use crate::{Error, Options};

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
    }
}
