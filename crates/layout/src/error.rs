//! What can be wrong with a layout, and why a view of one is refused.

use super::Layout;

/// A layout that cannot exist, or does not fit the shape it is bound to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// More axes than a layout can have.
    #[error("a layout has at most 255 axes, not {rank}")]
    RankTooLarge {
        /// Axes asked for.
        rank: usize,
    },
    /// An axis that the layout does not have.
    #[error("axis {axis} does not exist in a layout of rank {rank}")]
    AxisOutOfRange {
        /// The axis named.
        axis: usize,
        /// Axes that there are.
        rank: usize,
    },
    /// A permutation names an axis twice.
    #[error("axis {axis} is named twice; a permutation names each axis once")]
    RepeatedAxis {
        /// The axis.
        axis: usize,
    },
    /// A permutation of another length.
    #[error("a permutation of {found} axes does not fit a layout of rank {rank}")]
    PermutationLength {
        /// Length given.
        found: usize,
        /// Axes of the layout.
        rank: usize,
    },
    /// Digits of an axis overlap or leave a gap.
    #[error("the digits of axis {axis} do not spell it: after {slots} slots a digit with divisor {found} follows")]
    Digits {
        /// The axis.
        axis: u8,
        /// Slots that the inner digits span.
        slots: u64,
        /// Divisor of the next digit; it should be `slots`.
        found: u64,
    },
    /// No digit of the axis is without a modulus.
    #[error("axis {axis} has no outermost digit: exactly one of its factors must have no `%`")]
    NoOutermostDigit {
        /// The axis.
        axis: u8,
    },
    /// A digit of extent 0 or 1.
    #[error("a digit of axis {axis} has a modulus below 2; leave it out")]
    EmptyDigit {
        /// The axis.
        axis: u8,
    },
    /// The blocks of an axis multiply to more than any tensor has.
    #[error("the blocks of axis {axis} multiply to more than 2^59 slots")]
    BlockTooLarge {
        /// The axis.
        axis: u8,
    },
    /// A slot map that is no slot map.
    #[error("the slot map of axis {axis} {why}")]
    SlotMap {
        /// The axis.
        axis: u8,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A shape of another rank.
    #[error("a layout of rank {layout} does not fit a shape of rank {shape}")]
    RankMismatch {
        /// Axes of the layout.
        layout: usize,
        /// Axes of the shape.
        shape: usize,
    },
    /// A negative extent.
    #[error("axis {axis} has the extent {extent}; an extent is not negative")]
    NegativeExtent {
        /// The axis.
        axis: usize,
        /// Its extent.
        extent: i64,
    },
    /// A slot map that covers another number of indices than the axis has.
    #[error("the slot map of axis {axis} covers {mapped} indices, but the axis has {extent}")]
    SlotMapExtent {
        /// The axis.
        axis: usize,
        /// Indices that the map covers.
        mapped: u64,
        /// Extent of the axis.
        extent: i64,
    },
    /// The tensor would be larger than 2^59 elements.
    #[error("a tensor of this shape and layout has more than 2^59 elements")]
    TooLarge,
    /// A bit width that no element has.
    #[error("elements of {bits} bits: the width must be between 1 and 128")]
    ElementBits {
        /// The width given.
        bits: u32,
    },
    /// A stride that is no whole number of bytes.
    #[error("a stride of {stride_bits} bits is not a whole number of bytes; ask for strides in bits")]
    SubByteStride {
        /// The stride.
        stride_bits: u64,
    },
    /// Text that is no layout.
    #[error("layout `{text}`: {why}")]
    Parse {
        /// The text.
        text: String,
        /// What is wrong, and what would be right.
        why: String,
    },
}

/// Why a view cannot be spelled without moving data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The layout itself does not fit.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The two shapes have different numbers of elements.
    #[error("a reshape from [{from}] to [{to}] changes the number of elements")]
    ElementCount {
        /// Shape before.
        from: String,
        /// Shape after.
        to: String,
    },
    /// Symbolic extents whose products cannot be shown equal.
    #[error(
        "cannot show that [{from}] and [{to}] have the same number of elements; give the symbols values, or write the result as products of them"
    )]
    Unmatched {
        /// Axes before.
        from: String,
        /// Axes after.
        to: String,
    },
    /// An axis of the result would begin in the middle of a stored digit.
    #[error(
        "axis {axis} of the result needs a boundary every {need} elements, and the stored digit of {digit} has none"
    )]
    CutsDigit {
        /// Axis of the result.
        axis: usize,
        /// Elements left to the boundary.
        need: String,
        /// Extent of the digit.
        digit: String,
    },
    /// An axis of the result would begin in the middle of a padded digit.
    #[error(
        "axis {axis} of the result needs a boundary every {need} elements, but {valid} elements are stored in {slots} slots; only the outermost digit may be padded"
    )]
    CutsPadding {
        /// Axis of the result.
        axis: usize,
        /// Elements left to the boundary.
        need: String,
        /// Elements that the digit holds.
        valid: String,
        /// Slots that it has.
        slots: String,
    },
    /// Unequal segments can only be kept whole.
    #[error("axis {axis} of the result would cut a slot map with unequal segments")]
    CutsSegments {
        /// Axis of the result.
        axis: usize,
    },
    /// A digit inside of another would have a symbolic extent.
    #[error(
        "axis {axis} of the result would hold the symbolic digit {digit} inside of another one; only the outermost digit may be symbolic"
    )]
    SymbolicDigit {
        /// Axis of the result.
        axis: usize,
        /// The extent.
        digit: String,
    },
    /// Padding that would repeat a symbolic number of times.
    #[error(
        "axis {axis} of the result would have padding inside of a symbolic extent ({extent}); a slot map needs constants"
    )]
    SymbolicPadding {
        /// Axis of the result.
        axis: usize,
        /// Extent of the axis.
        extent: String,
    },
    /// A slot map of more than 4096 segments.
    #[error("axis {axis} of the result would need a slot map of more than 4096 segments")]
    TooManySegments {
        /// Axis of the result.
        axis: usize,
    },
    /// Padding of a size-1 axis, and no axis left to hold it.
    #[error("the padded axes of the layout vanish in a result without axes")]
    PaddedScalar,
    /// An extent beyond 64-bit integers, or a polynomial with too many terms.
    #[error("an extent on the way overflows")]
    Overflow,
    /// The bytes lie otherwise than they are wanted.
    #[error("the bytes lie as {from} and are wanted as {to}")]
    Moves {
        /// How the operand's bytes lie, read as the result.
        from: Layout,
        /// How the result is to lie.
        to: Layout,
    },
    /// A view of other places, or of another storage.
    #[error("the elements are elsewhere")]
    OtherPlaces,
    /// A value that no file can declare in its layout.
    #[error("the layout {layout} has no storage shape here: it splits or pads an axis of unknown extent")]
    NoStorageShape {
        /// The layout.
        layout: Layout,
    },
    /// No digits exist of which both layouts are orders.
    #[error("axis {axis}: digits of {left} and of {right} elements overlap, so the layouts have no common refinement")]
    NoRefinement {
        /// The axis.
        axis: usize,
        /// A boundary of the one layout.
        left: String,
        /// A boundary of the other.
        right: String,
    },
}
