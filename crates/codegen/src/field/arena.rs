//! Arenas: what is to be placed, the storage, and its end.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use relayout_layout::storage::{StorageId, StorageView, ViewError};
use relayout_layout::{LayoutError, Refusal};
use thiserror::Error;

use super::Field;
use super::locate::Locator;
use crate::{Digit, Order};

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
///
/// ```
/// use relayout_codegen::field::{Arena, Field, Fields, Plot};
/// use relayout_codegen::{Digit, Order};
/// /// Places of `x` and `y` of point (0, 1) and point (1, 0), of 4 by 4 points.
/// fn places(order: &Order, fields: Fields) -> [[usize; 2]; 2] {
///     let mut plot = Plot::new();
///     let names = plot.place::<2>(&[4, 4], order, fields).unwrap();
///     let arena: Arena<f32> = plot.build().unwrap();
///     let at = |index| names.map(|name| { let field: Field<f32, 2> = arena.field(name).unwrap(); field.place(index) });
///     [at([0, 1]), at([1, 0])]
/// }
/// let rows = Order::dense(&[4, 4]);
/// assert_eq!(places(&rows, Fields::Together), [[2, 3], [8, 9]]); // an array of structures
/// assert_eq!(places(&rows, Fields::Apart), [[1, 17], [4, 20]]); // a structure of arrays
/// assert_eq!(places(&rows, Fields::After(1)), [[1, 5], [8, 12]]); // an array of structures of rows
/// // Tiles of 2 by 2 points, all of `x` first.
/// let digit = |axis, extent, stride| Digit { axis, extent, stride };
/// let digits = vec![digit(0, 2, 2), digit(1, 2, 2), digit(0, 2, 1), digit(1, 2, 1)];
/// let tiles = Order { digits, ..Order::default() };
/// assert_eq!(places(&tiles, Fields::Apart), [[1, 17], [2, 18]]);
/// ```
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
    field: usize,
}

/// Fields that lie as one.
#[derive(Debug, Clone)]
struct Group {
    locator: Locator,
    /// Each field, over the storage of the group.
    views: Vec<StorageView>,
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
        if !order.segments.is_empty() {
            return Err(FieldError::NotAnOrder { shape: shape.to_vec() });
        }
        let (elems, views) = group(shape, order, depth, N).map_err(|why| match why {
            ViewError::Refused(Refusal::Layout(LayoutError::TooLarge)) => FieldError::TooLarge,
            _ => FieldError::NotAnOrder { shape: shape.to_vec() },
        })?;
        let (group, start) = (self.groups.len(), self.elems);
        self.elems = start.checked_add(elems).ok_or(FieldError::TooLarge)?;
        // All fields of a group lie alike, and a group of none has no field to ask for.
        let locator = Locator::new(views.first().ok_or(FieldError::NotAnOrder { shape: shape.to_vec() })?);
        self.groups.push(Group { locator, views, start });
        Ok(std::array::from_fn(|field| FieldName { own: self.own, group, field }))
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

/// Elements of a group of `wide` fields, and each of them as a view: the field is an axis of its own, and its digit number `depth` of
/// the order.
fn group(shape: &[usize], order: &Order, depth: usize, wide: usize) -> Result<(usize, Vec<StorageView>), ViewError> {
    // The shape has to be spelled by itself: no digit of its order may be that of the field.
    order.layout(shape).map_err(Refusal::from)?;
    let mut order = order.clone();
    order.digits.insert(depth, Digit { axis: shape.len(), extent: wide, stride: 1 });
    let extents: Vec<usize> = shape.iter().copied().chain([wide]).collect();
    let layout = order.layout(&extents).map_err(Refusal::from)?;
    let signed = extents.iter().map(|&extent| i64::try_from(extent).map_err(|_| Refusal::from(LayoutError::TooLarge)));
    let whole = StorageView::new(StorageId(0), &layout, &signed.collect::<Result<Vec<_>, _>>()?)?;
    let fields = (0..wide).map(|field| whole.select(shape.len(), field as i64)).collect::<Result<_, _>>()?;
    Ok((whole.storage_elems() as usize, fields))
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
        let (cells, group, view) = self.find(name)?;
        let rank = view.shape().len();
        if rank != R {
            return Err(FieldError::Rank { rank, asked: R });
        }
        Ok(Field { cells, locator: &group.locator, base: group.start + view.offset() as usize })
    }

    /// A field as a view of the arena's storage: what has to be known to hand it to a kernel, to copy it, or to reshape it in place.
    ///
    /// ```
    /// use relayout_codegen::Order;
    /// use relayout_codegen::field::{Arena, Fields, Plot};
    /// let mut plot = Plot::new();
    /// let [x, y] = plot.place(&[8], &Order::dense(&[8]), Fields::Together).unwrap();
    /// let arena: Arena<f32> = plot.build().unwrap();
    /// // Of an array of structures each field is every second element.
    /// let y = arena.view(y).unwrap();
    /// assert_eq!((y.offset(), y.strides().unwrap()[0], y.is_contiguous()), (1, 2, false));
    /// assert!(y.same_storage(&arena.view(x).unwrap()));
    /// assert!(y.free_or_copy(&[2, 4]).is_free());
    /// ```
    pub fn view(&self, name: FieldName) -> Result<StorageView, FieldError> {
        let (cells, group, view) = self.find(name)?;
        let arena = view.clone().within(StorageId(self.own), cells.len() as u64, group.start as u64);
        arena.map_err(|_| FieldError::TooLarge)
    }

    fn find(&self, name: FieldName) -> Result<(&[Cell<T>], &Group, &StorageView), FieldError> {
        let cells = self.cells.as_ref().ok_or(FieldError::Destroyed)?;
        let group = self.groups.get(name.group).filter(|_| name.own == self.own).ok_or(FieldError::Stranger)?;
        Ok((cells, group, group.views.get(name.field).ok_or(FieldError::Stranger)?))
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
