//! Import: messages to graph. Every node is kept, each with the number it has in its message as its origin; every problem is
//! found and reported with names, not only the first.
//!
//! What is checked here is what the graph can't represent (names that nothing defines or that are defined twice, cycles,
//! tensors whose data and dims disagree, attributes whose value is not of their type) and what the standard does not allow
//! (`check`, `functions`). What an op demands of the types and shapes of its operands is inference's business. A model
//! that ONNX Runtime loads is not refused, so some things that the standard forbids are let through: data of another length
//! in a tensor that nothing reads, or a name that is an initializer's twice, of which the last counts.

mod check;
mod functions;
mod order;
mod schema;
mod tensors;
mod types;
mod values;

pub use types::type_of;
pub use values::impossible;

use crate::external::is_external;
use crate::file::ModelFile;
use crate::proto::{
    AttributeProto, FunctionProto, GraphProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto,
    attribute_proto::AttributeType, type_proto,
};
use crate::write::Payloads;
use functions::Functions;
pub(crate) use functions::{function_name, op_name};
use indexmap::IndexMap;
pub(crate) use order::reads;
use order::{all_reads, label, ordered};
use relayout_ir::attr::{Attr, Attrs};
use relayout_ir::constant::Constant;
use relayout_ir::dtype::DType;
use relayout_ir::graph::{Graph, Node, Op, ValueId};
use relayout_ir::model::{Function, Model};
use relayout_ir::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is wrong with a node of the standard's domain as a node: its operator in this opset, how many operands and results it has, and its
/// attributes. Each is a sentence without a subject; nothing is said of opsets that are not known.
pub fn refused(node: &NodeProto, opset: i64) -> Vec<String> {
    check::node(node, opset)
}

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
    let mut problems = Vec::new();
    let mut importer = Importer {
        file,
        payloads,
        opsets: opsets_of(&proto.opset_import),
        functions: Functions::collect(proto, &mut problems),
        ir_version: proto.ir_version.unwrap_or(0),
        unknowns: 0,
        problems,
    };
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
    Function { name: function_name(f), inputs: f.input.clone(), outputs: f.output.clone(), nodes: f.node.len() }
}

/// Versions of operator sets, by domain.
pub(crate) type Opsets = BTreeMap<String, i64>;

pub(crate) fn opsets_of(sets: &[OperatorSetIdProto]) -> Opsets {
    sets.iter().map(|set| (domain_of(set.domain.as_deref()), set.version.unwrap_or(0))).collect()
}

/// The name under which operator sets of a domain are kept: that of ONNX's own is empty.
pub fn domain_of(domain: Option<&str>) -> String {
    match domain {
        None | Some("ai.onnx") => String::new(),
        Some(d) => d.to_owned(),
    }
}

/// Names that a body can read from outside.
#[derive(Clone, Copy, Default)]
struct Scope<'a> {
    types: Option<&'a FxHashMap<&'a str, Type>>,
    /// Inputs and initializers among them.
    ends: Option<&'a FxHashSet<&'a str>>,
    outer: Option<&'a Scope<'a>>,
}

impl Scope<'_> {
    fn find(&self, name: &str) -> Option<&Type> {
        self.types.and_then(|t| t.get(name)).or_else(|| self.outer?.find(name))
    }

    /// Whether the name is an input or initializer of one of the graphs around.
    fn has_end(&self, name: &str) -> bool {
        self.ends.is_some_and(|ends| ends.contains(name)) || self.outer.is_some_and(|outer| outer.has_end(name))
    }

    fn is_outermost(&self) -> bool {
        self.outer.is_none()
    }
}

