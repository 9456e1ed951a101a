//! The loops of a job over the registers of an instruction set.
//!
//! Everything is `inline(always)`: it becomes part of the one function of each instruction set that has it switched on.
//!
//! Facts that the accesses rely on, checked when a kernel is made and when it is run: every unit of the movement lies within
//! both buffers, and the stage has `Job::stage_bytes`. The drivers stay inside of the units that a block names: an edge that no
//! whole tile covers is done by a tile that is moved back so that it ends with the edge, and does some units twice.

use core::ops::Range;

use super::job::{Ask, Job, LINE, Micro};
use super::tile::{Matrix, copy_some, copy_unit, rows};
use super::vector::Registers;
use super::walk::{Cursor, Odometer, Walk};
use crate::Gather;

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

/// Copies the rows with these numbers, counted through all blocks of the list.
///
/// # Safety
/// The instruction set is available; source and destination have the bytes of the list's rows, each of which it names once; nobody
/// else writes to these rows.
#[inline(always)]
pub(super) unsafe fn listed<R: Registers>(list: &Gather, src: *const u8, dst: *mut u8, rows: Range<usize>) {
    let (bytes, count) = (list.row_bytes, list.index.len());
    let mut row = rows.start;
    while row < rows.end {
        let block = row / count * count;
        let index = &list.index[row - block..count.min(rows.end - block)];
        let source = |row: u32| src.wrapping_add((block + row as usize) * bytes);
        for (&here, &next) in index.iter().zip(index[1..].iter().chain(&index[index.len() - 1..])) {
            // SAFETY: rows of both buffers.
            unsafe { listed_row::<R>(source(here), source(next), dst.add(row * bytes), bytes) };
            row += 1;
        }
    }
}

/// Copies a row of `bytes`, and asks for the lines of the next, whose place no machine foresees.
///
/// # Safety
/// The instruction set is available; `from` and `to` are valid for `bytes`.
#[inline(always)]
unsafe fn listed_row<R: Registers>(from: *const u8, next: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: lines of the row, the last of which ends with it.
    unsafe {
        if bytes < LINE {
            R::copy_short(from, to, bytes);
            return;
        }
        let mut at = 0;
        while at + LINE <= bytes {
            R::prefetch_near(next.wrapping_add(at));
            copy_some::<R, false, 1>(from.add(at), to.add(at));
            at += LINE;
        }
        if at < bytes {
            copy_some::<R, false, 1>(from.add(bytes - LINE), to.add(bytes - LINE));
        }
    }
}

/// Copies a row of units of `E` bytes, `G` of which fill a lane; rows count bytes.
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
        let ahead = if job.ask == Ask::Block { cursor.from.wrapping_sub(from) } else { 0 };
        // SAFETY: the offsets are those of units of the movement; a stage is laid out for the same block.
        unsafe {
            let next = src.wrapping_add(cursor.from);
            let src = src.add(from);
            let dst = dst.add(to);
            if job.stage_bytes > 0 {
                own_edges::<R>(job, &extents, dst);
                // Reads and writes of memory overlap only if the next block is asked for while this one is written.
                R::fill::<E, G, false>(job, &extents, src, stage, 0);
                let mut walk = Walk::new(job, &cursor.extents, next);
                flush::<R>(job, &extents, stage, dst, &mut walk);
            } else if job.stream {
                R::fill::<E, G, true>(job, &extents, src, dst, ahead);
            } else {
                R::fill::<E, G, false>(job, &extents, src, dst, ahead);
            }
        }
    }
}

/// Moves a block to the destination or to the stage, whichever the strides in `JobAxis::stage` are of.
///
/// # Safety
/// As for [`run`]; with `NT` the destination is made of whole lines.
#[inline(always)]
pub(super) unsafe fn fill<R: Registers, const E: usize, const G: usize, const NT: bool>(
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
                    near: job.ask == Ask::Tile,
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
