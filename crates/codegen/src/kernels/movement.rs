//! What a kernel moves: units at strided places of both sides, in bytes.

#![forbid(unsafe_code)]

use std::fmt;

use smallvec::SmallVec;

use crate::Plan;
use crate::plan::MAX_UNIT_BYTES;

/// An axis of a movement, strides in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) extent: usize,
    /// Stride in the source.
    pub(crate) from: usize,
    /// Stride in the destination.
    pub(crate) to: usize,
}

/// Units of `unit` bytes at strided places of both sides.
///
/// `axes` are in the order of the destination, outermost first, with extents above 1, and no two neighbours can be one. `unit`
/// divides all strides and both offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Movement {
    /// Bytes that travel together: 1, 2, 4, ... or 64.
    pub(crate) unit: usize,
    pub(crate) axes: SmallVec<[Axis; 8]>,
    /// Where the first unit is in the source, in bytes.
    pub(crate) from: usize,
    /// And in the destination.
    pub(crate) to: usize,
}

impl Movement {
    /// The movement of a plan; none for one that moves nothing.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let unit = plan.unit_bytes();
        let bytes = |axis: crate::plan::Axis| Axis { extent: axis.extent, from: axis.from * unit, to: axis.to * unit };
        let axes = plan.axes().into_iter().map(bytes).collect();
        (plan.bytes() > 0).then_some(Self { unit, axes, from: 0, to: 0 })
    }

    /// The movement of elements of `elem` bytes along `axes`, in any order. All extents are above 0.
    pub(crate) fn new(elem: usize, axes: impl IntoIterator<Item = Axis>, from: usize, to: usize) -> Self {
        let unit = 1_usize << elem.trailing_zeros().min(MAX_UNIT_BYTES.trailing_zeros());
        let mut axes: SmallVec<[Axis; 8]> = axes.into_iter().filter(|axis| axis.extent != 1).collect();
        if elem > unit {
            axes.push(Axis { extent: elem / unit, from: unit, to: unit });
        }
        axes.sort_by_key(|axis| core::cmp::Reverse(axis.to));
        let mut merged: SmallVec<[Axis; 8]> = SmallVec::new();
        for axis in axes {
            match merged.last_mut() {
                Some(outer) if outer.from == axis.from * axis.extent && outer.to == axis.to * axis.extent => {
                    *outer = Axis { extent: outer.extent * axis.extent, ..axis };
                }
                _ => merged.push(axis),
            }
        }
        let mut movement = Self { unit, axes: merged, from, to };
        movement.widen();
        movement
    }

    /// Makes the run that stays innermost the unit, as far as everything else is a multiple of it.
    fn widen(&mut self) {
        let Some(&last) = self.axes.last() else { return };
        if last.from != self.unit || last.to != self.unit {
            return;
        }
        let run = last.extent * self.unit;
        let outer = &self.axes[..self.axes.len() - 1];
        let all = outer.iter().fold(run | self.from | self.to, |all, axis| all | axis.from | axis.to);
        let unit = 1_usize << all.trailing_zeros().min(MAX_UNIT_BYTES.trailing_zeros());
        self.unit = unit;
        self.axes.pop();
        if run > unit {
            self.axes.push(Axis { extent: run / unit, from: unit, to: unit });
        }
    }

    /// Bytes that are moved.
    pub(crate) fn bytes(&self) -> usize {
        self.axes.iter().fold(self.unit, |bytes, axis| bytes * axis.extent)
    }

    /// One past the last byte read, and one past the last byte written; `None` where that is beyond a `usize`.
    pub(crate) fn ends(&self) -> Option<(usize, usize)> {
        let start = (self.from.checked_add(self.unit)?, self.to.checked_add(self.unit)?);
        self.axes.iter().try_fold(start, |(from, to), axis| {
            let steps = axis.extent.checked_sub(1)?;
            Some((from.checked_add(steps.checked_mul(axis.from)?)?, to.checked_add(steps.checked_mul(axis.to)?)?))
        })
    }
}

impl fmt::Display for Movement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "units of {} B", self.unit)?;
        for axis in &self.axes {
            write!(f, " x {} ({} -> {})", axis.extent, axis.from, axis.to)?;
        }
        write!(f, " at {} -> {}", self.from, self.to)
    }
}
