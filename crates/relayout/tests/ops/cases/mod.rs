//! The cases, by family of the table.

pub(crate) mod attention;
pub(crate) mod axes;
pub(crate) mod contributed;
pub(crate) mod elementwise;
pub(crate) mod internal;
pub(crate) mod products;
pub(crate) mod signals;
pub(crate) mod views;
pub(crate) mod windows;

use crate::case::Case;

/// All cases.
pub(crate) fn all() -> Vec<Case> {
    [
        attention::cases(),
        axes::cases(),
        contributed::cases(),
        elementwise::cases(),
        internal::cases(),
        products::cases(),
        signals::cases(),
        views::cases(),
        windows::cases(),
    ]
    .concat()
}
