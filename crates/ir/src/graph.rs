//! The operator graph: a petgraph [`StableDiGraph`] whose nodes are ops and whose edges carry a value and the slot it enters.
//!
//! Invariants, kept by every method here:
//! - every value has exactly one producing node (inputs, constants and captured values have a node of their own kind);
//! - `Node::inputs` and the incoming edges say the same: input slots first, then one slot per capture;
//! - a value's name is unique in its graph; bodies have their own names and read outer ones through [`Op::Outer`] nodes.
//!
//! Absent on purpose: a mutable getter of the topology. It changes only through the methods here and through
//! [`Patch`](crate::patch::Patch).

use crate::attr::{Attr, Attrs};
use crate::constant::Constant;
use crate::dim::Dim;
use crate::form::Form;
use crate::layout::Layout;
use crate::storage::{StorageRule, storage_shape};
use crate::types::Type;
use petgraph::Direction;
use petgraph::stable_graph::{NodeIndex, StableDiGraph};
use petgraph::visit::EdgeRef;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

/// A node of one graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) NodeIndex);

/// A value of one graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(u32);

impl NodeId {
    /// Dense number, for side tables.
    pub fn index(self) -> usize {
        self.0.index()
    }
}

impl ValueId {
    /// Dense number, for side tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum Op {
    /// A graph input; with a default if the caller may leave it out (an overridable initializer).
    Input {
        /// The initializer that stands in when the caller gives nothing.
        default: Option<Constant>,
    },
    /// A tensor known at compile time: an initializer, or the op Constant.
    Constant(Constant),
    /// In a body: the value of this name in the enclosing scope.
    Outer,
    /// A physical move: same logical value, another layout. The only op that is not ONNX's.
    Relayout,
    /// Any ONNX op.
    Onnx(OpName),
}

impl Op {
    /// Whether it is an op of this type, in whatever domain.
    pub fn is_named(&self, name: &str) -> bool {
        matches!(self, Op::Onnx(op) if op.name == name)
    }
}

/// Domain and type of an ONNX op. The default domain is the empty string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpName {
    /// Operator set domain; `ai.onnx` is normalized to the empty string.
    pub domain: String,
    /// Operator type.
    pub name: String,
    /// Overload of a model-local function; empty otherwise.
    pub overload: String,
}

impl fmt::Display for OpName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.domain.is_empty() {
            write!(f, "{}::", self.domain)?;
        }
        f.write_str(&self.name)?;
        if !self.overload.is_empty() {
            write!(f, ":{}", self.overload)?;
        }
        Ok(())
    }
}

/// One use of an op.
#[derive(Clone, Debug)]
pub struct Node {
    /// The node's ONNX name, often empty.
    pub name: String,
    /// What it is.
    pub op: Op,
    /// Version of the operator set that defines it.
    pub opset: i64,
    /// Operands; `None` where an optional one is left out.
    pub inputs: Vec<Option<ValueId>>,
    /// Results; `None` where an optional one is left out.
    pub outputs: Vec<Option<ValueId>>,
    /// Attributes.
    pub attrs: Attrs,
    /// Values of this graph that the node's bodies read by name.
    pub captures: Vec<ValueId>,
    /// Where it came from: a number that the importer gave, `None` for what a pass made. Nodes have their place in the
    /// file's list of nodes, initializers theirs in the list of initializers, counted on from the last node.
    pub origin: Option<u32>,
    /// Place in the order of the file, for a stable topological order; made nodes take that of the node they serve.
    pub rank: u32,
    /// What it means for layouts; bound by `canonicalize`.
    pub form: Form,
}

impl Node {
    /// A node with nothing but its op and slots.
    pub fn new(op: Op, inputs: Vec<Option<ValueId>>) -> Node {
        Node {
            name: String::new(),
            op,
            opset: 0,
            inputs,
            outputs: Vec::new(),
            attrs: Attrs::default(),
            captures: Vec::new(),
            origin: None,
            rank: 0,
            form: Form::unbound(),
        }
    }

    /// The ONNX op type in the default domain, if it is one.
    pub fn onnx(&self) -> Option<&str> {
        match &self.op {
            Op::Onnx(n) if n.domain.is_empty() => Some(&n.name),
            _ => None,
        }
    }

