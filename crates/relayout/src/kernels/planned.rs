//! What a move is for the kernels: a permutation, or channels into blocks and out of them.

use relayout_codegen::cuda::{BlockedPlan, Direction};
use relayout_codegen::{Plan, plan};
use relayout_ir::dim::{Dim, element_count};
use relayout_ir::dtype::DType;
use relayout_ir::layout::{Factor, Layout};

/// A planned move.
pub(super) enum Planned {
    Permuted(Plan),
    Blocked(BlockedPlan),
}

/// Bytes of an element, or why there are none.
pub(super) fn elem_bytes(dtype: Option<DType>) -> Result<usize, String> {
    let Some(dtype) = dtype else { return Err("its element type is not known".to_owned()) };
    match dtype.bits() {
        None => Err("strings have no fixed size".to_owned()),
        Some(bits) if bits % 8 != 0 => {
            Err(format!("elements of {bits} bits share bytes, and a kernel moves whole ones"))
        }
        Some(bits) => Ok(bits as usize / 8),
    }
}

/// The movement from one layout to another of a tensor of these sizes, or why none of the kernels is for it.
pub(super) fn planned(from: &Layout, to: &Layout, sizes: &[u64], elem: usize) -> Result<Planned, String> {
    let too_large = || format!("{sizes:?} elements of {elem} bytes are more than a tensor has");
    if let Some(blocked) = blocked(from, to, sizes, elem) {
        return Ok(Planned::Blocked(blocked));
    }
    let shape: Vec<Dim> =
        sizes.iter().map(|&n| i64::try_from(n).map(Dim::from)).collect::<Result<_, _>>().map_err(|_| too_large())?;
    let refined = from.common_refinement(to, &shape).map_err(|refusal| refusal.to_string())?;
    let elems = element_count(sizes.iter().copied()).ok_or_else(too_large)?;
    let number = |dim: &Dim| dim.as_const().and_then(|n| usize::try_from(n).ok()).ok_or_else(too_large);
    let padded =
        [&refined.left_elems, &refined.right_elems].iter().any(|side| number(side).map(|n| n as u64) != Ok(elems));
    if padded {
        return Err(format!("{from} to {to} pads or unpads these sizes at a place that no kernel is for"));
    }
    let mut digits = Vec::with_capacity(refined.digits.len());
    for digit in &refined.digits {
        digits.push((number(&digit.left_stride)?, number(&digit.right_stride)?, number(&digit.extent)?));
    }
    if elems == 0 {
        digits = vec![(1, 1, 0)];
    }
    digits.sort_by_key(|&(left, ..)| std::cmp::Reverse(left));
    let extents: Vec<usize> = digits.iter().map(|&(.., extent)| extent).collect();
    let mut perm: Vec<usize> = (0..digits.len()).collect();
    perm.sort_by_key(|&at| std::cmp::Reverse(digits[at].1));
    plan(&extents, &perm, elem).map(Planned::Permuted).map_err(|error| error.to_string())
}

/// The plan of packing channels into blocks that they need not fill, or of unpacking them, if that is the move. Channels that lie
/// innermost and are padded are one block.
fn blocked(from: &Layout, to: &Layout, sizes: &[u64], elem_bytes: usize) -> Option<BlockedPlan> {
    if let Some((direction, axis, block)) = lengthened(from, to, sizes) {
        let channels = usize::try_from(*sizes.get(axis)?).ok()?;
        let others = sizes.iter().enumerate().filter(|&(at, _)| at != axis);
        let batch = usize::try_from(element_count(others.map(|(_, &n)| n))?).ok()?;
        return Some(BlockedPlan {
            direction,
            batch,
            channels,
            spatial: 1,
            block: usize::try_from(block).ok()?,
            elem_bytes,
        });
    }
    let (direction, other) = if from.is_row_major() {
        (Direction::Pack, to)
    } else if to.is_row_major() {
        (Direction::Unpack, from)
    } else {
        return None;
    };
    let (axis, block) = blocks(other, sizes.len()).or_else(|| one_block(other, sizes))?;
    let product = |sizes: &[u64]| usize::try_from(element_count(sizes.iter().copied())?).ok();
    Some(BlockedPlan {
        direction,
        batch: product(sizes.get(..axis)?)?,
        channels: product(sizes.get(axis..=axis)?)?,
        spatial: product(sizes.get(axis + 1..)?)?,
        block: usize::try_from(block).ok()?,
        elem_bytes,
    })
}

/// The axis that a layout has in blocks innermost, all else in order, and the size of a block.
fn blocks(layout: &Layout, rank: usize) -> Option<(usize, u64)> {
    let (inner, outer) = layout.factors().split_last()?;
    let (axis, block) = (usize::from(inner.axis), inner.modulo.filter(|_| inner.div == 1)?);
    let whole = |(at, factor): (usize, &Factor)| {
        let div = if at == axis { block } else { 1 };
        u8::try_from(at).ok() == Some(factor.axis) && factor.modulo.is_none() && factor.div == div
    };
    let plain = outer.len() == rank && outer.iter().enumerate().all(whole);
    (plain && (0..rank).all(|axis| layout.slot_map(axis).is_none())).then_some((axis, block))
}

/// The innermost axis of two layouts that differ only in the pad slots that one of them has behind it, and its slots.
fn lengthened(from: &Layout, to: &Layout, sizes: &[u64]) -> Option<(Direction, usize, u64)> {
    let axis = usize::from(from.factors().last()?.axis);
    let plain = |layout: &Layout| (0..sizes.len()).all(|at| layout.slot_map(at).is_none());
    let (direction, padded) = match (plain(from), plain(to)) {
        (true, false) => (Direction::Pack, to),
        (false, true) => (Direction::Unpack, from),
        _ => return None,
    };
    let [segment] = padded.slot_map(axis)? else { return None };
    let rest = (0..sizes.len()).filter(|&at| at != axis).all(|at| padded.slot_map(at).is_none());
    let whole = from.factors() == to.factors() && from.factors().iter().all(Factor::is_whole);
    (rest && whole && sizes.get(axis) == Some(&segment.len)).then_some((direction, axis, segment.slots))
}

/// The axis that a layout has innermost with pad slots behind it, all else in order, and its slots.
fn one_block(layout: &Layout, sizes: &[u64]) -> Option<(usize, u64)> {
    let (inner, outer) = layout.factors().split_last()?;
    let axis = usize::from(inner.axis);
    let rest = (0..sizes.len()).filter(|&at| at != axis);
    let in_order = outer.iter().map(|f| usize::from(f.axis)).eq(rest.clone());
    let [segment] = layout.slot_map(axis)? else { return None };
    let whole = layout.factors().iter().all(Factor::is_whole) && rest.clone().all(|at| layout.slot_map(at).is_none());
    (in_order && whole && sizes.get(axis) == Some(&segment.len)).then_some((axis, segment.slots))
}
