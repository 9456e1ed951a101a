//! AVX-512 (F, BW, DQ, VL, VBMI): 64-byte registers, masks for short rows, any permutation of bytes in two registers.

use core::arch::x86_64::{
    __m128i, __m512i, _MM_HINT_ET0, _MM_HINT_T0, _MM_HINT_T1, _mm_mask_storeu_epi8, _mm_maskz_loadu_epi8, _mm_prefetch,
    _mm_sfence, _mm512_broadcast_i32x4, _mm512_loadu_si512, _mm512_mask_broadcast_i32x4, _mm512_mask_permutex2var_epi8,
    _mm512_mask_permutexvar_epi8, _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8, _mm512_permutex2var_epi8,
    _mm512_storeu_si512, _mm512_stream_si512, _mm512_unpackhi_epi8, _mm512_unpackhi_epi16, _mm512_unpackhi_epi32,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi8, _mm512_unpacklo_epi16, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};

use super::engine;
use super::job::Job;
use super::vector::{Registers, Vector, own_fill};
use crate::Gather;

impl Vector for __m512i {
    const BYTES: usize = 64;

    #[inline(always)]
    unsafe fn lanes(from: *const u8, step: usize) -> Self {
        // SAFETY: the caller vouches for 16 bytes at each of the four places and for the instruction set.
        unsafe {
            let lane = |l: usize| from.add(l * step).cast::<__m128i>().read_unaligned();
            let all = _mm512_broadcast_i32x4(lane(0));
            let all = _mm512_mask_broadcast_i32x4(all, 0x00f0, lane(1));
            let all = _mm512_mask_broadcast_i32x4(all, 0x0f00, lane(2));
            _mm512_mask_broadcast_i32x4(all, 0xf000, lane(3))
        }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for 64 bytes and for the instruction set.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for 64 bytes and for the instruction set.
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller vouches for 64 bytes, their alignment and for the instruction set.
        unsafe { _mm512_stream_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn zip<const E: usize>(self, other: Self) -> (Self, Self) {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            match E {
                1 => (_mm512_unpacklo_epi8(self, other), _mm512_unpackhi_epi8(self, other)),
                2 => (_mm512_unpacklo_epi16(self, other), _mm512_unpackhi_epi16(self, other)),
                4 => (_mm512_unpacklo_epi32(self, other), _mm512_unpackhi_epi32(self, other)),
                _ => (_mm512_unpacklo_epi64(self, other), _mm512_unpackhi_epi64(self, other)),
            }
        }
    }
}

/// The registers of AVX-512.
#[derive(Clone, Copy)]
pub(super) struct Avx512;

impl Registers for Avx512 {
    type Wide = __m512i;
    type Half = core::arch::x86_64::__m256i;
    type Lane = __m128i;

    own_fill!("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt,popcnt");

    #[inline(always)]
    unsafe fn load_part(from: *const u8, count: usize) -> __m128i {
        // SAFETY: the mask keeps the load within `count` bytes.
        unsafe { _mm_maskz_loadu_epi8(((1_u32 << count) - 1) as u16, from.cast()) }
    }

