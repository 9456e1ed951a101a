//! The cases, by family of the table.

pub(crate) mod axes;
pub(crate) mod elementwise;
pub(crate) mod products;
pub(crate) mod views;
pub(crate) mod windows;
