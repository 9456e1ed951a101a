//! Moves and copies.

use super::case::{Case, Copy, Reorder, Side};
use super::specs::{COPIES, REORDERS};
use super::table::MeasuredCosts;
use crate::shared::tables::grid::{exp2, log2};

/// What a permutation is once axes of size 1 are gone and axes that stay together are one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Class {
    /// Nothing changes place.
    View,
    /// Two groups of axes change places, with single elements behind them: rows times columns.
    Moved { rows: f64, columns: f64 },
    /// Two groups of axes change places, with runs of bytes behind them.
    MovedRows { run: f64, runs: f64 },
    /// Some other permutation of runs of bytes.
    Rows { run: f64, runs: f64 },
    /// Some other permutation of elements.
    General,
}

impl MeasuredCosts {
    /// What a move to or from blocks costs within a network: batch, channels, rows and columns of the unblocked side.
    #[must_use]
    pub fn reorder_ns(&self, kind: Reorder, side: Side, image: [u64; 4]) -> u64 {
        self.within(self.reorder_alone(kind, side, image))
    }

    /// The same where nothing else runs.
    pub(super) fn reorder_alone(&self, kind: Reorder, side_of: Side, image: [u64; 4]) -> u64 {
        self.timed_or(|| Case::Reorder(kind, side_of, image), || self.reorder_by_grids(kind, side_of, image))
    }

    fn reorder_by_grids(&self, kind: Reorder, side_of: Side, [n, c, h, w]: [u64; 4]) -> u64 {
        let grid = REORDERS.iter().find(|(_, k, s)| (*k, *s) == (kind, side_of)).map_or("", |(name, ..)| name);
        // The place says how large the image is, whatever block it is moved to.
        let (blocks, pixels) = (c.div_ceil(self.machine().block) as f64, h as f64 * w as f64);
        let image = self.rate(grid, &[blocks, pixels.sqrt()]);
        // Images were measured one at a time. Those of a batch are as far away in memory as one of the size of all.
        let whole = (n as f64 * pixels).sqrt();
        let [_, side] = self.nearest(grid, [blocks, whole]);
        let beyond = (whole / side).max(1.0);
        let batch = self.rate(grid, &[blocks * beyond * beyond, side]);
        self.node(grid, image.max(batch) * Case::Reorder(kind, side_of, [n, c, h, w]).work(self.block()))
    }

    /// What a Transpose costs within a network. One that changes no place is copied all the same.
    #[must_use]
    pub fn transpose_ns(&self, shape: &[u64], perm: &[usize], element_bytes: u64) -> u64 {
        self.within(self.transpose_alone(shape, perm, element_bytes))
    }

    /// The same where nothing else runs.
    pub(in crate::ort_cpu) fn transpose_alone(&self, shape: &[u64], perm: &[usize], element_bytes: u64) -> u64 {
        self.timed_or(
            || Case::Transpose(shape.to_vec(), perm.to_vec(), element_bytes),
            || self.transpose_by_grids(shape, perm, element_bytes),
        )
    }

    fn transpose_by_grids(&self, shape: &[u64], perm: &[usize], element_bytes: u64) -> u64 {
        let elements = super::case::product(shape.iter().copied());
        let bytes = elements * element_bytes as f64;
        let width = element_bytes as f64;
        // Runs were measured at four bytes per element.
        match classify(shape, perm, element_bytes) {
            Class::View => self.copy_by_grids(Copy::Concat, bytes as u64, bytes as u64),
            Class::Moved { rows, columns } => self.at("transpose-moved", &[width, rows, columns], elements),
            Class::MovedRows { run, runs } => self.at("transpose-moved-rows", &[run, runs], bytes / 4.0),
            Class::Rows { run, runs } => self.at("transpose-rows", &[run, runs], bytes / 4.0),
            // The larger, the further apart is what is read in a row: the side of a cube stands for it.
            Class::General => self.at("transpose-general", &[width, exp2(log2(elements) / 3.0)], elements),
        }
    }

    /// What an op costs that copies `bytes` in contiguous runs of `run` bytes.
    #[must_use]
    pub fn copy_ns(&self, kind: Copy, bytes: u64, run: u64) -> u64 {
        self.timed_or(|| Case::Copy { kind, bytes, run }, || self.copy_by_grids(kind, bytes, run))
    }

    fn copy_by_grids(&self, kind: Copy, bytes: u64, run: u64) -> u64 {
        let grid = COPIES.iter().find(|(_, k)| *k == kind).map_or("", |(name, _)| name);
        self.at(grid, &[run as f64, bytes as f64], Case::Copy { kind, bytes, run }.work(1))
    }
}

