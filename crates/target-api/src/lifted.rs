//! What a file in a target's dialect had decided before it was read.

use relayout_ir::graph::{NodeId, ValueId};
use std::collections::BTreeSet;

/// What a file of a blocked dialect decided, once its ops are standard ones again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lifted {
    /// Channels of a block, as the target that read it has them: the file does not say.
    pub block: u64,
    /// Nodes that were moves.
    pub reorders: BTreeSet<NodeId>,
    /// Values that lie in blocks. The result of a move into blocks is one of them: its readers want it so.
    pub blocked: BTreeSet<ValueId>,
    /// Ops of the dialect that could not be lifted, each once.
    pub left: BTreeSet<String>,
}

/// What a runtime makes of a file of standard ops by itself when it loads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Values that it stores in blocks. The ops that leave them read those of their operands in blocks that lie so.
    pub stored: BTreeSet<ValueId>,
}
