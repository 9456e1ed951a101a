//! The portable kernel: safe Rust, any machine, any alignment.
//!
//! The innermost axis of the source and that of the destination span a matrix that has to be transposed; the other axes are
//! loops around it. The matrix goes tile by tile through a small square on the stack, such that both sides are touched in
//! whole cache lines. Where the innermost axis stays, runs of units are copied instead.
//!
//! From [`PARALLEL_BYTES`] on the destination is cut along its outer axes and the pieces are filled in parallel. The result does
//! not depend on the number of threads.

#![forbid(unsafe_code)]

use std::mem::MaybeUninit;

use rayon::prelude::*;

use super::movement::Movement;
use crate::plan::{Axis, MAX_UNIT_BYTES};
use crate::{Class, Plan};

/// A byte of a buffer that may hold nothing yet. Only whole ones are copied; what they hold is never looked at.
type Byte = MaybeUninit<u8>;

/// Below this many bytes one thread is faster than several.
const PARALLEL_BYTES: usize = 1 << 20;

/// Pieces for each thread, so that none waits long for another.
const PIECES_PER_THREAD: usize = 4;

/// Tiles of the destination's innermost axis that are done before the next tile of the source's, to stay within few pages.
const STRIP: usize = 16;

/// Moves the tensor in `src` to `dst` as planned. Both have the plan's bytes.
pub(super) fn permute(src: &[Byte], dst: &mut [Byte], plan: &Plan) {
    let axes = plan.axes();
    match (plan.class(), plan.unit_bytes()) {
        (Class::Nothing, _) => {}
        (Class::Copy, _) => copy(src, dst),
        (_, 1) => run::<1, 64>(src, dst, &axes),
        (_, 2) => run::<2, 32>(src, dst, &axes),
        (_, 4) => run::<4, 16>(src, dst, &axes),
        (_, 8) => run::<8, 16>(src, dst, &axes),
        (_, 16) => run::<16, 8>(src, dst, &axes),
        (_, 32) => run::<32, 8>(src, dst, &axes),
        _ => run::<MAX_UNIT_BYTES, 8>(src, dst, &axes),
    }
}

fn copy(src: &[Byte], dst: &mut [Byte]) {
    if dst.len() < PARALLEL_BYTES {
        dst.copy_from_slice(src);
    } else {
        dst.par_chunks_mut(PARALLEL_BYTES).zip(src.par_chunks(PARALLEL_BYTES)).for_each(|(d, s)| d.copy_from_slice(s));
    }
}

/// A movement with any strides, unit by unit.
pub(super) fn strided(src: &[Byte], dst: &mut [Byte], movement: &Movement) {
    let mut index = vec![0; movement.axes.len()];
    let (mut from, mut to) = (movement.from, movement.to);
    loop {
        dst[to..to + movement.unit].copy_from_slice(&src[from..from + movement.unit]);
        let mut place = index.len();
        loop {
            let Some(next) = place.checked_sub(1) else { return };
            place = next;
            let axis = movement.axes[place];
            index[place] += 1;
            from += axis.from;
            to += axis.to;
            if index[place] < axis.extent {
                break;
            }
            from -= index[place] * axis.from;
            to -= index[place] * axis.to;
            index[place] = 0;
        }
    }
}

/// Moves units of `U` bytes through tiles of `T` x `T`. `axes` are in output order, and there are at least two.
fn run<const U: usize, const T: usize>(src: &[Byte], dst: &mut [Byte], axes: &[Axis]) {
    let parallel = dst.len() >= PARALLEL_BYTES;
    let (src, dst) = (src.as_chunks::<U>().0, dst.as_chunks_mut::<U>().0);
    // The axis that is innermost in the source; the destination may be cut up to it, but not inside of it.
    let inner = axes.iter().position(|axis| axis.from == 1).unwrap_or(0);
    if !parallel {
        block::<_, T>(src, dst, axes, inner);
        return;
    }
    let last = if inner + 1 == axes.len() { axes.len().saturating_sub(2) } else { inner };
    let cut = Cut::new(axes, last, T);
    dst.par_chunks_mut(axes[cut.at].extent * axes[cut.at].to).enumerate().for_each(|(index, whole)| {
        let start = source_offset(&axes[..cut.at], index);
        whole.par_chunks_mut(cut.step * axes[cut.at].to).enumerate().for_each(|(piece, dst)| {
            let mut rest = axes[cut.at..].to_vec();
            rest[0].extent = dst.len() / rest[0].to;
            let start = start + piece * cut.step * rest[0].from;
            block::<_, T>(&src[start..], dst, &rest, inner - cut.at);
        });
    });
}

