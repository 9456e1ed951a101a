//! The loops of a job over the registers of an instruction set.
//!
//! Everything is `inline(always)`: it becomes part of the one function of each instruction set that has it switched on.
//!
//! Facts that the accesses rely on, checked when a kernel is made and when it is run: every unit of the movement lies within
//! both buffers, and the stage has `Job::stage_bytes`. The drivers stay inside of the units that a block names: an edge that no
//! whole tile covers is done by a tile that is moved back so that it ends with the edge, and does some units twice.

use core::ops::Range;

use super::job::{Job, LINE, MOST_CHANNELS, Micro};
use super::vector::{Registers, Vector};
use smallvec::SmallVec;

/// Where a block is and how much of it there is.
struct Cursor<'a> {
    job: &'a Job,
    /// The number of the block along each axis of `job.order`.
    place: SmallVec<[usize; 8]>,
    /// Units along each axis of the job.
    extents: SmallVec<[usize; 8]>,
    /// Offset in the source, in bytes.
    from: usize,
    /// And in the destination.
    to: usize,
}

impl<'a> Cursor<'a> {
    fn new(job: &'a Job, mut number: usize) -> Self {
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
    fn advance(&mut self) {
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

/// Runs the blocks with these numbers.
///
/// # Safety
/// The instruction set is available; all units of the job are within the source and the destination; blocks are within
/// `job.blocks`; `stage` has `job.stage_bytes`, aligned to a line; nobody else writes to the destination of these blocks.
#[inline(always)]
pub(super) unsafe fn run<R: Registers>(job: &Job, src: *const u8, dst: *mut u8, blocks: Range<usize>, stage: *mut u8) {
    // SAFETY: passed on.
    unsafe {
        match (job.micro, job.unit) {
            (Micro::Rows, _) | (_, 1) => run_unit::<R, 1, 16>(job, src, dst, blocks, stage),
            (_, 2) => run_unit::<R, 2, 8>(job, src, dst, blocks, stage),
            (_, 4) => run_unit::<R, 4, 4>(job, src, dst, blocks, stage),
            (_, 8) => run_unit::<R, 8, 2>(job, src, dst, blocks, stage),
            _ => run_unit::<R, 16, 1>(job, src, dst, blocks, stage),
        }
        if job.stream {
            R::fence();
        }
    }
}

/// The same for units of `E` bytes, `G` of which fill a lane; rows count bytes.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn run_unit<R: Registers, const E: usize, const G: usize>(
    job: &Job,
    src: *const u8,
    dst: *mut u8,
    blocks: Range<usize>,
    stage: *mut u8,
) {
    let mut cursor = Cursor::new(job, blocks.start);
    for _ in blocks {
        let (from, to) = (cursor.from, cursor.to);
        let extents = cursor.extents.clone();
        cursor.advance();
        let ahead = if job.prefetch { cursor.from.wrapping_sub(from) } else { 0 };
        // SAFETY: the offsets are those of units of the movement; a stage is laid out for the same block.
        unsafe {
            let next = src.wrapping_add(cursor.from);
            let src = src.add(from);
            let dst = dst.add(to);
            if job.stage_bytes > 0 {
                own_edges::<R>(job, &extents, dst);
                // Reads and writes of memory overlap only if the next block is asked for while this one is written.
                fill::<R, E, G, false>(job, &extents, src, stage, 0);
                let mut walk = Walk::new(job, &cursor.extents, next);
                flush::<R>(job, &extents, stage, dst, &mut walk);
            } else if job.stream {
                fill::<R, E, G, true>(job, &extents, src, dst, ahead);
            } else {
                fill::<R, E, G, false>(job, &extents, src, dst, ahead);
            }
        }
    }
}

/// Counts through some axes of a block.
struct Odometer<'a> {
    job: &'a Job,
    axes: &'a [usize],
    extents: &'a [usize],
    index: SmallVec<[usize; 8]>,
    /// Offset in the source, in bytes.
    from: usize,
    /// In the stage, or where there is none in the destination.
    stage: usize,
    /// In the destination.
    to: usize,
}

impl<'a> Odometer<'a> {
    fn new(job: &'a Job, axes: &'a [usize], extents: &'a [usize]) -> Self {
        Self { job, axes, extents, index: SmallVec::from_elem(0, axes.len()), from: 0, stage: 0, to: 0 }
    }

