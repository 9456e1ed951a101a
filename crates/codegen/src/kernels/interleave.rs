//! Rows of a few channels put together into pixels, and taken apart, by registers whose lanes pick bytes.
//!
//! A lane of `K` registers has as many bytes as `K` lanes of pixels. Each byte of a result is picked from the one source that has it;
//! the others give zero there, and all are joined by `or`. Nothing crosses a lane: the lanes of a register are groups of pixels that
//! follow each other.

use super::tile::put;
use super::vector::Vector;

/// A register whose lanes pick bytes.
///
/// # Safety
/// As for [`Vector`].
pub(super) trait Pick: Vector {
    /// Whether that is one instruction.
    const FAST: bool = true;

    /// Each lane's bytes at these places; 0 where a place is [`NOWHERE`].
    unsafe fn pick(self, places: &[u8; 16]) -> Self;
    /// The bits of both.
    unsafe fn or(self, other: Self) -> Self;
    /// Writes lane `l` to `to + l * step`; with `NT` past the caches, to multiples of 16 bytes.
    unsafe fn spread<const NT: bool>(self, to: *mut u8, step: usize);
}

/// A place that gives 0.
const NOWHERE: u8 = 0x80;

/// For each of `K` results and each of `K` sources: where the bytes of a lane come from.
const fn places<const E: usize, const K: usize, const JOIN: bool>() -> [[[u8; 16]; K]; K] {
    let mut places = [[[NOWHERE; 16]; K]; K];
    let mut out = 0;
    while out < K {
        let mut byte = 0;
        while byte < 16 {
            let (source, place) = if JOIN {
                let (element, part) = ((out * 16 + byte) / E, byte % E);
                (element % K, element / K * E + part)
            } else {
                let at = (byte / E * K + out) * E + byte % E;
                (at / 16, at % 16)
            };
            places[out][source][byte] = place as u8;
            byte += 1;
        }
        out += 1;
    }
    places
}

/// What [`Registers::interleave`](super::vector::Registers::interleave) describes, for 2 to 4 channels; of others it does none.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn interleave<V: Pick, const E: usize, const JOIN: bool, const NT: bool>(
    from: *const u8,
    to: *mut u8,
    pitch: usize,
    channels: usize,
    count: usize,
) -> usize {
    // SAFETY: passed on.
    unsafe {
        match channels {
            2 if V::FAST => channels_of::<V, E, 2, JOIN, NT>(from, to, pitch, count),
            3 if V::FAST => channels_of::<V, E, 3, JOIN, NT>(from, to, pitch, count),
            4 if V::FAST => channels_of::<V, E, 4, JOIN, NT>(from, to, pitch, count),
            _ => 0,
        }
    }
}

/// Interleaves `K` channels: as many pixels as whole registers have.
///
/// # Safety
/// As for [`interleave`].
#[inline(always)]
unsafe fn channels_of<V: Pick, const E: usize, const K: usize, const JOIN: bool, const NT: bool>(
    from: *const u8,
    to: *mut u8,
    pitch: usize,
    count: usize,
) -> usize {
    let places = const { places::<E, K, JOIN>() };
    let mut done = 0;
    while done + V::BYTES / E <= count {
        let (row, pixels) = (done * E, done * E * K);
        // SAFETY: `V::BYTES` bytes of each row from `row`, and `K` times as many of the pixels from `pixels`, all of them within
        // `count` elements a row.
        unsafe {
            let read = |k: usize| {
                if JOIN { V::load(from.add(k * pitch + row)) } else { V::lanes(from.add(pixels + 16 * k), 16 * K) }
            };
            let mut sources = [read(0); K];
            // Loops by number: adapters of iterators would stay calls inside of the instruction set's function.
            let mut k = 1;
            while k < K {
                sources[k] = read(k);
                k += 1;
            }
            let mut out = 0;
            while out < K {
                let mut joined = sources[0].pick(&places[out][0]);
                k = 1;
                while k < K {
                    joined = joined.or(sources[k].pick(&places[out][k]));
                    k += 1;
                }
                if JOIN {
                    joined.spread::<NT>(to.add(pixels + 16 * out), 16 * K);
                } else {
                    put::<V, NT>(joined, to.add(out * pitch + row));
                }
                out += 1;
            }
        }
        done += V::BYTES / E;
    }
    done
}
