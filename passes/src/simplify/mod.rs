//! What is known is evaluated, and what need not run goes.

mod anchor;
pub mod canonicalize;
mod dilations;
pub mod fold_constants;
pub mod fold_copies;
pub mod fold_pads;
pub mod fold_rounded;
pub mod fold_scales;
pub mod fold_shapes;
mod keep_rows;
mod narrow;
pub mod spell_operands;

use crate::state::Step;

/// The passes, in their order.
pub(crate) const PASSES: &[Step<'static>] = &[
    fold_shapes::PASS,
    canonicalize::PASS,
    fold_constants::PASS,
    fold_rounded::PASS,
    dilations::PASS,
    keep_rows::PASS,
    fold_copies::PASS,
    fold_scales::PASS,
    fold_pads::PASS,
    spell_operands::PASS,
];
