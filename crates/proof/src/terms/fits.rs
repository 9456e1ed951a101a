//! Extents that do not fit: what the search for sizes goes by. Nothing is proved by them.

use super::align::term_of;
use super::value::Value;
use rustc_hash::FxHashMap;

/// What is known of extents that do not fit.
#[derive(Debug, Default)]
pub(crate) struct Fits {
    /// The symbol of an axis of the term of an input.
    pub(crate) symbols: FxHashMap<(u32, u32), String>,
    pub(crate) last: Option<Misfit>,
}

/// An extent that does not fit, and the one that would.
#[derive(Clone, Debug)]
pub(crate) struct Misfit {
    /// The symbol that it is, if it is that of an input as it is.
    pub(crate) symbol: Option<String>,
    /// The axis, counted from the last one; 0 for a number of elements.
    pub(crate) place: usize,
    pub(crate) have: i64,
    pub(crate) want: i64,
}

impl Fits {
    /// Whether no extent was seen that does not fit.
    pub(crate) fn is_well(&self) -> bool {
        self.last.is_none()
    }

    /// Notes the symbol of an axis of an input.
    pub(crate) fn named(&mut self, input: &Value, axis: usize, symbol: String) {
        let digit = input.view.get(axis).and_then(|digits| digits.first());
        if let (Some(term), Some(digit)) = (term_of(input), digit) {
            self.symbols.insert((term, digit.axis), symbol);
        }
    }
}
