//! Functions of a few variables as dense tables, and the two things that elimination does with them.

use super::weight::Weight;

/// A weight for every joint state of the variables in `scope`, row-major, the last variable fastest.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) scope: Vec<usize>,
    pub(super) data: Vec<Weight>,
}

impl Table {
    /// The weight where each variable `v` of the scope is in state `states[v]`.
    pub(super) fn at(&self, states: &[u32], domains: &[usize]) -> Weight {
        let at = self.scope.iter().fold(0, |at, &var| at * domains[var] + states[var] as usize);
        self.data[at]
    }

    /// How far apart entries are that differ by one in the state of `var`; 0 if it is not in the scope.
    fn stride(&self, var: usize, domains: &[usize]) -> usize {
        match self.scope.iter().position(|&other| other == var) {
            Some(at) => self.scope[at + 1..].iter().map(|&later| domains[later]).product(),
            None => 0,
        }
    }
}

/// The union of two sorted lists.
pub(super) fn union(a: &[usize], b: &[usize]) -> Vec<usize> {
    let mut all = Vec::with_capacity(a.len() + b.len());
    all.extend_from_slice(a);
    all.extend(b.iter().filter(|var| a.binary_search(var).is_err()));
    all.sort_unstable();
    all
}

/// Entries of a table over `scope`, saturating.
pub(super) fn entries(scope: &[usize], domains: &[usize]) -> usize {
    scope.iter().fold(1, |size: usize, &var| size.saturating_mul(domains[var]))
}

/// The smallest sum of `tables` over the states of the variables outside `keep`, for each joint state of those in `keep`.
///
/// `keep` and every scope are sorted; `keep` may name variables that no table has.
pub(super) fn project(tables: &[&Table], keep: &[usize], domains: &[usize]) -> Table {
    let all = tables.iter().fold(Vec::new(), |all, table| union(&all, &table.scope));
    let rest: Vec<usize> = all.into_iter().filter(|var| keep.binary_search(var).is_err()).collect();
    let outer = Odometer::new(tables, keep, domains);
    let inner = Odometer::new(tables, &rest, domains);
    let mut data = Vec::with_capacity(entries(keep, domains));
    outer.each(&mut vec![0; tables.len()], |offsets| {
        let mut best = Weight::INFINITE;
        inner.each(&mut offsets.to_vec(), |offsets| {
            let sum = tables.iter().zip(offsets).fold(Weight::ZERO, |sum, (table, &at)| sum + table.data[at]);
            best = best.min(sum);
        });
        data.push(best);
    });
    Table { scope: keep.to_vec(), data }
}

/// Runs through the joint states of some variables, with the place of each in every table.
struct Odometer {
    extents: Vec<usize>,
    /// For each variable the stride in each table.
    strides: Vec<Vec<usize>>,
}

impl Odometer {
    fn new(tables: &[&Table], scope: &[usize], domains: &[usize]) -> Self {
        let strides = |&var: &usize| tables.iter().map(|table| table.stride(var, domains)).collect();
        Self { extents: scope.iter().map(|&var| domains[var]).collect(), strides: scope.iter().map(strides).collect() }
    }

    fn each(&self, offsets: &mut [usize], mut visit: impl FnMut(&[usize])) {
        let mut digits = vec![0; self.extents.len()];
        loop {
            visit(offsets);
            let mut place = self.extents.len();
            loop {
                let Some(next) = place.checked_sub(1) else { return };
                place = next;
                digits[place] += 1;
                let wrapped = digits[place] == self.extents[place];
                let steps = if wrapped { self.extents[place] - 1 } else { 1 };
                for (offset, stride) in offsets.iter_mut().zip(&self.strides[place]) {
                    *offset = if wrapped { *offset - steps * stride } else { *offset + stride };
                }
                if !wrapped {
                    break;
                }
                digits[place] = 0;
            }
        }
    }
}
