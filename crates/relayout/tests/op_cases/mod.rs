//! How a valid node of each op of the table is made: cases, by family of the table, each with operands, attributes and the versions of
//! the operator set in which it is spelled so; and wrong entries of the table, which tests must find.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod attention;
pub(crate) mod axes;
pub(crate) mod case;
pub(crate) mod contributed;
pub(crate) mod elementwise;
pub(crate) mod internal;
pub(crate) mod mistakes;
pub(crate) mod products;
pub(crate) mod signals;
pub(crate) mod views;
pub(crate) mod windows;

use case::Case;

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