struct Importer<'f> {
    file: &'f Arc<ModelFile>,
    payloads: &'f Payloads,
    opsets: Opsets,
    functions: Functions<'f>,
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
        let newest = schema::newest_ir_version();
        if self.opsets.get("").is_some_and(|&version| version < 1) {
            self.problem("the model imports the standard's operator set without a version".to_owned());
        }
        if self.opsets.is_empty() && (self.ir_version >= 3 || self.file.proto.ir_version.is_none()) {
            self.problem("the model imports no operator set: opset_import is empty".to_owned());
        }
        match self.file.proto.ir_version {
            None => self.problem("the model has no ir_version".to_owned()),
            Some(version) if version > newest || version < 0 => self.problem(format!(
                "the model has IR version {version}, and this version of relayout knows those up to {newest}"
            )),
            _ => {}
        }
    }

    fn graph(&mut self, proto: &'f GraphProto, scope: &Scope<'_>) -> Imported {
        let mut graph = Graph::new(proto.name.clone().unwrap_or_default());
        let types = self.declared_types(proto);
        self.check_declarations(proto, scope.is_outermost(), &types);
        self.inputs_and_initializers(proto, scope.is_outermost(), &mut graph, &types);
        let (given, outside) = (|name: &str| graph.by_name(name).is_some(), |name: &str| scope.find(name).is_some());
        let order = ordered(&proto.node, given, outside, &mut self.problems);
        let initializers = proto.initializer.iter().map(TensorProto::name);
        let ends = initializers.chain(proto.input.iter().map(ValueInfoProto::name)).collect();
        let inner = Scope { types: Some(&types), ends: Some(&ends), outer: Some(scope) };
        let mut reads_outside = BTreeSet::new();
        for i in order {
            self.node(&proto.node[i], i, &mut graph, &inner, scope, &mut reads_outside);
        }
        for output in &proto.output {
            let name = output.name.as_deref().unwrap_or_default();
            match graph.by_name(name) {
                Some(v) => graph.add_output(v),
                None if scope.find(name).is_some() => self.problem(format!(
                    "output `{name}` of a body is a value from outside of it; pass it through an Identity in the body"
                )),
                None => self.problem(format!("graph output `{name}` is not defined by any node, input or initializer")),
            }
        }
        Imported { graph, reads_outside }
    }

    /// Types of the values of a graph, as far as the file declares them.
    fn declared_types(&mut self, proto: &'f GraphProto) -> FxHashMap<&'f str, Type> {
        let made = proto.node.iter().flat_map(|node| &node.output).map(String::as_str);
        let given = proto.input.iter().map(ValueInfoProto::name);
        let mut types: FxHashMap<&str, Type> =
            made.chain(given).filter(|name| !name.is_empty()).map(|name| (name, Type::Unknown)).collect();
        types.extend(proto.initializer.iter().map(|tensor| (tensor.name(), tensors::type_of(tensor))));
        for sparse in &proto.sparse_initializer {
            types.insert(tensors::sparse_name(sparse), tensors::sparse_type(sparse));
        }
        for info in
            proto.value_info.iter().chain(&proto.output).chain(&proto.input).filter(|info| info.r#type.is_some())
        {
            if let Some(ty) = types.get_mut(info.name()) {
                *ty = type_of(info.r#type.as_ref(), &mut self.unknowns);
            }
        }
        types
    }

    /// Declared types that nothing can have, or that an initializer does not have.
    fn check_declarations(&mut self, proto: &'f GraphProto, outermost: bool, types: &FxHashMap<&'f str, Type>) {
        let tensors: FxHashMap<&str, &TensorProto> = proto.initializer.iter().map(|t| (t.name(), t)).collect();
        for input in &proto.input {
            let name = input.name();
            match tensors.get(name) {
                Some(tensor) => self.problems.extend(tensors::misdeclared(tensor, types.get(name))),
                None if outermost && input.r#type.is_none() => {
                    self.problem(format!("graph input `{name}` has no type"));
                }
                None => {}
            }
        }
        for info in proto.input.iter().chain(&proto.output).chain(&proto.value_info) {
            let Some(type_proto::Value::TensorType(t)) = info.r#type.as_ref().and_then(|t| t.value.as_ref()) else {
                continue;
            };
            if DType::from_onnx(t.elem_type()).is_none() && types.contains_key(info.name()) {
                self.problem(format!("value `{}` has element type {}, which is not known", info.name(), t.elem_type()));
            }
        }
    }

    /// The initializers of a graph. Data that does not fit its tensor matters only where something reads it.
    fn initializers(&mut self, proto: &'f GraphProto) -> IndexMap<&'f str, Constant> {
        let mut constants: IndexMap<&str, Constant> = IndexMap::new();
        let mut read = None;
        for tensor in proto.initializer.iter().filter(|tensor| !tensor.name().is_empty()) {
            let constant = match tensors::constant(self.file, self.payloads, tensor) {
                Ok(constant) => constant,
                Err(problem) => {
                    let stand_in = tensors::without_data(tensor, &problem);
                    let matters = is_external(tensor)
                        || stand_in.is_none()
                        || read.get_or_insert_with(|| all_reads(proto)).contains(tensor.name());
                    if matters {
                        self.problem(problem);
                    }
                    let Some(stand_in) = stand_in else { continue };
                    stand_in
                }
            };
            // Of two with one name the last counts.
            constants.insert(tensor.name(), constant);
        }
        constants
    }

    fn inputs_and_initializers(
        &mut self,
        proto: &'f GraphProto,
        outermost: bool,
        graph: &mut Graph,
        types: &FxHashMap<&'f str, Type>,
    ) {
        let mut constants = self.initializers(proto);
        for input in &proto.input {
            let name = input.name.as_deref().unwrap_or_default();
            if name.is_empty() {
                // Nothing can read it; in a body it has a place among others.
                if !outermost {
                    self.problem("an input of a body has no name".to_owned());
                }
                continue;
            }
            let ty = types.get(name).cloned().unwrap_or_default();
            let added = match constants.contains_key(name) {
                // Before IR version 4 every initializer is also listed as an input, and is a constant all the same.
                true if self.ir_version < 4 => continue,
                true => match constants.shift_remove(name) {
                    Some(c) => graph.add_overridable(name, ty, c),
                    None => continue,
                },
                false => graph.add_input(name, ty),
            };
            if let Err(e) = added {
                self.problem(e.to_string());
            }
        }
        let places: FxHashMap<&str, usize> =
            proto.initializer.iter().enumerate().map(|(place, tensor)| (tensor.name(), place)).collect();
        for (name, c) in constants {
            let ty = tensors::constant_type(&c);
            let mut node = Node::new(Op::Constant(c), vec![]);
            node.origin = places.get(name).and_then(|place| u32::try_from(proto.node.len() + place).ok());
            if let Err(e) = graph.add_single(node, name.to_owned(), ty) {
                self.problem(e.to_string());
            }
        }
        let before = proto.node.len() + proto.initializer.len();
        for (place, sparse) in proto.sparse_initializer.iter().enumerate() {
            let added = tensors::sparse(sparse).and_then(|c| {
                let (name, ty) = (tensors::sparse_name(sparse).to_owned(), tensors::constant_type(&c));
                let mut node = Node::new(Op::Constant(c), vec![]);
                node.origin = u32::try_from(before + place).ok();
                graph.add_single(node, name, ty).map_err(|e| e.to_string())
            });
            self.problems.extend(added.err());
        }
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
        let op = op_name(proto);
        let mut wrong = if op.name.is_empty() {
            vec!["has no op_type".to_owned()]
        } else {
            self.functions.node(proto, &op, &self.opsets, false)
        };
        wrong.extend(proto.attribute.iter().filter_map(|a| check::attribute(a, self.ir_version)));
        wrong.extend(shadowed(proto, inner));
        self.problems.extend(wrong.into_iter().map(|why| format!("{}: {why}", label(proto, index))));
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

/// The kind of an attribute, an [`AttributeType`]; files of IR version 1 do not say it, so it follows from the field that is set.
pub fn kind_of(a: &AttributeProto) -> i32 {
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

/// A value that a body defines although it has that name already further out. What an enclosing graph's other nodes define
/// may be defined later than the node that holds the body, which is no mistake.
fn shadowed(node: &NodeProto, scope: &Scope<'_>) -> Option<String> {
    let made = node.bodies().flat_map(|body| &body.node).flat_map(|n| &n.output);
    let read: FxHashSet<&str> = node.input.iter().map(String::as_str).collect();
    let twice =
        made.filter(|name| !name.is_empty()).find(|name| scope.has_end(name) || read.contains(name.as_str()))?;
    Some(format!("a node of its body defines `{twice}`, which is defined outside of the body already"))
}
