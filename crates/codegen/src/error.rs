//! What can be wrong with a request.

use relayout_layout::storage::ViewError;
use thiserror::Error;

/// Why a permutation was not planned or not run; nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// `perm` must name each axis of the shape exactly once.
    #[error("{perm:?} is not a permutation of the {rank} axes of the shape; name each of 0..{rank} once")]
    NotAPermutation {
        /// What was given.
        perm: Vec<usize>,
        /// The number of axes.
        rank: usize,
    },
    /// Elements of no bytes.
    #[error("an element has 0 bytes; 4-bit elements are planned with 1 and run by `permute_nibbles`")]
    NoElementBytes,
    /// The tensor could not be in memory.
    #[error("{unit_bytes} bytes times {shape:?} do not fit the address space")]
    TooLarge {
        /// Its shape, in units.
        shape: Vec<usize>,
        /// Bytes of a unit.
        unit_bytes: usize,
    },
    /// Digits that do not spell an axis.
    #[error(
        "axis {axis} of the {side}: its digits must be a mixed radix from stride 1 on, and have a slot for each index"
    )]
    NotAnOrder {
        /// `source` or `destination`.
        side: &'static str,
        /// The axis.
        axis: usize,
    },
    /// An order with more slots than memory.
    #[error("the {side} does not fit the address space")]
    OrderTooLarge {
        /// `source` or `destination`.
        side: &'static str,
    },
    /// Two orders with little in common.
    #[error("the move has {parts} parts that no strides describe; go by way of an order whose blocks divide both")]
    Scattered {
        /// How many, at least about.
        parts: usize,
    },
    /// A serialized plan whose parts contradict each other.
    #[error("{bytes} bytes in units of {unit_bytes} do not agree with the rest of the serialized plan; plan it anew")]
    NotAPlan {
        /// Bytes that it says it moves.
        bytes: usize,
        /// Bytes that it says a unit has.
        unit_bytes: usize,
    },
    /// A buffer that is not the size of the tensor.
    #[error("the {buffer} has {got} bytes, the plan moves {want}")]
    BufferLength {
        /// `source` or `destination`.
        buffer: &'static str,
        /// Bytes that the plan needs.
        want: usize,
        /// Bytes given.
        got: usize,
    },
    /// A view that cannot be taken without a copy, or not at all.
    #[error(transparent)]
    View(#[from] ViewError),
    /// Two views of different shapes.
    #[error("a view of shape {from:?} can't be copied to one of shape {to:?}; reshape one of them")]
    Shapes {
        /// Shape of the source.
        from: Vec<i64>,
        /// Shape of the destination.
        to: Vec<i64>,
    },
    /// A destination in which one place stands for several elements.
    #[error("the destination repeats elements, as an expanded axis does; write to the view before it was expanded")]
    Repeats,
    /// Elements that change places within their own storage.
    #[error("source and destination are the same storage; go by way of another buffer")]
    SameStorage,
    /// A plan for whole bytes where nibbles are moved.
    #[error("the plan is for elements of {elem_bytes} bytes; plan 4-bit elements with 1")]
    NotANibblePlan {
        /// Bytes of an element in the plan.
        elem_bytes: usize,
    },
}
