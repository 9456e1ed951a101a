//! Why a graph can't be written.

/// Why a graph can't be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A constant's bytes are needed and are not there.
    #[error("the bytes of constant `{name}` are needed: {why}")]
    Bytes {
        /// The constant.
        name: String,
        /// Why they are not there.
        why: String,
    },
    /// A node in an arrangement that standard ONNX can't say. The passes rule this out.
    #[error("{node}: {why} (please report this)")]
    CannotExpress {
        /// The node.
        node: String,
        /// Why ONNX can't express it.
        why: String,
    },
}
