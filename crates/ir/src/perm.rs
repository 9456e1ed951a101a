//! Orders of axes: place `i` of the result holds axis `perm[i]` of the operand, as in ONNX's Transpose.

/// Whether each of the first axes is there once.
pub fn is_permutation(perm: &[usize]) -> bool {
    let mut seen = vec![false; perm.len()];
    perm.iter().all(|&axis| seen.get_mut(axis).is_some_and(|seen| !std::mem::replace(seen, true)))
}

/// Whether every axis stays.
pub fn is_identity(perm: &[usize]) -> bool {
    perm.iter().copied().eq(0..perm.len())
}

/// The order that undoes another.
pub fn inverse(perm: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..perm.len()).collect();
    order.sort_unstable_by_key(|&place| perm[place]);
    order
}

/// One order after another: what both Transposes leave together. `None` if they are not of one rank.
pub fn then(first: &[usize], second: &[usize]) -> Option<Vec<usize>> {
    let same = first.len() == second.len();
    second.iter().map(|&place| first.get(place).copied().filter(|_| same)).collect()
}

/// Where an axis of the operand is found in the result.
pub fn place(perm: &[usize], axis: usize) -> Option<usize> {
    perm.iter().position(|&p| p == axis)
}

/// A permutation of groups of axes that stay side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Axes of each group, in the operand's order.
    pub groups: Vec<Vec<usize>>,
    /// Place `i` of the result holds group `perm[i]`.
    pub perm: Vec<usize>,
}

/// A permutation with those axes as one that stay side by side. Only axes for which `counts` is true are looked at: axes of
/// extent 1 are in nobody's way.
pub fn merged(perm: &[usize], counts: impl Fn(usize) -> bool) -> Merged {
    let kept: Vec<usize> = perm.iter().copied().filter(|&axis| counts(axis)).collect();
    // Ranks among the axes that are left, so that neighbours differ by 1.
    let mut sorted = kept.clone();
    sorted.sort_unstable();
    let rank = |axis: usize| sorted.partition_point(|&other| other < axis);
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for axis in kept {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|&last| rank(last) + 1 == rank(axis)) => run.push(axis),
            _ => runs.push(vec![axis]),
        }
    }
    let mut groups = runs.clone();
    groups.sort_unstable();
    let perm = runs.iter().map(|run| groups.partition_point(|group| group < run)).collect();
    Merged { groups, perm }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_and_its_inverse_leave_every_axis() {
        for perm in [&[2, 0, 1][..], &[0], &[], &[3, 1, 0, 2]] {
            assert!(is_permutation(perm));
            assert!(then(perm, &inverse(perm)).is_some_and(|both| is_identity(&both)), "{perm:?}");
            assert!((0..perm.len()).all(|axis| place(perm, axis) == Some(inverse(perm)[axis])));
        }
        assert_eq!(then(&[1, 0], &[0]), None);
        for other in [&[0, 0][..], &[1], &[0, 2]] {
            assert!(!is_permutation(other));
        }
    }

    #[test]
    fn neighbours_that_stay_neighbours_are_one_group() {
        let all = |_| true;
        assert_eq!(
            merged(&[0, 2, 3, 1], all),
            Merged { groups: vec![vec![0], vec![1], vec![2, 3]], perm: vec![0, 2, 1] }
        );
        assert_eq!(merged(&[0, 1, 2], all), Merged { groups: vec![vec![0, 1, 2]], perm: vec![0] });
        let shape = [1, 4, 1, 5];
        let long = |axis: usize| shape[axis] != 1;
        assert_eq!(merged(&[0, 1, 3, 2], long), Merged { groups: vec![vec![1, 3]], perm: vec![0] });
        assert_eq!(merged(&[3, 2, 0, 1], long), Merged { groups: vec![vec![1], vec![3]], perm: vec![1, 0] });
    }
}
