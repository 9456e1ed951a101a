//! Choices of random models.

#![allow(dead_code, reason = "each test file uses its part")]

/// A stream of choices that ends in zeros.
pub(crate) struct Dice<'a> {
    left: &'a [u16],
}

impl<'a> Dice<'a> {
    pub(crate) fn of(choices: &'a [u16]) -> Dice<'a> {
        Dice { left: choices }
    }

    /// A number below `n`, which is at least 1.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let Some((&first, rest)) = self.left.split_first() else { return 0 };
        self.left = rest;
        usize::from(first) % n.max(1)
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// A permutation of `n` axes.
    pub(crate) fn permutation(&mut self, n: usize) -> Vec<usize> {
        let common: &[&[usize]] = match n {
            2 => &[&[1, 0]],
            3 => &[&[0, 2, 1], &[2, 0, 1], &[1, 0, 2]],
            4 => &[&[0, 2, 3, 1], &[0, 3, 1, 2], &[0, 1, 3, 2], &[0, 2, 1, 3]],
            _ => &[],
        };
        match self.below(4) {
            0 | 1 if !common.is_empty() => return self.pick(common).to_vec(),
            // Two axes exchanged.
            0..=2 if n > 1 => {
                let mut perm: Vec<usize> = (0..n).collect();
                let first = self.below(n);
                perm.swap(first, (first + 1 + self.below(n - 1)) % n);
                return perm;
            }
            _ => {}
        }
        let mut left: Vec<usize> = (0..n).collect();
        (0..n).map(|_| left.remove(self.below(left.len()))).collect()
    }
}
