//! A graph as JSON, for tools: a view, written and read back as data, but not turned into a [`Graph`] again.
//!
//! Shapes and layouts are the texts that [`Dim`](crate::dim::Dim) and [`Layout`](crate::layout::Layout) print, values are
//! named, never numbered, and nodes stand in topological order. Bytes of tensors are not part of it.
//!
//! The field [`GraphJson::schema`] counts incompatible changes. Within one number fields are only added; readers skip those
//! that they do not know.

use super::scalars::SHOWN_ELEMS;
use crate::attr::Attr;
use crate::constant::Constant;
use crate::dtype::DType;
use crate::graph::{Graph, Node, Op, ValueId};
use crate::storage::StorageRule;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the format that this crate writes.
pub const SCHEMA: u32 = 1;

/// A graph with the version of the format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphJson {
    /// Version of the format: [`SCHEMA`].
    pub schema: u32,
    /// The graph.
    #[serde(flatten)]
    pub graph: ScopeJson,
}

/// A graph or a body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScopeJson {
    /// ONNX name.
    pub name: String,
    /// Names of the inputs, in order.
    pub inputs: Vec<String>,
    /// Names of the outputs, in order.
    pub outputs: Vec<String>,
    /// Values, in the order of the nodes that make them.
    pub values: Vec<ValueJson>,
    /// Nodes in topological order, inputs and constants included; in the order of their making if there is a cycle.
    pub nodes: Vec<NodeJson>,
    /// How values whose axes are split or padded are declared; absent where each digit has a dim.
    #[serde(default, skip_serializing_if = "StorageRule::is_default")]
    pub storage: StorageRule,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueJson {
    /// ONNX name.
    pub name: String,
    /// Element type; absent if unknown and for what is no tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<DType>,
    /// Logical shape, each extent as text (`"3"`, `"N"`, `"(H+1)//2"`); absent if the rank is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<String>>,
    /// Layout, axes by their default letters; absent if the rank is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// Type of what is no dense tensor, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeJson {
    /// What it is.
    pub op: OpJson,
    /// ONNX name, often empty.
    pub name: String,
    /// Names of the operands; `null` where one is left out.
    pub inputs: Vec<Option<String>>,
    /// Names of the results; `null` where one is left out.
    pub outputs: Vec<Option<String>>,
    /// Attributes by name, bodies apart.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attrs: BTreeMap<String, AttrJson>,
    /// Bodies by attribute name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bodies: BTreeMap<String, Vec<ScopeJson>>,
    /// Why the node takes and gives row-major data only, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<String>,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OpJson {
    /// A graph input.
    Input {
        /// What stands in if the caller gives nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default: Option<ConstantJson>,
    },
    /// A constant.
    Constant(ConstantJson),
    /// In a body: the value of this name in the enclosing scope.
    Outer,
    /// A physical move.
    Relayout,
    /// An ONNX op.
    Onnx {
        /// Operator set domain; empty for ONNX's own.
        domain: String,
        /// Operator type.
        name: String,
        /// Overload of a model-local function; empty otherwise.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        overload: String,
        /// Version of the operator set; 0 if unknown.
        opset: i64,
    },
}

/// A constant, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConstantJson {
    /// Element type.
    pub dtype: DType,
    /// Extents as stored, outermost first.
    pub dims: Vec<i64>,
    /// Size in bytes; absent for strings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Whether the bytes were stripped from the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missing: bool,
    /// The move that export will execute on the bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<RepackJson>,
    /// Elements of integer constants of up to 16, row-major.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elements: Option<Vec<i64>>,
}

/// A move of stored bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepackJson {
    /// Extents of the source, which is row-major.
    pub extents: Vec<i64>,
    /// How the axes of the source lie in the result.
    pub to: String,
}

/// An attribute value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub enum AttrJson {
    /// A float.
    Float(FloatJson),
    /// An integer.
    Int(i64),
    /// A string.
    String(String),
    /// A string that is not UTF-8.
    Bytes(Vec<u8>),
    /// Floats.
    Floats(Vec<FloatJson>),
    /// Integers.
    Ints(Vec<i64>),
    /// Strings; bytes that are not UTF-8 are replaced by U+FFFD.
    Strings(Vec<String>),
    /// A tensor.
    Tensor(ConstantJson),
    /// In a function body: the caller's attribute of this name.
    Ref(String),
    /// Anything else, in words.
    Other(String),
}

/// A float; JSON has no numbers for infinities and NaN.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FloatJson {
    /// A finite number.
    Number(f32),
    /// `inf`, `-inf` or `NaN`.
    Text(String),
}

impl From<&Graph> for GraphJson {
    fn from(graph: &Graph) -> GraphJson {
        GraphJson { schema: SCHEMA, graph: ScopeJson::from(graph) }
    }
}

