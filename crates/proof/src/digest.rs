//! Digests of constants: polynomials of their bytes over the field of 2^61 - 1 elements, at two points that are drawn when the
//! check starts. Who wrote a file cannot know the points. Two different constants of `n` bytes have the same digest with a
//! probability of at most (n / 2^63)^2.

use std::hash::{BuildHasher, RandomState};

const PRIME: u64 = (1 << 61) - 1;
const LANES: usize = 4;
/// Bytes of a word: less than a number of the field has.
const WORD: usize = 7;

/// The points at which digests are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Points([u64; 2]);

impl Points {
    /// Draws two points.
    pub(crate) fn draw() -> Points {
        let draw = |n: u64| RandomState::new().hash_one(n) % (PRIME - 2) + 2;
        Points([draw(1), draw(2)])
    }

    /// The digest of bytes.
    pub(crate) fn digest(self, bytes: &[u8]) -> [u64; 2] {
        polynomials(bytes, self.0)
    }
}

/// A number of less than 2^124 by the prime, below 2^63 + 2^61.
fn folded(n: u128) -> u64 {
    let once = u128::from(n as u64 & PRIME) + (n >> 61);
    (once as u64 & PRIME) + (once >> 61) as u64
}

fn reduce(n: u128) -> u64 {
    let folded = folded(n);
    if folded >= PRIME { folded - PRIME } else { folded }
}

fn multiply(a: u64, b: u64) -> u64 {
    reduce(u128::from(a) * u128::from(b))
}

/// The words of a chunk.
fn words(chunk: &[u8; WORD * LANES]) -> [u64; LANES] {
    let eight = |from: usize| chunk[from..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let least = (1 << (8 * WORD)) - 1;
    // The last word ends with the chunk.
    [eight(0) & least, eight(7) & least, eight(14) & least, eight(20) >> 8]
}

/// Words of seven bytes in four lanes, each a polynomial in the fourth power of a point.
fn polynomials(bytes: &[u8], points: [u64; 2]) -> [u64; 2] {
    let steps = points.map(|point| {
        let square = multiply(point, point);
        u128::from(multiply(square, square))
    });
    let mut lanes = [[0u64; LANES]; 2];
    let (chunks, rest) = bytes.as_chunks::<{ WORD * LANES }>();
    for chunk in chunks {
        let words = words(chunk);
        for (lanes, step) in lanes.iter_mut().zip(steps) {
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane = folded(u128::from(*lane) * step + u128::from(word));
            }
        }
    }
    let total = |lanes: [u64; LANES], point: u64| {
        let mut sum = 0;
        for lane in lanes {
            sum = reduce(u128::from(multiply(sum, point)) + u128::from(lane));
        }
        for byte in rest {
            sum = reduce(u128::from(multiply(sum, point)) + u128::from(*byte) + 1);
        }
        reduce(u128::from(multiply(sum, point)) + bytes.len() as u128)
    };
    [total(lanes[0], points[0]), total(lanes[1], points[1])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_changed_byte_changes_the_digest() {
        let points = Points::draw();
        let bytes: Vec<u8> = (0..101).collect();
        let digest = points.digest(&bytes);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 0x10;
            assert_ne!(points.digest(&other), digest, "byte {at}");
            other[at] ^= 0x10;
            other.swap(at, (at + 1) % bytes.len());
            assert_ne!(points.digest(&other), digest, "bytes {at} and the next one swapped");
        }
        assert_ne!(points.digest(&bytes[..100]), digest);
        assert_eq!(points.digest(&bytes), digest);
    }

    #[test]
    fn zeros_of_another_number_differ() {
        let points = Points::draw();
        let digests: Vec<_> = (0..40).map(|n| points.digest(&vec![0; n])).collect();
        for (at, digest) in digests.iter().enumerate() {
            assert!(!digests[at + 1..].contains(digest), "{at}");
        }
    }
}