/// The permutation of groups of axes of more than one element: sizes in the order of the operand, and their places in it.
fn merged(shape: &[u64], perm: &[usize]) -> (Vec<f64>, Vec<usize>) {
    let moving: Vec<usize> = perm.iter().copied().filter(|&axis| shape.get(axis).is_some_and(|&d| d != 1)).collect();
    // Ranks among the axes that are left, so that neighbours differ by 1.
    let rank = |axis: usize| moving.iter().filter(|&&other| other < axis).count();
    let ranks: Vec<usize> = moving.iter().map(|&axis| rank(axis)).collect();
    let mut groups: Vec<(usize, f64)> = Vec::new();
    let mut last = None;
    for (&axis, &rank) in moving.iter().zip(&ranks) {
        let size = shape.get(axis).copied().unwrap_or(1) as f64;
        match groups.last_mut() {
            Some((_, product)) if last.is_some_and(|last: usize| last + 1 == rank) => *product *= size,
            _ => groups.push((rank, size)),
        }
        last = Some(rank);
    }
    let order: Vec<usize> =
        groups.iter().map(|(rank, _)| groups.iter().filter(|(other, _)| other < rank).count()).collect();
    let mut sizes = vec![1.0; groups.len()];
    for (&place, (_, size)) in order.iter().zip(&groups) {
        if let Some(slot) = sizes.get_mut(place) {
            *slot = *size;
        }
    }
    (sizes, order)
}

fn classify(shape: &[u64], perm: &[usize], element_bytes: u64) -> Class {
    let (sizes, order) = merged(shape, perm);
    let size = |axis: usize| sizes.get(axis).copied().unwrap_or(1.0);
    let total: f64 = sizes.iter().product();
    let last = order.len().saturating_sub(1);
    let keeps_rows = order.last() == Some(&last);
    let run = if keeps_rows { size(last) * element_bytes as f64 } else { 1.0 };
    let runs = if keeps_rows { total / size(last).max(1.0) } else { total };
    // The runtime counts axes of size 1 when it looks whether two groups of axes change places.
    let all = merged(&vec![2; perm.len()], perm).1;
    let moved = matches!(all.as_slice(), [1, 0] | [0, 2, 1] | [1, 0, 2] | [0, 2, 1, 3]);
    match order.as_slice() {
        [] | [_] => Class::View,
        [1, 0] if moved => Class::Moved { rows: size(0), columns: size(1) },
        [0, 2, 1] if moved => Class::Moved { rows: size(1), columns: size(2) },
        [1, 0, 2] | [0, 2, 1, 3] if moved => Class::MovedRows { run, runs },
        _ if keeps_rows => Class::Rows { run, runs },
        _ => Class::General,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_are_told_apart_as_the_runtime_does() {
        let class = |shape: &[u64], perm: &[usize]| classify(shape, perm, 4);
        assert_eq!(class(&[1, 64, 56, 56], &[0, 2, 3, 1]), Class::Moved { rows: 64.0, columns: 3136.0 });
        assert_eq!(class(&[8, 56, 56, 64], &[0, 3, 1, 2]), Class::Moved { rows: 3136.0, columns: 64.0 });
        assert_eq!(class(&[1, 64, 1, 1], &[0, 2, 3, 1]), Class::View);
        assert_eq!(class(&[2, 3, 4], &[0, 1, 2]), Class::View);
        assert_eq!(class(&[8, 16, 4, 32], &[0, 2, 1, 3]), Class::MovedRows { run: 128.0, runs: 512.0 });
        assert_eq!(class(&[2, 3, 4, 5], &[2, 1, 0, 3]), Class::Rows { run: 20.0, runs: 24.0 });
        assert_eq!(class(&[1, 64, 112, 112], &[0, 3, 2, 1]), Class::General);
        assert_eq!(class(&[256, 1, 64], &[1, 2, 0]), Class::Moved { rows: 256.0, columns: 64.0 });
        assert_eq!(class(&[256, 1, 64], &[2, 1, 0]), Class::General);
        assert_eq!(class(&[8, 64, 1, 32], &[1, 2, 0, 3]), Class::MovedRows { run: 128.0, runs: 512.0 });
        assert_eq!(class(&[8, 1, 64, 32], &[2, 1, 0, 3]), Class::Rows { run: 128.0, runs: 512.0 });
    }
}
