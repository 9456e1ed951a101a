//! The graphs that attributes and nodes hold.

use super::{AttributeProto, GraphProto, NodeProto};

impl AttributeProto {
    /// Its graph, or its list of graphs.
    pub fn bodies(&self) -> impl Iterator<Item = &GraphProto> {
        self.g.as_deref().into_iter().chain(&self.graphs)
    }
}

impl NodeProto {
    /// The graphs of all its attributes, in their order.
    pub fn bodies(&self) -> impl Iterator<Item = &GraphProto> {
        self.attribute.iter().flat_map(AttributeProto::bodies)
    }
}
