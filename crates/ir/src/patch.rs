//! Edits of a graph, collected while walking it and applied together.
//!
//! Nothing is changed before [`Patch::apply`]. It checks the names it needs first, so a patch goes in whole or not at all.

use crate::build::Builder;
use crate::constant::Constant;
use crate::graph::{DuplicateName, Graph, Handover, Node, NodeId, Use, ValueId};
use crate::layout::Layout;
use crate::types::Type;

/// A new node of one result, and who reads that result from now on.
#[derive(Debug)]
pub struct Insert {
    /// The node, with its operands.
    pub node: Node,
    /// Name to give the result; made unique.
    pub name: String,
    /// Type of the result.
    pub ty: Type,
    /// Layout of the result.
    pub layout: Layout,
    /// Readers that take the result instead of what they read.
    pub uses: Vec<Use>,
    /// Graph outputs that become the result.
    pub outputs: Vec<usize>,
    /// The result takes over the name of this value, which gets a new one.
    pub takes_name_of: Option<ValueId>,
}

/// A new constant that becomes an operand of a node.
#[derive(Debug)]
pub struct NewOperand {
    /// The node. Its form has to be bound again afterwards.
    pub node: NodeId,
    /// The operand's slot; one that the node does not have yet is added, and those between are left out.
    pub slot: usize,
    /// The constant.
    pub constant: Constant,
    /// Name to give it; made unique.
    pub name: String,
    /// The constant takes over the name of this value, which gets a new one.
    pub takes_name_of: Option<ValueId>,
}

/// A set of edits.
#[derive(Debug, Default)]
pub struct Patch {
    layouts: Vec<(ValueId, Layout)>,
    inserts: Vec<Insert>,
    operands: Vec<NewOperand>,
    connected: Vec<(NodeId, usize, ValueId)>,
    replaced: Vec<(ValueId, ValueId)>,
    redirected: Vec<(ValueId, ValueId)>,
}

impl Patch {
    /// An empty patch.
    pub fn new() -> Patch {
        Patch::default()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.layouts.is_empty()
            && self.inserts.is_empty()
            && self.operands.is_empty()
            && self.connected.is_empty()
            && self.replaced.is_empty()
            && self.redirected.is_empty()
    }

    /// Sets the layout in which a value is produced.
    pub fn set_layout(&mut self, v: ValueId, layout: Layout) {
        self.layouts.push((v, layout));
    }

    /// Inserts a node.
    pub fn insert(&mut self, insert: Insert) {
        self.inserts.push(insert);
    }

    /// Makes an operand of a node a new constant.
    pub fn set_operand(&mut self, operand: NewOperand) {
        self.operands.push(operand);
    }

    /// Makes an operand of a node this value; slots between those it has and this one are left out.
    pub fn connect(&mut self, node: NodeId, slot: usize, value: ValueId) {
        self.connected.push((node, slot, value));
    }

    /// Whoever reads `v`, graph outputs and bodies included, reads `by` from now on, which takes over its name. `by` must not
    /// depend on what reads `v`.
    pub fn replace(&mut self, v: ValueId, by: ValueId) {
        self.replaced.push((v, by));
    }

    /// Nodes that read `v` as an operand read `to` from now on; both keep their names, by which bodies read them.
    pub fn redirect(&mut self, v: ValueId, to: ValueId) {
        self.redirected.push((v, to));
    }

    /// Applies every edit, in the order layouts, nodes, operands, connections, replacements; the nodes inserted.
    ///
    /// # Errors
    /// [`DuplicateName`], which fresh names rule out.
    pub fn apply(self, graph: &mut Graph) -> Result<Vec<NodeId>, DuplicateName> {
        for (v, layout) in self.layouts {
            *graph.value_mut(v).layout = layout;
        }
        let mut nodes = Vec::with_capacity(self.inserts.len());
        for insert in self.inserts {
            let Insert { node, name, ty, layout, uses, outputs, takes_name_of } = insert;
            let name = graph.fresh_name(&name);
            let result = graph.add_single(node, name, ty)?;
            *graph.value_mut(result).layout = layout;
            graph.know_contents(result);
            graph.hand_over(Handover { uses, outputs, takes_name_of }, result);
            nodes.push(graph.value(result).producer().0);
        }
        for operand in self.operands {
            let NewOperand { node, slot, constant, name, takes_name_of } = operand;
            let value = Builder::at(graph, node).constant(&name, constant)?;
            graph.set_input(node, slot, value);
            if let Some(of) = takes_name_of {
                graph.swap_names(of, value);
            }
        }
        for (node, slot, value) in self.connected {
            graph.set_input(node, slot, value);
        }
        for (v, by) in self.replaced {
            graph.hand_over(Handover::everything(graph, v), by);
        }
        for (v, to) in self.redirected {
            for u in graph.uses(v) {
                if u.slot < graph.node(u.node).inputs.len() {
                    graph.redirect(u, to);
                }
            }
        }
        Ok(nodes)
    }
}

/// Lets those who read `v` read `by`, which takes over its name, and removes what nobody reads any more among these nodes and
/// before them.
///
/// # Errors
/// [`DuplicateName`], which fresh names rule out.
pub fn replace_value(
    graph: &mut Graph,
    v: ValueId,
    by: ValueId,
    unread: impl IntoIterator<Item = NodeId>,
) -> Result<(), DuplicateName> {
    let mut patch = Patch::new();
    patch.replace(v, by);
    patch.apply(graph)?;
    remove_dead(graph, unread);
    Ok(())
}

/// Removes every node that nobody reads, and then those that only they read, among `suspects` and their producers; how many.
pub fn remove_dead(graph: &mut Graph, suspects: impl IntoIterator<Item = NodeId>) -> usize {
    let mut todo: Vec<NodeId> = suspects.into_iter().collect();
    let mut removed = 0;
    while let Some(n) = todo.pop() {
        if !graph.contains(n) {
            continue;
        }
        let node = graph.node(n);
        let before: Vec<NodeId> =
            node.inputs.iter().flatten().chain(&node.captures).map(|&v| graph.value(v).producer().0).collect();
        if graph.remove_unused(n) {
            removed += 1;
            todo.extend(before);
        }
    }
    removed
}

/// Removes a node that nobody reads, and leaves what it read; says whether it did.
pub fn remove_alone(graph: &mut Graph, n: NodeId) -> bool {
    graph.contains(n) && graph.remove_unused(n)
}
