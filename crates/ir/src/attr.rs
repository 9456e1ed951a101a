//! Attributes of a node, typed. What no pass reads is kept as [`Attr::Other`]: the exporter starts from the node's origin, so
//! nothing is lost by it.

use crate::constant::Constant;
use crate::graph::Graph;
use indexmap::IndexMap;
use std::fmt;

/// Attributes by name, in the file's order.
pub type Attrs = IndexMap<String, Attr>;

/// One attribute value.
#[derive(Clone, Debug)]
pub enum Attr {
    /// A 32-bit float.
    Float(f32),
    /// A 64-bit integer.
    Int(i64),
    /// Bytes, by convention UTF-8.
    String(bytes::Bytes),
    /// Floats.
    Floats(Vec<f32>),
    /// Integers.
    Ints(Vec<i64>),
    /// Strings.
    Strings(Vec<bytes::Bytes>),
    /// A tensor.
    Tensor(Constant),
    /// A body: a branch of If, the body of Loop or Scan.
    Graph(Box<Graph>),
    /// Several bodies.
    Graphs(Vec<Graph>),
    /// In a function body: the attribute of this name of the calling node.
    Ref(String),
    /// Sparse tensors, type protos and whatever is newer; the text says which.
    Other(&'static str),
}

impl Attr {
    /// A list of axes.
    pub fn axes(axes: &[usize]) -> Attr {
        Attr::Ints(axes.iter().map(|&axis| axis as i64).collect())
    }

    /// The integer, if this is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Attr::Int(i) => Some(*i),
            _ => None,
        }
    }

    /// The integers, if these are some.
    pub fn as_ints(&self) -> Option<&[i64]> {
        match self {
            Attr::Ints(v) => Some(v),
            _ => None,
        }
    }

    /// The string, if this is one and UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Attr::String(s) => std::str::from_utf8(s).ok(),
            _ => None,
        }
    }

    /// Bodies held by this attribute.
    pub fn bodies(&self) -> &[Graph] {
        match self {
            Attr::Graph(g) => std::slice::from_ref(g),
            Attr::Graphs(v) => v,
            _ => &[],
        }
    }

    /// Bodies held by this attribute, to be changed.
    pub fn bodies_mut(&mut self) -> &mut [Graph] {
        match self {
            Attr::Graph(g) => std::slice::from_mut(g),
            Attr::Graphs(v) => v,
            _ => &mut [],
        }
    }
}

impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Debug of a float always has a point or an exponent, so that it never reads as an integer.
            Attr::Float(x) => write!(f, "{x:?}"),
            Attr::Int(i) => write!(f, "{i}"),
            Attr::String(s) => write!(f, "{:?}", String::from_utf8_lossy(s)),
            Attr::Floats(v) => list(f, &v.iter().map(|x| format!("{x:?}")).collect::<Vec<_>>()),
            Attr::Ints(v) => list(f, v),
            Attr::Strings(v) => {
                list(f, &v.iter().map(|s| format!("{:?}", String::from_utf8_lossy(s))).collect::<Vec<_>>())
            }
            Attr::Tensor(c) => write!(f, "tensor<{}{:?}>", c.dtype, c.dims),
            Attr::Graph(_) => f.write_str("body"),
            Attr::Graphs(v) => write!(f, "bodies<{}>", v.len()),
            Attr::Ref(name) => write!(f, "${name}"),
            Attr::Other(what) => write!(f, "<{what}>"),
        }
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    f.write_str("[")?;
    for (i, x) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(",")?;
        }
        x.fmt(f)?;
    }
    f.write_str("]")
}
