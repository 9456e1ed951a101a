//! Extents of terms that do not fit.

use crate::terms::align::term_of;
use crate::terms::arg::{Arg, Term};
use crate::terms::fits::Misfit;
use crate::terms::state::Terms;
use crate::terms::value::Value;
use crate::terms::view;

impl Terms {
    /// Notes that an axis of a value should have another extent, if it has.
    pub(crate) fn misfit(&mut self, value: &Value, axis: usize, want: i64) {
        let Some(digits) = value.view.get(axis) else { return };
        let have = view::extent(digits);
        if have != want {
            let symbol = match (term_of(value), digits.as_slice()) {
                (Some(term), [digit]) if self.get(term).base.get(digit.axis as usize) == Some(&digit.extent) => {
                    self.symbol(term, digit.axis)
                }
                _ => None,
            };
            self.fits.last = Some(Misfit { symbol, place: value.rank() - axis, have, want });
        }
    }

    /// Notes that there should be another number of elements.
    pub(crate) fn miscount(&mut self, have: i64, want: i64) {
        self.fits.last = Some(Misfit { symbol: None, place: 0, have, want });
    }

    /// Notes that two extents of which one has to be the other differ. What is constant stays.
    pub(crate) fn mismatch(&mut self, (x, at): (&Value, usize), (y, other): (&Value, usize)) {
        let extent = |value: &Value, axis: usize| value.view.get(axis).map(|digits| view::extent(digits));
        let (Some(left), Some(right)) = (extent(x, at), extent(y, other)) else { return };
        if y.is_constant() {
            self.misfit(x, at, right);
        } else {
            self.misfit(y, other, left);
        }
    }

    /// The symbol of the input that an axis of a term is as it is.
    fn symbol(&self, term: u32, axis: u32) -> Option<String> {
        let (mut todo, mut steps) = (vec![(term, axis)], 0);
        while let Some((term, axis)) = todo.pop().filter(|_| steps < STEPS) {
            if let Some(symbol) = self.fits.symbols.get(&(term, axis)) {
                return Some(symbol.clone());
            }
            steps += 1;
            let made = self.get(term);
            let Some(common) = common(made, axis as usize) else { continue };
            for arg in made.args.iter().rev() {
                if let Arg::Term { term, reads, .. } = arg
                    && let Some(Some((inner, 1))) = reads.get(common)
                    && self.get(*term).base.get(*inner as usize) == made.over.get(common)
                {
                    todo.push((*term, *inner));
                }
            }
        }
        None
    }
}

/// Most terms that are looked at for a symbol.
const STEPS: usize = 1 << 12;

/// The common axis of the operands that an axis of a term is.
fn common(made: &Term, axis: usize) -> Option<usize> {
    if made.class.is_empty() {
        return (axis < made.over.len()).then_some(axis);
    }
    if made.base == made.over {
        return Some(axis);
    }
    made.alike().nth(axis)
}
