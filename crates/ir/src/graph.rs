//! The operator graph: nodes are ops, and every value knows the places that read it, which are the graph's edges.
//!
//! Every edit takes time by the node that it is about, however many others read the same values: a weight that all nodes
//! share costs no more than one that is read once.
//!
//! Invariants, kept by every method here:
//! - every value has exactly one producing node (inputs, constants and captured values have a node of their own kind);
//! - `Node::inputs` and the readers of values say the same: input slots first, then one slot per capture;
//! - a value's name is unique in its graph; bodies have their own names and read outer ones through [`Op::Outer`] nodes.
//!
//! Absent on purpose: a mutable getter of the topology. It changes only through the methods here and through
//! [`Patch`](crate::patch::Patch).

mod edit;
mod ids;
mod in_place;
mod names;
mod node;
mod nodes;
mod readers;
pub mod walk;

pub use edit::{CONTENTS_LIMIT, Handover};
pub use ids::{NodeId, Use, ValueId};
pub use in_place::InPlace;
pub use node::{Node, Op, OpName};

use crate::attr::Attrs;
use crate::constant::Constant;
use crate::dim::Dim;
use crate::form::Form;
use crate::layout::Layout;
use crate::storage::{StorageRule, reshape_target, storage_shape};
use crate::types::Type;
use names::Names;
use nodes::Nodes;
use readers::Readers;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::OnceLock;

/// What flows: a name, a logical type, a layout, and what is known of the contents.
#[derive(Clone, Debug)]
pub struct Value {
    /// ONNX name.
    pub name: String,
    /// Element type and logical shape.
    pub ty: Type,
    /// How its axes lie in memory; row-major unless a pass decided otherwise. Meaningless where the rank is unknown.
    pub layout: Layout,
    /// Contents of a small integer tensor, if shape arithmetic found them: elements in row-major order.
    pub contents: Option<Vec<Dim>>,
    /// Whether a pass gave it other elements than the model's value of this name has, or the same ones in another logical order.
    pub differs: bool,
    source: (NodeId, u32),
}

impl Value {
    /// The node that makes it and the result slot.
    pub fn producer(&self) -> (NodeId, usize) {
        (self.source.0, self.source.1 as usize)
    }
}

/// A graph: the main one, a body, or that of a function.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// ONNX name.
    pub name: String,
    /// How values whose axes are split or padded are declared; that of the target's dialect.
    pub storage: StorageRule,
    nodes: Nodes,
    values: Vec<Value>,
    /// By value.
    readers: Vec<Readers>,
    names: Names,
    inputs: Vec<ValueId>,
    outputs: Vec<ValueId>,
    /// The places of those values that are graph outputs.
    places: FxHashMap<ValueId, SmallVec<[usize; 1]>>,
    /// What [`order`](Graph::order) found since the topology last changed.
    order: OnceLock<Result<Vec<NodeId>, Vec<NodeId>>>,
    edits: u64,
}

/// The graph already has a value of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("value `{0}` is defined twice")]
pub struct DuplicateName(pub String);

impl Graph {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> Graph {
        Graph { name: name.into(), ..Graph::default() }
    }

    /// Adds a node with named, typed results (`None` for results that are left out).
    ///
    /// # Errors
    /// [`DuplicateName`] if a result's name is taken; the graph is then unchanged.
    pub fn add(&mut self, mut node: Node, results: Vec<Option<(String, Type)>>) -> Result<NodeId, DuplicateName> {
        for (i, (name, _)) in results.iter().flatten().enumerate() {
            let twice = results.iter().flatten().skip(i + 1).any(|(n, _)| n == name);
            if twice || self.names.contains(name) {
                return Err(DuplicateName(name.clone()));
            }
        }
        node.outputs = Vec::with_capacity(results.len());
        self.edit_topology();
        let n = self.nodes.add(node);
        let mut outputs = Vec::with_capacity(results.len());
        for (slot, result) in results.into_iter().enumerate() {
            outputs.push(result.map(|(name, ty)| self.new_value(name, ty, (n, slot as u32))));
        }
        self.nodes[n].outputs = outputs;
        self.connect(n);
        Ok(n)
    }

    fn new_value(&mut self, name: String, ty: Type, source: (NodeId, u32)) -> ValueId {
        let id = ValueId(self.values.len() as u32);
        let layout = Layout::row_major(ty.rank().unwrap_or(0));
        self.names.insert(&name, id);
        self.readers.push(Readers::default());
        self.values.push(Value { name, ty, layout, contents: None, differs: false, source });
        id
    }

    /// Notes that what is known of the graph as a whole no longer holds.
    fn edit_topology(&mut self) {
        self.order = OnceLock::new();
        self.edits += 1;
    }

    /// How often the graph was edited, or lent to be edited, bodies included. Between two times of the same number nothing
    /// changed but the fields that are public.
    pub fn edits(&self) -> u64 {
        self.edits
    }

