//! What a warp's access costs: turns of the shared memory's banks, sectors of global memory.
//!
//! Shared memory has 32 banks of 4 bytes. A warp whose threads access 4 bytes or less each is served at once; with 8 bytes it goes in
//! halves, with 16 in quarters. Within such a part every bank gives one word a turn, to as many threads as ask for that word. (CUDA C++
//! Programming Guide, shared memory of compute capability 5.x and later; that wide accesses go in parts is how the hardware is seen
//! to behave.) Global memory moves in sectors of 32 bytes.

/// Turns that the banks need for one access of `bytes` bytes by the threads of a warp, in order, at byte addresses `at`.
pub(super) fn bank_turns(at: impl Iterator<Item = usize>, bytes: usize) -> usize {
    let at: Vec<usize> = at.collect();
    let lanes = 32 / (bytes / 4).max(1);
    let turns = |part: &[usize]| {
        let mut words: Vec<usize> = part.iter().flat_map(|&at| at / 4..=(at + bytes - 1) / 4).collect();
        words.sort_unstable();
        words.dedup();
        let mut banks = [0_usize; 32];
        for word in words {
            banks[word % 32] += 1;
        }
        banks.into_iter().max().unwrap_or(0)
    };
    at.chunks(lanes).map(turns).sum()
}

#[cfg(test)]
mod tests {
    use super::bank_turns;

    #[test]
    fn banks_serve_one_word_each_a_turn() {
        assert_eq!(bank_turns((0..32).map(|lane| lane * 4), 4), 1);
        assert_eq!(bank_turns((0..32).map(|lane| lane * 8), 4), 2);
        assert_eq!(bank_turns((0..32).map(|lane| lane * 128), 4), 32);
        assert_eq!(bank_turns((0..32).map(|lane| lane * 132), 4), 1, "a padded row");
        assert_eq!(bank_turns((0..32).map(|_| 64), 4), 1, "one word for all");
        assert_eq!(bank_turns(0..32, 1), 1, "bytes of the same words");
        assert_eq!(bank_turns((0..32).map(|lane| lane * 16), 16), 4);
        assert_eq!(bank_turns((0..32).map(|lane| lane * 128), 16), 32);
    }
}
