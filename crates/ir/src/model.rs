//! A whole model: the main graph, model-local functions and the operator sets they import.

use crate::graph::{Graph, OpName};
use std::collections::BTreeMap;

/// A model.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The main graph.
    pub graph: Graph,
    /// Model-local functions.
    pub functions: Vec<Function>,
    /// Imported operator sets: domain (the empty string for ONNX's own) to version.
    pub opsets: BTreeMap<String, i64>,
    /// Version of the ONNX file format, or 0 for models that do not come from a file.
    pub ir_version: i64,
    /// Anonymous dims handed out so far.
    pub unknowns: u32,
}

/// A model-local function. Its body is not optimized: it has no shapes of its own.
#[derive(Clone, Debug)]
pub struct Function {
    /// Domain, name and overload by which nodes call it.
    pub name: OpName,
    /// Names of its inputs and outputs, in order.
    pub inputs: Vec<String>,
    /// Names of its outputs.
    pub outputs: Vec<String>,
    /// Number of nodes in its body.
    pub nodes: usize,
}
