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
        self.0.map(|point| polynomial(bytes, point))
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

/// Words of seven bytes in four lanes, each a polynomial in the fourth power of the point.
fn polynomial(bytes: &[u8], point: u64) -> u64 {
    let square = multiply(point, point);
    let step = multiply(square, square);
    let mut lanes = [0u64; LANES];
    let mut chunks = bytes.chunks_exact(WORD * LANES);
    for chunk in &mut chunks {
        for (lane, word) in lanes.iter_mut().zip(chunk.chunks_exact(WORD)) {
            let word = u64::from_le_bytes([word[0], word[1], word[2], word[3], word[4], word[5], word[6], 0]);
            *lane = folded(u128::from(*lane) * u128::from(step) + u128::from(word));
        }
    }
    let mut sum = 0;
    for lane in lanes {
        sum = reduce(u128::from(multiply(sum, point)) + u128::from(lane));
    }
    for byte in chunks.remainder() {
        sum = reduce(u128::from(multiply(sum, point)) + u128::from(*byte) + 1);
    }
    reduce(u128::from(multiply(sum, point)) + bytes.len() as u128)
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
