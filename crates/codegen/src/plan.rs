//! From a shape and a permutation to what has to be moved.
//!
//! Output axis `i` is input axis `perm[i]`, as in ONNX `Transpose`. The plan keeps the movement and forgets the rest:
//!
//! 1. axes of extent 1 go;
//! 2. axes that are neighbours in this order on both sides become one;
//! 3. an element of odd size is an axis of the largest power of two that divides it;
//! 4. an innermost axis that stays innermost, and whose rows have 1, 2, 4, ... or [`MAX_UNIT_BYTES`] bytes, becomes the *unit*, what one
//!    move carries.
//!
//! Invariants of a [`Plan`]: `extents` are above 1 and in input order, no two neighbours can be merged, and their product times
//! `unit_bytes` is `bytes`. A plan of an empty tensor has no extents and moves 0 bytes.

use std::fmt;

use relayout_layout::Layout;
use relayout_layout::dim::byte_count;
use relayout_layout::storage::{StorageId, StorageView};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::order::dense_strides;

/// The largest unit, a cache line of the usual machines.
pub(crate) const MAX_UNIT_BYTES: usize = 64;

/// What kind of movement a plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Class {
    /// There are no elements.
    Nothing,
    /// Source and destination have the same order: one run of bytes.
    Copy,
    /// The innermost axis stays innermost: runs of `row_bytes` bytes change places.
    Rows {
        /// Bytes of a run.
        row_bytes: usize,
    },
    /// `batch` matrices of `rows` x `columns` are transposed, each in its place.
    Transpose {
        /// The number of matrices.
        batch: usize,
        /// Rows of each in the input.
        rows: usize,
        /// Columns of each in the input.
        columns: usize,
    },
    /// A tile whose rows or columns have no more than 64 bytes: blocks packed and unpacked, channels of a picture.
    TileInner {
        /// The number of matrices.
        batch: usize,
        /// Rows of each in the input.
        rows: usize,
        /// Columns of each in the input.
        columns: usize,
    },
    /// Anything else: the innermost axis changes, and others do too.
    Generic,
}

impl Class {
    /// The class in a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Copy => "copy",
            Self::Rows { .. } => "rows",
            Self::Transpose { .. } => "transpose",
            Self::TileInner { .. } => "pack",
            Self::Generic => "generic",
        }
    }
}

/// A permutation reduced to its movement; see the module's text for the invariants.
///
/// Serializes with what is derived; what is read back is planned anew from the extents, the permutation and the unit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Parts")]
pub struct Plan {
    extents: Vec<usize>,
    perm: Vec<usize>,
    elem_bytes: usize,
    unit_bytes: usize,
    class: Class,
    bytes: usize,
}

/// What a serialized plan is made from.
#[derive(Deserialize)]
struct Parts {
    extents: Vec<usize>,
    perm: Vec<usize>,
    elem_bytes: usize,
    unit_bytes: usize,
    bytes: usize,
}

impl TryFrom<Parts> for Plan {
    type Error = Error;

    fn try_from(parts: Parts) -> Result<Self, Error> {
        let Parts { mut extents, mut perm, elem_bytes, unit_bytes, bytes } = parts;
        let base = largest_unit(elem_bytes).ok_or(Error::NoElementBytes)?;
        // The units' parts are an axis again that stays where it is.
        perm.push(extents.len());
        extents.push(unit_bytes / base);
        let plan = if bytes == 0 { plan(&[0], &[0], elem_bytes) } else { reduced(&extents, &perm, base, elem_bytes) }?;
        if plan.bytes != bytes || plan.unit_bytes != unit_bytes || bytes % elem_bytes != 0 {
            return Err(Error::NotAPlan { bytes, unit_bytes });
        }
        Ok(plan)
    }
}

impl Plan {
    /// Extents in input order, in units, outermost first.
    #[must_use]
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// Output axis `i` of the plan is its input axis `perm[i]`.
    #[must_use]
    pub fn perm(&self) -> &[usize] {
        &self.perm
    }

    /// Bytes of an element, as asked for.
    #[must_use]
    pub fn elem_bytes(&self) -> usize {
        self.elem_bytes
    }

    /// Bytes that one move carries: 1, 2, 4, 8, 16, 32 or 64.
    #[must_use]
    pub fn unit_bytes(&self) -> usize {
        self.unit_bytes
    }

    /// What kind of movement this is.
    #[must_use]
    pub fn class(&self) -> Class {
        self.class
    }

    /// Bytes of the tensor, each of which is read once and written once.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that must be read and written at least: each twice, unless there is nothing to do.
    #[must_use]
    pub fn traffic_bytes(&self) -> usize {
        self.bytes.saturating_mul(2)
    }

    /// Bits that an offset in units needs on either side, as machines count: 32 or 64.
    #[must_use]
    pub fn index_bits(&self) -> u32 {
        if i32::try_from(self.bytes / self.unit_bytes.max(1)).is_ok() { 32 } else { 64 }
    }

