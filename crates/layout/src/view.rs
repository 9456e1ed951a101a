//! Views: what Transpose and Reshape make of a layout without moving an element.

use super::blocks::{self, Block, Spelling};
use super::chain;
use super::{Factor, Layout, LayoutError, Refusal, Spelled, check_permutation};
use crate::dim::Dim;

impl Layout {
    /// The layout of `y = Transpose(x, perm)`, where `y`'s axis `i` is `x`'s axis `perm[i]`. Always free.
    pub fn transpose(&self, perm: &[usize]) -> Result<Layout, LayoutError> {
        if perm.len() != self.rank() {
            return Err(LayoutError::PermutationLength { found: perm.len(), rank: self.rank() });
        }
        check_permutation(perm)?;
        let mut renamed = vec![0u8; perm.len()];
        for (new, old) in perm.iter().enumerate() {
            renamed[*old] = new as u8;
        }
        let factors = self.factors().iter().map(|f| Factor { axis: renamed[usize::from(f.axis)], ..*f }).collect();
        let mut slots: Vec<_> =
            self.spelled.slots.iter().map(|(axis, map)| (renamed[usize::from(*axis)], map.clone())).collect();
        slots.sort_by_key(|(axis, _)| *axis);
        Ok(Spelled { rank: self.spelled.rank, factors, slots }.into())
    }

    /// The layout of `y = Reshape(x)` for `x` of shape `from` and `y` of shape `to`, if the elements can stay where
    /// they are. Axes split and merge along the boundaries of digits; digits that lie together become one; size-1 axes
    /// come and go. Pad slots stay legal where each cut lies between digits or segments, or only the outermost digit is
    /// padded. A symbolic extent is carried or merged; it is split only at the factors of a product (`B*S` into `B`
    /// and `S`).
    pub fn reshape(&self, from: &[Dim], to: &[Dim]) -> Result<Layout, Refusal> {
        if from.len() != self.rank() {
            return Err(LayoutError::RankMismatch { layout: self.rank(), shape: from.len() }.into());
        }
        if from == to {
            return Ok(self.clone());
        }
        let is_empty = |shape: &[Dim]| shape.contains(&Dim::ZERO);
        if is_empty(from) || is_empty(to) {
            for (axis, extent) in to.iter().enumerate() {
                if let Some(extent) = extent.as_const().filter(|extent| *extent < 0) {
                    return Err(LayoutError::NegativeExtent { axis, extent }.into());
                }
            }
            // There is no element to move.
            let same = is_empty(from) && is_empty(to);
            return if same { Ok(Layout::row_major(to.len())) } else { Err(element_count(from, to)) };
        }
        let mut source = blocks::spell(self, from)?;
        let mut result: Spelling = vec![Vec::new(); to.len()];
        let mut carry: Vec<Block> = Vec::new();
        for group in groups(from, to)? {
            let mut parts = std::mem::take(&mut carry);
            for axis in group.from {
                parts.append(&mut source[axis]);
            }
            if let (true, Some(one)) = (parts.iter().all(|block| block.valid.is_one()), group.to.clone().next()) {
                result[one] = parts; // a size-1 axis takes the padding of size-1 axes
                continue;
            }
            let axes: Vec<(usize, Dim)> =
                group.to.filter(|axis| !to[*axis].is_one()).map(|axis| (axis, to[axis].clone())).collect();
            let left = blocks::distribute(chain::merge(parts)?, &axes, &mut result)?;
            // Padding of size-1 axes: it goes with the axis that it stands before.
            match axes.first() {
                Some((first, _)) => {
                    result[*first].splice(0..0, left);
                }
                None => carry = left,
            }
        }
        if !carry.is_empty() {
            result.last_mut().ok_or(Refusal::PaddedScalar)?.extend(carry);
        }
        blocks::assemble(result, to)
    }
}

struct Group {
    from: std::ops::Range<usize>,
    to: std::ops::Range<usize>,
}

/// Pairs the smallest runs of axes whose extents multiply to the same number.
fn groups(from: &[Dim], to: &[Dim]) -> Result<Vec<Group>, Refusal> {
    let mut groups = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < from.len() || j < to.len() {
        let (m, n) = smallest_match(&from[i..], &to[j..]).ok_or_else(|| {
            let constant = from.iter().chain(to).all(Dim::is_const);
            let (rest, wanted) = (&from[i..], &to[j..]);
            if constant { element_count(from, to) } else { Refusal::Unmatched { from: text(rest), to: text(wanted) } }
        })?;
        groups.push(Group { from: i..i + m, to: j..j + n });
        (i, j) = (i + m, j + n);
    }
    Ok(groups)
}

/// Lengths of the shortest prefixes with equal products, at least one of them not empty.
fn smallest_match(from: &[Dim], to: &[Dim]) -> Option<(usize, usize)> {
    // A size-1 axis stands alone, so that it takes its padding to the next group.
    if from.first().is_some_and(Dim::is_one) {
        return Some((1, 0));
    }
    if to.first().is_some_and(Dim::is_one) {
        return Some((0, 1));
    }
    let left = prefix_products(from);
    let right = prefix_products(to);
    let (mut best, mut found) = (usize::MAX, None);
    for (m, product) in left.iter().enumerate() {
        if let Some(n) = right.iter().position(|other| other == product).filter(|n| m + n < best) {
            best = m + n;
            found = Some((m + 1, n + 1));
        }
    }
    found
}

/// Products of the first 1, 2, .. extents, up to one that overflows.
fn prefix_products(dims: &[Dim]) -> Vec<Dim> {
    let next = |acc: &mut Dim, dim: &Dim| {
        *acc = acc.checked_mul(dim)?;
        Some(acc.clone())
    };
    dims.iter().scan(Dim::ONE, next).collect()
}

fn text(shape: &[Dim]) -> String {
    shape.iter().map(Dim::to_string).collect::<Vec<_>>().join(", ")
}

fn element_count(from: &[Dim], to: &[Dim]) -> Refusal {
    Refusal::ElementCount { from: text(from), to: text(to) }
}
