//! Why there is no kernel.

use thiserror::Error;

use super::KernelClass;

/// Why a kernel was not generated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CudaError {
    /// Nothing is moved, so there is nothing to start.
    #[error("the tensor has no elements; leave the launch out")]
    Empty,
    /// A grid has at most 2^31 - 1 blocks, and an axis is counted in 32 bits.
    #[error("an axis or the grid needs {count} steps, more than 2^31 - 1; split the tensor along an outer axis")]
    TooLarge {
        /// Blocks, or elements of an axis.
        count: u128,
    },
    /// An alignment that is no power of two from 1 to 16.
    #[error("buffers aligned to {bytes} bytes; say 1, 2, 4, 8 or 16")]
    Alignment {
        /// What was asked for.
        bytes: usize,
    },
    /// A blocked layout whose figures contradict each other.
    #[error(
        "blocks of {block} channels of {elem_bytes} bytes: the block must be 2 to 64, the element 1, 2, 4, 8 or 16 bytes"
    )]
    Block {
        /// Channels of a block.
        block: usize,
        /// Bytes of an element.
        elem_bytes: usize,
    },
    /// A class was asked for that cannot carry out the movement.
    #[error("class {} cannot carry out this movement; leave the class open", class.as_str())]
    Class {
        /// What was asked for.
        class: KernelClass,
    },
    /// A variant that has no form of what was asked for.
    #[error("the scheme that is kept for comparison has no {what}; generate the variant `Ours`")]
    Variant {
        /// What it lacks.
        what: &'static str,
    },
}
