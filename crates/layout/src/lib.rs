//! The layout algebra: how the axes of a logical shape lie in memory.
//!
//! ```
//! use relayout_layout::Layout;
//!
//! let nhwc = Layout::permutation(&[0, 2, 3, 1]).unwrap();
//! assert_eq!(nhwc.to_string(), "NHWC");
//! // Channels in blocks of 16: five factors over four axes.
//! let blocked: Layout = "NCHW16c".parse()?;
//! assert_eq!((blocked.rank(), blocked.factors().len()), (4, 5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Layout`] is an ordered list of [`Factor`]s, outermost first. A factor is one *digit* of one logical axis; an
//! axis is the mixed-radix number that its digits spell, and the storage offset of an element is the mixed-radix number
//! that all factors spell in layout order. So `N H W C` is channels-last and `N C/16 H W C%16` is `NCHW16c`. A layout
//! knows no extents: they come in when it is [bound](Layout::bind) to a shape, which is why it works for symbolic dims.
//!
//! Digits spell *slots*, not indices. Without a slot map slot = index, and an axis that its blocks do not divide has pad
//! slots at its end (20 channels in `C/16 C%16` have 32 slots). A slot map ([`Segment`]s) puts pad slots elsewhere:
//! `C[58:64,58:64]` is 116 channels in two runs of 64 slots.
//!
//! Invariants of a `Layout`:
//! - every axis below `rank` has at least one factor;
//! - the `div`s of an axis, sorted descending, are `d0 > d1 > .. > 1`; the outermost has no `modulo`, each other has
//!   `modulo = d(k-1) / d(k)`, so every slot has exactly one spelling;
//! - a slot map is in normal form (no full segment before another one) and is absent where it says what its absence
//!   says; its slots are a multiple of the outermost `div`.
//!
//! Absent: strides that are no product of extents, offsets and overlaps. What a narrow or an expand leaves is a
//! [`StorageView`](storage::StorageView), not a layout. Symbolic divisors: a symbolic extent can only be the outermost
//! digit of its axis.

mod alias;
mod bind;
mod blocks;
mod canonical;
mod chain;
pub mod dim;
pub mod dtype;
mod error;
mod names;
mod notation;
pub mod pad;
mod parse;
mod print;
mod refine;
pub mod storage;
mod strided;
mod view;

use smallvec::SmallVec;
use std::sync::{Arc, LazyLock};

pub use bind::{BoundFactor, BoundLayout, Coordinate, MAX_STORAGE_ELEMS};
pub use error::{LayoutError, Refusal};
pub use names::LayoutNames;
pub use refine::{IndexMap, RefinedDigit, Refinement};

/// Most axes that a layout has.
pub const MAX_RANK: usize = 255;

/// Most segments that a slot map has.
pub const MAX_SEGMENTS: usize = 4096;

/// One digit of one axis: `slot / div`, and `% modulo` unless it is the outermost digit of the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Factor {
    /// The logical axis.
    pub axis: u8,
    /// How many slots of the axis one step of the digit spans.
    pub div: u64,
    /// The extent of the digit; `None` for the outermost digit, whose extent follows from the shape.
    pub modulo: Option<u64>,
}

impl Factor {
    /// The only digit of an unsplit axis.
    pub fn whole(axis: u8) -> Factor {
        Factor { axis, div: 1, modulo: None }
    }

    /// The outermost digit of a split axis, `axis/div`.
    pub fn outer(axis: u8, div: u64) -> Factor {
        Factor { axis, div, modulo: None }
    }

    /// An inner digit, `axis/div%modulo`.
    pub fn inner(axis: u8, div: u64, modulo: u64) -> Factor {
        Factor { axis, div, modulo: Some(modulo) }
    }

    /// Whether this is the only digit of its axis.
    pub fn is_whole(&self) -> bool {
        self.div == 1 && self.modulo.is_none()
    }
}

/// A run of a slot map: `len` indices in the first of `slots` slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment {
    /// Indices in the run, at least 1.
    pub len: u64,
    /// Slots that the run takes, at least `len`.
    pub slots: u64,
}

type Factors = SmallVec<[Factor; 6]>;

/// How the axes of a shape lie in memory; see the [module](self).
///
/// ```
/// use relayout_layout::Layout;
/// let nhwc: Layout = "NHWC".parse().unwrap();
/// // y = Transpose(x, perm = [0, 2, 3, 1]) of a channels-last x is row-major: no byte moves.
/// assert!(nhwc.transpose(&[0, 2, 3, 1]).unwrap().is_row_major());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Layout {
    /// Shared: a decision has a dozen layouts for each choice of a node, nearly all of them equal.
    spelled: Arc<Spelled>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Spelled {
    rank: u8,
    factors: Factors,
    /// Axes that have a slot map, ascending.
    slots: Vec<(u8, Vec<Segment>)>,
}

