//! Views of a storage that a dense layout cannot spell: gaps, offsets, steps, repeats.
//!
//! A [`StorageView`] is what narrow, slice, split, select and expand leave: a shape, an offset, and a stride for every
//! digit of every axis, over storage that it shares. It starts as a whole layout, or as a tensor with strides of its own,
//! and only ever describes; no method moves data, and where one cannot describe its result it says why. An embedder uses
//! it to split and concatenate without copies, and to ask whether a reshape is free. The permute API copies what it says.
//!
//! Invariants: every index within the shape has its offset within the storage; extents are constants. Absent: views
//! of unequal segments (refused when the view is made) and knowledge of what is in pad slots.

mod error;
mod make;
mod place;

use smallvec::SmallVec;

pub use error::ViewError;
pub use place::Run;

use super::chain;
use super::strided::Part;
use super::{Factor, Layout, LayoutError, MAX_STORAGE_ELEMS, Refusal, check_permutation};
use crate::dim::Dim;

/// Which allocation a view looks at. Numbers are the embedder's; equal numbers mean the same memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorageId(pub u64);

/// A digit of a view's axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ViewFactor {
    /// The logical axis.
    pub axis: usize,
    /// Indices that one step spans.
    pub div: i64,
    /// Values of the digit.
    pub extent: i64,
    /// Elements between neighbours: 0 where an element is repeated, negative where a slice runs backwards.
    pub stride: i64,
}

/// Whether a result can be its operand's bytes as they lie.
///
/// The answer is the same type wherever the question is asked: of a [`StorageView`], of a layout in the decision
/// (`View::free_or_copy` of `relayout-ir`), of values of a graph (`Graph::in_place` there).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FreeOrCopy<V = StorageView> {
    /// It can: this is the result, over the same bytes.
    Free(V),
    /// It takes a copy, because of this.
    Copy(Refusal),
}

impl<V> FreeOrCopy<V> {
    /// The result, where it is free.
    pub fn free(self) -> Option<V> {
        match self {
            FreeOrCopy::Free(view) => Some(view),
            FreeOrCopy::Copy(_) => None,
        }
    }

    /// Whether it is free.
    pub fn is_free(&self) -> bool {
        matches!(self, FreeOrCopy::Free(_))
    }
}

impl<V> From<Result<V, Refusal>> for FreeOrCopy<V> {
    fn from(answer: Result<V, Refusal>) -> Self {
        match answer {
            Ok(view) => FreeOrCopy::Free(view),
            Err(why) => FreeOrCopy::Copy(why),
        }
    }
}

/// A strided window on a storage; see the [module](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageView {
    storage: StorageId,
    storage_elems: u64,
    offset: i64,
    shape: SmallVec<[i64; 6]>,
    /// Most significant first; constants throughout. A size-1 axis has none.
    axes: Vec<Vec<Part>>,
}

fn int(dim: &Dim) -> i64 {
    // Every extent and stride of a view is a constant: it comes from a bound layout.
    dim.as_const().unwrap_or(0)
}

impl StorageView {
    /// The logical shape.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Elements from the start of the storage to the element at index 0 of every axis.
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// Elements of the storage.
    pub fn storage_elems(&self) -> u64 {
        self.storage_elems
    }

    /// The storage that it looks at.
    pub fn storage(&self) -> StorageId {
        self.storage
    }

    /// The digits axis by axis, most significant first; size-1 axes have none.
    pub fn factors(&self) -> Vec<ViewFactor> {
        let mut factors = Vec::new();
        for (axis, parts) in self.axes.iter().enumerate() {
            let mut div = 1;
            let mut found = Vec::new();
            for part in parts.iter().rev() {
                let mut inner = 1;
                for (at, step) in part.steps.iter().enumerate().rev() {
                    let extent = if at == 0 { (int(&part.valid) + inner - 1) / inner } else { int(&step.extent) };
                    found.push(ViewFactor { axis, div: div * inner, extent, stride: int(&step.stride) });
                    inner *= extent;
                }
                div *= int(&part.valid);
            }
            factors.extend(found.into_iter().rev());
        }
        factors
    }

