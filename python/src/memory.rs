//! Memory of NumPy arrays, without a copy.
//!
//! The buffer protocol is part of the stable ABI from version 3.11 on only. An array says by its attributes where it lies, in all
//! versions.

#![allow(unsafe_code, reason = "the memory of an array is known by its address")]

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// The memory of an array whose elements lie in row-major order without gaps. It keeps the array.
pub(crate) struct Region {
    _array: Py<PyAny>,
    start: NonNull<u8>,
    len: usize,
    writable: bool,
}

// SAFETY: the address is that of memory which the array owns or keeps, whatever thread looks at it. Arrays are counted by Python,
// whose `Py` may be dropped on any thread.
unsafe impl Send for Region {}
// SAFETY: as above, and it is only read through a shared reference.
unsafe impl Sync for Region {}

impl Region {
    /// The memory of a `numpy.ndarray`, and nothing that only acts like one.
    pub(crate) fn of(array: &Bound<'_, PyAny>) -> PyResult<Region> {
        let ndarray = array.py().import("numpy")?.getattr("ndarray")?;
        if !array.get_type().is(&ndarray) {
            return Err(PyTypeError::new_err(format!("expected a numpy.ndarray, not {}", array.get_type().name()?)));
        }
        let interface = array.getattr("__array_interface__")?.cast_into::<PyDict>()?;
        let gaps = interface.get_item("strides")?.is_some_and(|strides| !strides.is_none());
        if gaps || array.getattr("dtype")?.getattr("hasobject")?.extract()? {
            return Err(PyTypeError::new_err("expected an array of plain elements in row-major order"));
        }
        let (address, read_only): (usize, bool) = match interface.get_item("data")? {
            Some(data) => data.extract()?,
            None => return Err(PyTypeError::new_err("the array does not say where it lies")),
        };
        let len: usize = array.getattr("nbytes")?.extract()?;
        let start = NonNull::new(std::ptr::with_exposed_provenance_mut(address)).filter(|_| len > 0);
        let start = start.unwrap_or(NonNull::dangling());
        let len = if isize::try_from(len).is_ok() { len } else { 0 };
        Ok(Region { _array: array.clone().unbind(), start, len, writable: !read_only })
    }

    /// Whether it may be written to.
    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    /// Whether both have a byte in common.
    pub(crate) fn overlaps(&self, other: &Region) -> bool {
        let (a, b) = (self.start.addr().get(), other.start.addr().get());
        self.len > 0 && other.len > 0 && a < b + other.len && b < a + self.len
    }

    /// The bytes, of which nobody may have written some.
    pub(crate) fn maybe_bytes(&self) -> &[MaybeUninit<u8>] {
        // SAFETY: NumPy says that `len` bytes lie at this address without gaps (`of` refuses arrays with strides, and lengths that
        // no memory has). They stay there as long as the array, which this value keeps. That no other thread writes to them
        // meanwhile is what the docs of the callers ask of the user, as NumPy itself does.
        unsafe { std::slice::from_raw_parts(self.start.cast().as_ptr(), self.len) }
    }

    /// The bytes, to be written.
    pub(crate) fn maybe_bytes_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        assert!(self.writable, "whoever writes has checked that");
        // SAFETY: as in `maybe_bytes`; NumPy says that the array is writable, and this value is borrowed alone. Callers check that
        // no other region in use overlaps.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast().as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for Region {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: as in `maybe_bytes`. Weights of models were written before they are given.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}