/// Ranks below this one have their row-major layout made once.
const USUAL_RANKS: u8 = 9;

static ROW_MAJOR: LazyLock<Vec<Layout>> = LazyLock::new(|| (0..USUAL_RANKS).map(Layout::in_order).collect());

impl Layout {
    /// The layout of these factors, outermost first, with slot maps for some axes. Checks and establishes the
    /// invariants of the [module](self).
    pub fn new(
        rank: usize,
        factors: impl IntoIterator<Item = Factor>,
        slot_maps: impl IntoIterator<Item = (u8, Vec<Segment>)>,
    ) -> Result<Layout, LayoutError> {
        let rank = u8::try_from(rank).map_err(|_| LayoutError::RankTooLarge { rank })?;
        let factors: Factors = factors.into_iter().collect();
        check_digits(rank, &factors)?;
        let mut layout = Spelled { rank, factors, slots: Vec::new() };
        for (axis, segments) in slot_maps {
            if axis >= rank {
                return Err(LayoutError::AxisOutOfRange { axis: usize::from(axis), rank: usize::from(rank) });
            }
            layout.set_slots(axis, segments)?;
        }
        Ok(layout.into())
    }

    /// The axes in their own order, none split: the layout of a plain ONNX tensor. A rank above [`MAX_RANK`] is taken
    /// as [`MAX_RANK`], which then fits no shape.
    pub fn row_major(rank: usize) -> Layout {
        let rank = u8::try_from(rank).unwrap_or(u8::MAX);
        ROW_MAJOR.get(usize::from(rank)).cloned().unwrap_or_else(|| Layout::in_order(rank))
    }

    fn in_order(rank: u8) -> Layout {
        Spelled { rank, factors: (0..rank).map(Factor::whole).collect(), slots: Vec::new() }.into()
    }

    /// The unsplit axes in this order, outermost first: `[0, 2, 3, 1]` is channels-last.
    pub fn permutation(axes: &[usize]) -> Result<Layout, LayoutError> {
        let rank = u8::try_from(axes.len()).map_err(|_| LayoutError::RankTooLarge { rank: axes.len() })?;
        check_permutation(axes)?;
        let factors = axes.iter().map(|axis| Factor::whole(*axis as u8)).collect();
        Ok(Spelled { rank, factors, slots: Vec::new() }.into())
    }

    /// Number of logical axes.
    pub fn rank(&self) -> usize {
        usize::from(self.spelled.rank)
    }

    /// The digits, outermost first.
    pub fn factors(&self) -> &[Factor] {
        &self.spelled.factors
    }

    /// The slot map of an axis, if it has one.
    pub fn slot_map(&self, axis: usize) -> Option<&[Segment]> {
        let found = self.spelled.slots.iter().find(|(have, _)| usize::from(*have) == axis);
        found.map(|(_, segments)| segments.as_slice())
    }

    /// The axes outermost first, iff every axis is one whole unpadded factor.
    pub fn as_permutation(&self) -> Option<Vec<usize>> {
        (!self.may_pad()).then(|| self.factors().iter().map(|factor| usize::from(factor.axis)).collect())
    }

    /// Whether this is [`Layout::row_major`] as spelled; for a shape with size-1 axes ask
    /// [`Layout::equivalent`].
    pub fn is_row_major(&self) -> bool {
        !self.may_pad() && self.factors().iter().enumerate().all(|(at, factor)| usize::from(factor.axis) == at)
    }

    /// The layout as kernels declare it: `None` for row-major.
    pub fn declared(&self) -> Option<Layout> {
        (!self.is_row_major()).then(|| self.clone())
    }

    /// Whether an axis is split into blocks or has a slot map, so that pad slots are possible.
    pub fn may_pad(&self) -> bool {
        !self.spelled.slots.is_empty() || self.factors().len() != self.rank()
    }

    /// The block of an axis: the slots that one step of its outermost digit spans, 1 if it is not split.
    pub fn block_of(&self, axis: usize) -> u64 {
        self.spelled.block_of(axis)
    }

    /// The layout with this slot map for one axis; the map is brought to normal form, and left out where it says
    /// nothing. Refused if a segment is empty or shorter than its indices, or if blocks do not fill the slots.
    pub fn with_slot_map(&self, axis: usize, segments: &[Segment]) -> Result<Layout, LayoutError> {
        let small = u8::try_from(axis).ok().filter(|axis| *axis < self.spelled.rank);
        let small = small.ok_or(LayoutError::AxisOutOfRange { axis, rank: self.rank() })?;
        let mut layout = self.without_slot_map(axis);
        Arc::make_mut(&mut layout.spelled).set_slots(small, segments.to_vec())?;
        Ok(layout)
    }

