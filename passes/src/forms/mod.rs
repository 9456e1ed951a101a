//! Pieces of several nodes that have another form.

pub mod choose;
pub(crate) mod raise;

use crate::pipeline::Step;

/// The passes, in their order.
pub(crate) const PASSES: &[Step<'static>] = &[choose::PASS, raise::RAISE];
