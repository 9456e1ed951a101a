//! The decision is written: layouts, moves and forms; then moves that are left are joined, hoisted, folded into constants, split.

pub mod cleanup;
pub mod fold_requantized;
mod fold_shuffles;
pub mod fold_weights;
pub mod hoist;
pub mod join_moves;
pub mod materialize;
pub mod raise_digits;
pub mod raise_operands;
pub mod reorder_weights;
pub mod share_constants;
mod skip_views;
mod spell_forms;
pub mod split_moves;
pub mod trim_pools;
pub(crate) mod write_forms;

use crate::state::Step;

/// The passes, in their order.
pub(crate) const PASSES: &[Step<'static>] = &[
    materialize::PASS,
    spell_forms::PASS,
    raise_operands::PASS,
    raise_digits::PASS,
    write_forms::PASS,
    reorder_weights::PASS,
    fold_shuffles::PASS,
    join_moves::PASS,
    skip_views::PASS,
    hoist::PASS,
    fold_weights::PASS,
    split_moves::PASS,
    fold_requantized::PASS,
    cleanup::PASS,
    trim_pools::PASS,
    share_constants::PASS,
];
