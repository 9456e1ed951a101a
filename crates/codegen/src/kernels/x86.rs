//! AVX2 with 32-byte registers, and SSE2, which every x86-64 machine has, with 16-byte ones.

use core::arch::x86_64::{
    __m128i, __m256i, _MM_HINT_ET0, _MM_HINT_T0, _MM_HINT_T1, _mm_loadu_si128, _mm_or_si128, _mm_prefetch, _mm_sfence,
    _mm_store_si128, _mm_storeu_si128, _mm_stream_si128, _mm_unpackhi_epi8, _mm_unpackhi_epi16, _mm_unpackhi_epi32,
    _mm_unpackhi_epi64, _mm_unpacklo_epi8, _mm_unpacklo_epi16, _mm_unpacklo_epi32, _mm_unpacklo_epi64,
    _mm256_broadcastsi128_si256, _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_loadu_si256,
    _mm256_loadu2_m128i, _mm256_or_si256, _mm256_shuffle_epi8, _mm256_storeu_si256, _mm256_stream_si256,
    _mm256_unpackhi_epi8, _mm256_unpackhi_epi16, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi8,
    _mm256_unpacklo_epi16, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
};

use super::engine;
use super::interleave::{Pick, interleave};
use super::job::Job;
use super::tile::put;
use super::vector::{Registers, Vector, load_part_by_stack, own_fill, store_part_by_stack};
use crate::Gather;

impl Vector for __m256i {
    const BYTES: usize = 32;

