//! Numbers of nodes and values, and places that read values.

/// A node of one graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) u32);

/// A value of one graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub(super) u32);

impl NodeId {
    /// No node's number.
    pub(super) const NONE: NodeId = NodeId(u32::MAX);

    /// Dense number, for side tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl ValueId {
    /// Dense number, for side tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One place that reads a value. Slots past the node's inputs are captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Use {
    /// The reader.
    pub node: NodeId,
    /// Input slot; `inputs.len() + k` is the k-th capture.
    pub slot: usize,
}