    /// The next place; `false` after the last one.
    #[inline(always)]
    fn advance(&mut self) -> bool {
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
struct Walk<'a> {
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
    fn new(job: &'a Job, extents: &'a [usize], start: *const u8) -> Self {
        let bytes = match job.micro {
            Micro::Tiles { across } => extents[across] * job.unit,
            _ => extents[extents.len() - 1] * job.step(),
        };
        let (inner, outer) = job.runs.split_last().map_or((None, &[][..]), |(&inner, outer)| (Some(inner), outer));
        let (count, step) = inner.map_or((1, 0), |at| (extents[at], job.axes[at].from));
        let outer = Odometer::new(job, outer, extents);
        Self { outer, start, run: start, done: 0, bytes, left: count - 1, step, count, over: !job.prefetch }
    }

    /// Asks for the next line.
    ///
    /// # Safety
    /// The instruction set is available.
    #[inline(always)]
    unsafe fn ask<R: Registers>(&mut self) {
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

/// Moves a block to the destination or to the stage, whichever the strides in `JobAxis::stage` are of.
///
/// # Safety
/// As for [`run`]; with `NT` the destination is made of whole lines.
#[inline(always)]
unsafe fn fill<R: Registers, const E: usize, const G: usize, const NT: bool>(
    job: &Job,
    extents: &[usize],
    src: *const u8,
    dst: *mut u8,
    ahead: usize,
) {
    let last = job.axes.len() - 1;
    // The fastest of the inner axes is the loop that rows know.
    let (tight, outer) = match job.inner.split_last() {
        Some((&tight, outer)) if job.micro == Micro::Rows => (Some(tight), outer),
        _ => (None, &job.inner[..]),
    };
    let mut place = Odometer::new(job, outer, extents);
    loop {
        // SAFETY: the offsets stay below the extents of the block.
        unsafe {
            let (src, dst) = (src.add(place.from), dst.add(place.stage));
            if job.micro == Micro::Rows {
                let (count, step, pitch) =
                    tight.map_or((1, 0, 0), |at| (extents[at], job.axes[at].from, job.axes[at].stage));
                rows::<R, NT>(src, step, dst, pitch, count, extents[last], ahead);
            } else if let Micro::Tiles { across } = job.micro {
                let matrix = Matrix {
                    across: extents[across],
                    along: extents[last],
                    from: job.axes[last].from,
                    row: job.axes[last].from,
                    to: job.axes[across].stage,
                    ahead,
                    pack: job.pack,
                    near: job.near,
                };
                matrix.run::<R, E, G, NT>(src, dst);
            } else {
                let (step, pitch) = (job.axes[last].from, job.axes[last].stage);
                for unit in 0..extents[last] {
                    copy_unit::<E>(src.add(unit * step), dst.add(unit * pitch));
                }
            }
        }
        if !place.advance() {
            return;
        }
    }
}

/// Bytes of a run of a staged block. Where its outermost axis is cut, what is inside of that is not.
fn run_bytes(job: &Job, extents: &[usize]) -> usize {
    job.step() * extents[job.run_from..].iter().product::<usize>()
}

/// Asks for the lines that runs begin and end with: the plain stores to them would wait for memory, and all others for these.
///
/// # Safety
/// The instruction set is available.
#[inline(always)]
unsafe fn own_edges<R: Registers>(job: &Job, extents: &[usize], dst: *mut u8) {
    let run = run_bytes(job, extents);
    let mut place = Odometer::new(job, &job.lines, extents);
    loop {
        for at in [place.to, place.to + run] {
            let edge = dst.wrapping_add(at);
            if !edge.addr().is_multiple_of(LINE) {
                // SAFETY: as the caller says; the address need not be valid.
                unsafe { R::prefetch_owned(edge) };
            }
        }
        if !place.advance() {
            return;
        }
    }
}

/// Writes the runs of a stage to their places, whole lines past the caches.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn flush<R: Registers>(job: &Job, extents: &[usize], stage: *const u8, dst: *mut u8, walk: &mut Walk<'_>) {
    let run = run_bytes(job, extents);
    let mut place = Odometer::new(job, &job.lines, extents);
    loop {
        // SAFETY: the run is in the stage and in the destination.
        unsafe { write_run::<R>(stage.add(place.stage), dst.add(place.to), run, walk) };
        if !place.advance() {
            return;
        }
    }
}

/// Copies `count` bytes, whole lines of the destination past the caches.
///
/// # Safety
/// Both pointers are valid for `count` bytes.
#[inline(always)]
unsafe fn write_run<R: Registers>(from: *const u8, to: *mut u8, count: usize, walk: &mut Walk<'_>) {
    // SAFETY: head, lines and tail add up to `count`.
    unsafe {
        let head = to.align_offset(LINE).min(count);
        if head > 0 {
            R::copy_short(from, to, head);
        }
        let lines = (count - head) / LINE;
        for line in 0..lines {
            walk.ask::<R>();
            let at = head + line * LINE;
            copy_some::<R, true, 1>(from.add(at), to.add(at));
        }
        let done = head + lines * LINE;
        if done < count {
            R::copy_short(from.add(done), to.add(done), count - done);
        }
    }
}

/// Copies whole lines.
///
/// # Safety
/// Both pointers are valid for the lines; with `NT` the destination is aligned to one.
#[inline(always)]
unsafe fn copy_lines<R: Registers, const NT: bool>(from: *const u8, to: *mut u8, lines: usize, ahead: usize) {
    let mut line = 0;
    // SAFETY: within the lines.
    unsafe {
        while line + 4 <= lines {
            if ahead != 0 {
                for next in line..line + 4 {
                    R::prefetch(from.wrapping_add(next * LINE).wrapping_add(ahead));
                }
            }
            copy_some::<R, NT, 4>(from.add(line * LINE), to.add(line * LINE));
            line += 4;
        }
        while line < lines {
            if ahead != 0 {
                R::prefetch(from.wrapping_add(line * LINE).wrapping_add(ahead));
            }
            copy_some::<R, NT, 1>(from.add(line * LINE), to.add(line * LINE));
            line += 1;
        }
    }
}

/// Copies `N` lines: all loads, then all stores, as far as there are registers.
///
/// # Safety
/// As for [`copy_lines`].
#[inline(always)]
unsafe fn copy_some<R: Registers, const NT: bool, const N: usize>(from: *const u8, to: *mut u8) {
    let wide = R::Wide::BYTES;
    // SAFETY: within the lines.
    unsafe {
        let mut part = 0;
        while part < N * LINE / wide {
            let mut held = [R::Wide::load(from.add(part * wide)); 4];
            let count = (N * LINE / wide - part).min(4);
            for (at, held) in held.iter_mut().enumerate().take(count).skip(1) {
                *held = R::Wide::load(from.add((part + at) * wide));
            }
            for (at, &held) in held.iter().enumerate().take(count) {
                put::<R::Wide, NT>(held, to.add((part + at) * wide));
            }
            part += count;
        }
    }
}

/// Rows of `run` bytes, `count` of them.
///
/// # Safety
/// All rows are valid on both sides; with `NT` the destination's begin at a line and fill it, alone or in pairs.
#[inline(always)]
unsafe fn rows<R: Registers, const NT: bool>(
    src: *const u8,
    step: usize,
    dst: *mut u8,
    pitch: usize,
    count: usize,
    run: usize,
    ahead: usize,
) {
    for row in 0..count {
        // SAFETY: rows of the block; the last line of a row ends with it.
        unsafe {
            let (from, to) = (src.add(row * step), dst.add(row * pitch));
            if run >= LINE {
                copy_lines::<R, NT>(from, to, run / LINE, ahead);
                if !run.is_multiple_of(LINE) {
                    copy_lines::<R, false>(from.add(run - LINE), to.add(run - LINE), 1, 0);
                }
            } else {
                if ahead != 0 {
                    R::prefetch(from.wrapping_add(ahead));
                }
                if run == LINE / 2 {
                    for part in 0..LINE / 2 / R::Half::BYTES {
                        let at = part * R::Half::BYTES;
                        put::<R::Half, NT>(R::Half::load(from.add(at)), to.add(at));
                    }
                } else {
                    R::copy_short(from, to, run);
                }
            }
        }
    }
}

/// Copies one unit.
///
/// # Safety
/// Both pointers are valid for `E` bytes.
#[inline(always)]
unsafe fn copy_unit<const E: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: as the caller says; arrays of bytes need no alignment.
    unsafe { to.cast::<[u8; E]>().write(from.cast::<[u8; E]>().read()) }
}

/// Stores a register, past the caches or not.
///
/// # Safety
/// As for [`Vector::stream`] and [`Vector::store`].
#[inline(always)]
unsafe fn put<V: Vector, const NT: bool>(value: V, to: *mut u8) {
    // SAFETY: passed on.
    unsafe { if NT { value.stream(to) } else { value.store(to) } }
}

/// A matrix that is transposed: contiguous across in the source, along in the destination.
#[derive(Clone, Copy)]
struct Matrix {
    across: usize,
    along: usize,
    /// Bytes from one unit along to the next, in the source.
    from: usize,
    /// The same where lines are asked for.
    row: usize,
    /// Bytes from one unit across to the next, in the destination.
    to: usize,
    /// Bytes from a line to the one to ask for; 0 asks for none.
    ahead: usize,
    /// Copy the lines of a tile together first.
    pack: bool,
    near: bool,
}

impl Matrix {
    /// # Safety
    /// The matrix is valid on both sides; with `NT` the destination's rows are whole lines.
    #[inline(always)]
    unsafe fn run<R: Registers, const E: usize, const G: usize, const NT: bool>(self, src: *const u8, dst: *mut u8) {
        // SAFETY: passed on, with widths that fit.
        unsafe {
            if self.across < G || self.along * E < 16 {
                self.narrow::<R, E, G, NT>(src, dst);
                return;
            }
            let mut across = 0;
            while across < self.across {
                let strip = Strip { start: across, end: self.across.min(across + LINE / E) };
                self.strip::<R, E, G, NT>(src, dst, strip);
                across = strip.end;
            }
        }
    }

