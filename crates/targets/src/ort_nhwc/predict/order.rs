//! Orders of axes, as lists: axis `i` of a result is axis `perm[i]` of the operand.

pub(super) use relayout_ir::perm::{inverse, is_identity};

/// Extents in this order.
pub(super) fn apply(perm: &[usize], shape: &[u64]) -> Option<Vec<u64>> {
    perm.iter().map(|&axis| shape.get(axis).copied()).collect()
}

/// First one order, then the other.
pub(super) fn then(first: &[usize], second: &[usize]) -> Vec<usize> {
    second.iter().map(|&axis| first.get(axis).copied().unwrap_or(axis)).collect()
}

/// Channels last to channels first.
pub(super) fn to_first(rank: usize) -> Vec<usize> {
    (0..rank)
        .map(|i| {
            if i == 0 {
                0
            } else if i == 1 {
                rank - 1
            } else {
                i - 1
            }
        })
        .collect()
}

/// Channels first to channels last.
pub(super) fn to_last(rank: usize) -> Vec<usize> {
    inverse(&to_first(rank))
}

/// The order of the axes that are left when these go.
pub(super) fn without(axes: &[usize], perm: &[usize]) -> Vec<usize> {
    let kept = |axis: &usize| !axes.contains(axis);
    let place = |axis: usize| (0..axis).filter(kept).count();
    perm.iter().filter(|axis| kept(axis)).map(|&axis| place(axis)).collect()
}

/// The order when axes of one element are put in at these places.
pub(super) fn with(axes: &[usize], perm: &[usize]) -> Vec<usize> {
    let rank = perm.len() + axes.len();
    let places: Vec<usize> = (0..rank).filter(|axis| !axes.contains(axis)).collect();
    let mut old = perm.iter();
    let next = |i: usize| {
        if axes.contains(&i) { i } else { old.next().and_then(|&axis| places.get(axis)).copied().unwrap_or(i) }
    };
    (0..rank).map(next).collect()
}
