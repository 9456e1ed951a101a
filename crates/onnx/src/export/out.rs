//! What is written of a model and of one of its graphs while they are on their way out.

use super::functions::Functions;
use super::names::{Names, Taken};
use super::written::WrittenGraph;
use crate::proto::{NodeProto, TensorProto};
use crate::write::Payloads;
use relayout_ir::graph::{Graph, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};

/// What is written of a model beside its graphs.
pub(super) struct Exporter {
    pub(super) ir_version: i64,
    pub(super) payloads: Payloads,
    pub(super) taken: Taken,
    pub(super) functions: Functions,
    pub(super) calls_functions: bool,
    pub(super) describes: bool,
    /// Whether new nodes spell out what they could leave unsaid.
    pub(super) spells: bool,
}

/// One graph on its way out.
pub(super) struct GraphOut<'g> {
    pub(super) graph: &'g Graph,
    pub(super) names: Names,
    pub(super) nodes: Vec<NodeProto>,
    pub(super) initializers: Vec<TensorProto>,
    /// Names of the file's initializers. A new constant of such a name takes the old one's place in the list.
    pub(super) known: FxHashSet<&'g str>,
    /// Extents of stored tensors whose entries are picked where they are.
    pub(super) lists: FxHashMap<ValueId, StoredList>,
    /// What is said of the graph's values; nothing where nobody asked.
    pub(super) written: WrittenGraph,
}

/// The extents of a stored tensor as a file has them.
pub(super) struct StoredList {
    /// Its name.
    pub(super) name: String,
    /// Where in it the entries of the list are.
    pub(super) places: Vec<i64>,
}
