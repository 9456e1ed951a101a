//! NEON, which every 64-bit Arm machine has: 16-byte registers. Rust has no streaming stores for it, so plain ones are used.

use core::arch::aarch64::{
    uint8x16_t, vld1q_u8, vorrq_u8, vqtbl1q_u8, vreinterpretq_u8_u16, vreinterpretq_u8_u32, vreinterpretq_u8_u64,
    vreinterpretq_u16_u8, vreinterpretq_u32_u8, vreinterpretq_u64_u8, vst1q_u8, vzip1q_u8, vzip1q_u16, vzip1q_u32,
    vzip1q_u64, vzip2q_u8, vzip2q_u16, vzip2q_u32, vzip2q_u64,
};

use super::engine;
use super::interleave::{Pick, interleave};
use super::job::Job;
use super::tile::put;
use super::vector::{Registers, Vector, load_part_by_stack, own_fill, store_part_by_stack};
use crate::Gather;

impl Vector for uint8x16_t {
    const BYTES: usize = 16;

    #[inline(always)]
    unsafe fn lanes(from: *const u8, _step: usize) -> Self {
        // SAFETY: the caller vouches for 16 bytes.
        unsafe { vld1q_u8(from) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for 16 bytes.
        unsafe { vld1q_u8(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for 16 bytes.
        unsafe { vst1q_u8(to, self) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller vouches for 16 bytes.
        unsafe { vst1q_u8(to, self) }
    }

    #[inline(always)]
    unsafe fn zip<const E: usize>(self, other: Self) -> (Self, Self) {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            match E {
                1 => (vzip1q_u8(self, other), vzip2q_u8(self, other)),
                2 => {
                    let (a, b) = (vreinterpretq_u16_u8(self), vreinterpretq_u16_u8(other));
                    (vreinterpretq_u8_u16(vzip1q_u16(a, b)), vreinterpretq_u8_u16(vzip2q_u16(a, b)))
                }
                4 => {
                    let (a, b) = (vreinterpretq_u32_u8(self), vreinterpretq_u32_u8(other));
                    (vreinterpretq_u8_u32(vzip1q_u32(a, b)), vreinterpretq_u8_u32(vzip2q_u32(a, b)))
                }
                _ => {
                    let (a, b) = (vreinterpretq_u64_u8(self), vreinterpretq_u64_u8(other));
                    (vreinterpretq_u8_u64(vzip1q_u64(a, b)), vreinterpretq_u8_u64(vzip2q_u64(a, b)))
                }
            }
        }
    }
}

impl Pick for uint8x16_t {
    #[inline(always)]
    unsafe fn pick(self, places: &[u8; 16]) -> Self {
        // SAFETY: the array has 16 bytes; the caller vouches for the instruction set.
        unsafe { vqtbl1q_u8(self, vld1q_u8(places.as_ptr())) }
    }

    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { vorrq_u8(self, other) }
    }

    #[inline(always)]
    unsafe fn spread<const NT: bool>(self, to: *mut u8, _step: usize) {
        // SAFETY: passed on.
        unsafe { put::<Self, NT>(self, to) }
    }
}

/// The registers of NEON.
#[derive(Clone, Copy)]
pub(super) struct Neon;

impl Registers for Neon {
    type Wide = uint8x16_t;
    type Half = uint8x16_t;
    type Lane = uint8x16_t;

    own_fill!();

    #[inline(always)]
    unsafe fn load_part(from: *const u8, count: usize) -> uint8x16_t {
        // SAFETY: passed on.
        unsafe { load_part_by_stack(from, count) }
    }

    #[inline(always)]
    unsafe fn store_part(lane: uint8x16_t, to: *mut u8, count: usize) {
        // SAFETY: passed on.
        unsafe { store_part_by_stack(lane, to, count) }
    }

    #[inline(always)]
    unsafe fn prefetch(_at: *const u8) {}

    #[inline(always)]
    unsafe fn prefetch_near(_at: *const u8) {}

    #[inline(always)]
    unsafe fn prefetch_owned(_at: *const u8) {}

    #[inline(always)]
    unsafe fn fence() {}

    #[inline(always)]
    unsafe fn interleave<const E: usize, const JOIN: bool, const NT: bool>(
        from: *const u8,
        to: *mut u8,
        pitch: usize,
        channels: usize,
        count: usize,
    ) -> usize {
        // SAFETY: passed on.
        unsafe { interleave::<uint8x16_t, E, JOIN, NT>(from, to, pitch, channels, count) }
    }
}

/// The blocks of a job.
///
/// # Safety
/// As for [`engine::run`].
pub(super) unsafe fn run(job: &Job, src: *const u8, dst: *mut u8, blocks: core::ops::Range<usize>, stage: *mut u8) {
    // SAFETY: passed on.
    unsafe { engine::run::<Neon>(job, src, dst, blocks, stage) }
}

/// The rows of a list.
///
/// # Safety
/// As for [`engine::listed`].
pub(super) unsafe fn listed(list: &Gather, src: *const u8, dst: *mut u8, rows: core::ops::Range<usize>) {
    // SAFETY: passed on.
    unsafe { engine::listed::<Neon>(list, src, dst, rows) }
}
