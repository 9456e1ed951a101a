//! The graph as petgraph sees it: `&Graph` has petgraph's visit traits, so that its algorithms run on our own storage.
//!
//! Nodes are those of the graph, inputs and constants among them. An edge runs from the node that makes a value to a node that
//! reads it: one edge per place, captures included. What a node reads in its bodies is no edge of this graph.
//!
//! Neighbours are in a fixed order: readers by result, then by number and slot; producers by slot. So what follows them is the
//! same in every run. [`Graph::order`] has ties by rank besides, which petgraph's `toposort` knows nothing of.

use super::{Graph, Node, NodeId, Use, ValueId};
use petgraph::visit::{
    Data, EdgeRef, GraphBase, GraphProp, IntoEdgeReferences, IntoEdges, IntoEdgesDirected, IntoNeighbors,
    IntoNeighborsDirected, IntoNodeIdentifiers, IntoNodeReferences, NodeCount, NodeIndexable, Visitable,
};
use petgraph::{Directed, Direction};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::vec;

/// One place that reads a value, as an edge from the node that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The node that makes the value.
    pub from: NodeId,
    /// The place that reads it.
    pub at: Use,
    /// The value.
    pub value: ValueId,
}

type Edges = smallvec::IntoIter<[Edge; 4]>;
type Neighbors = std::iter::Map<Edges, fn(Edge) -> NodeId>;

impl Graph {
    fn edges_out(&self, n: NodeId) -> SmallVec<[Edge; 4]> {
        let results = self.node(n).outputs.iter().flatten();
        results.flat_map(|&value| self.uses(value).into_iter().map(move |at| Edge { from: n, at, value })).collect()
    }

    fn edges_in(&self, n: NodeId) -> SmallVec<[Edge; 4]> {
        let edge = |(slot, value)| Edge { from: self.value(value).producer().0, at: Use { node: n, slot }, value };
        self.reads(n).map(edge).collect()
    }
}

impl EdgeRef for Edge {
    type NodeId = NodeId;
    type EdgeId = Use;
    type Weight = ValueId;

    fn source(&self) -> NodeId {
        self.from
    }

    fn target(&self) -> NodeId {
        self.at.node
    }

    fn weight(&self) -> &ValueId {
        &self.value
    }

    fn id(&self) -> Use {
        self.at
    }
}

impl GraphBase for Graph {
    type EdgeId = Use;
    type NodeId = NodeId;
}

impl GraphProp for Graph {
    type EdgeType = Directed;
}

impl Data for Graph {
    type NodeWeight = Node;
    type EdgeWeight = ValueId;
}

impl NodeCount for Graph {
    fn node_count(&self) -> usize {
        self.nodes.len()
    }
}

impl NodeIndexable for Graph {
    fn node_bound(&self) -> usize {
        self.nodes.bound()
    }

    fn to_index(&self, n: NodeId) -> usize {
        n.index()
    }

    fn from_index(&self, i: usize) -> NodeId {
        NodeId(i as u32)
    }
}

impl Visitable for Graph {
    type Map = FxHashSet<NodeId>;

    fn visit_map(&self) -> FxHashSet<NodeId> {
        FxHashSet::default()
    }

    fn reset_map(&self, map: &mut FxHashSet<NodeId>) {
        map.clear();
    }
}

impl IntoNodeIdentifiers for &Graph {
    type NodeIdentifiers = vec::IntoIter<NodeId>;

    fn node_identifiers(self) -> vec::IntoIter<NodeId> {
        self.nodes().collect::<Vec<_>>().into_iter()
    }
}

impl<'g> IntoNodeReferences for &'g Graph {
    type NodeRef = (NodeId, &'g Node);
    type NodeReferences = vec::IntoIter<(NodeId, &'g Node)>;

    fn node_references(self) -> vec::IntoIter<(NodeId, &'g Node)> {
        self.nodes().map(|n| (n, self.node(n))).collect::<Vec<_>>().into_iter()
    }
}

impl IntoEdgeReferences for &Graph {
    type EdgeRef = Edge;
    type EdgeReferences = vec::IntoIter<Edge>;

    fn edge_references(self) -> vec::IntoIter<Edge> {
        self.nodes().flat_map(|n| self.edges_out(n)).collect::<Vec<_>>().into_iter()
    }
}

impl IntoEdges for &Graph {
    type Edges = Edges;

    fn edges(self, n: NodeId) -> Edges {
        self.edges_out(n).into_iter()
    }
}

impl IntoEdgesDirected for &Graph {
    type EdgesDirected = Edges;

    fn edges_directed(self, n: NodeId, towards: Direction) -> Edges {
        match towards {
            Direction::Outgoing => self.edges_out(n).into_iter(),
            Direction::Incoming => self.edges_in(n).into_iter(),
        }
    }
}

impl IntoNeighbors for &Graph {
    type Neighbors = Neighbors;

    fn neighbors(self, n: NodeId) -> Neighbors {
        self.neighbors_directed(n, Direction::Outgoing)
    }
}

impl IntoNeighborsDirected for &Graph {
    type NeighborsDirected = Neighbors;

    fn neighbors_directed(self, n: NodeId, towards: Direction) -> Neighbors {
        let end: fn(Edge) -> NodeId = match towards {
            Direction::Outgoing => |edge| edge.at.node,
            Direction::Incoming => |edge| edge.from,
        };
        self.edges_directed(n, towards).map(end)
    }
}