    #[inline(always)]
    unsafe fn store_part(lane: __m128i, to: *mut u8, count: usize) {
        // SAFETY: the mask keeps the store within `count` bytes.
        unsafe { _mm_mask_storeu_epi8(to.cast(), ((1_u32 << count) - 1) as u16, lane) }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const u8) {
        // SAFETY: a prefetch of an address that is not mapped does nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }

    #[inline(always)]
    unsafe fn prefetch_near(at: *const u8) {
        // SAFETY: a prefetch of an address that is not mapped does nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    #[inline(always)]
    unsafe fn prefetch_owned(at: *const u8) {
        // SAFETY: a prefetch of an address that is not mapped does nothing.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(at.cast()) }
    }

    #[inline(always)]
    unsafe fn fence() {
        // SAFETY: every x86-64 machine has SSE.
        unsafe { _mm_sfence() }
    }

    #[inline(always)]
    unsafe fn copy_short(from: *const u8, to: *mut u8, count: usize) {
        let mask = (1_u64 << count) - 1;
        // SAFETY: the mask keeps both within `count` bytes, which the caller vouches for.
        unsafe { _mm512_mask_storeu_epi8(to.cast(), mask, _mm512_maskz_loadu_epi8(mask, from.cast())) }
    }

    #[inline(always)]
    unsafe fn interleave<const E: usize, const JOIN: bool, const NT: bool>(
        from: *const u8,
        to: *mut u8,
        pitch: usize,
        channels: usize,
        count: usize,
    ) -> usize {
        // SAFETY: passed on.
        unsafe {
            match channels {
                2 => interleave::<E, 2, JOIN, NT>(from, to, pitch, count),
                3 => interleave::<E, 3, JOIN, NT>(from, to, pitch, count),
                4 => interleave::<E, 4, JOIN, NT>(from, to, pitch, count),
                _ => 0,
            }
        }
    }
}

/// For each of `K` registers to write: which bytes of the `K` registers read, and from which pair of them.
const fn table<const E: usize, const K: usize, const JOIN: bool>() -> [[u8; 64]; K] {
    let mut table = [[0_u8; 64]; K];
    let mut out = 0;
    while out < K {
        let mut byte = 0;
        while byte < 64 {
            let (element, part) = (byte / E, byte % E);
            // The byte among the 64 * K that are read, register after register.
            let at = if JOIN {
                let global = out * (64 / E) + element;
                (global % K) * 64 + (global / K) * E + part
            } else {
                (element * K + out) * E + part
            };
            table[out][byte] = at as u8;
            byte += 1;
        }
        out += 1;
    }
    table
}

/// Bytes that come from the registers 2 and 3.
const fn upper<const K: usize>(table: &[[u8; 64]; K]) -> [u64; K] {
    let mut masks = [0; K];
    let mut out = 0;
    while out < K {
        let mut byte = 0;
        while byte < 64 {
            if table[out][byte] >= 128 {
                masks[out] |= 1 << byte;
            }
            byte += 1;
        }
        out += 1;
    }
    masks
}

/// Whole registers of the interleave that [`Registers::interleave`] describes.
///
/// # Safety
/// As for [`Registers::interleave`].
#[inline(always)]
unsafe fn interleave<const E: usize, const K: usize, const JOIN: bool, const NT: bool>(
    from: *const u8,
    to: *mut u8,
    pitch: usize,
    count: usize,
) -> usize {
    let bytes = const { table::<E, K, JOIN>() };
    let masks = const { upper(&table::<E, K, JOIN>()) };
    let per = 64 / E;
    let (read, write) = if JOIN { (pitch, 64) } else { (64, pitch) };
    let mut done = 0;
    // SAFETY: each round reads and writes K * 64 bytes that hold the elements from `done` to `done + per` of each row.
    unsafe {
        while done + per <= count {
            let (from, to) = if JOIN {
                (from.add(done * E), to.add(done * E * K))
            } else {
                (from.add(done * E * K), to.add(done * E))
            };
            let row = |k: usize| __m512i::load(from.add(k.min(K - 1) * read));
            let (a, b, c, d) = (row(0), row(1), row(2), row(3));
            let mut out = 0;
            while out < K {
                let index = __m512i::load(bytes[out].as_ptr());
                let mut line = _mm512_permutex2var_epi8(a, index, b);
                if K == 3 {
                    line = _mm512_mask_permutexvar_epi8(line, masks[out], index, c);
                } else if K == 4 {
                    let other = _mm512_mask_permutex2var_epi8(c, u64::MAX, index, d);
                    line = core::arch::x86_64::_mm512_mask_blend_epi8(masks[out], line, other);
                }
                if NT {
                    line.stream(to.add(out * write));
                } else {
                    line.store(to.add(out * write));
                }
                out += 1;
            }
            done += per;
        }
    }
    done
}

/// The blocks of a job.
///
/// # Safety
/// As for [`engine::run`], on a machine with these extensions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn run(job: &Job, src: *const u8, dst: *mut u8, blocks: core::ops::Range<usize>, stage: *mut u8) {
    // SAFETY: passed on.
    unsafe { engine::run::<Avx512>(job, src, dst, blocks, stage) }
}

/// The rows of a list.
///
/// # Safety
/// As for [`engine::listed`], on a machine with these extensions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn listed(list: &Gather, src: *const u8, dst: *mut u8, rows: core::ops::Range<usize>) {
    // SAFETY: passed on.
    unsafe { engine::listed::<Avx512>(list, src, dst, rows) }
}
