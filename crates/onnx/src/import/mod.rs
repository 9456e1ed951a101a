//! Import: messages to graph. Every node is kept, each with the number it has in its message as its origin; every problem is
//! found and reported with names, not only the first.
//!
//! What is checked here is what the graph can't represent: names that nothing defines or that are defined twice, cycles,
//! tensors whose data and dims disagree, attributes whose value is not of their type. What an op demands of its operands is
//! inference's business.

mod tensors;
mod types;

pub use types::type_of;

use crate::file::ModelFile;
use crate::proto::{AttributeProto, FunctionProto, GraphProto, NodeProto, attribute_proto::AttributeType};
use crate::write::Payloads;
use relayout_ir::attr::{Attr, Attrs};
use relayout_ir::constant::Constant;
use relayout_ir::graph::{Graph, Node, Op, OpName, ValueId};
use relayout_ir::model::{Function, Model};
use relayout_ir::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

/// Problems that keep a model from being a graph; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// Each names the node or tensor.
    pub problems: Vec<String>,
}

impl std::fmt::Display for ImportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SHOWN: usize = 8;
        f.write_str(&self.problems.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; "))?;
        match self.problems.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more problems"),
        }
    }
}

impl std::error::Error for ImportError {}

/// Reads a model.
///
/// # Errors
/// Every problem found.
pub fn import(file: &Arc<ModelFile>) -> Result<Model, ImportError> {
    import_again(file, &Payloads::new())
}

/// Reads a model that [`export`](crate::export::export) made and nobody has written yet: some of its tensors are tickets.
///
/// # Errors
/// Every problem found.
pub fn import_again(file: &Arc<ModelFile>, payloads: &Payloads) -> Result<Model, ImportError> {
    let proto = &file.proto;
    let mut importer = Importer {
        file,
        payloads,
        opsets: BTreeMap::new(),
        ir_version: proto.ir_version.unwrap_or(0),
        unknowns: 0,
        problems: Vec::new(),
    };
    for set in &proto.opset_import {
        importer.opsets.insert(domain_of(set.domain.as_deref()), set.version.unwrap_or(0));
    }
    importer.check_versions();
    let graph = match &proto.graph {
        Some(g) => importer.graph(g, &Scope::default()).graph,
        None => Graph::default(),
    };
    let functions = proto.functions.iter().map(function).collect();
    if !importer.problems.is_empty() {
        return Err(ImportError { problems: importer.problems });
    }
    Ok(Model {
        graph,
        functions,
        opsets: importer.opsets,
        ir_version: importer.ir_version,
        unknowns: importer.unknowns,
    })
}

fn function(f: &FunctionProto) -> Function {
    Function {
        name: OpName {
            domain: domain_of(f.domain.as_deref()),
            name: f.name.clone().unwrap_or_default(),
            overload: f.overload.clone().unwrap_or_default(),
        },
        inputs: f.input.clone(),
        outputs: f.output.clone(),
        nodes: f.node.len(),
    }
}

fn domain_of(domain: Option<&str>) -> String {
    match domain {
        None | Some("ai.onnx") => String::new(),
        Some(d) => d.to_owned(),
    }
}

/// Names that a body can read from outside.
#[derive(Clone, Copy, Default)]
struct Scope<'a> {
    types: Option<&'a FxHashMap<&'a str, Type>>,
    outer: Option<&'a Scope<'a>>,
}

impl Scope<'_> {
    fn find(&self, name: &str) -> Option<&Type> {
        self.types.and_then(|t| t.get(name)).or_else(|| self.outer?.find(name))
    }
}

struct Importer<'f> {
    file: &'f Arc<ModelFile>,
    payloads: &'f Payloads,
    opsets: BTreeMap<String, i64>,
    ir_version: i64,
    unknowns: u32,
    problems: Vec<String>,
}

/// A graph and the outer names that it and its bodies read.
struct Imported {
    graph: Graph,
    reads_outside: BTreeSet<String>,
}

impl<'f> Importer<'f> {
    fn problem(&mut self, text: String) {
        self.problems.push(text);
    }

    fn check_versions(&mut self) {
        let standard = self.opsets.get("").copied();
        if self.file.proto.opset_import.iter().any(|s| s.version.unwrap_or(0) < 1) {
            self.problem("the model imports an operator set without a version".to_owned());
        }
        if standard.is_none() && self.file.proto.opset_import.is_empty() && self.ir_version >= 3 {
            self.problem("the model imports no operator set: opset_import is empty".to_owned());
        }
        if self.ir_version < 1 {
            self.problem("the model has no ir_version".to_owned());
        }
    }

