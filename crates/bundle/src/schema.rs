//! The JSON files of a bundle, as types. `docs/bundle.md` says what each field means.
//!
//! The schema counts incompatible changes. Within one number fields are only added; readers skip those that they do not know.

use relayout_ir::dim::Dim;
use relayout_ir::dtype::DType;
use relayout_ir::text::json::FloatJson;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the form that this library writes and reads.
pub const BUNDLE_SCHEMA: u32 = 1;

/// What a bundle consists of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BundleManifest {
    /// Version of the form: [`BUNDLE_SCHEMA`].
    pub schema: u32,
    /// Version of the program that wrote it.
    pub relayout: String,
    /// Name of the target.
    pub target: String,
    /// Name of the graph, which may be empty.
    pub model: String,
    /// Every other file, sorted by path.
    pub files: Vec<FileEntry>,
    /// Nodes that have a kernel, bodies included.
    pub moves: usize,
    /// Nodes that move data and have none, bodies included.
    #[serde(default)]
    pub moves_without_kernel: usize,
}

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path in the bundle, with `/` between its parts.
    pub path: String,
    /// Size.
    pub bytes: u64,
    /// Digest, in hexadecimal.
    pub sha256: String,
}

/// The main graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BundleGraph {
    /// Version of the form: [`BUNDLE_SCHEMA`].
    pub schema: u32,
    /// Versions of operator sets, by domain; the empty one is ONNX's own.
    pub opsets: BTreeMap<String, i64>,
    /// The graph.
    #[serde(flatten)]
    pub scope: Scope,
}

/// A graph: the main one, or a body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scope {
    /// Name, which may be empty.
    pub name: String,
    /// What enters. An input of the same name as a constant has that as its default.
    pub inputs: Vec<BundleValue>,
    /// What leaves.
    pub outputs: Vec<BundleValue>,
    /// What nodes make and is no output, in the order of its making.
    pub values: Vec<BundleValue>,
    /// What lies in the file of weights, under the same names.
    pub constants: Vec<BundleValue>,
    /// Nodes in an order in which they can run.
    pub nodes: Vec<BundleNode>,
}

/// A value. What is not known is `null`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleValue {
    /// Name.
    pub name: String,
    /// Element type.
    pub dtype: Option<DType>,
    /// Extents as it is stored, outermost first.
    pub shape: Option<Vec<Extent>>,
    /// How its logical axes lie in `shape`.
    pub layout: Option<String>,
    /// Extents of the logical axes, in ONNX's order.
    pub logical: Option<Vec<Extent>>,
    /// What it is, in words, where it is no tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
}

/// An extent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Extent {
    /// A number.
    Number(i64),
    /// A polynomial over named symbols: `N`, `(H+1)//2`; `?3` for one that nobody named.
    Symbolic(String),
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BundleNode {
    /// Name, which may be empty.
    pub name: String,
    /// Operator set; empty for ONNX's own.
    pub domain: String,
    /// Operator, or function of domain `relayout`.
    pub op: String,
    /// Overload of the operator, where it has one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub overload: String,
    /// Version of the operator set; 0 where the model imports none.
    pub opset: i64,
    /// What it reads; `null` where an operand is left out.
    pub inputs: Vec<Option<String>>,
    /// What it makes; `null` where a result is left out.
    pub outputs: Vec<Option<String>>,
    /// Attributes by name.
    pub attributes: BTreeMap<String, Attribute>,
    /// Kernel of a node that moves data: the files `kernels/<id>.cu` and `kernels/<id>.json`.
    #[serde(default, rename = "move", skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Why a node that moves data has no kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_kernel: Option<String>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "lowercase")]
pub enum Attribute {
    /// An integer.
    Int(i64),
    /// A 32-bit float; `"inf"`, `"-inf"` and `"NaN"` are texts.
    Float(FloatJson),
    /// A text.
    String(String),
    /// Integers.
    Ints(Vec<i64>),
    /// 32-bit floats.
    Floats(Vec<FloatJson>),
    /// Texts.
    Strings(Vec<String>),
    /// A tensor.
    Tensor(BundleTensor),
    /// A body.
    Graph(Box<Scope>),
}

/// A tensor in an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleTensor {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<i64>,
    /// Elements, little-endian, in base64; those of less than a byte are packed, lowest first.
    pub data: String,
}

impl Scope {
    /// Bodies of the nodes, not those in them.
    pub fn bodies(&self) -> impl Iterator<Item = &Scope> {
        self.nodes.iter().flat_map(|node| node.attributes.values()).filter_map(|attribute| match attribute {
            Attribute::Graph(body) => Some(&**body),
            _ => None,
        })
    }

    /// Nodes, those of bodies included.
    pub fn all_nodes(&self) -> usize {
        self.sum(&|scope| scope.nodes.len())
    }

    /// Constants, those of bodies included.
    pub fn all_constants(&self) -> usize {
        self.sum(&|scope| scope.constants.len())
    }

    /// Nodes that have a kernel, those of bodies included.
    pub fn moves(&self) -> usize {
        self.sum(&|scope| scope.nodes.iter().filter(|node| node.kernel.is_some()).count())
    }

    /// Nodes that move data and have no kernel, those of bodies included.
    pub fn moves_without_kernel(&self) -> usize {
        self.sum(&|scope| scope.nodes.iter().filter(|node| node.no_kernel.is_some()).count())
    }

    /// The sum of something over the graph and all bodies.
    fn sum(&self, of: &dyn Fn(&Scope) -> usize) -> usize {
        of(self) + self.bodies().map(|body| body.sum(of)).sum::<usize>()
    }
}

impl From<&Dim> for Extent {
    fn from(dim: &Dim) -> Extent {
        dim.as_const().map_or_else(|| Extent::Symbolic(dim.to_string()), Extent::Number)
    }
}

impl Extent {
    /// The extent as the optimizer counts with it; `None` for text that is none, and below 0.
    pub fn dim(&self) -> Option<Dim> {
        match self {
            Extent::Number(n) => (*n >= 0).then(|| Dim::from(*n)),
            Extent::Symbolic(text) => text.parse().ok(),
        }
    }
}
