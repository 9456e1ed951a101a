//! Edits of a graph, collected while walking it and applied together.
//!
//! Nothing is changed before [`Patch::apply`]. It checks the names it needs first, so a patch goes in whole or not at all.

use crate::constant::Constant;
use crate::dim::Dim;
use crate::graph::{DuplicateName, Graph, Node, NodeId, Op, Use, ValueId};
use crate::layout::Layout;
use crate::op::infer::CONTENTS_LIMIT;
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
            let name = graph.fresh_name(&insert.name);
            let layout = insert.layout;
            let contents = match &insert.node.op {
                Op::Constant(c) => c.to_ints(CONTENTS_LIMIT),
                _ => None,
            };
            let node = graph.add(insert.node, vec![Some((name, insert.ty))])?;
            let Some(result) = graph.node(node).outputs.first().copied().flatten() else { continue };
            *graph.value_mut(result).layout = layout;
            *graph.value_mut(result).contents = contents.map(|c| c.into_iter().map(Dim::from).collect());
            for u in insert.uses {
                graph.redirect(u, result);
            }
            for k in insert.outputs {
                graph.redirect_output(k, result);
            }
            if let Some(of) = insert.takes_name_of {
                graph.swap_names(of, result);
            }
            nodes.push(node);
        }
        for operand in self.operands {
            let NewOperand { node, slot, constant, name, takes_name_of } = operand;
            let rank = graph.node(node).rank;
            let name = graph.fresh_name(&name);
            let ty = Type::tensor(constant.dtype, constant.dims.iter().map(|&d| Dim::from(d)).collect());
            let value = graph.add_single(constant_node(constant, rank), name, ty)?;
            graph.set_input(node, slot, value);
            if let Some(of) = takes_name_of {
                graph.swap_names(of, value);
            }
        }
        for (node, slot, value) in self.connected {
            graph.set_input(node, slot, value);
        }
        for (v, by) in self.replaced {
            for u in graph.uses(v) {
                graph.redirect(u, by);
            }
            for k in graph.output_places(v).to_vec() {
                graph.redirect_output(k, by);
            }
            graph.swap_names(v, by);
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

/// A node that is a constant.
pub fn constant_node(c: Constant, rank: u32) -> Node {
    let mut node = Node::new(Op::Constant(c), vec![]);
    node.rank = rank;
    node
}