    /// Stride of each axis in elements, as PyTorch's `stride()`; `None` where an axis has several digits. A size-1 axis
    /// gets the stride that a contiguous tensor would have there.
    pub fn strides(&self) -> Option<SmallVec<[i64; 6]>> {
        let mut strides: SmallVec<[i64; 6]> = SmallVec::from_elem(0, self.shape.len());
        let mut next = 1;
        for (axis, parts) in self.axes.iter().enumerate().rev() {
            strides[axis] = match parts.as_slice() {
                [] => next,
                [part] => int(&part.steps.first().filter(|_| part.is_plain())?.stride),
                _ => return None,
            };
            next = strides[axis].checked_mul(self.shape[axis].max(1))?;
        }
        Some(strides)
    }

    /// Offset of the element at a coordinate in elements; `None` outside of the shape.
    pub fn offset_of(&self, coordinate: &[i64]) -> Option<i64> {
        if coordinate.len() != self.shape.len() {
            return None;
        }
        let mut offset = self.offset;
        for (axis, index) in coordinate.iter().enumerate() {
            offset += self.axis_offset(axis, *index).filter(|_| *index < self.shape[axis])?;
        }
        Some(offset)
    }

    fn axis_offset(&self, axis: usize, index: i64) -> Option<i64> {
        if index < 0 {
            return None;
        }
        let (mut rest, mut offset) = (index, 0);
        for (at, part) in self.axes[axis].iter().enumerate().rev() {
            let mut value = if at == 0 { rest } else { rest % int(&part.valid) };
            rest /= int(&part.valid).max(1);
            for (k, step) in part.steps.iter().enumerate().rev() {
                let digit = if k == 0 { value } else { value % int(&step.extent) };
                value /= int(&step.extent).max(1);
                offset += digit * int(&step.stride);
            }
        }
        Some(offset)
    }

    /// Whether both look at the same storage.
    pub fn same_storage(&self, other: &StorageView) -> bool {
        self.storage == other.storage
    }

    /// The layout, if the view is all of its storage, dense and without pad.
    pub fn as_layout(&self) -> Option<Layout> {
        let elems = self.shape.iter().try_fold(1i64, |acc, extent| acc.checked_mul(*extent))?;
        if self.offset != 0 || u64::try_from(elems).ok()? != self.storage_elems {
            return None;
        }
        if elems == 0 {
            return Some(Layout::row_major(self.shape.len()));
        }
        let mut factors = self.factors();
        factors.sort_by_key(|factor| std::cmp::Reverse(factor.stride));
        let mut span = 1;
        for factor in factors.iter().rev() {
            if factor.stride != span {
                return None;
            }
            span *= factor.extent;
        }
        let outermost = |f: &ViewFactor| f.div * f.extent >= self.shape[f.axis];
        let mut spelled = Vec::new();
        for factor in &factors {
            let modulo = if outermost(factor) { None } else { Some(u64::try_from(factor.extent).ok()?) };
            let axis = u8::try_from(factor.axis).ok()?;
            spelled.push(Factor { axis, div: u64::try_from(factor.div).ok()?, modulo });
        }
        let ones = (0..self.shape.len()).filter(|axis| self.axes[*axis].is_empty());
        spelled.extend(ones.filter_map(|axis| u8::try_from(axis).ok()).map(Factor::whole));
        let layout = Layout::new(self.shape.len(), spelled, []).ok()?;
        let dims: Vec<Dim> = self.shape.iter().map(|extent| Dim::from(*extent)).collect();
        Some(layout.canonical(&dims))
    }

    fn check_axis(&self, axis: usize) -> Result<i64, ViewError> {
        let rank = self.shape.len();
        self.shape.get(axis).copied().ok_or(ViewError::AxisOutOfRange { axis, rank })
    }

    fn check_range(&self, axis: usize, start: i64, len: i64) -> Result<(), ViewError> {
        let extent = self.check_axis(axis)?;
        let end = start.saturating_add(len);
        if start < 0 || len < 0 || end > extent {
            return Err(ViewError::OutOfRange { axis, start, end, extent });
        }
        Ok(())
    }

    /// Indices `start..start+len` of an axis. On a blocked axis they must be whole blocks, lie within one, or begin at
    /// one and end anywhere in the last.
    pub fn narrow(&self, axis: usize, start: i64, len: i64) -> Result<StorageView, ViewError> {
        self.check_range(axis, start, len)?;
        let mut view = self.clone();
        view.shape[axis] = len;
        if len <= 1 {
            // One element is wherever it is; none are nowhere.
            view.offset += if len == 1 { self.axis_offset(axis, start).unwrap_or(0) } else { 0 };
            view.axes[axis] = if len == 1 { Vec::new() } else { vec![Part::plain(Dim::ZERO, Dim::ONE)] };
            return Ok(view);
        }
        let (parts, skipped) = narrow_parts(&self.axes[axis], start, len).map_err(|block| ViewError::CutsBlock {
            axis,
            start,
            end: start + len,
            block,
        })?;
        view.offset += skipped;
        view.axes[axis] = parts;
        Ok(view)
    }