    /// The columns of one line of the source.
    ///
    /// # Safety
    /// As for [`Matrix::run`].
    #[inline(always)]
    unsafe fn strip<R: Registers, const E: usize, const G: usize, const NT: bool>(
        self,
        src: *const u8,
        dst: *mut u8,
        strip: Strip,
    ) {
        let per_line = LINE / E;
        let mut along = 0;
        // SAFETY: tiles within the matrix; the last of each width is moved back to end with it.
        unsafe {
            while along + per_line <= self.along {
                if self.pack && strip.end - strip.start == per_line {
                    self.packed::<R, E, G, NT>(src, dst, strip, along);
                } else {
                    self.whole::<R, E, G, NT>(src, dst, strip, along, src.add(along * self.from + strip.start * E));
                }
                along += per_line;
            }
            let left = (self.along - along) * E;
            if left == 0 {
                return;
            }
            // One tile that covers what is left, of the narrowest register that does, if there is room for it.
            if left <= 16 {
                self.tiles::<R::Lane, E, G, false>(src, dst, strip, self.along - 16 / E, 1);
            } else if left <= 32 && self.along * E >= 32 {
                let half = R::Half::BYTES;
                self.tiles::<R::Half, E, G, false>(src, dst, strip, self.along - 32 / E, 32 / half);
            } else if self.along * E >= LINE {
                self.tiles::<R::Wide, E, G, false>(src, dst, strip, self.along - per_line, LINE / R::Wide::BYTES);
            } else {
                // 17 to 63 bytes in all.
                let lane = 16 / E;
                while along + lane <= self.along {
                    self.tiles::<R::Lane, E, G, false>(src, dst, strip, along, 1);
                    along += lane;
                }
                if along < self.along {
                    self.tiles::<R::Lane, E, G, false>(src, dst, strip, self.along - lane, 1);
                }
            }
        }
    }

