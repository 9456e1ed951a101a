//! Channel blocks: `NCHW` to and from `NCHW4c`, `NCHW16c`, `NCHW32c` and the like, padded where the channels do not fill the last block.
//!
//! The spatial axes count as one. Pad lanes are written as zeros by a pack and ignored by an unpack. Other orders of the plain side
//! (channels last) keep their innermost run and are permutations where nothing is padded; they have no form here.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which side has the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From `[batch, channels, spatial]` to `[batch, channels / block, spatial, block]`.
    Pack,
    /// From `[batch, channels / block, spatial, block]` to `[batch, channels, spatial]`.
    Unpack,
}

/// A move into channel blocks or out of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlockedPlan {
    /// Which way.
    pub direction: Direction,
    /// Images.
    pub batch: usize,
    /// Channels that exist.
    pub channels: usize,
    /// Pixels of an image: the product of the spatial extents.
    pub spatial: usize,
    /// Channels of a block, 2 to 64.
    pub block: usize,
    /// Bytes of an element: 1, 2, 4, 8 or 16.
    pub elem_bytes: usize,
}

impl fmt::Display for BlockedPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { direction, batch, channels, spatial, block, elem_bytes } = self;
        let verb = if *direction == Direction::Pack { "pack" } else { "unpack" };
        write!(f, "{verb} {batch}x{channels}x{spatial} by blocks of {block} channels, {elem_bytes} B an element")
    }
}