    /// How messages name it: op type, and the node's name or its first result.
    pub fn describe(&self, graph: &Graph) -> String {
        let op = match &self.op {
            Op::Input { .. } => "input".to_owned(),
            Op::Constant(_) => "constant".to_owned(),
            Op::Outer => "outer value".to_owned(),
            Op::Relayout => "relayout".to_owned(),
            Op::Onnx(n) => n.to_string(),
        };
        let result = self.outputs.iter().flatten().next().map(|&v| graph.value(v).name.as_str());
        match (self.name.as_str(), result) {
            ("", Some(r)) => format!("{op} -> `{r}`"),
            ("", None) => op,
            (name, _) => format!("{op} `{name}`"),
        }
    }

    /// How records name a body of this node: where the graph that holds it is, the node, the attribute.
    pub fn body_path(&self, graph: &Graph, path: &str, attribute: &str) -> String {
        format!("{path}{}.{attribute}/", self.describe(graph))
    }

    /// An integer attribute.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.attrs.get(name).and_then(Attr::as_int)
    }

    /// An attribute that is a list of integers.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        self.attrs.get(name).and_then(Attr::as_ints)
    }

    /// A string attribute.
    pub fn str(&self, name: &str) -> Option<&str> {
        self.attrs.get(name).and_then(Attr::as_str)
    }

    /// Bodies of the node, in attribute order.
    pub fn bodies(&self) -> impl Iterator<Item = &Graph> {
        self.attrs.values().flat_map(|a| a.bodies().iter())
    }
}

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
    source: (NodeIndex, u32),
}

impl Value {
    /// The node that makes it and the result slot.
    pub fn producer(&self) -> (NodeId, usize) {
        (NodeId(self.source.0), self.source.1 as usize)
    }
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    value: ValueId,
    slot: u32,
}

/// One place that reads a value. Slots past the node's inputs are captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Use {
    /// The reader.
    pub node: NodeId,
    /// Input slot; `inputs.len() + k` is the k-th capture.
    pub slot: usize,
}

