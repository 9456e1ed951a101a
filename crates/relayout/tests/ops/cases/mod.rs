//! The cases, by family of the table.

pub(crate) mod axes;
pub(crate) mod elementwise;
pub(crate) mod internal;
pub(crate) mod products;
pub(crate) mod views;
pub(crate) mod windows;

use crate::case::Case;

/// All cases.
pub(crate) fn all() -> Vec<Case> {
    [axes::cases(), elementwise::cases(), internal::cases(), products::cases(), views::cases(), windows::cases()]
        .concat()
}
