//! The passes of relayout: from a verified graph to a verified graph. [`pipeline`] has them in their order; [`assign`] decides,
//! the others prepare the decision or carry it out.
//!
//! Absent: files, protobuf, clocks and threads. The same graph gives the same result.

pub mod assign;
pub mod canonicalize;
pub mod choose_forms;
pub mod cleanup;
pub mod ends;
pub mod fold_constants;
pub mod fold_copies;
pub mod fold_pads;
pub mod fold_scales;
pub mod fold_shapes;
pub mod fold_weights;
pub mod hints;
pub mod hoist;
pub mod join_moves;
pub mod legalize;
pub mod lift;
pub mod materialize;
pub mod pipeline;
pub mod raise_norms;
pub mod record;
pub mod reorder_weights;
pub mod rewrites;
pub mod route_channels;
pub mod solve;
pub mod trim_pools;
pub mod unsign_bytes;
mod views;
pub mod widen_halves;
