//! Arenas: what is to be placed, the storage, and its end.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use thiserror::Error;

use super::Field;
use super::locate::Locator;
use crate::Order;

/// Why a field was not placed or not found.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FieldError {
    /// Digits that do not spell the shape.
    #[error(
        "the order of a field of shape {shape:?} does not spell it: each axis needs digits from stride 1 on with a slot for each index, and no segments"
    )]
    NotAnOrder {
        /// The shape.
        shape: Vec<usize>,
    },
    /// The digit of the field is nowhere.
    #[error("the field can't be digit {depth} of an order of {digits} digits; 0 is outermost, {digits} innermost")]
    NoSuchDepth {
        /// What was asked for.
        depth: usize,
        /// Digits of the order.
        digits: usize,
    },
    /// More elements than memory has room for.
    #[error("the arena does not fit the address space")]
    TooLarge,
    /// The arena is gone.
    #[error("the arena was destroyed; build another")]
    Destroyed,
    /// A name from another arena.
    #[error("the field is of another arena")]
    Stranger,
    /// The number of indices is not the rank.
    #[error("a field of rank {rank} was asked for with {asked} indices")]
    Rank {
        /// Of the field.
        rank: usize,
        /// Asked for.
        asked: usize,
    },
}

/// Where the field stands among the digits of a group's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fields {
    /// Innermost: an array of structures.
    Together,
    /// Outermost: a structure of arrays.
    Apart,
    /// After this many digits of the order: arrays of structures of short arrays.
    After(usize),
}

/// What a field is asked for by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldName {
    /// The number of the arena.
    own: u64,
    group: usize,
    base: usize,
}

/// Fields that lie as one.
#[derive(Debug, Clone)]
struct Group {
    locator: Locator,
    start: usize,
}

/// An arena to be: groups of fields, one after the other.
#[derive(Debug)]
pub struct Plot {
    /// The number of the arena to be.
    own: u64,
    groups: Vec<Group>,
    elems: usize,
}

impl Default for Plot {
    fn default() -> Self {
        Self::new()
    }
}

impl Plot {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { own: NEXT.fetch_add(1, Ordering::Relaxed), groups: Vec::new(), elems: 0 }
    }

    /// Places `N` fields of one shape after what is there.
    pub fn place<const N: usize>(
        &mut self,
        shape: &[usize],
        order: &Order,
        fields: Fields,
    ) -> Result<[FieldName; N], FieldError> {
        let digits = order.digits.len();
        let depth = match fields {
            Fields::Together => digits,
            Fields::Apart => 0,
            Fields::After(depth) if depth <= digits => depth,
            Fields::After(depth) => return Err(FieldError::NoSuchDepth { depth, digits }),
        };
        let not_an_order = || FieldError::NotAnOrder { shape: shape.to_vec() };
        let locator = Locator::new(shape, order, depth, N).ok_or_else(not_an_order)?;
        let inside = order.digits.iter().skip(depth).map(|digit| digit.extent);
        let pitch = inside.fold(1_usize, usize::saturating_mul);
        let slots = order.slots().and_then(|slots| slots.checked_mul(N)).ok_or(FieldError::TooLarge)?;
        let (group, start) = (self.groups.len(), self.elems);
        self.elems = start.checked_add(slots).ok_or(FieldError::TooLarge)?;
        self.groups.push(Group { locator, start });
        Ok(std::array::from_fn(|field| FieldName { own: self.own, group, base: field * pitch }))
    }

    /// Places one field.
    pub fn field(&mut self, shape: &[usize], order: &Order) -> Result<FieldName, FieldError> {
        self.place::<1>(shape, order, Fields::Apart).map(|[name]| name)
    }

    /// Makes the storage, all elements the default.
    pub fn build<T: Default>(self) -> Result<Arena<T>, FieldError> {
        let bytes = self.elems.checked_mul(size_of::<T>());
        bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or(FieldError::TooLarge)?;
        let mut cells = Vec::new();
        cells.try_reserve_exact(self.elems).map_err(|_| FieldError::TooLarge)?;
        cells.resize_with(self.elems, Cell::default);
        Ok(Arena { own: self.own, groups: self.groups, cells: Some(cells) })
    }
}

/// Storage with the fields in it.
pub struct Arena<T> {
    /// Its number.
    own: u64,
    groups: Vec<Group>,
    /// Nothing once it is destroyed.
    cells: Option<Vec<Cell<T>>>,
}

impl<T> Arena<T> {
    /// A field.
    pub fn field<const R: usize>(&self, name: FieldName) -> Result<Field<'_, T, R>, FieldError> {
        let cells = self.cells.as_ref().ok_or(FieldError::Destroyed)?;
        let group = self.groups.get(name.group).filter(|_| name.own == self.own);
        let Group { locator, start } = group.ok_or(FieldError::Stranger)?;
        let rank = locator.shape().len();
        if rank != R {
            return Err(FieldError::Rank { rank, asked: R });
        }
        Ok(Field { cells, locator, base: start + name.base })
    }

    /// Elements that there is room for, padding included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.as_ref().map_or(0, Vec::len)
    }

    /// Whether there is no room at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Frees the storage. No field can be borrowed at that time, and none can be asked for later.
    pub fn destroy(&mut self) {
        self.cells = None;
    }
}