    /// `count` indices from `start` in steps of `step`, which may be negative (ONNX Slice with its ends resolved). On
    /// a blocked axis the step must be a multiple of the block.
    pub fn slice(&self, axis: usize, start: i64, count: i64, step: i64) -> Result<StorageView, ViewError> {
        if step == 0 {
            return Err(ViewError::ZeroStep { axis });
        }
        let extent = self.check_axis(axis)?;
        if step == 1 || count <= 1 {
            return self.narrow(axis, start, count);
        }
        let last = (count - 1).checked_mul(step).and_then(|span| start.checked_add(span));
        let inside = |index: i64| (0..extent).contains(&index);
        let Some(last) = last.filter(|last| inside(start) && inside(*last)) else {
            return Err(ViewError::OutOfRange { axis, start, end: start.saturating_add(step), extent });
        };
        let block = block_of(&self.axes[axis]);
        if step % block != 0 {
            return Err(ViewError::StepCutsBlock { axis, step, block });
        }
        let from = self.axis_offset(axis, start).unwrap_or(0);
        let to = self.axis_offset(axis, last).unwrap_or(0);
        let mut view = self.clone();
        view.offset += from;
        view.shape[axis] = count;
        view.axes[axis] = vec![Part::plain(Dim::from(count), Dim::from((to - from) / (count - 1)))];
        Ok(view)
    }

    /// The elements at one index of an axis, without the axis.
    pub fn select(&self, axis: usize, index: i64) -> Result<StorageView, ViewError> {
        let mut view = self.narrow(axis, index, 1)?;
        view.shape.remove(axis);
        view.axes.remove(axis);
        Ok(view)
    }

    /// The axis cut in parts of these lengths, all over the same storage.
    pub fn split(&self, axis: usize, sizes: &[i64]) -> Result<Vec<StorageView>, ViewError> {
        let extent = self.check_axis(axis)?;
        let sum = sizes.iter().fold(0i64, |sum, size| sum.saturating_add(*size));
        if sum != extent || sizes.iter().any(|size| *size < 0) {
            return Err(ViewError::SplitSizes { axis, sum, extent });
        }
        let mut start = 0;
        sizes
            .iter()
            .map(|size| {
                let part = self.narrow(axis, start, *size);
                start += size;
                part
            })
            .collect()
    }

    /// The view repeated to a shape by NumPy's broadcasting: new axes in front, size-1 axes to any extent, stride 0.
    pub fn expand(&self, shape: &[i64]) -> Result<StorageView, ViewError> {
        let rank = self.shape.len();
        let Some(added) = shape.len().checked_sub(rank) else {
            return Err(ViewError::AxisOutOfRange { axis: rank.saturating_sub(1), rank: shape.len() });
        };
        let mut view = self.clone();
        view.shape = SmallVec::from_slice(shape);
        view.axes = vec![Vec::new(); added];
        view.axes.extend(self.axes.iter().cloned());
        // The largest index sum must stay an i64, repeated or not.
        let elems = shape.iter().try_fold(1i64, |acc, extent| acc.checked_mul((*extent).max(1)));
        if elems.is_none_or(|elems| elems as u64 > MAX_STORAGE_ELEMS) {
            return Err(Refusal::from(LayoutError::TooLarge).into());
        }
        for (axis, to) in shape.iter().enumerate() {
            let extent = axis.checked_sub(added).map_or(1, |old| self.shape[old]);
            if extent == *to {
                continue;
            }
            if extent != 1 || *to < 0 {
                return Err(ViewError::NotExpandable { axis, extent, to: *to });
            }
            view.axes[axis] = vec![Part::plain(Dim::from(*to), Dim::ZERO)];
        }
        Ok(view)
    }

