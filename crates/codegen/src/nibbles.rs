//! 4-bit elements, two in a byte, the first in the low half, as ONNX packs them.
//!
//! They are moved as bytes: spread, permuted, packed. Where the order does not change the bytes are copied as they are. An odd
//! number of elements leaves the high half of the last byte 0.

use crate::{Class, Error, Plan, permute};

/// Moves 4-bit elements from `src` to `dst`. The plan is one for the elements' shape with 1 byte an element; both buffers have
/// half as many bytes as there are elements, rounded up.
pub fn permute_nibbles(src: &[u8], dst: &mut [u8], plan: &Plan) -> Result<(), Error> {
    if plan.elem_bytes() != 1 {
        return Err(Error::NotANibblePlan { elem_bytes: plan.elem_bytes() });
    }
    let elems = plan.bytes();
    let want = elems.div_ceil(2);
    for (buffer, got) in [("source", src.len()), ("destination", dst.len())] {
        if got != want {
            return Err(Error::BufferLength { buffer, want, got });
        }
    }
    if matches!(plan.class(), Class::Nothing | Class::Copy) {
        dst.copy_from_slice(src);
        if let (1, Some(last)) = (elems % 2, dst.last_mut()) {
            *last &= 0xf;
        }
        return Ok(());
    }
    let mut spread: Vec<u8> = src.iter().flat_map(|byte| [byte & 0xf, byte >> 4]).collect();
    spread.truncate(elems);
    let mut moved = vec![0; elems];
    permute(&spread, &mut moved, plan)?;
    for (byte, pair) in dst.iter_mut().zip(moved.chunks(2)) {
        *byte = pair.iter().rev().fold(0, |byte, nibble| byte << 4 | nibble);
    }
    Ok(())
}
