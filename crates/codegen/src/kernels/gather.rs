//! Rows one after the other, each from where a list says: safe Rust over the machine's own copy.

#![forbid(unsafe_code)]

use rayon::prelude::*;

use crate::Gather;

/// Fills `dst` from `src`, which both have the bytes of the gather, in pieces of `piece` rows on as many threads as there are, or
/// all at once where `piece` is `None`.
pub(super) fn run(gather: &Gather, src: &[u8], dst: &mut [u8], piece: Option<usize>) {
    let row = gather.row_bytes;
    match piece {
        None => rows(gather, src, dst, 0),
        Some(piece) => {
            let piece = piece.max(1);
            let pieces = dst.par_chunks_mut(piece * row).enumerate();
            pieces.for_each(|(number, dst)| rows(gather, src, dst, number * piece));
        }
    }
}

/// Fills the rows from `first` on, counted through all blocks.
fn rows(gather: &Gather, src: &[u8], dst: &mut [u8], first: usize) {
    let (row, count) = (gather.row_bytes, gather.index.len());
    let (mut block, mut at) = (first / count, first % count);
    let mut left = dst;
    while !left.is_empty() {
        let here = (count - at).min(left.len() / row);
        let (now, later) = left.split_at_mut(here * row);
        let source = &src[block * count * row..(block + 1) * count * row];
        for (to, &from) in now.chunks_exact_mut(row).zip(&gather.index[at..at + here]) {
            let from = from as usize * row;
            to.copy_from_slice(&source[from..from + row]);
        }
        (block, at, left) = (block + 1, 0, later);
    }
}
