//! Why there is no function for a call.

/// Why the dialect has no function for what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DialectError {
    /// The table has no such op at this opset.
    #[error("the dialect has no form of {op} at opset {opset}{hint}")]
    UnknownOp {
        /// The standard op.
        op: String,
        /// The operator set.
        opset: i64,
        /// Where it has one.
        hint: String,
    },
    /// The body needs ops of a later operator set.
    #[error("{function} needs opset {needs} or later, the model imports {opset}; convert the model")]
    OpsetTooOld {
        /// The function.
        function: String,
        /// The first operator set that has what it needs.
        needs: i64,
        /// The operator set asked for.
        opset: i64,
    },
    /// More operands or results than the op has, or a required one is absent.
    #[error("{op} at opset {opset}: {why}")]
    Slots {
        /// The standard op.
        op: String,
        /// The operator set.
        opset: i64,
        /// What is wrong.
        why: String,
    },
    /// A layout of a rank that the slot does not have.
    #[error("{op}: {slot} is stored as {layout} of rank {found}, rank {wanted} is needed")]
    Rank {
        /// The standard op.
        op: String,
        /// The operand or result.
        slot: String,
        /// Its layout.
        layout: String,
        /// The rank of the layout.
        found: usize,
        /// The rank that the slot has.
        wanted: String,
    },
    /// Nothing is stored otherwise than ONNX has it.
    #[error("{op}: every operand and result is stored as ONNX has it; write the op itself")]
    Plain {
        /// The standard op.
        op: String,
    },
    /// A layout that has no name in the dialect or that a body can't reach.
    #[error("{layout} has no place in the dialect: {why}")]
    Layout {
        /// The layout.
        layout: String,
        /// Why.
        why: String,
    },
    /// A move whose number of slots is not known when the file is written.
    #[error("axis {axis} goes from {from} to {to} slots, which no function can be told; state the size of the dim")]
    UnknownSlots {
        /// The logical axis.
        axis: usize,
        /// Slots before.
        from: String,
        /// Slots after.
        to: String,
    },
}