/// A graph: the main one, a body, or that of a function.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// ONNX name.
    pub name: String,
    /// How values whose axes are split or padded are declared; that of the target's dialect.
    pub storage: StorageRule,
    dag: StableDiGraph<Node, Edge>,
    values: Vec<Value>,
    by_name: FxHashMap<String, ValueId>,
    inputs: Vec<ValueId>,
    outputs: Vec<ValueId>,
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
            if twice || self.by_name.contains_key(name) {
                return Err(DuplicateName(name.clone()));
            }
        }
        node.outputs = Vec::with_capacity(results.len());
        let index = self.dag.add_node(node);
        let mut outputs = Vec::with_capacity(results.len());
        for (slot, result) in results.into_iter().enumerate() {
            outputs.push(result.map(|(name, ty)| self.new_value(name, ty, (index, slot as u32))));
        }
        self.dag[index].outputs = outputs;
        self.connect(index);
        Ok(NodeId(index))
    }

    fn new_value(&mut self, name: String, ty: Type, source: (NodeIndex, u32)) -> ValueId {
        let id = ValueId(self.values.len() as u32);
        let layout = Layout::row_major(ty.rank().unwrap_or(0));
        self.by_name.insert(name.clone(), id);
        self.values.push(Value { name, ty, layout, contents: None, source });
        id
    }

    fn connect(&mut self, index: NodeIndex) {
        let node = &self.dag[index];
        let reads: SmallVec<[(ValueId, u32); 8]> = node
            .inputs
            .iter()
            .enumerate()
            .filter_map(|(slot, v)| v.map(|v| (v, slot as u32)))
            .chain(node.captures.iter().enumerate().map(|(k, &v)| (v, (node.inputs.len() + k) as u32)))
            .collect();
        for (value, slot) in reads {
            let from = self.values[value.index()].source.0;
            self.dag.add_edge(from, index, Edge { value, slot });
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
        let ty = Type::tensor(c.dtype, c.dims.iter().map(|&d| Dim::from(d)).collect());
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
        let value = &mut self.values[v.index()];
        ValueMut { ty: &mut value.ty, layout: &mut value.layout, contents: &mut value.contents }
    }

    /// The shape with which a value of this layout would be declared.
    pub fn storage_shape(&self, v: ValueId, layout: &Layout) -> Option<Vec<Dim>> {
        storage_shape(self.value(v).ty.shape()?, layout, self.storage)
    }

    /// A node.
    pub fn node(&self, n: NodeId) -> &Node {
        &self.dag[n.0]
    }

    /// Attributes of a node, to be changed (bodies included).
    pub fn attrs_mut(&mut self, n: NodeId) -> &mut Attrs {
        &mut self.dag[n.0].attrs
    }

    /// Makes a node another op of the same operands and results. Its form has to be bound again afterwards.
    pub fn set_op(&mut self, n: NodeId, op: OpName, opset: i64) {
        let node = &mut self.dag[n.0];
        (node.op, node.opset) = (Op::Onnx(op), opset);
    }

    /// Sets what a node means for layouts.
    pub fn set_form(&mut self, n: NodeId, form: Form) {
        self.dag[n.0].form = form;
    }

    /// Whether the node is (still) there.
    pub fn contains(&self, n: NodeId) -> bool {
        self.dag.contains_node(n.0)
    }

    /// The value of this name.
    pub fn by_name(&self, name: &str) -> Option<ValueId> {
        self.by_name.get(name).copied()
    }

    /// Number of value ids handed out; side tables are this long.
    pub fn value_bound(&self) -> usize {
        self.values.len()
    }

    /// All values whose producer is still there, by id.
    pub fn values(&self) -> impl Iterator<Item = ValueId> + '_ {
        (0..self.values.len() as u32).map(ValueId).filter(|v| self.dag.contains_node(self.values[v.index()].source.0))
    }

    /// All nodes by id, inputs and constants included.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.dag.node_indices().map(NodeId)
    }

    /// Number of nodes, inputs and constants included.
    pub fn node_count(&self) -> usize {
        self.dag.node_count()
    }

    /// Every place that reads the value, by node and slot. Graph outputs are not among them.
    pub fn uses(&self, v: ValueId) -> SmallVec<[Use; 4]> {
        let from = self.values[v.index()].source.0;
        let mut uses: SmallVec<[Use; 4]> = self
            .dag
            .edges_directed(from, Direction::Outgoing)
            .filter(|e| e.weight().value == v)
            .map(|e| Use { node: NodeId(e.target()), slot: e.weight().slot as usize })
            .collect();
        uses.sort_unstable();
        uses
    }

    /// Whether the value is a graph output.
    pub fn is_output(&self, v: ValueId) -> bool {
        self.outputs.contains(&v)
    }

    /// The constant behind a value, if its producer is one.
    pub fn constant(&self, v: ValueId) -> Option<&Constant> {
        match &self.node(self.value(v).producer().0).op {
            Op::Constant(c) => Some(c),
            _ => None,
        }
    }

    /// Nodes in topological order, ties by rank and id; the nodes on a cycle, if there is one.
    ///
    /// # Errors
    /// The nodes that never become ready: those on cycles and those behind them.
    pub fn order(&self) -> Result<Vec<NodeId>, Vec<NodeId>> {
        let mut missing: FxHashMap<NodeIndex, usize> = FxHashMap::default();
        let mut ready = BinaryHeap::new();
        for n in self.dag.node_indices() {
            let degree = self.dag.edges_directed(n, Direction::Incoming).count();
            missing.insert(n, degree);
            if degree == 0 {
                ready.push(Reverse((self.dag[n].rank, n)));
            }
        }
        let mut order = Vec::with_capacity(missing.len());
        while let Some(Reverse((_, n))) = ready.pop() {
            order.push(NodeId(n));
            for e in self.dag.edges_directed(n, Direction::Outgoing) {
                if let Some(left) = missing.get_mut(&e.target()) {
                    *left -= 1;
                    if *left == 0 {
                        ready.push(Reverse((self.dag[e.target()].rank, e.target())));
                    }
                }
            }
        }
        if order.len() == missing.len() {
            return Ok(order);
        }
        let mut stuck: Vec<NodeId> = self.dag.node_indices().filter(|n| missing[n] > 0).map(NodeId).collect();
        stuck.sort_unstable();
        Err(stuck)
    }

    /// A value name that is not taken in this graph: `base`, or `base.1`, `base.2`, …
    pub fn fresh_name(&self, base: &str) -> String {
        if !self.by_name.contains_key(base) {
            return base.to_owned();
        }
        let mut k = 1usize;
        loop {
            let name = format!("{base}.{k}");
            if !self.by_name.contains_key(&name) {
                return name;
            }
            k += 1;
        }
    }

    /// Makes `u` read `to`. The new value must be of this graph; cycles are found by [`order`](Graph::order).
    pub(crate) fn redirect(&mut self, u: Use, to: ValueId) {
        let Some(edge) = self
            .dag
            .edges_directed(u.node.0, Direction::Incoming)
            .find(|e| e.weight().slot as usize == u.slot)
            .map(|e| e.id())
        else {
            return;
        };
        self.dag.remove_edge(edge);
        let node = &mut self.dag[u.node.0];
        let inputs = node.inputs.len();
        if u.slot < inputs {
            node.inputs[u.slot] = Some(to);
        } else {
            node.captures[u.slot - inputs] = to;
        }
        let from = self.values[to.index()].source.0;
        self.dag.add_edge(from, u.node.0, Edge { value: to, slot: u.slot as u32 });
    }

    /// Makes these the operands of a node.
    pub fn set_inputs(&mut self, n: NodeId, inputs: Vec<Option<ValueId>>) {
        self.disconnect(n);
        self.dag[n.0].inputs = inputs;
        self.connect(n.0);
    }

    fn disconnect(&mut self, n: NodeId) {
        let incoming: Vec<_> = self.dag.edges_directed(n.0, Direction::Incoming).map(|e| e.id()).collect();
        for edge in incoming {
            self.dag.remove_edge(edge);
        }
    }

    /// Makes an operand of a node this value, the slot added if it is not there.
    pub(crate) fn set_input(&mut self, n: NodeId, slot: usize, to: ValueId) {
        // Captures follow the inputs, so a new slot moves theirs: all edges are made anew.
        self.disconnect(n);
        let inputs = &mut self.dag[n.0].inputs;
        inputs.resize(inputs.len().max(slot + 1), None);
        inputs[slot] = Some(to);
        self.connect(n.0);
    }

    /// Lets the bodies of a node read this value by its name.
    pub fn add_capture(&mut self, n: NodeId, v: ValueId) {
        let node = &mut self.dag[n.0];
        if node.captures.contains(&v) {
            return;
        }
        let slot = (node.inputs.len() + node.captures.len()) as u32;
        node.captures.push(v);
        let from = self.values[v.index()].source.0;
        self.dag.add_edge(from, n.0, Edge { value: v, slot });
    }

    /// Makes the k-th graph output this value.
    pub(crate) fn redirect_output(&mut self, k: usize, to: ValueId) {
        self.outputs[k] = to;
    }

    /// Gives an outer value the name under which the enclosing graph has it now. A value of that name gets another one.
    pub fn rename_outer(&mut self, n: NodeId, renamed: &FxHashMap<String, String>) {
        let Some(v) = self.node(n).outputs.first().copied().flatten() else { return };
        let Some(name) = renamed.get(&self.values[v.index()].name).cloned() else { return };
        if let Some(other) = self.by_name(&name).filter(|&other| other != v) {
            let free = self.fresh_name(&name);
            self.set_name(other, free);
        }
        self.set_name(v, name);
    }

    fn set_name(&mut self, v: ValueId, name: String) {
        let before = std::mem::replace(&mut self.values[v.index()].name, name.clone());
        if self.by_name.get(&before) == Some(&v) {
            self.by_name.remove(&before);
        }
        self.by_name.insert(name, v);
    }

    /// Exchanges the names of two values.
    pub(crate) fn swap_names(&mut self, a: ValueId, b: ValueId) {
        let name = std::mem::take(&mut self.values[a.index()].name);
        let other = std::mem::replace(&mut self.values[b.index()].name, name);
        self.values[a.index()].name = other;
        for v in [a, b] {
            self.by_name.insert(self.values[v.index()].name.clone(), v);
        }
    }

    /// Removes a node whose results nobody reads; says whether it did. Graph inputs stay.
    pub(crate) fn remove_unused(&mut self, n: NodeId) -> bool {
        let node = &self.dag[n.0];
        let read = self.dag.edges_directed(n.0, Direction::Outgoing).next().is_some();
        let output = node.outputs.iter().flatten().any(|v| self.outputs.contains(v));
        if read || output || matches!(node.op, Op::Input { .. }) {
            return false;
        }
        for v in node.outputs.clone().into_iter().flatten() {
            let value = &mut self.values[v.index()];
            self.by_name.remove(&value.name);
            // The number of the node may be given to another one; its values must not become that one's.
            value.source = (NodeIndex::end(), 0);
        }
        self.dag.remove_node(n.0);
        true
    }
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
}
