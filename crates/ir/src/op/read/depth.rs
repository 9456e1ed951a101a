//! In which order channels hold the pixels that `DepthToSpace` makes of them.

use crate::graph::Node;

/// Whether the channels that stay channels are the innermost digit of the depth: mode `DCR`, which older versions have only. In
/// mode `CRD` they are the outermost one.
pub fn is_depth_first(node: &Node) -> bool {
    node.str("mode").is_none_or(|mode| mode == "DCR")
}