    /// The axes in another order: axis `i` of the result is axis `perm[i]`.
    pub fn transpose(&self, perm: &[usize]) -> Result<StorageView, ViewError> {
        if perm.len() != self.shape.len() {
            let wrong = LayoutError::PermutationLength { found: perm.len(), rank: self.shape.len() };
            return Err(Refusal::from(wrong).into());
        }
        check_permutation(perm).map_err(Refusal::from)?;
        let mut view = self.clone();
        view.shape = perm.iter().map(|old| self.shape[*old]).collect();
        view.axes = perm.iter().map(|old| self.axes[*old].clone()).collect();
        Ok(view)
    }

    /// Whether a reshape is a view of the same storage, or needs a copy and why. An axis of the result may take several
    /// digits, so more is free than in PyTorch: its `view` succeeds where the result has [`StorageView::strides`].
    pub fn free_or_copy(&self, to: &[i64]) -> FreeOrCopy {
        self.reshaped(to).into()
    }

    fn reshaped(&self, to: &[i64]) -> Result<StorageView, Refusal> {
        let count = |shape: &[i64]| shape.iter().try_fold(1i64, |acc, extent| acc.checked_mul(*extent));
        let text = |shape: &[i64]| shape.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        let negative = to.iter().any(|extent| *extent < 0);
        if negative || count(&self.shape) != count(to) {
            return Err(Refusal::ElementCount { from: text(&self.shape), to: text(to) });
        }
        let mut view = StorageView { shape: SmallVec::from_slice(to), axes: Vec::new(), ..self.clone() };
        if to.contains(&0) {
            let plain =
                |extent: &i64| if *extent == 1 { vec![] } else { vec![Part::plain(Dim::from(*extent), Dim::ONE)] };
            view.axes = to.iter().map(plain).collect();
            return Ok(view);
        }
        let mut parts = chain::merge(self.axes.concat())?;
        let mut axes = Vec::with_capacity(to.len());
        for (axis, extent) in to.iter().enumerate().rev() {
            let taken = chain::take(&mut parts, Dim::from(*extent), |part, need| cut(part, need, axis))?;
            axes.push(chain::merge(taken)?);
        }
        axes.reverse();
        view.axes = axes;
        Ok(view)
    }
}

/// Cuts a part for an axis of a result.
fn cut(part: Part, need: &Dim, axis: usize) -> Result<(Part, Part), Refusal> {
    let digit = part.valid.to_string();
    part.cut(need).ok_or_else(|| Refusal::CutsDigit { axis, need: need.to_string(), digit })
}

/// Indices that one step of the outermost digit spans.
fn block_of(parts: &[Part]) -> i64 {
    let Some((first, inner)) = parts.split_first() else { return 1 };
    let steps = first.steps.iter().skip(1).map(|step| int(&step.extent));
    inner.iter().map(|part| int(&part.valid)).chain(steps).product()
}

/// The parts of a range of an axis and the offset of its first element; `Err` is the block that it cuts.
fn narrow_parts(parts: &[Part], start: i64, len: i64) -> Result<(Vec<Part>, i64), i64> {
    let block = block_of(parts);
    let Some((first, inner)) = parts.split_first() else { return Ok((Vec::new(), 0)) };
    let Some(outer) = first.steps.first() else { return Err(block) };
    let skipped = start / block * int(&outer.stride);
    if start / block == (start + len - 1) / block && block > 1 {
        // Within one value of the outermost digit: the axis goes on without it.
        let steps = first.steps.iter().skip(1);
        let mut rest: Vec<Part> = steps.map(|step| Part::plain(step.extent.clone(), step.stride.clone())).collect();
        rest.extend_from_slice(inner);
        let (rest, more) = narrow_parts(&rest, start % block, len)?;
        return Ok((rest, skipped + more));
    }
    if start % block != 0 {
        return Err(block);
    }
    let inner_span: i64 = inner.iter().map(|part| int(&part.valid)).product();
    let mut narrowed = first.clone();
    if len % inner_span == 0 {
        narrowed.valid = Dim::from(len / inner_span);
        if let [only] = narrowed.steps.as_mut_slice() {
            only.extent = narrowed.valid.clone();
        }
        let kept = std::iter::once(narrowed).chain(inner.iter().cloned()).collect();
        return Ok((kept, skipped));
    }
    // The last block is cut short: all digits become one part that cannot be taken apart.
    if !inner.iter().all(Part::is_plain) {
        return Err(block);
    }
    narrowed.valid = Dim::from(len);
    narrowed.steps.extend(inner.iter().flat_map(|part| part.steps.iter().cloned()));
    Ok((vec![narrowed], skipped))
}
