//! Nodes by number. The number of a node that went is given to the next one that comes.

use super::ids::NodeId;
use super::node::Node;
use std::ops::{Index, IndexMut};

/// The nodes of a graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    list: Vec<Option<Node>>,
    /// Numbers without a node; the last that became free is taken first.
    free: Vec<NodeId>,
}

impl Nodes {
    pub(super) fn add(&mut self, node: Node) -> NodeId {
        if let Some(n) = self.free.pop() {
            self.list[n.index()] = Some(node);
            return n;
        }
        self.list.push(Some(node));
        NodeId(self.list.len() as u32 - 1)
    }

    /// Takes out a node that is there.
    pub(super) fn remove(&mut self, n: NodeId) -> Node {
        self.free.push(n);
        self.list[n.index()].take().expect("the node is there")
    }

    pub(super) fn contains(&self, n: NodeId) -> bool {
        self.list.get(n.index()).is_some_and(Option::is_some)
    }

    pub(super) fn len(&self) -> usize {
        self.list.len() - self.free.len()
    }

    /// Above every number.
    pub(super) fn bound(&self) -> usize {
        self.list.len()
    }

    /// In the order of their numbers.
    pub(super) fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        let there = self.list.iter().enumerate().filter(|(_, node)| node.is_some());
        there.map(|(i, _)| NodeId(i as u32))
    }
}

impl Index<NodeId> for Nodes {
    type Output = Node;

    fn index(&self, n: NodeId) -> &Node {
        self.list[n.index()].as_ref().expect("the node is there")
    }
}

impl IndexMut<NodeId> for Nodes {
    fn index_mut(&mut self, n: NodeId) -> &mut Node {
        self.list[n.index()].as_mut().expect("the node is there")
    }
}