/// Where the destination is cut into pieces.
struct Cut {
    /// The axis that is cut; those outside of it are too.
    at: usize,
    /// Its extent in a piece.
    step: usize,
}

impl Cut {
    /// The outermost axis up to `last` that gives enough pieces. Steps are multiples of `tile`, or fill whole tiles with few.
    fn new(axes: &[Axis], last: usize, tile: usize) -> Self {
        let wanted = rayon::current_num_threads() * PIECES_PER_THREAD;
        let mut outside = 1;
        for (at, axis) in axes.iter().enumerate() {
            if at == last || outside * axis.extent >= wanted {
                let pieces = wanted.div_ceil(outside);
                let step = axis.extent.div_ceil(pieces);
                let step = if at == last { step.next_multiple_of(tile) } else { step };
                return Self { at, step: step.clamp(1, axis.extent) };
            }
            outside *= axis.extent;
        }
        Self { at: 0, step: 1 }
    }
}

/// Where the `index`-th joint index of `axes`, in output order, begins in the source.
fn source_offset(axes: &[Axis], index: usize) -> usize {
    let mut rest = index;
    let mut offset = 0;
    for axis in axes.iter().rev() {
        offset += rest % axis.extent * axis.from;
        rest /= axis.extent;
    }
    offset
}

/// One piece of the destination. `inner` is the axis that is innermost in the source.
fn block<E: Copy, const T: usize>(src: &[E], dst: &mut [E], axes: &[Axis], inner: usize) {
    let Some((&last, outer)) = axes.split_last() else { return };
    if inner == outer.len() {
        each(outer, |from, to| dst[to..to + last.extent].copy_from_slice(&src[from..from + last.extent]));
        return;
    }
    let mut outer = outer.to_vec();
    let across = outer.remove(inner);
    each(&outer, |from, to| matrix::<E, T>(&src[from..], &mut dst[to..], across, last));
}

/// Calls `visit` with the offsets in source and destination of every joint index of `axes`.
fn each(axes: &[Axis], mut visit: impl FnMut(usize, usize)) {
    let mut index = vec![0; axes.len()];
    let (mut from, mut to) = (0, 0);
    loop {
        visit(from, to);
        let mut place = axes.len();
        loop {
            let Some(next) = place.checked_sub(1) else { return };
            place = next;
            let axis = axes[place];
            index[place] += 1;
            from += axis.from;
            to += axis.to;
            if index[place] < axis.extent {
                break;
            }
            index[place] = 0;
            from -= axis.extent * axis.from;
            to -= axis.extent * axis.to;
        }
    }
}

/// Transposes a matrix: `across` is contiguous in the source, `along` in the destination.
fn matrix<E: Copy, const T: usize>(src: &[E], dst: &mut [E], across: Axis, along: Axis) {
    let (whole_across, whole_along) = (across.extent - across.extent % T, along.extent - along.extent % T);
    for strip in (0..whole_along).step_by(T * STRIP) {
        let end = whole_along.min(strip + T * STRIP);
        for i in (0..whole_across).step_by(T) {
            for j in (strip..end).step_by(T) {
                tile::<E, T>(&src[j * along.from + i..], &mut dst[i * across.to + j..], along.from, across.to);
            }
        }
    }
    // What no whole tile covers: a strip on the right, then one below.
    for i in whole_across..across.extent {
        for j in 0..along.extent {
            dst[i * across.to + j] = src[j * along.from + i];
        }
    }
    for i in 0..whole_across {
        for j in whole_along..along.extent {
            dst[i * across.to + j] = src[j * along.from + i];
        }
    }
}

/// One tile by way of the stack.
fn tile<E: Copy, const T: usize>(src: &[E], dst: &mut [E], from: usize, to: usize) {
    let Some(&any) = src.first() else { return };
    let mut square = [[any; T]; T];
    for (j, row) in square.iter_mut().enumerate() {
        row.copy_from_slice(&src[j * from..j * from + T]);
    }
    for i in 0..T {
        if let Some(out) = dst[i * to..].first_chunk_mut::<T>() {
            for j in 0..T {
                out[j] = square[j][i];
            }
        }
    }
}
