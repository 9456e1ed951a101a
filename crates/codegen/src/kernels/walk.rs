//! Counting: from block to block, through the axes of a block, and along the lines of the block after.

use smallvec::SmallVec;

use super::job::{Ask, Job, LINE, Micro};
use super::vector::Registers;

/// Where a block is and how much of it there is.
pub(super) struct Cursor<'a> {
    job: &'a Job,
    /// The number of the block along each axis of `job.order`.
    place: SmallVec<[usize; 8]>,
    /// Units along each axis of the job.
    pub(super) extents: SmallVec<[usize; 8]>,
    /// Offset in the source, in bytes.
    pub(super) from: usize,
    /// And in the destination.
    pub(super) to: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(job: &'a Job, mut number: usize) -> Self {
        let mut place: SmallVec<[usize; 8]> = SmallVec::from_elem(0, job.order.len());
        for (place, &at) in place.iter_mut().zip(&job.order).rev() {
            let count = job.axes[at].extent.div_ceil(job.axes[at].block);
            *place = number % count;
            number /= count;
        }
        let extents = job.axes.iter().map(|axis| axis.extent.min(axis.block)).collect();
        let mut cursor = Self { job, place, extents, from: 0, to: 0 };
        cursor.locate();
        cursor
    }

    /// Offsets and extents from the place.
    fn locate(&mut self) {
        (self.from, self.to) = (self.job.from, self.job.to);
        for (&place, &at) in self.place.iter().zip(&self.job.order) {
            let axis = &self.job.axes[at];
            let start = place * axis.block;
            self.from += start * axis.from;
            self.to += start * axis.to;
            self.extents[at] = axis.block.min(axis.extent - start);
        }
    }

    /// The next block; past the last one it begins again.
    pub(super) fn advance(&mut self) {
        for (place, &at) in self.place.iter_mut().zip(&self.job.order).rev() {
            *place += 1;
            if *place * self.job.axes[at].block < self.job.axes[at].extent {
                break;
            }
            *place = 0;
        }
        self.locate();
    }
}

/// Counts through some axes of a block.
pub(super) struct Odometer<'a> {
    job: &'a Job,
    axes: &'a [usize],
    extents: &'a [usize],
    index: SmallVec<[usize; 8]>,
    /// Offset in the source, in bytes.
    pub(super) from: usize,
    /// In the stage, or where there is none in the destination.
    pub(super) stage: usize,
    /// In the destination.
    pub(super) to: usize,
}

impl<'a> Odometer<'a> {
    pub(super) fn new(job: &'a Job, axes: &'a [usize], extents: &'a [usize]) -> Self {
        Self { job, axes, extents, index: SmallVec::from_elem(0, axes.len()), from: 0, stage: 0, to: 0 }
    }

    /// The next place; `false` after the last one.
    #[inline(always)]
    pub(super) fn advance(&mut self) -> bool {
        let mut place = self.axes.len();
        while place > 0 {
            place -= 1;
            let at = self.axes[place];
            let axis = &self.job.axes[at];
            let index = &mut self.index[place];
            *index += 1;
            self.from += axis.from;
            self.stage += axis.stage;
            self.to += axis.to;
            if *index < self.extents[at] {
                return true;
            }
            self.from -= *index * axis.from;
            self.stage -= *index * axis.stage;
            self.to -= *index * axis.to;
            *index = 0;
        }
        false
    }
}

/// The lines of a block's source, one after the other.
pub(super) struct Walk<'a> {
    outer: Odometer<'a>,
    /// Where the block begins.
    start: *const u8,
    /// The run that is walked, of `bytes` bytes, `done` of which are behind.
    run: *const u8,
    done: usize,
    bytes: usize,
    /// Runs `step` bytes apart after this one, and all of them.
    left: usize,
    step: usize,
    count: usize,
    over: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(job: &'a Job, extents: &'a [usize], start: *const u8) -> Self {
        let bytes = match job.micro {
            Micro::Tiles { across } => extents[across] * job.unit,
            _ => extents[extents.len() - 1] * job.step(),
        };
        let (inner, outer) = job.runs.split_last().map_or((None, &[][..]), |(&inner, outer)| (Some(inner), outer));
        let (count, step) = inner.map_or((1, 0), |at| (extents[at], job.axes[at].from));
        let outer = Odometer::new(job, outer, extents);
        Self { outer, start, run: start, done: 0, bytes, left: count - 1, step, count, over: job.ask != Ask::Block }
    }

    /// Asks for the next line.
    ///
    /// # Safety
    /// The instruction set is available.
    #[inline(always)]
    pub(super) unsafe fn ask<R: Registers>(&mut self) {
        if self.over {
            return;
        }
        // SAFETY: as the caller says; the address need not be valid.
        unsafe { R::prefetch(self.run.wrapping_add(self.bytes.min(self.done + LINE) - 1)) };
        self.done += LINE;
        if self.done >= self.bytes {
            self.done = 0;
            if self.left > 0 {
                self.left -= 1;
                self.run = self.run.wrapping_add(self.step);
            } else {
                self.over = !self.outer.advance();
                self.run = self.start.wrapping_add(self.outer.from);
                self.left = self.count - 1;
            }
        }
    }
}
