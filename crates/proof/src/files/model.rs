//! ONNX files as the checker reads them: only the fields that say what is computed.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A model: its graph, its functions and the versions of its ops.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) graph: Rc<Graph>,
    pub(crate) opsets: BTreeMap<String, i64>,
    pub(crate) functions: Vec<Rc<Function>>,
    /// Version of the format: since 4 an initializer that is also an input is only its default.
    pub(crate) ir: i64,
    /// Channels of a block of `com.microsoft.nchwc` on the hosts that the file says that it is for.
    pub(crate) block: Option<i64>,
    /// Whose reading its nodes have.
    pub(crate) reading: ReadingOf,
    /// The file as it is, and those beside it that it names; nothing for a model that is no file.
    pub(crate) file: Bytes,
    pub(crate) beside: BTreeMap<String, Bytes>,
}

/// Whose reading a node has where the standard does not say what it computes, or ONNX Runtime computes something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadingOf {
    /// That of the standard. A node of which it says nothing is an op by itself.
    Onnx,
    /// That of ONNX Runtime, in the rows in which the checker takes a side.
    #[default]
    OnnxRuntime,
}

/// A function that is local to a model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Function {
    pub(crate) domain: String,
    pub(crate) name: String,
    pub(crate) overload: String,
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) opsets: BTreeMap<String, i64>,
    pub(crate) defaults: Vec<(String, Attr)>,
}

/// A graph or a body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) initializers: Vec<(String, Tensor)>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<String>,
    /// The outputs with their declared types.
    pub(crate) declared: Vec<Input>,
}

/// An input with its declared type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) dtype: u8,
    /// `None` where no shape is declared.
    pub(crate) dims: Option<Vec<DeclaredDim>>,
    /// What is declared of a value that is no tensor, as it stands in the file.
    pub(crate) other: Bytes,
}

/// An extent of an input.
#[derive(Clone, Debug)]
pub(crate) enum DeclaredDim {
    Known(i64),
    Symbol(String),
    Unknown,
}

/// One use of an op.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) name: String,
    pub(crate) op: String,
    pub(crate) domain: String,
    pub(crate) overload: String,
    pub(crate) attrs: Vec<(String, Attr)>,
}

/// An attribute.
#[derive(Clone, Debug)]
pub(crate) enum Attr {
    Float(f32),
    Int(i64),
    Text(Vec<u8>),
    Tensor(Tensor),
    Graph(Rc<Graph>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Texts(Vec<Vec<u8>>),
    /// The attribute of the function's caller that has this name.
    Ref(String),
    /// One of the kind with this letter in `operators.txt`, or `?`, and its bytes.
    Unread(char, Bytes),
}

impl Attr {
    /// The letter of its kind in `operators.txt`.
    pub(crate) fn kind(&self) -> char {
        match self {
            Attr::Float(_) => 'f',
            Attr::Int(_) => 'i',
            Attr::Text(_) => 's',
            Attr::Tensor(_) => 't',
            Attr::Graph(_) => 'g',
            Attr::Floats(_) => 'F',
            Attr::Ints(_) => 'I',
            Attr::Texts(_) => 'S',
            Attr::Unread(kind, _) => *kind,
            Attr::Ref(_) => '?',
        }
    }
}

/// A constant of the file: `data` is row-major and little-endian.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tensor {
    pub(crate) dims: Vec<i64>,
    pub(crate) dtype: u8,
    pub(crate) data: Bytes,
}

/// The version of the format since which callers may set initializers that are inputs.
const DEFAULTS_SINCE: i64 = 4;

impl Model {
    /// The initializers that nobody else can set.
    pub(crate) fn constants(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        let fixed = |name: &str| self.ir < DEFAULTS_SINCE || !self.graph.inputs.iter().any(|input| input.name == name);
        self.graph
            .initializers
            .iter()
            .map(|(name, tensor)| (name.as_str(), tensor))
            .filter(move |(name, _)| fixed(name))
    }

    /// The initializers that are defaults of inputs.
    pub(crate) fn defaults(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        let free = |name: &str| self.ir >= DEFAULTS_SINCE && self.graph.inputs.iter().any(|input| input.name == name);
        self.graph.initializers.iter().map(|(name, tensor)| (name.as_str(), tensor)).filter(move |(name, _)| free(name))
    }
}

/// Elements that a file has in a byte, of types of less than one.
pub(crate) fn packed(dtype: u8) -> Option<usize> {
    match dtype {
        21..=23 => Some(2),
        25 | 26 => Some(4),
        _ => None,
    }
}

/// Bytes per element of a type of ONNX, where those of less than a byte have one each; `None` for strings.
pub(crate) fn width(dtype: u8) -> Option<usize> {
    Some(match dtype {
        2 | 3 | 9 | 17..=26 => 1,
        4 | 5 | 10 | 16 => 2,
        1 | 6 | 12 => 4,
        7 | 11 | 13 | 14 => 8,
        _ => return None,
    })
}
