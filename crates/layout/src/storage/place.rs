//! Where the elements of a view lie, as whoever copies them asks for it.

use smallvec::SmallVec;

use super::{FreeOrCopy, StorageView, ViewFactor, int};
use crate::{BoundFactor, Layout, Refusal, chain};

/// Elements at equal distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// How many they are.
    pub extent: i64,
    /// Elements of the storage from one to the next.
    pub stride: i64,
}

impl StorageView {
    /// The elements in row-major order of their indices as few nested runs, outermost first: a dense tensor is one, a
    /// transposed matrix two. `None` where a blocked axis ends within a block, so that no strides say it.
    pub fn runs(&self) -> Option<Vec<Run>> {
        let parts = chain::merge(self.axes.concat()).ok()?;
        let run = |part: &super::Part| match part.steps.as_slice() {
            [step] => Some(Run { extent: int(&part.valid), stride: int(&step.stride) }),
            _ => None,
        };
        parts.iter().map(run).collect()
    }

    /// The stride of each digit of a layout, outermost first, where the view is a tensor stored so but with strides of its
    /// own: a slice of channels-last values is channels-last with longer rows. `None` where a digit has no one stride,
    /// and of layouts with pad slots, for which a window has no room.
    pub fn strides_as(&self, layout: &Layout) -> Option<SmallVec<[i64; 6]>> {
        let bound = layout.bind(&self.shape).ok().filter(|bound| !bound.is_padded())?;
        let own = self.factors();
        let stride = |digit: &BoundFactor| {
            let (div, extent) = (digit.div as i64, digit.extent as i64);
            if extent <= 1 {
                return Some(digit.stride as i64);
            }
            let holds = |f: &&ViewFactor| f.axis == digit.axis && f.div <= div && div * extent <= f.div * f.extent;
            let within = own.iter().find(holds).filter(|f| div % f.div == 0)?;
            (div / within.div).checked_mul(within.stride)
        };
        bound.factors().iter().map(stride).collect()
    }

    /// What PyTorch's `is_contiguous()` answers: elements in row-major order without gaps, whatever the offset. Size-1
    /// axes and empty tensors do not matter.
    pub fn is_contiguous(&self) -> bool {
        self.shape.contains(&0)
            || self.runs().is_some_and(|runs| matches!(runs.as_slice(), [] | [Run { stride: 1, .. }]))
    }

    /// From an index of an axis on: what it adds to the offset, and the longest run that begins there.
    pub fn run_from(&self, axis: usize, index: i64) -> Option<(i64, Run)> {
        let extent = *self.shape.get(axis).filter(|extent| (0..**extent).contains(&index))?;
        let offset = self.axis_offset(axis, index)?;
        let Some(part) = self.axes[axis].last() else { return Some((offset, Run { extent: 1, stride: 0 })) };
        let within = if self.axes[axis].len() == 1 { index } else { index % int(&part.valid) };
        let left = (extent - index).min(int(&part.valid) - within);
        let step = part.steps.last()?;
        let wraps = if part.is_plain() { left } else { int(&step.extent) - within % int(&step.extent) };
        Some((offset, Run { extent: left.min(wraps), stride: int(&step.stride) }))
    }

    /// Whether two indices may have the same place, as an expanded axis has. Nothing can be written to such a view.
    pub fn has_repeats(&self) -> bool {
        let mut factors = self.factors();
        factors.retain(|factor| factor.extent > 1);
        factors.sort_by_key(|factor| factor.stride.abs());
        // What the nearer digits reach together; a digit that steps over all of it repeats none.
        let mut reach = 0i64;
        factors.iter().any(|factor| {
            let repeats = factor.stride.abs() <= reach;
            reach = reach.saturating_add(factor.stride.abs().saturating_mul(factor.extent - 1));
            repeats
        })
    }

    /// What it takes to have the elements where `to`, a view of the same shape, has them: nothing where they are there.
    pub fn move_to(&self, to: &StorageView) -> FreeOrCopy {
        if self == to { FreeOrCopy::Free(to.clone()) } else { FreeOrCopy::Copy(Refusal::OtherPlaces) }
    }
}
