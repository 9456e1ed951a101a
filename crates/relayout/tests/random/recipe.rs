//! What a random model is made from. Numbers shrink towards 0, which every choice reads as its simplest option.

use proptest::prelude::*;

/// Opsets at which the form of some op changes, and both ends.
const OPSETS: &[i64] = &[13, 9, 10, 11, 12, 14, 15, 17, 18, 19, 20, 21];

/// A random model.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    /// Operator set.
    pub(crate) opset: i64,
    /// IR version 3, where initializers are inputs too; only below opset 10.
    pub(crate) old_ir: bool,
    /// Symbolic dims of the first input: which axis (0 is drawn most), and its extent in the run. None: all are numbers.
    pub(crate) symbols: Vec<(u16, i64)>,
    /// Shapes of the inputs.
    pub(crate) inputs: Vec<Vec<i64>>,
    /// How the graph grows.
    pub(crate) steps: Vec<Step>,
    /// Which values become outputs beside those that nobody reads.
    pub(crate) outputs: Vec<u16>,
}

/// One op or a few.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Which family.
    pub(crate) kind: u16,
    /// Its choices, in the order in which they are made.
    pub(crate) choices: Vec<u16>,
}

/// A stream of choices that ends in zeros.
pub(crate) struct Dice<'a> {
    left: &'a [u16],
}

impl<'a> Dice<'a> {
    pub(crate) fn of(step: &'a Step) -> Dice<'a> {
        Dice { left: &step.choices }
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
        let choice = self.below(common.len() + 2);
        if let Some(perm) = common.get(choice) {
            return perm.to_vec();
        }
        let mut left: Vec<usize> = (0..n).collect();
        (0..n).map(|_| left.remove(self.below(left.len()))).collect()
    }
}

fn extent() -> impl Strategy<Value = i64> {
    prop_oneof![3 => Just(2i64), 3 => Just(3), 2 => Just(1), 2 => Just(4), 1 => Just(5), 1 => Just(7)]
}

fn shape() -> impl Strategy<Value = Vec<i64>> {
    prop_oneof![
        5 => prop::collection::vec(extent(), 4),
        2 => prop::collection::vec(extent(), 3),
        1 => prop::collection::vec(extent(), 2),
        1 => prop::collection::vec(extent(), 5),
        1 => prop::collection::vec(extent(), 1),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    (any::<u16>(), prop::collection::vec(any::<u16>(), 0..14)).prop_map(|(kind, choices)| Step { kind, choices })
}

/// Random models of 3 to 25 steps.
pub(crate) fn recipes() -> impl Strategy<Value = Recipe> {
    (
        prop::sample::select(OPSETS),
        any::<bool>(),
        prop_oneof![
            2 => Just(vec![]),
            2 => prop::collection::vec((Just(0u16), 1i64..4), 1),
            2 => prop::collection::vec((any::<u16>(), 1i64..6), 1..4),
        ],
        prop::collection::vec(shape(), 1..3),
        prop::collection::vec(step(), 3..25),
        prop::collection::vec(any::<u16>(), 0..3),
    )
        .prop_map(|(opset, old, symbols, inputs, steps, outputs)| Recipe {
            opset,
            old_ir: old && opset < 10,
            symbols,
            inputs,
            steps,
            outputs,
        })
}