    /// A line of the destination along from `along`, all groups of the strip. Lines are asked for one by one between the loads:
    /// in bursts they would wait for each other. `origin` is where the tile begins in the source.
    ///
    /// # Safety
    /// As for [`Matrix::run`]; the line lies within the matrix.
    #[inline(always)]
    unsafe fn whole<R: Registers, const E: usize, const G: usize, const NT: bool>(
        self,
        src: *const u8,
        dst: *mut u8,
        strip: Strip,
        along: usize,
        origin: *const u8,
    ) {
        let parts = LINE / R::Wide::BYTES;
        if self.ahead == 0 && !self.near {
            // SAFETY: passed on.
            unsafe { self.tiles::<R::Wide, E, G, NT>(src, dst, strip, along, parts) }
            return;
        }
        let step = if self.near { LINE / E * self.row } else { self.ahead };
        // Of a line that is cut, the part that the block before did not see.
        let mut ask = origin.wrapping_add(step).wrapping_add(LINE - 1);
        let mut across = strip.start;
        while across < strip.end {
            let start = across.min(self.across - G);
            for part in 0..parts {
                let row = along + part * (R::Wide::BYTES / E);
                // SAFETY: G columns from `start`, and as many rows as the register has units from `row`.
                unsafe {
                    let from = src.add(row * self.from + start * E);
                    let to = dst.add(start * self.to + row * E);
                    tile_and_ask::<R, E, G, NT>(from, self.from, to, self.to, ask, self.row, self.near);
                }
                ask = ask.wrapping_add(G / parts * self.row);
            }
            across += G;
        }
    }

