//! Which release of a runtime a file needs.

/// What the releases of a target's runtime before one do not run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Since {
    /// The first release that runs it, such as `ONNX Runtime 1.30`.
    pub release: String,
    /// What is new in it, as the end of a sentence about the release.
    pub what: String,
    /// The release before it, as a request asks for it.
    pub before: String,
}
