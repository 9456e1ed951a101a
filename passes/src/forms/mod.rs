//! Pieces of several nodes that have another form.

pub mod choose;
pub(crate) mod raise;