impl From<&Graph> for ScopeJson {
    fn from(graph: &Graph) -> ScopeJson {
        let names = |values: &[ValueId]| values.iter().map(|&v| graph.value(v).name.clone()).collect();
        let order = graph.order().unwrap_or_else(|_| graph.nodes().collect());
        let nodes = || order.iter().map(|&n| graph.node(n));
        ScopeJson {
            name: graph.name.clone(),
            inputs: names(graph.inputs()),
            outputs: names(graph.outputs()),
            values: nodes().flat_map(|n| n.outputs.iter().flatten()).map(|&v| value_json(graph, v)).collect(),
            nodes: nodes().map(|n| node_json(graph, n)).collect(),
            storage: graph.storage,
        }
    }
}

fn value_json(graph: &Graph, v: ValueId) -> ValueJson {
    let value = graph.value(v);
    let other = match &value.ty {
        crate::types::Type::Other(what) => Some(what.clone()),
        _ => None,
    };
    ValueJson {
        name: value.name.clone(),
        dtype: value.ty.dtype(),
        shape: value.ty.shape().map(|dims| dims.iter().map(ToString::to_string).collect()),
        layout: value.ty.rank().map(|_| value.layout.to_string()),
        other,
    }
}

fn node_json(graph: &Graph, node: &Node) -> NodeJson {
    let names = |slots: &[Option<ValueId>]| slots.iter().map(|v| v.map(|v| graph.value(v).name.clone())).collect();
    let mut attrs = BTreeMap::new();
    let mut bodies = BTreeMap::new();
    for (name, attr) in &node.attrs {
        match attr_json(attr) {
            Some(json) => drop(attrs.insert(name.clone(), json)),
            None => drop(bodies.insert(name.clone(), attr.bodies().iter().map(ScopeJson::from).collect())),
        }
    }
    NodeJson {
        op: op_json(node),
        name: node.name.clone(),
        inputs: names(&node.inputs),
        outputs: names(&node.outputs),
        attrs,
        bodies,
        opaque: matches!(node.op, Op::Onnx(_)).then(|| node.form.opaque_reason().map(str::to_owned)).flatten(),
    }
}

fn op_json(node: &Node) -> OpJson {
    match &node.op {
        Op::Input { default } => OpJson::Input { default: default.as_ref().map(ConstantJson::from) },
        Op::Constant(c) => OpJson::Constant(c.into()),
        Op::Outer => OpJson::Outer,
        Op::Relayout => OpJson::Relayout,
        Op::Onnx(op) => OpJson::Onnx {
            domain: op.domain.clone(),
            name: op.name.clone(),
            overload: op.overload.clone(),
            opset: node.opset,
        },
    }
}

impl AttrJson {
    /// An attribute; `None` for bodies.
    pub fn of(attr: &Attr) -> Option<AttrJson> {
        attr_json(attr)
    }
}

/// `None` for bodies.
fn attr_json(attr: &Attr) -> Option<AttrJson> {
    let text = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
    Some(match attr {
        Attr::Float(x) => AttrJson::Float(FloatJson::from(*x)),
        Attr::Int(i) => AttrJson::Int(*i),
        Attr::String(s) => match std::str::from_utf8(s) {
            Ok(text) => AttrJson::String(text.to_owned()),
            Err(_) => AttrJson::Bytes(s.to_vec()),
        },
        Attr::Floats(v) => AttrJson::Floats(v.iter().map(|&x| FloatJson::from(x)).collect()),
        Attr::Ints(v) => AttrJson::Ints(v.clone()),
        Attr::Strings(v) => AttrJson::Strings(v.iter().map(text).collect()),
        Attr::Tensor(c) => AttrJson::Tensor(c.into()),
        Attr::Ref(name) => AttrJson::Ref(name.clone()),
        Attr::Other(what) => AttrJson::Other((*what).to_owned()),
        Attr::Graph(_) | Attr::Graphs(_) => return None,
    })
}

impl From<&Constant> for ConstantJson {
    fn from(c: &Constant) -> ConstantJson {
        let pending = c.pending.as_ref().map(|p| RepackJson { extents: p.extents.clone(), to: p.to.to_string() });
        ConstantJson {
            dtype: c.dtype,
            dims: c.dims.clone(),
            bytes: c.size_bytes(),
            missing: !c.source.is_available(),
            pending,
            elements: c.to_ints(SHOWN_ELEMS),
        }
    }
}

impl From<f32> for FloatJson {
    fn from(x: f32) -> FloatJson {
        if x.is_finite() { FloatJson::Number(x) } else { FloatJson::Text(format!("{x:?}")) }
    }
}
