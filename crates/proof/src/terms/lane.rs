//! A single place along some axes of a value.

use crate::terms::view::View;

/// A place on the axes of a term, and how the axes that are not followed read them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lane {
    pub(crate) term: u32,
    /// By axis of the term.
    pub(crate) at: Vec<i64>,
    pub(crate) rest: View,
}
