//! Elements of 4 and of 2 bits, several in a byte, the first in the low bits, as ONNX packs them.
//!
//! Where as many of them stay together as fill bytes they move as the bytes that they are; else they are spread to bytes, permuted
//! and packed. Where the order does not change the bytes are copied. What is left of the last byte is 0.

use crate::{Class, Error, Plan, permute, plan};

/// Moves 4-bit elements from `src` to `dst`. The plan is one for the elements' shape with 1 byte an element; both buffers have
/// half as many bytes as there are elements, rounded up.
pub fn permute_nibbles(src: &[u8], dst: &mut [u8], plan: &Plan) -> Result<(), Error> {
    permute_packed(src, dst, plan, 2)
}

/// Moves 2-bit elements, four in a byte, from `src` to `dst` as [`permute_nibbles`] does 4-bit ones.
pub fn permute_crumbs(src: &[u8], dst: &mut [u8], plan: &Plan) -> Result<(), Error> {
    permute_packed(src, dst, plan, 4)
}

/// Moves elements of which a byte has so many.
fn permute_packed(src: &[u8], dst: &mut [u8], plan: &Plan, in_byte: usize) -> Result<(), Error> {
    if plan.elem_bytes() != 1 {
        return Err(Error::NotANibblePlan { elem_bytes: plan.elem_bytes() });
    }
    let elems = plan.bytes();
    let want = elems.div_ceil(in_byte);
    for (buffer, got) in [("source", src.len()), ("destination", dst.len())] {
        if got != want {
            return Err(Error::BufferLength { buffer, want, got });
        }
    }
    let bits = 8 / in_byte;
    let mask = 0xff_u8 >> (8 - bits);
    if matches!(plan.class(), Class::Nothing | Class::Copy) {
        dst.copy_from_slice(src);
        if let (left @ 1.., Some(last)) = (elems % in_byte, dst.last_mut()) {
            *last &= 0xff >> (8 - bits * left);
        }
        return Ok(());
    }
    if let Some(bytes) = in_bytes(plan, in_byte)? {
        return permute(src, dst, &bytes);
    }
    let mut spread: Vec<u8> =
        src.iter().flat_map(|byte| (0..in_byte).map(move |at| byte >> (at * bits) & mask)).collect();
    spread.truncate(elems);
    let mut moved = vec![0; elems];
    permute(&spread, &mut moved, plan)?;
    for (byte, parts) in dst.iter_mut().zip(moved.chunks(in_byte)) {
        *byte = parts.iter().rev().fold(0, |byte, part| byte << bits | part);
    }
    Ok(())
}

/// The plan of moving a byte at a time, if runs that fill bytes stay together.
fn in_bytes(whole: &Plan, in_byte: usize) -> Result<Option<Plan>, Error> {
    let (mut shape, mut perm) = (whole.extents().to_vec(), whole.perm().to_vec());
    perm.push(shape.len());
    shape.push(whole.unit_bytes());
    let inner = perm.iter().rev().zip((0..perm.len()).rev()).take_while(|&(&axis, place)| axis == place).count();
    let run = shape.iter().rev().take(inner).position(|extent| extent % in_byte == 0);
    let Some(even) = run.and_then(|back| shape.len().checked_sub(1 + back)) else { return Ok(None) };
    if let Some(extent) = shape.get_mut(even) {
        *extent /= in_byte;
    }
    plan(&shape, &perm, 1).map(Some)
}

#[cfg(test)]
mod tests {
    use super::in_bytes;
    use crate::plan;

    #[test]
    fn runs_of_an_even_number_move_in_pairs() {
        let cases: &[(&[usize], &[usize], Option<&str>)] = &[
            (&[3, 5, 6], &[1, 0, 2], Some("rows of 3 B, [3, 5, 3] by [1, 0, 2], units of 1 B, 45 B")),
            (&[3, 5, 8], &[1, 0, 2], Some("rows of 4 B, [3, 5] by [1, 0], units of 4 B, 60 B")),
            (&[3, 5, 7], &[1, 0, 2], None),
            (&[4, 6], &[1, 0], None),
        ];
        for (shape, perm, pairs) in cases {
            let whole = plan(shape, perm, 1).expect("a permutation");
            let text = in_bytes(&whole, 2).expect("a permutation").map(|plan| plan.to_string());
            assert_eq!(text.as_deref(), *pairs, "{shape:?} by {perm:?}");
        }
    }
}
