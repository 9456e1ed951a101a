//! Fields: tensors whose elements are named by their index and lie where an order says.
//!
//! A program says `x[[i, j]]` and never learns how `x` lies; whoever builds the [`Arena`] decides. Fields of the same shape are
//! placed as a group, with the field as one more digit of their common order: innermost it is an array of structures, outermost
//! a structure of arrays, in between the blocked forms. Elements are [`Cell`]s, so that fields that lie in each other's gaps can be
//! read and written side by side without a lock or a copy.
//!
//! An arena is made by [`Plot::build`], and destroyed by [`Arena::destroy`]; asking it for a field after that is an error, as is
//! asking with the name of a field of another arena.
//!
//! Where a field lies is a [`StorageView`](crate::StorageView) of the arena ([`Arena::view`]), like any other strided tensor; a
//! [`Field`] is its fast reader.
//!
//! ```
//! use relayout_codegen::field::{Arena, Field, Fields, Plot};
//! use relayout_codegen::{Digit, Order};
//! // Four structures of eight short arrays: height and speed of eight points, then of the next eight.
//! let eights = Order { digits: vec![Digit { axis: 0, extent: 4, stride: 8 }, Digit { axis: 0, extent: 8, stride: 1 }], ..Order::default() };
//! let mut plot = Plot::new();
//! let [height, speed] = plot.place(&[32], &eights, Fields::After(1)).unwrap();
//! let arena: Arena<f64> = plot.build().unwrap();
//! let (height, speed): (Field<f64, 1>, Field<f64, 1>) = (arena.field(height).unwrap(), arena.field(speed).unwrap());
//! for (index, speed) in speed.iter() {
//!     speed.set(height[index].get() + 1.0);
//! }
//! assert_eq!((height.place([9]), speed.place([9])), (17, 25));
//! ```
//!
//! Absent: fields of different types in one arena, sharing between threads, sparse storage, segments.

mod arena;
mod locate;

use std::cell::Cell;
use std::ops::Index;

pub use arena::{Arena, FieldError, FieldName, Fields, Plot};
use locate::Locator;

/// A tensor of rank `R` in an arena.
///
/// `field[[i, j]]` is the cell of an element. It panics, as a slice does, where an index is out of range; [`Field::get`] does not.
#[derive(Clone, Copy)]
pub struct Field<'a, T, const R: usize> {
    cells: &'a [Cell<T>],
    locator: &'a Locator,
    /// Where the field begins among those of its group, in elements.
    base: usize,
}

impl<'a, T, const R: usize> Field<'a, T, R> {
    /// The extents.
    #[must_use]
    pub fn shape(&self) -> &'a [usize] {
        self.locator.shape()
    }

    /// The cell of an element; `None` outside of the shape.
    #[must_use]
    pub fn get(&self, index: [usize; R]) -> Option<&'a Cell<T>> {
        let inside = index.iter().zip(self.shape()).all(|(index, extent)| index < extent);
        if inside { self.cells.get(self.place(index)) } else { None }
    }

    /// Where an element is in the arena, in elements; of an index outside of the shape, anywhere.
    #[must_use]
    pub fn place(&self, index: [usize; R]) -> usize {
        self.base + self.locator.offset(&index)
    }

    /// All elements in the order in which they lie, padding left out.
    pub fn iter(&self) -> impl Iterator<Item = ([usize; R], &'a Cell<T>)> + use<'a, T, R> {
        let (cells, base) = (self.cells, self.base);
        let element = move |(index, offset): ([usize; R], usize)| Some((index, cells.get(base + offset)?));
        self.locator.walk::<R>().filter_map(element)
    }
}

impl<T, const R: usize> Index<[usize; R]> for Field<'_, T, R> {
    type Output = Cell<T>;

    fn index(&self, index: [usize; R]) -> &Cell<T> {
        match self.get(index) {
            Some(cell) => cell,
            None => panic!("index {index:?} of a field of shape {:?}", self.shape()),
        }
    }
}