    /// `count` registers along from `along`, all groups of the strip.
    ///
    /// # Safety
    /// As for [`Matrix::run`]; the registers lie within the matrix.
    #[inline(always)]
    unsafe fn tiles<V: Vector, const E: usize, const G: usize, const NT: bool>(
        self,
        src: *const u8,
        dst: *mut u8,
        strip: Strip,
        along: usize,
        count: usize,
    ) {
        let mut across = strip.start;
        while across < strip.end {
            let start = across.min(self.across - G);
            for part in 0..count {
                let row = along + part * (V::BYTES / E);
                // SAFETY: G columns from `start`, and as many rows as the register has units from `row`.
                unsafe {
                    tile::<V, E, G, NT>(
                        src.add(row * self.from + start * E),
                        self.from,
                        dst.add(start * self.to + row * E),
                        self.to,
                    );
                }
            }
            across += G;
        }
    }

    /// A tile of whole lines on both sides by way of a copy of its source: for rows that fall into the same cache sets.
    ///
    /// # Safety
    /// As for [`Matrix::tiles`], with a strip of a whole line.
    #[inline(always)]
    unsafe fn packed<R: Registers, const E: usize, const G: usize, const NT: bool>(
        self,
        src: *const u8,
        dst: *mut u8,
        strip: Strip,
        along: usize,
    ) {
        #[repr(align(64))]
        struct Room([core::mem::MaybeUninit<u8>; LINE * LINE]);
        let mut room = Room([const { core::mem::MaybeUninit::uninit() }; LINE * LINE]);
        let room = room.0.as_mut_ptr().cast::<u8>();
        // SAFETY: LINE / E rows of a line each, all of which are written before they are read.
        unsafe {
            let from = src.add(along * self.from + strip.start * E);
            for row in 0..LINE / E {
                copy_lines::<R, false>(from.add(row * self.from), room.add(row * LINE), 1, 0);
            }
            let copy = Self { across: LINE / E, from: LINE, row: self.from, ..self };
            let dst = dst.add(strip.start * self.to + along * E);
            let whole = Strip { start: 0, end: LINE / E };
            copy.whole::<R, E, G, NT>(room, dst, whole, 0, from);
        }
    }

    /// A matrix with fewer columns than a lane has units, or fewer rows.
    ///
    /// # Safety
    /// As for [`Matrix::run`].
    #[inline(always)]
    unsafe fn narrow<R: Registers, const E: usize, const G: usize, const NT: bool>(self, src: *const u8, dst: *mut u8) {
        // SAFETY: as the caller says; what an interleave has done is left out.
        unsafe {
            let (mut across, mut along) = (0, 0);
            if self.along <= MOST_CHANNELS && self.to == self.along * E {
                across = R::interleave::<E, true, NT>(src, dst, self.from, self.along, self.across);
            } else if self.across <= MOST_CHANNELS && self.from == self.across * E {
                along = R::interleave::<E, false, NT>(src, dst, self.to, self.across, self.along);
            }
            let rest = Self { across: self.across - across, along: self.along - along, ..self };
            rest.parts::<R, E, G>(src.add(across * E + along * self.from), dst.add(across * self.to + along * E));
        }
    }