    /// The axes in output order, innermost last.
    pub(crate) fn axes(&self) -> Vec<Axis> {
        let from = dense_strides(self.extents.iter().copied());
        let to = dense_strides(self.perm.iter().map(|&axis| self.extents[axis]));
        let axis = |(&axis, to): (&usize, usize)| Axis { extent: self.extents[axis], from: from[axis], to };
        self.perm.iter().zip(to).map(axis).collect()
    }
}

/// An axis of the movement with its strides in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) extent: usize,
    /// Stride in the source.
    pub(crate) from: usize,
    /// Stride in the destination.
    pub(crate) to: usize,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            Class::Nothing => return write!(f, "nothing"),
            Class::Copy => return write!(f, "copy, {} B", self.bytes),
            Class::Rows { row_bytes } => write!(f, "rows of {row_bytes} B")?,
            Class::Transpose { batch, rows, columns } => write!(f, "transpose {batch} of {rows}x{columns}")?,
            Class::TileInner { batch, rows, columns } => write!(f, "pack {batch} of {rows}x{columns}")?,
            Class::Generic => write!(f, "generic")?,
        }
        write!(f, ", {:?} by {:?}, units of {} B, {} B", self.extents, self.perm, self.unit_bytes, self.bytes)
    }
}

/// Plans moving a dense row-major tensor of `shape` such that output axis `i` is input axis `perm[i]`.
///
/// `elem_bytes` is the size of an element; for 4-bit elements say 1 and run the plan by [`crate::permute_nibbles`].
pub fn plan(shape: &[usize], perm: &[usize], elem_bytes: usize) -> Result<Plan, Error> {
    check_permutation(perm, shape.len())?;
    let base = largest_unit(elem_bytes).ok_or(Error::NoElementBytes)?;
    let (mut shape, mut perm) = (shape.to_vec(), perm.to_vec());
    perm.push(shape.len());
    shape.push(elem_bytes / base);
    reduced(&shape, &perm, base, elem_bytes)
}

/// The largest power of two, up to [`MAX_UNIT_BYTES`], that divides the size of an element; `None` for size 0.
fn largest_unit(elem_bytes: usize) -> Option<usize> {
    (elem_bytes != 0).then(|| 1 << elem_bytes.trailing_zeros().min(MAX_UNIT_BYTES.trailing_zeros()))
}

/// The plan of moving units of `base` bytes.
fn reduced(shape: &[usize], perm: &[usize], base: usize, elem_bytes: usize) -> Result<Plan, Error> {
    check_permutation(perm, shape.len())?;
    let bytes = checked_bytes(shape, base)?;
    if bytes == 0 {
        let (extents, perm) = (Vec::new(), Vec::new());
        return Ok(Plan { extents, perm, elem_bytes, unit_bytes: base, class: Class::Nothing, bytes });
    }
    let mut unit_bytes = base;
    let too_large = || Error::TooLarge { shape: shape.to_vec(), unit_bytes };
    let (mut extents, mut perm) = merged(shape, perm).ok_or_else(too_large)?;
    let class = classify(&extents, &perm, unit_bytes);
    if let (Class::Rows { row_bytes }, Some(inner)) = (class, extents.len().checked_sub(1))
        && row_bytes <= MAX_UNIT_BYTES
        && row_bytes.is_power_of_two()
    {
        unit_bytes = row_bytes;
        extents.pop();
        perm.retain(|&axis| axis != inner);
    }
    Ok(Plan { extents, perm, elem_bytes, unit_bytes, class, bytes })
}

fn check_permutation(perm: &[usize], rank: usize) -> Result<(), Error> {
    if perm.len() == rank && Layout::permutation(perm).is_ok() {
        Ok(())
    } else {
        Err(Error::NotAPermutation { perm: perm.to_vec(), rank })
    }
}

fn checked_bytes(shape: &[usize], unit_bytes: usize) -> Result<usize, Error> {
    let too_large = || Error::TooLarge { shape: shape.to_vec(), unit_bytes };
    byte_count(shape.iter().map(|&extent| extent as u64), unit_bytes).ok_or_else(too_large)
}

/// `shape` and `perm` without axes of extent 1 and with neighbours merged that stay neighbours: the runs of the permuted view.
fn merged(shape: &[usize], perm: &[usize]) -> Option<(Vec<usize>, Vec<usize>)> {
    let shape: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
    let view = StorageView::dense(StorageId(0), &shape).and_then(|dense| dense.transpose(perm)).ok()?;
    let runs = view.runs()?;
    // The farther apart its elements, the farther out was the axis.
    let mut input: Vec<usize> = (0..runs.len()).collect();
    input.sort_unstable_by_key(|&run| std::cmp::Reverse(runs[run].stride));
    let mut perm = vec![0; runs.len()];
    input.iter().enumerate().for_each(|(place, &run)| perm[run] = place);
    Some((input.iter().map(|&run| runs[run].extent as usize).collect(), perm))
}