    /// The layout without a slot map for one axis.
    fn without_slot_map(&self, axis: usize) -> Layout {
        let mut layout = self.clone();
        if layout.slot_map(axis).is_some() {
            Arc::make_mut(&mut layout.spelled).slots.retain(|(have, _)| usize::from(*have) != axis);
        }
        layout
    }
}

impl From<Spelled> for Layout {
    fn from(spelled: Spelled) -> Layout {
        Layout { spelled: Arc::new(spelled) }
    }
}

impl Spelled {
    fn block_of(&self, axis: usize) -> u64 {
        let outer = self.factors.iter().find(|f| usize::from(f.axis) == axis && f.modulo.is_none());
        outer.map_or(1, |factor| factor.div)
    }

    fn set_slots(&mut self, axis: u8, segments: Vec<Segment>) -> Result<(), LayoutError> {
        let Some(segments) = normal_segments(axis, segments, self.block_of(usize::from(axis)))? else {
            return Ok(());
        };
        match self.slots.binary_search_by_key(&axis, |(have, _)| *have) {
            Ok(_) => return Err(LayoutError::SlotMap { axis, why: "is given twice" }),
            Err(at) => self.slots.insert(at, (axis, segments)),
        }
        Ok(())
    }
}

/// Refuses what does not name each of `0..len` once.
fn check_permutation(axes: &[usize]) -> Result<(), LayoutError> {
    let mut seen = vec![false; axes.len()];
    for axis in axes {
        match seen.get_mut(*axis) {
            Some(hit) if !*hit => *hit = true,
            Some(_) => return Err(LayoutError::RepeatedAxis { axis: *axis }),
            None => return Err(LayoutError::AxisOutOfRange { axis: *axis, rank: axes.len() }),
        }
    }
    Ok(())
}

/// Checks that the digits of each axis spell it exactly once.
fn check_digits(rank: u8, factors: &[Factor]) -> Result<(), LayoutError> {
    if let Some(factor) = factors.iter().find(|factor| factor.axis >= rank) {
        return Err(LayoutError::AxisOutOfRange { axis: usize::from(factor.axis), rank: usize::from(rank) });
    }
    for axis in 0..rank {
        let mut digits: SmallVec<[&Factor; 4]> = factors.iter().filter(|factor| factor.axis == axis).collect();
        digits.sort_by_key(|factor| factor.div);
        let mut span = 1u64;
        let mut open = true;
        for digit in &digits {
            if !open || digit.div != span {
                return Err(LayoutError::Digits { axis, slots: span, found: digit.div });
            }
            match digit.modulo {
                Some(modulo) if modulo >= 2 => {
                    let wider = span.checked_mul(modulo).filter(|wider| *wider <= MAX_STORAGE_ELEMS);
                    span = wider.ok_or(LayoutError::BlockTooLarge { axis })?;
                }
                Some(_) => return Err(LayoutError::EmptyDigit { axis }),
                None => open = false,
            }
        }
        if open {
            return Err(LayoutError::NoOutermostDigit { axis });
        }
    }
    Ok(())
}

/// The normal form of a slot map under blocks of `block` slots: a full segment joins the one after it; `None` if the
/// map is what no map means.
fn normal_segments(axis: u8, segments: Vec<Segment>, block: u64) -> Result<Option<Vec<Segment>>, LayoutError> {
    let refuse = |why| Err(LayoutError::SlotMap { axis, why });
    let mut normal: Vec<Segment> = Vec::with_capacity(segments.len());
    let mut slots = 0u64;
    for segment in segments {
        if segment.len == 0 || segment.slots < segment.len {
            return refuse("needs 1 <= length <= slots in every segment");
        }
        match slots.checked_add(segment.slots) {
            Some(sum) if sum <= MAX_STORAGE_ELEMS => slots = sum,
            _ => return refuse("has too many slots"),
        }
        match normal.last_mut() {
            Some(last) if last.len == last.slots => {
                last.len += segment.len;
                last.slots += segment.slots;
            }
            _ => normal.push(segment),
        }
    }
    if normal.len() > MAX_SEGMENTS {
        return refuse("has more than 4096 segments");
    }
    if !slots.is_multiple_of(block) {
        return refuse("has slots that are not a multiple of the axis' block");
    }
    Ok(match normal.as_slice() {
        [] => None,
        [only] if only.slots == only.len.div_ceil(block) * block => None,
        _ => Some(normal),
    })
}
