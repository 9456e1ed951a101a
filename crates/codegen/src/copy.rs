//! Copies between two views of storages: slices, steps, repeats, members of a concatenation, blocked or plain.
//!
//! Both sides say where each index lies; a copy is the strided movements of all indices. Where the source is a whole tensor and
//! the destination a dense one, [`plan()`](crate::plan()) says the same with more known about it, and between whole orders with
//! padding [`relayout()`](crate::relayout()) does.

use relayout_layout::storage::{Run as Elements, StorageView};

use crate::Error;
use crate::kernels::Movement;
use crate::pattern::{self, Run};
use crate::relayout::product;

/// A planned copy of the elements of one view to the places of another.
///
/// Buffers are the whole storages of the two views. Bytes of the destination that are no element of its view stay as they are.
///
/// ```
/// use relayout_codegen::{Kernel, Options, StorageId, StorageView, StridedCopy};
/// // [1, 2] and [3, 4, 5] one behind the other: the second lies in the result from element 2 on.
/// let second = StorageView::dense(StorageId(0), &[3]).unwrap();
/// let joined = StorageView::dense(StorageId(1), &[5]).unwrap();
/// let copy = StridedCopy::new(&second, &joined.narrow(0, 2, 3).unwrap(), 1).unwrap();
/// let mut result = [1, 2, 0, 0, 0];
/// Kernel::copying(&copy, &Options::default()).run(&[3, 4, 5], &mut result).unwrap();
/// assert_eq!(result, [1, 2, 3, 4, 5]);
/// // Written there to begin with, it costs nothing.
/// let there = second.within(StorageId(1), 5, 2).unwrap();
/// assert!(StridedCopy::new(&there, &joined.narrow(0, 2, 3).unwrap(), 1).unwrap().is_free());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StridedCopy {
    pub(crate) moves: Vec<Movement>,
    from_bytes: usize,
    to_bytes: usize,
    free: bool,
}

impl StridedCopy {
    /// Plans a copy of elements of `elem_bytes` bytes. It is free where both views are the same places of one storage; other places
    /// of that storage are refused.
    pub fn new(from: &StorageView, to: &StorageView, elem_bytes: usize) -> Result<Self, Error> {
        if from.move_to(to).is_free() {
            let bytes = storage_bytes(from, "source", elem_bytes)?;
            return Ok(Self { moves: Vec::new(), from_bytes: bytes, to_bytes: bytes, free: true });
        }
        if from.same_storage(to) {
            return Err(Error::SameStorage);
        }
        Self::between(from, to, elem_bytes)
    }

    /// Plans a copy between two storages that are known to be different ones.
    pub(crate) fn between(from: &StorageView, to: &StorageView, elem: usize) -> Result<Self, Error> {
        if elem == 0 {
            return Err(Error::NoElementBytes);
        }
        if from.shape() != to.shape() {
            return Err(Error::Shapes { from: from.shape().to_vec(), to: to.shape().to_vec() });
        }
        if to.has_repeats() {
            return Err(Error::Repeats);
        }
        let (from_bytes, to_bytes) = (storage_bytes(from, "source", elem)?, storage_bytes(to, "destination", elem)?);
        let mut copy = Self { moves: Vec::new(), from_bytes, to_bytes, free: from.shape().contains(&0) };
        if !copy.free {
            let axis = |(axis, &extent): (usize, &i64)| pattern::moves(run(from, axis), run(to, axis), extent as usize);
            let axes: Option<Vec<_>> = from.shape().iter().enumerate().map(axis).collect();
            let axes = axes.ok_or(Error::Scattered { parts: from_bytes / elem })?;
            copy.moves = product(&axes, elem, (from.offset() as isize, to.offset() as isize))?;
        }
        Ok(copy)
    }

    /// Whether there is nothing to do: the elements are where they are wanted.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.free
    }

    /// Bytes of the source's storage.
    #[must_use]
    pub fn from_bytes(&self) -> usize {
        self.from_bytes
    }

    /// Bytes of the destination's storage.
    #[must_use]
    pub fn to_bytes(&self) -> usize {
        self.to_bytes
    }

    /// Bytes that must be read and written at least: each element's twice.
    #[must_use]
    pub fn traffic_bytes(&self) -> usize {
        2 * self.moves.iter().map(Movement::bytes).sum::<usize>()
    }
}

/// The runs of an axis of a view.
fn run(view: &StorageView, axis: usize) -> impl Fn(usize) -> Run + '_ {
    move |index| {
        let from_here = view.run_from(axis, index as i64);
        let (place, Elements { extent, stride }) = from_here.unwrap_or((0, Elements { extent: 1, stride: 0 }));
        Run { place: place as isize, count: extent as usize, step: stride as isize }
    }
}

fn storage_bytes(view: &StorageView, side: &'static str, elem: usize) -> Result<usize, Error> {
    let elems = usize::try_from(view.storage_elems()).ok();
    let bytes = elems.and_then(|elems| elems.checked_mul(elem)).filter(|&bytes| isize::try_from(bytes).is_ok());
    bytes.ok_or(Error::OrderTooLarge { side })
}
