//! 4-bit elements, two in a byte, the first in the low half, as ONNX packs them.
//!
//! Where an even number of them stays together they move in pairs, as the bytes that they are; else they are spread to bytes,
//! permuted and packed. Where the order does not change the bytes are copied. An odd number of elements leaves the high half of
//! the last byte 0.

use crate::{Class, Error, Plan, permute, plan};

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
    if let Some(pairs) = in_pairs(plan)? {
        return permute(src, dst, &pairs);
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

/// The plan of moving two at a time, if runs of an even number stay together.
fn in_pairs(whole: &Plan) -> Result<Option<Plan>, Error> {
    let (mut shape, mut perm) = (whole.extents().to_vec(), whole.perm().to_vec());
    perm.push(shape.len());
    shape.push(whole.unit_bytes());
    let inner = perm.iter().rev().zip((0..perm.len()).rev()).take_while(|&(&axis, place)| axis == place).count();
    let run = shape.iter().rev().take(inner).position(|extent| extent % 2 == 0);
    let Some(even) = run.and_then(|back| shape.len().checked_sub(1 + back)) else { return Ok(None) };
    if let Some(extent) = shape.get_mut(even) {
        *extent /= 2;
    }
    plan(&shape, &perm, 1).map(Some)
}

#[cfg(test)]
mod tests {
    use super::in_pairs;
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
            let text = in_pairs(&whole).expect("a permutation").map(|plan| plan.to_string());
            assert_eq!(text.as_deref(), *pairs, "{shape:?} by {perm:?}");
        }
    }
}
