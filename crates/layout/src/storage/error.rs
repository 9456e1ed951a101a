//! Why a storage view cannot be taken.

use crate::Refusal;

/// Why a view cannot be taken of a storage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// The layout is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// An axis that the view does not have.
    #[error("axis {axis} does not exist in a view of rank {rank}")]
    AxisOutOfRange {
        /// The axis named.
        axis: usize,
        /// Axes that there are.
        rank: usize,
    },
    /// Indices outside of the axis.
    #[error("indices {start}..{end} are outside of axis {axis} with {extent} elements")]
    OutOfRange {
        /// The axis.
        axis: usize,
        /// First index.
        start: i64,
        /// Index past the last one.
        end: i64,
        /// Extent of the axis.
        extent: i64,
    },
    /// Elements outside of the storage.
    #[error("elements {first} to {last} of a storage of {elems}; give it their room, or a smaller view")]
    OutOfStorage {
        /// The first element.
        first: i64,
        /// The last one.
        last: i64,
        /// Elements of the storage.
        elems: u64,
    },
    /// A range that begins or ends within a block.
    #[error("indices {start}..{end} of axis {axis} begin or end within a block of {block}; take whole blocks or copy")]
    CutsBlock {
        /// The axis.
        axis: usize,
        /// First index.
        start: i64,
        /// Index past the last one.
        end: i64,
        /// Elements of the block.
        block: i64,
    },
    /// A step that is no multiple of the block.
    #[error("a step of {step} on axis {axis} does not fit its blocks of {block}; copy first")]
    StepCutsBlock {
        /// The axis.
        axis: usize,
        /// The step.
        step: i64,
        /// Elements of the block.
        block: i64,
    },
    /// A step of zero.
    #[error("a slice of axis {axis} has the step 0")]
    ZeroStep {
        /// The axis.
        axis: usize,
    },
    /// An axis that is repeated must have one element.
    #[error("axis {axis} has {extent} elements and cannot be expanded to {to}")]
    NotExpandable {
        /// Axis of the result.
        axis: usize,
        /// Elements that it has.
        extent: i64,
        /// Elements asked for.
        to: i64,
    },
    /// Parts that do not add up to the axis.
    #[error("parts of {sum} elements do not make up axis {axis} with {extent}")]
    SplitSizes {
        /// The axis.
        axis: usize,
        /// Sum of the parts.
        sum: i64,
        /// Extent of the axis.
        extent: i64,
    },
}