    /// Enters a node among the readers of what it reads.
    fn connect(&mut self, n: NodeId) {
        let readers = &mut self.readers;
        for (slot, v) in reads(&self.nodes[n]) {
            readers[v.index()].insert(Use { node: n, slot });
        }
    }

    fn disconnect(&mut self, n: NodeId) {
        let readers = &mut self.readers;
        for (slot, v) in reads(&self.nodes[n]) {
            readers[v.index()].remove(Use { node: n, slot });
        }
    }

    /// Adds a graph input.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn add_input(&mut self, name: impl Into<String>, ty: Type) -> Result<ValueId, DuplicateName> {
        let id = self.add_single(Node::new(Op::Input { default: None }, vec![]), name.into(), ty)?;
        self.inputs.push(id);
        Ok(id)
    }

    /// Adds a graph input that has a default.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn add_overridable(
        &mut self,
        name: impl Into<String>,
        ty: Type,
        default: Constant,
    ) -> Result<ValueId, DuplicateName> {
        let id = self.add_single(Node::new(Op::Input { default: Some(default) }, vec![]), name.into(), ty)?;
        self.inputs.push(id);
        Ok(id)
    }

    /// Adds a constant.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn add_constant(&mut self, name: impl Into<String>, c: Constant) -> Result<ValueId, DuplicateName> {
        let ty = c.ty();
        self.add_single(Node::new(Op::Constant(c), vec![]), name.into(), ty)
    }

    /// Adds a node of one result.
    ///
    /// # Errors
    /// [`DuplicateName`].
    pub fn add_single(&mut self, node: Node, name: String, ty: Type) -> Result<ValueId, DuplicateName> {
        let id = ValueId(self.values.len() as u32);
        self.add(node, vec![Some((name, ty))])?;
        Ok(id)
    }

    /// Makes a value a graph output, after those there are.
    pub fn add_output(&mut self, v: ValueId) {
        self.edits += 1;
        self.places.entry(v).or_default().push(self.outputs.len());
        self.outputs.push(v);
    }

    /// Graph inputs in order.
    pub fn inputs(&self) -> &[ValueId] {
        &self.inputs
    }

    /// Graph outputs in order.
    pub fn outputs(&self) -> &[ValueId] {
        &self.outputs
    }

    /// A value.
    pub fn value(&self, v: ValueId) -> &Value {
        &self.values[v.index()]
    }

    /// A value, to set its type, layout or contents. The name and the producer can't be changed through it.
    pub fn value_mut(&mut self, v: ValueId) -> ValueMut<'_> {
        self.edits += 1;
        let value = &mut self.values[v.index()];
        ValueMut {
            ty: &mut value.ty,
            layout: &mut value.layout,
            contents: &mut value.contents,
            differs: &mut value.differs,
        }
    }

    /// The shape with which a value of this layout would be declared.
    pub fn storage_shape(&self, v: ValueId, layout: &Layout) -> Option<Vec<Dim>> {
        storage_shape(self.value(v).ty.shape()?, layout, self.storage)
    }

    /// What a Reshape reads that makes of a value as it lies one of this shape and layout; `None` where that can't be said.
    pub fn reshape_target(&self, x: ValueId, shape: &[Dim], layout: &Layout) -> Option<Vec<i64>> {
        let from = self.storage_shape(x, &self.value(x).layout)?;
        reshape_target(&from, &storage_shape(shape, layout, self.storage)?)
    }

    /// A node.
    pub fn node(&self, n: NodeId) -> &Node {
        &self.nodes[n]
    }

    /// Attributes of a node, to be changed (bodies included).
    pub fn attrs_mut(&mut self, n: NodeId) -> &mut Attrs {
        self.edits += 1;
        &mut self.nodes[n].attrs
    }

    /// Makes a node another op of the same operands and results. Its form has to be bound again afterwards.
    pub fn set_op(&mut self, n: NodeId, op: OpName, opset: i64) {
        self.edits += 1;
        let node = &mut self.nodes[n];
        (node.op, node.opset) = (Op::Onnx(op), opset);
    }

    /// Gives a constant other elements, of the type that it has. Nothing is done to a node that is none.
    pub fn set_constant(&mut self, n: NodeId, c: Constant) {
        self.edits += 1;
        if let Op::Constant(held) = &mut self.nodes[n].op {
            *held = c;
        }
    }

    /// Has every pass leave a node as it is.
    pub fn keep(&mut self, n: NodeId) {
        self.edits += 1;
        self.nodes[n].kept = true;
    }

    /// Forgets what hosts said of the axes of their own ops: no layout passes through them any more.
    pub fn forget_letters(&mut self) {
        self.edits += 1;
        for n in self.nodes().collect::<Vec<_>>() {
            self.nodes[n].letters = None;
        }
    }

    /// Sets what a node means for layouts.
    pub fn set_form(&mut self, n: NodeId, form: Form) {
        self.edits += 1;
        self.nodes[n].form = form;
    }

    /// Whether the node is (still) there.
    pub fn contains(&self, n: NodeId) -> bool {
        self.nodes.contains(n)
    }

    /// The value of this name.
    pub fn by_name(&self, name: &str) -> Option<ValueId> {
        self.names.get(name)
    }

    /// Number of value ids handed out; side tables are this long.
    pub fn value_bound(&self) -> usize {
        self.values.len()
    }

    /// All values whose producer is still there, by id.
    pub fn values(&self) -> impl Iterator<Item = ValueId> + '_ {
        (0..self.values.len() as u32).map(ValueId).filter(|v| self.nodes.contains(self.values[v.index()].source.0))
    }

    /// All nodes by id, inputs and constants included.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.ids()
    }

    /// Number of nodes, inputs and constants included.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Every place that reads the value, by node and slot. Graph outputs are not among them.
    pub fn uses(&self, v: ValueId) -> SmallVec<[Use; 4]> {
        self.readers[v.index()].iter().collect()
    }

    /// How many places read the value, graph outputs not counted.
    pub fn use_count(&self, v: ValueId) -> usize {
        self.readers[v.index()].len()
    }

    /// The place that reads the value, if there is just one and the value is no graph output.
    pub fn only_use(&self, v: ValueId) -> Option<Use> {
        let readers = &self.readers[v.index()];
        if readers.len() == 1 && !self.is_output(v) { readers.iter().next() } else { None }
    }

    /// What a node reads, and in which slot.
    pub(crate) fn reads(&self, n: NodeId) -> impl Iterator<Item = (usize, ValueId)> + '_ {
        reads(&self.nodes[n])
    }

    /// Whether this place reads the value.
    pub(crate) fn is_use(&self, v: ValueId, u: Use) -> bool {
        self.readers[v.index()].contains(u)
    }

    /// Whether the value is a graph output.
    pub fn is_output(&self, v: ValueId) -> bool {
        self.places.contains_key(&v)
    }

    /// Whether the value is read by its name: as a graph output, or in a body.
    pub fn is_read_by_name(&self, v: ValueId) -> bool {
        self.is_output(v) || self.uses(v).iter().any(|u| self.node(u.node).captures.contains(&v))
    }

    /// Which graph outputs the value is, in order.
    pub fn output_places(&self, v: ValueId) -> &[usize] {
        self.places.get(&v).map_or(&[], SmallVec::as_slice)
    }

    /// The constant behind a value, if its producer is one whose elements have an order.
    pub fn constant(&self, v: ValueId) -> Option<&Constant> {
        match &self.node(self.value(v).producer().0).op {
            Op::Constant(c) => Some(c).filter(|c| !c.source.is_fixed()),
            _ => None,
        }
    }

    /// Nodes in topological order, ties by rank and id; the nodes on a cycle, if there is one.
    ///
    /// # Errors
    /// The nodes that never become ready: those on cycles and those behind them.
    pub fn order(&self) -> Result<Vec<NodeId>, Vec<NodeId>> {
        self.order.get_or_init(|| self.sorted()).clone()
    }

    fn sorted(&self) -> Result<Vec<NodeId>, Vec<NodeId>> {
        let mut missing = vec![0; self.nodes.bound()];
        let mut ready = BinaryHeap::new();
        for n in self.nodes() {
            let count = reads(&self.nodes[n]).count();
            missing[n.index()] = count;
            if count == 0 {
                ready.push(Reverse((self.nodes[n].rank, n)));
            }
        }
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(Reverse((_, n))) = ready.pop() {
            order.push(n);
            let results = self.nodes[n].outputs.iter().flatten();
            for reader in results.flat_map(|v| self.readers[v.index()].iter()).map(|u| u.node) {
                let left = &mut missing[reader.index()];
                *left -= 1;
                if *left == 0 {
                    ready.push(Reverse((self.nodes[reader].rank, reader)));
                }
            }
        }
        if order.len() == self.nodes.len() {
            return Ok(order);
        }
        Err(self.nodes().filter(|n| missing[n.index()] > 0).collect())
    }

    /// A value name that is not taken in this graph: `base`, or `base.1`, `base.2`, …
    pub fn fresh_name(&self, base: &str) -> String {
        self.names.fresh(base)
    }
}

/// What a node reads and in which slot: operands, then captures.
fn reads(node: &Node) -> impl Iterator<Item = (usize, ValueId)> + '_ {
    let captures = node.captures.iter().enumerate().map(|(k, &v)| (node.inputs.len() + k, v));
    node.inputs.iter().enumerate().filter_map(|(slot, v)| v.map(|v| (slot, v))).chain(captures)
}

/// The parts of a value that a pass may set.
#[derive(Debug)]
pub struct ValueMut<'a> {
    /// Element type and logical shape.
    pub ty: &'a mut Type,
    /// How its axes lie in memory.
    pub layout: &'a mut Layout,
    /// Contents of a small integer tensor.
    pub contents: &'a mut Option<Vec<Dim>>,
    /// Whether it has other elements than the model's value of its name.
    pub differs: &'a mut bool,
}