    /// Tiles of one lane's width with loads and stores of just what is there.
    ///
    /// # Safety
    /// As for [`Matrix::run`].
    #[inline(always)]
    unsafe fn parts<R: Registers, const E: usize, const G: usize>(self, src: *const u8, dst: *mut u8) {
        let mut along = 0;
        while along < self.along {
            let rows = G.min(self.along - along);
            let mut across = 0;
            while across < self.across {
                let columns = G.min(self.across - across);
                // SAFETY: parts within the matrix; rows past the last one read the last one again.
                unsafe {
                    let src = src.add(along * self.from + across * E);
                    let dst = dst.add(across * self.to + along * E);
                    let first = R::load_part(src, columns * E);
                    let mut registers = [first; G];
                    for (row, register) in registers.iter_mut().enumerate().take(rows).skip(1) {
                        *register = R::load_part(src.add(row * self.from), columns * E);
                    }
                    transpose::<R::Lane, E, G>(&mut registers);
                    for (column, &register) in registers.iter().enumerate().take(columns) {
                        R::store_part(register, dst.add(column * self.to), rows * E);
                    }
                }
                across += G;
            }
            along += G;
        }
    }
}

/// Some columns of a matrix.
#[derive(Clone, Copy)]
struct Strip {
    start: usize,
    end: usize,
}

/// `G` columns of as many rows as the register has units.
///
/// # Safety
/// Valid on both sides; with `NT` the destination is aligned to the register.
#[inline(always)]
unsafe fn tile<V: Vector, const E: usize, const G: usize, const NT: bool>(
    src: *const u8,
    from: usize,
    dst: *mut u8,
    to: usize,
) {
    // SAFETY: lane `l` of register `k` is row `l * G + k`.
    unsafe {
        let mut registers = [V::lanes(src, G * from); G];
        for (row, register) in registers.iter_mut().enumerate().skip(1) {
            *register = V::lanes(src.add(row * from), G * from);
        }
        transpose::<V, E, G>(&mut registers);
        for (column, &register) in registers.iter().enumerate() {
            put::<V, NT>(register, dst.add(column * to));
        }
    }
}

/// The same, asking for a line with each register.
///
/// # Safety
/// As for [`tile`].
#[inline(always)]
unsafe fn tile_and_ask<R: Registers, const E: usize, const G: usize, const NT: bool>(
    src: *const u8,
    from: usize,
    dst: *mut u8,
    to: usize,
    ask: *const u8,
    step: usize,
    near: bool,
) {
    // SAFETY: as for `tile`; what is asked for need not be there.
    unsafe {
        let mut registers = [R::Wide::lanes(src, G * from); G];
        for (row, register) in registers.iter_mut().enumerate() {
            if row > 0 {
                *register = R::Wide::lanes(src.add(row * from), G * from);
            }
            if row % (LINE / R::Wide::BYTES) == 0 {
                let ask = ask.wrapping_add(row / (LINE / R::Wide::BYTES) * step);
                if near { R::prefetch_near(ask) } else { R::prefetch(ask) }
            }
        }
        transpose::<R::Wide, E, G>(&mut registers);
        for (column, &register) in registers.iter().enumerate() {
            put::<R::Wide, NT>(register, dst.add(column * to));
        }
    }
}

/// Transposes the `G` x `G` units of each lane.
///
/// # Safety
/// The instruction set is available.
#[inline(always)]
unsafe fn transpose<V: Vector, const E: usize, const G: usize>(registers: &mut [V; G]) {
    let mut round = 1;
    while round < G {
        let old = *registers;
        let mut k = 0;
        while k < G / 2 {
            // SAFETY: as the caller says.
            let (low, high) = unsafe { old[k].zip::<E>(old[k + G / 2]) };
            registers[2 * k] = low;
            registers[2 * k + 1] = high;
            k += 1;
        }
        round *= 2;
    }
}
