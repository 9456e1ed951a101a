//! Nodes: what they are, what they read and leave, their attributes.

use super::Graph;
use super::ids::ValueId;
use crate::attr::{Attr, Attrs};
use crate::constant::Constant;
use crate::form::{Form, Slot, View};
use std::fmt;
use std::sync::Arc;

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

impl OpName {
    /// An op of ONNX's own domain.
    pub fn onnx(name: impl Into<String>) -> OpName {
        OpName::new("", name)
    }

    /// An op of this domain, which is no overload.
    pub fn new(domain: impl Into<String>, name: impl Into<String>) -> OpName {
        OpName { domain: domain.into(), name: name.into(), overload: String::new() }
    }
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
    /// file's list of nodes, initializers theirs in the list of initializers, counted on from the last node, then sparse ones.
    pub origin: Option<u32>,
    /// Place in the order of the file, for a stable topological order; made nodes take that of the node they serve.
    pub rank: u32,
    /// What it means for layouts; bound by `canonicalize`.
    pub form: Form,
    /// Whether every pass has to leave it as it is: it is then an op that nobody knows, but for the types of its results.
    pub kept: bool,
    /// For an op of a domain of its own: its axes by letters, as its host says them, `"chw, chw -> chw"`. No file has this.
    pub letters: Option<Arc<str>>,
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
            kept: false,
            letters: None,
        }
    }

    /// A node that is a constant, at this place in the order of the file.
    pub fn constant(c: Constant, rank: u32) -> Node {
        let mut node = Node::new(Op::Constant(c), vec![]);
        node.rank = rank;
        node
    }

    /// The ONNX op type in the default domain, if it is one; `None` of what is [`kept`](Node::kept).
    pub fn onnx(&self) -> Option<&str> {
        match &self.op {
            Op::Onnx(n) if n.domain.is_empty() && !self.kept => Some(&n.name),
            _ => None,
        }
    }

    /// The view that the node is; a Relayout is its operand as it is, in another layout.
    pub fn view(&self) -> Option<View> {
        match (&self.op, &self.form) {
            (Op::Relayout, _) => Some(View::Same),
            (Op::Onnx(_), Form::View(view)) => Some(view.clone()),
            _ => None,
        }
    }

    /// The operand in a slot, if it is there.
    pub fn operand(&self, slot: usize) -> Option<ValueId> {
        self.inputs.get(slot).copied().flatten()
    }

    /// The result in a slot, if it is there.
    pub fn result(&self, slot: usize) -> Option<ValueId> {
        self.outputs.get(slot).copied().flatten()
    }

    /// The value in a slot for operands or for results, if it is there.
    pub fn value_at(&self, slot: Slot) -> Option<ValueId> {
        match slot {
            Slot::In(i) => self.operand(i),
            Slot::Out(i) => self.result(i),
        }
    }

    /// The result of a node that has one slot for results; `None` of others.
    pub fn only_result(&self) -> Option<ValueId> {
        match self.outputs[..] {
            [y] => y,
            _ => None,
        }
    }

    /// How messages name it: op type, and the node's name or its first result; of what is no op, its value.
    pub fn describe(&self, graph: &Graph) -> String {
        let op = match &self.op {
            Op::Input { .. } => "graph input".to_owned(),
            Op::Constant(_) => "constant".to_owned(),
            Op::Outer => "outer value".to_owned(),
            Op::Relayout => "relayout".to_owned(),
            Op::Onnx(n) => n.to_string(),
        };
        let result = self.outputs.iter().flatten().next().map(|&v| graph.value(v).name.as_str());
        match (self.name.as_str(), result) {
            ("", Some(r)) if !matches!(self.op, Op::Onnx(_) | Op::Relayout) => format!("{op} `{r}`"),
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

    /// Whether an integer attribute is there and not 0.
    pub fn flag(&self, name: &str) -> bool {
        self.int(name).unwrap_or(0) != 0
    }

    /// An attribute that is a list of integers.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        self.attrs.get(name).and_then(Attr::as_ints)
    }

    /// An attribute that is a float.
    pub fn float(&self, name: &str) -> Option<f32> {
        match self.attrs.get(name) {
            Some(Attr::Float(x)) => Some(*x),
            _ => None,
        }
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
