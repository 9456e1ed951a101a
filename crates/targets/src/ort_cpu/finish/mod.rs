//! What is written once layouts are: forms of several nodes, what the runtime's convolutions take in, and what keeps a file's decisions
//! when the runtime loads it.

mod frames_apart;
mod fuse;
mod guard_host;
mod guard_rest;
mod join_reshapes;
mod join_taps;
mod lower_moves;
mod lower_signals;
mod lower_volumes;
mod run_moves;
mod volume_moves;

pub(super) use volume_moves::can_move;

use super::Block;
use super::release::Release;
use crate::shared::split_parts;
use relayout_target_api::Pass;

/// The passes, in their order.
pub(super) fn passes(block: Block, release: Option<Release>, guarded: bool) -> Vec<Pass> {
    vec![
        lower_signals::pass(),
        join_taps::pass(),
        join_reshapes::pass(),
        fuse::pass(release),
        lower_volumes::pass(),
        split_parts::pass(&["lower_volumes"]),
        guard_host::pass(block, guarded),
        lower_moves::pass(),
        guard_rest::pass(block, guarded),
    ]
}