fn classify(extents: &[usize], perm: &[usize], unit_bytes: usize) -> Class {
    match *perm {
        [] | [0] => Class::Copy,
        [1, 0] => transpose(1, extents[0], extents[1], unit_bytes),
        [0, 2, 1] => transpose(extents[0], extents[1], extents[2], unit_bytes),
        [.., last] if last + 1 == perm.len() => Class::Rows { row_bytes: extents[last] * unit_bytes },
        _ => Class::Generic,
    }
}

fn transpose(batch: usize, rows: usize, columns: usize, unit_bytes: usize) -> Class {
    if rows.min(columns) <= MAX_UNIT_BYTES / unit_bytes {
        Class::TileInner { batch, rows, columns }
    } else {
        Class::Transpose { batch, rows, columns }
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, Plan, plan};
    use crate::Error;

    fn planned(shape: &[usize], perm: &[usize], elem_bytes: usize) -> String {
        plan(shape, perm, elem_bytes).expect("a permutation").to_string()
    }

    #[test]
    fn plans_keep_the_movement_and_nothing_else() {
        let cases: &[(&[usize], &[usize], usize, &str)] = &[
            (&[], &[], 4, "copy, 4 B"),
            (&[2, 0, 3], &[2, 0, 1], 4, "nothing"),
            (&[5, 7], &[0, 1], 4, "copy, 140 B"),
            (&[1, 5, 1, 7], &[1, 0, 3, 2], 4, "copy, 140 B"),
            (&[5, 7], &[1, 0], 4, "pack 1 of 5x7, [5, 7] by [1, 0], units of 4 B, 140 B"),
            // NCHW to NHWC and back
            (&[2, 3, 4, 5], &[0, 2, 3, 1], 4, "pack 2 of 3x20, [2, 3, 20] by [0, 2, 1], units of 4 B, 480 B"),
            (&[2, 4, 5, 3], &[0, 3, 1, 2], 4, "pack 2 of 20x3, [2, 20, 3] by [0, 2, 1], units of 4 B, 480 B"),
            (&[2, 17, 20], &[0, 2, 1], 4, "transpose 2 of 17x20, [2, 17, 20] by [0, 2, 1], units of 4 B, 2720 B"),
            // heads of attention: rows too long for a unit, and rows that are one
            (&[2, 9, 4, 32], &[0, 2, 1, 3], 4, "rows of 128 B, [2, 9, 4, 32] by [0, 2, 1, 3], units of 4 B, 9216 B"),
            (&[2, 9, 4, 8], &[0, 2, 1, 3], 4, "rows of 32 B, [2, 9, 4] by [0, 2, 1], units of 32 B, 2304 B"),
            (&[3, 5], &[1, 0], 12, "rows of 12 B, [3, 5, 3] by [1, 0, 2], units of 4 B, 180 B"),
            (&[2, 3, 4], &[2, 1, 0], 2, "generic, [2, 3, 4] by [2, 1, 0], units of 2 B, 48 B"),
        ];
        for (shape, perm, elem_bytes, text) in cases {
            assert_eq!(planned(shape, perm, *elem_bytes), *text, "{shape:?} by {perm:?}");
        }
    }

    #[test]
    fn what_is_no_permutation_is_refused() {
        for perm in [&[0, 0][..], &[0, 2], &[0], &[0, 1, 2]] {
            assert_eq!(plan(&[2, 3], perm, 4), Err(Error::NotAPermutation { perm: perm.to_vec(), rank: 2 }));
        }
        assert_eq!(plan(&[2], &[0], 0), Err(Error::NoElementBytes));
    }

    #[test]
    fn sizes_beyond_memory_are_refused_unless_empty() {
        let huge = usize::MAX / 4;
        assert!(matches!(plan(&[huge, 8], &[1, 0], 4), Err(Error::TooLarge { .. })));
        assert_eq!(plan(&[huge, 8, 0], &[1, 0, 2], 4).map(|plan| plan.class()), Ok(Class::Nothing));
    }

    #[test]
    fn a_plan_survives_its_serialized_form() {
        let cases: &[(&[usize], &[usize], usize)] =
            &[(&[2, 9, 4, 8], &[0, 2, 1, 3], 4), (&[3, 5], &[1, 0], 12), (&[0], &[0], 2), (&[6], &[0], 1)];
        for (shape, perm, elem_bytes) in cases {
            let plan = plan(shape, perm, *elem_bytes).expect("a permutation");
            let text = serde_json::to_string(&plan).expect("plain data");
            assert_eq!(serde_json::from_str::<Plan>(&text).expect("its own text"), plan);
        }
        let forged = r#"{"extents":[2,3],"perm":[1,1],"elem_bytes":4,"unit_bytes":4,"class":"Copy","bytes":24}"#;
        assert!(serde_json::from_str::<Plan>(forged).is_err());
        let resized = r#"{"extents":[2,3],"perm":[1,0],"elem_bytes":4,"unit_bytes":4,"class":"Copy","bytes":25}"#;
        assert!(serde_json::from_str::<Plan>(resized).is_err());
    }
}
