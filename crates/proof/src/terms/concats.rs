//! What is kept of the Concats of the input.

use crate::terms::value::Value;
use rustc_hash::FxHashMap;

/// Concats of the input.
#[derive(Debug, Default)]
pub(crate) struct Concats {
    /// Those that were not looked at yet, and along which axes they are.
    pub(crate) new: Vec<(Value, usize)>,
    /// Places that were looked at.
    pub(crate) count: i64,
    /// By lanes in an order that does not depend on theirs: those Concats.
    pub(crate) known: FxHashMap<Vec<u32>, Vec<Known>>,
}

/// What a Concat of the input leaves.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) y: Value,
    pub(crate) axis: usize,
    /// By place: the number of the lane.
    pub(crate) lanes: Vec<u32>,
}