    fn graph(&mut self, proto: &'f GraphProto, scope: &Scope<'_>) -> Imported {
        let mut graph = Graph::new(proto.name.clone().unwrap_or_default());
        let types = self.declared_types(proto);
        self.inputs_and_initializers(proto, &mut graph, &types);
        let order = self.ordered(proto, &graph, scope);
        let inner = Scope { types: Some(&types), outer: Some(scope) };
        let mut reads_outside = BTreeSet::new();
        for i in order {
            self.node(&proto.node[i], i, &mut graph, &inner, scope, &mut reads_outside);
        }
        for output in &proto.output {
            let name = output.name.as_deref().unwrap_or_default();
            match graph.by_name(name) {
                Some(v) => graph.add_output(v),
                None if scope.find(name).is_some() => {
                    if let Some(v) = outer(&mut graph, scope, name, &mut reads_outside) {
                        graph.add_output(v);
                    }
                }
                None => self.problem(format!("graph output `{name}` is not defined by any node, input or initializer")),
            }
        }
        Imported { graph, reads_outside }
    }

    /// Types that the file declares, by value name.
    fn declared_types(&mut self, proto: &'f GraphProto) -> FxHashMap<&'f str, Type> {
        let mut types = FxHashMap::default();
        for node in &proto.node {
            for name in node.output.iter().filter(|n| !n.is_empty()) {
                types.insert(name.as_str(), Type::Unknown);
            }
        }
        for info in proto.value_info.iter().chain(&proto.output).chain(&proto.input) {
            let name = info.name.as_deref().unwrap_or_default();
            types.insert(name, type_of(info.r#type.as_ref(), &mut self.unknowns));
        }
        for tensor in &proto.initializer {
            types.entry(tensor.name.as_deref().unwrap_or_default()).or_insert_with(|| tensors::type_of(tensor));
        }
        types
    }

    fn inputs_and_initializers(&mut self, proto: &'f GraphProto, graph: &mut Graph, types: &FxHashMap<&'f str, Type>) {
        let mut constants: FxHashMap<&str, Constant> = FxHashMap::default();
        let mut order: Vec<(&str, usize)> = Vec::new();
        for (place, tensor) in proto.initializer.iter().enumerate() {
            let name = tensor.name.as_deref().unwrap_or_default();
            match tensors::constant(self.file, self.payloads, tensor) {
                Ok(c) => {
                    if constants.insert(name, c).is_some() {
                        self.problem(format!("initializer `{name}` is there twice"));
                    } else {
                        order.push((name, proto.node.len() + place));
                    }
                }
                Err(problem) => self.problem(problem),
            }
        }
        for input in &proto.input {
            let name = input.name.as_deref().unwrap_or_default();
            if name.is_empty() {
                self.problem("a graph input has no name".to_owned());
                continue;
            }
            let ty = types.get(name).cloned().unwrap_or_default();
            let added = match constants.contains_key(name) {
                // Before IR version 4 every initializer is also listed as an input, and is a constant all the same.
                true if self.ir_version < 4 => continue,
                true => match constants.remove(name) {
                    Some(c) => graph.add_overridable(name, ty, c),
                    None => continue,
                },
                false => graph.add_input(name, ty),
            };
            if let Err(e) = added {
                self.problem(e.to_string());
            }
        }
        for (name, place) in order {
            let added = constants.remove(name).map(|c| {
                let ty = tensors::constant_type(&c);
                let mut node = Node::new(Op::Constant(c), vec![]);
                node.origin = u32::try_from(place).ok();
                graph.add_single(node, name.to_owned(), ty)
            });
            if let Some(Err(e)) = added {
                self.problem(e.to_string());
            }
        }
        for sparse in &proto.sparse_initializer {
            let name = sparse.values.as_ref().and_then(|v| v.name.as_deref()).unwrap_or_default();
            let ty = tensors::sparse_type(sparse);
            if let Err(e) = graph.add_single(Node::new(Op::Outer, vec![]), name.to_owned(), ty) {
                self.problem(e.to_string());
            }
        }
    }

    /// Nodes in an order in which every operand is defined before it is read, the file's own where that is one.
    fn ordered(&mut self, proto: &'f GraphProto, graph: &Graph, scope: &Scope<'_>) -> Vec<usize> {
        let mut maker: FxHashMap<&str, usize> = FxHashMap::default();
        for (i, node) in proto.node.iter().enumerate() {
            for name in node.output.iter().filter(|n| !n.is_empty()) {
                if maker.insert(name, i).is_some() || graph.by_name(name).is_some() {
                    self.problem(format!("value `{name}` is defined twice, again by {}", label(node, i)));
                }
            }
        }
        let mut waits = vec![0usize; proto.node.len()];
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); proto.node.len()];
        for (i, node) in proto.node.iter().enumerate() {
            let mut reads: BTreeSet<&str> = node.input.iter().map(String::as_str).filter(|n| !n.is_empty()).collect();
            let mut inside = FxHashSet::default();
            for body in node.attribute.iter().flat_map(bodies) {
                outer_reads(body, &mut inside);
            }
            reads.extend(inside);
            for name in reads {
                if let Some(&m) = maker.get(name) {
                    waits[i] += 1;
                    readers[m].push(i);
                } else if graph.by_name(name).is_none() && scope.find(name).is_none() {
                    self.problem(format!("{} reads `{name}`, which nothing defines", label(node, i)));
                }
            }
        }
        let mut ready: BinaryHeap<Reverse<usize>> = (0..waits.len()).filter(|&i| waits[i] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(waits.len());
        while let Some(Reverse(i)) = ready.pop() {
            order.push(i);
            for &r in &readers[i] {
                waits[r] -= 1;
                if waits[r] == 0 {
                    ready.push(Reverse(r));
                }
            }
        }
        if order.len() < waits.len() {
            let stuck: Vec<String> =
                (0..waits.len()).filter(|&i| waits[i] > 0).take(4).map(|i| label(&proto.node[i], i)).collect();
            self.problem(format!("the graph has a cycle through or before {}", stuck.join(", ")));
        }
        order
    }

    fn node(
        &mut self,
        proto: &'f NodeProto,
        index: usize,
        graph: &mut Graph,
        inner: &Scope<'_>,
        scope: &Scope<'_>,
        reads_outside: &mut BTreeSet<String>,
    ) {
        let op = OpName {
            domain: domain_of(proto.domain.as_deref()),
            name: proto.op_type.clone().unwrap_or_default(),
            overload: proto.overload.clone().unwrap_or_default(),
        };
        if op.name.is_empty() {
            self.problem(format!("{} has no op_type", label(proto, index)));
        }
        let opset = self.opsets.get(&op.domain).copied().unwrap_or(0);
        let mut captured = BTreeSet::new();
        let attrs = self.attributes(proto, index, inner, &mut captured);
        let mut read = |graph: &mut Graph, name: &str| -> Option<ValueId> {
            graph.by_name(name).or_else(|| outer(graph, scope, name, reads_outside))
        };
        let inputs = proto.input.iter().map(|name| if name.is_empty() { None } else { read(graph, name) }).collect();
        let captures = captured.iter().filter_map(|name| read(graph, name)).collect();
        let constant =
            (op.domain.is_empty() && op.name == "Constant").then(|| tensors::of_constant_node(&attrs)).flatten();
        let mut node = Node::new(constant.map_or(Op::Onnx(op), Op::Constant), inputs);
        node.name = proto.name.clone().unwrap_or_default();
        node.opset = opset;
        node.attrs = attrs;
        node.captures = captures;
        node.origin = u32::try_from(index).ok();
        node.rank = index as u32;
        let results = proto
            .output
            .iter()
            .map(|name| {
                let declared = || match &node.op {
                    Op::Constant(c) => tensors::constant_type(c),
                    _ => inner.find(name).cloned().unwrap_or_default(),
                };
                (!name.is_empty()).then(|| (name.clone(), declared()))
            })
            .collect();
        // A duplicate is already on the list of problems.
        let _ = graph.add(node, results);
    }

    fn attributes(
        &mut self,
        proto: &'f NodeProto,
        index: usize,
        inner: &Scope<'_>,
        captured: &mut BTreeSet<String>,
    ) -> Attrs {
        let mut attrs = Attrs::default();
        for a in &proto.attribute {
            let name = a.name.clone().unwrap_or_default();
            match self.attribute(a, inner, captured) {
                Ok(attr) => {
                    if attrs.insert(name.clone(), attr).is_some() {
                        self.problem(format!("{}: attribute `{name}` is there twice", label(proto, index)));
                    }
                }
                Err(why) => self.problem(format!("{}: attribute `{name}` {why}", label(proto, index))),
            }
        }
        attrs
    }

    fn attribute(
        &mut self,
        a: &'f AttributeProto,
        inner: &Scope<'_>,
        captured: &mut BTreeSet<String>,
    ) -> Result<Attr, String> {
        if let Some(name) = a.ref_attr_name.as_deref().filter(|n| !n.is_empty()) {
            return Ok(Attr::Ref(name.to_owned()));
        }
        let Ok(kind) = AttributeType::try_from(kind_of(a)) else {
            return Err(format!("is of a kind ({}) that this version does not know", kind_of(a)));
        };
        let lacks = |what: &str| format!("is said to be {what}, but has none");
        Ok(match kind {
            AttributeType::Float => Attr::Float(a.f.unwrap_or_default()),
            AttributeType::Int => Attr::Int(a.i.unwrap_or_default()),
            AttributeType::String => Attr::String(a.s.clone().unwrap_or_default()),
            AttributeType::Floats => Attr::Floats(a.floats.clone()),
            AttributeType::Ints => Attr::Ints(a.ints.clone()),
            AttributeType::Strings => Attr::Strings(a.strings.clone()),
            AttributeType::Tensor => {
                let t = a.t.as_deref().ok_or_else(|| lacks("a tensor"))?;
                Attr::Tensor(tensors::constant(self.file, self.payloads, t)?)
            }
            AttributeType::Graph => {
                let g = a.g.as_deref().ok_or_else(|| lacks("a graph"))?;
                Attr::Graph(Box::new(self.body(g, inner, captured)))
            }
            AttributeType::Graphs => Attr::Graphs(a.graphs.iter().map(|g| self.body(g, inner, captured)).collect()),
            AttributeType::Tensors => Attr::Other("tensors"),
            AttributeType::SparseTensor => Attr::Other("sparse tensor"),
            AttributeType::SparseTensors => Attr::Other("sparse tensors"),
            AttributeType::TypeProto => Attr::Other("type"),
            AttributeType::TypeProtos => Attr::Other("types"),
            AttributeType::Undefined => return Err("has no type".to_owned()),
        })
    }

    fn body(&mut self, proto: &'f GraphProto, inner: &Scope<'_>, captured: &mut BTreeSet<String>) -> Graph {
        let imported = self.graph(proto, inner);
        captured.extend(imported.reads_outside);
        imported.graph
    }
}

/// The kind of an attribute; files of IR version 1 do not say it, so it follows from the field that is set.
fn kind_of(a: &AttributeProto) -> i32 {
    if let Some(kind) = a.r#type.filter(|&k| k != 0) {
        return kind;
    }
    let kind = match a {
        AttributeProto { f: Some(_), .. } => AttributeType::Float,
        AttributeProto { i: Some(_), .. } => AttributeType::Int,
        AttributeProto { s: Some(_), .. } => AttributeType::String,
        AttributeProto { t: Some(_), .. } => AttributeType::Tensor,
        AttributeProto { g: Some(_), .. } => AttributeType::Graph,
        _ if !a.floats.is_empty() => AttributeType::Floats,
        _ if !a.ints.is_empty() => AttributeType::Ints,
        _ if !a.strings.is_empty() => AttributeType::Strings,
        _ => AttributeType::Undefined,
    };
    kind as i32
}

/// The node of a value of an enclosing scope, made once per graph.
fn outer(graph: &mut Graph, scope: &Scope<'_>, name: &str, reads: &mut BTreeSet<String>) -> Option<ValueId> {
    let ty = scope.find(name)?.clone();
    reads.insert(name.to_owned());
    match graph.by_name(name) {
        Some(v) => Some(v),
        None => graph.add_single(Node::new(Op::Outer, vec![]), name.to_owned(), ty).ok(),
    }
}

fn bodies(a: &AttributeProto) -> impl Iterator<Item = &GraphProto> {
    a.g.as_deref().into_iter().chain(&a.graphs)
}

/// Names that a body and the bodies in it read and do not define.
fn outer_reads<'p>(body: &'p GraphProto, reads: &mut FxHashSet<&'p str>) {
    let mut own: FxHashSet<&str> = FxHashSet::default();
    own.extend(body.input.iter().filter_map(|i| i.name.as_deref()));
    own.extend(body.initializer.iter().filter_map(|t| t.name.as_deref()));
    own.extend(body.sparse_initializer.iter().filter_map(|t| t.values.as_ref()?.name.as_deref()));
    own.extend(body.node.iter().flat_map(|n| n.output.iter().map(String::as_str)));
    let mut inside = FxHashSet::default();
    for node in &body.node {
        inside.extend(node.input.iter().map(String::as_str));
        for inner in node.attribute.iter().flat_map(bodies) {
            outer_reads(inner, &mut inside);
        }
    }
    inside.extend(body.output.iter().filter_map(|o| o.name.as_deref()));
    reads.extend(inside.into_iter().filter(|n| !n.is_empty() && !own.contains(n)));
}

fn label(node: &NodeProto, index: usize) -> String {
    let op = node.op_type.as_deref().unwrap_or("?");
    match (node.name.as_deref().unwrap_or_default(), node.output.first()) {
        ("", Some(out)) => format!("node {index} ({op} -> `{out}`)"),
        ("", None) => format!("node {index} ({op})"),
        (name, _) => format!("node `{name}` ({op})"),
    }
}