    #[inline(always)]
    unsafe fn lanes(from: *const u8, step: usize) -> Self {
        // SAFETY: the caller vouches for 16 bytes at both places and for the instruction set.
        unsafe { _mm256_loadu2_m128i(from.add(step).cast(), from.cast()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for 32 bytes and for the instruction set.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for 32 bytes and for the instruction set.
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller vouches for 32 bytes, their alignment and for the instruction set.
        unsafe { _mm256_stream_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn zip<const E: usize>(self, other: Self) -> (Self, Self) {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            match E {
                1 => (_mm256_unpacklo_epi8(self, other), _mm256_unpackhi_epi8(self, other)),
                2 => (_mm256_unpacklo_epi16(self, other), _mm256_unpackhi_epi16(self, other)),
                4 => (_mm256_unpacklo_epi32(self, other), _mm256_unpackhi_epi32(self, other)),
                _ => (_mm256_unpacklo_epi64(self, other), _mm256_unpackhi_epi64(self, other)),
            }
        }
    }
}

impl Vector for __m128i {
    const BYTES: usize = 16;

    #[inline(always)]
    unsafe fn lanes(from: *const u8, _step: usize) -> Self {
        // SAFETY: the caller vouches for 16 bytes.
        unsafe { Self::load(from) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for 16 bytes.
        unsafe { _mm_loadu_si128(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for 16 bytes.
        unsafe { _mm_storeu_si128(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller vouches for 16 bytes and their alignment. Miri can't stream, but it checks an aligned store.
        unsafe { if cfg!(miri) { _mm_store_si128(to.cast(), self) } else { _mm_stream_si128(to.cast(), self) } }
    }

    #[inline(always)]
    unsafe fn zip<const E: usize>(self, other: Self) -> (Self, Self) {
        // SAFETY: every x86-64 machine has SSE2.
        unsafe {
            match E {
                1 => (_mm_unpacklo_epi8(self, other), _mm_unpackhi_epi8(self, other)),
                2 => (_mm_unpacklo_epi16(self, other), _mm_unpackhi_epi16(self, other)),
                4 => (_mm_unpacklo_epi32(self, other), _mm_unpackhi_epi32(self, other)),
                _ => (_mm_unpacklo_epi64(self, other), _mm_unpackhi_epi64(self, other)),
            }
        }
    }
}

impl Pick for __m256i {
    #[inline(always)]
    unsafe fn pick(self, places: &[u8; 16]) -> Self {
        // SAFETY: the array has 16 bytes; the caller vouches for the instruction set.
        unsafe { _mm256_shuffle_epi8(self, _mm256_broadcastsi128_si256(__m128i::load(places.as_ptr()))) }
    }

    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { _mm256_or_si256(self, other) }
    }

    #[inline(always)]
    unsafe fn spread<const NT: bool>(self, to: *mut u8, step: usize) {
        // SAFETY: the caller vouches for 16 bytes at both places, with `NT` for their alignment, and for the instruction set.
        unsafe {
            put::<__m128i, NT>(_mm256_castsi256_si128(self), to);
            put::<__m128i, NT>(_mm256_extracti128_si256::<1>(self), to.add(step));
        }
    }
}

/// SSE2 picks no bytes. Miri, which knows no AVX2, picks them one by one, to go through the loops.
impl Pick for __m128i {
    const FAST: bool = cfg!(miri);

    #[inline(always)]
    unsafe fn pick(self, places: &[u8; 16]) -> Self {
        let (mut bytes, mut picked) = ([0_u8; 16], [0_u8; 16]);
        // SAFETY: the arrays have 16 bytes.
        unsafe {
            self.store(bytes.as_mut_ptr());
            for (picked, &place) in picked.iter_mut().zip(places) {
                *picked = bytes.get(usize::from(place)).copied().unwrap_or(0);
            }
            Self::load(picked.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        // SAFETY: every x86-64 machine has SSE2.
        unsafe { _mm_or_si128(self, other) }
    }

    #[inline(always)]
    unsafe fn spread<const NT: bool>(self, to: *mut u8, _step: usize) {
        // SAFETY: passed on.
        unsafe { put::<Self, NT>(self, to) }
    }
}

/// The parts that AVX2 and SSE2 have in common.
macro_rules! registers {
    ($(#[$doc:meta])* $name:ident, $wide:ty $(, $features:literal)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) struct $name;

        impl Registers for $name {
            type Wide = $wide;
            type Half = $wide;
            type Lane = __m128i;

            own_fill!($($features)?);

            #[inline(always)]
            unsafe fn load_part(from: *const u8, count: usize) -> __m128i {
                // SAFETY: passed on.
                unsafe { load_part_by_stack(from, count) }
            }

            #[inline(always)]
            unsafe fn store_part(lane: __m128i, to: *mut u8, count: usize) {
                // SAFETY: passed on.
                unsafe { store_part_by_stack(lane, to, count) }
            }

            #[inline(always)]
            unsafe fn prefetch(at: *const u8) {
                // Miri has no caches.
                if cfg!(not(miri)) {
                    // SAFETY: a prefetch of an address that is not mapped does nothing.
                    unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
                }
            }

            #[inline(always)]
            unsafe fn prefetch_near(at: *const u8) {
                // Miri has no caches.
                if cfg!(not(miri)) {
                    // SAFETY: a prefetch of an address that is not mapped does nothing.
                    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
                }
            }

            #[inline(always)]
            unsafe fn prefetch_owned(at: *const u8) {
                // Miri has no caches.
                if cfg!(not(miri)) {
                    // SAFETY: a prefetch of an address that is not mapped does nothing.
                    unsafe { _mm_prefetch::<_MM_HINT_ET0>(at.cast()) }
                }
            }

            #[inline(always)]
            unsafe fn fence() {
                if cfg!(miri) {
                    return core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
                }
                // SAFETY: every x86-64 machine has SSE.
                unsafe { _mm_sfence() }
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
                unsafe { interleave::<$wide, E, JOIN, NT>(from, to, pitch, channels, count) }
            }
        }
    };
}

registers!(
    /// The registers of AVX2.
    Avx2,
    __m256i,
    "avx2,bmi1,bmi2,lzcnt,popcnt"
);
registers!(
    /// The registers of SSE2.
    Sse2,
    __m128i
);

/// The blocks of a job.
///
/// # Safety
/// As for [`engine::run`], on a machine with AVX2.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn run_avx2(
    job: &Job,
    src: *const u8,
    dst: *mut u8,
    blocks: core::ops::Range<usize>,
    stage: *mut u8,
) {
    // SAFETY: passed on.
    unsafe { engine::run::<Avx2>(job, src, dst, blocks, stage) }
}

/// The blocks of a job.
///
/// # Safety
/// As for [`engine::run`].
pub(super) unsafe fn run_sse2(
    job: &Job,
    src: *const u8,
    dst: *mut u8,
    blocks: core::ops::Range<usize>,
    stage: *mut u8,
) {
    // SAFETY: passed on.
    unsafe { engine::run::<Sse2>(job, src, dst, blocks, stage) }
}

/// The rows of a list.
///
/// # Safety
/// As for [`engine::listed`], on a machine with AVX2.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn listed_avx2(list: &Gather, src: *const u8, dst: *mut u8, rows: core::ops::Range<usize>) {
    // SAFETY: passed on.
    unsafe { engine::listed::<Avx2>(list, src, dst, rows) }
}

/// The rows of a list.
///
/// # Safety
/// As for [`engine::listed`].
pub(super) unsafe fn listed_sse2(list: &Gather, src: *const u8, dst: *mut u8, rows: core::ops::Range<usize>) {
    // SAFETY: passed on.
    unsafe { engine::listed::<Sse2>(list, src, dst, rows) }
}
