//! Calls of a model's own functions, written out so that layouts cross them, and put back where nothing in them changed.
//!
//! [`Inlined::of`] puts in the place of each call what its function holds: values get names that no graph of the model has,
//! attributes that refer to those of the call get their values. A function may call others, and calls may stand in bodies.
//! [`Inlined::restore`] goes the other way: a call stands again where every node of its body is as it was but for the names of
//! what the call reads and makes, and nobody outside reads what is inside. So an untouched call is the node that was read, a
//! function of element-wise ops is called on data in another order, and only what is another function now is written out.
//! Functions that nobody calls any more go. Until then nodes carry a tag by which they are found again.
//!
//! Not looked through: functions of other versions of an operator set than the model's, since a graph has one; those of ops that
//! the table of ops knows, of which a runtime may have a kernel; and all where the result would have too many nodes.

use crate::export::Taken;
use crate::file::ModelFile;
use crate::import::{Opsets, domain_of, function_name, op_name, opsets_of, reads};
use crate::proto::{AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, StringStringEntryProto};
use crate::wire::MAX_DEPTH;
use relayout_ir::graph::OpName;
use relayout_ir::op::lookup;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Key under which a node of a body says which call it is of, and its place in the body.
const TAG: &str = "relayout.call";

/// Most nodes that calls may be written out to.
const MOST_NODES: usize = 1 << 17;

/// Most calls that may stand within one another. They are written out one within the other, each on the stack of the one around it.
const MOST_CALLS: usize = 256;

/// Most bodies that may stand within one another once calls are written out: a body is three messages deeper than what is around it,
/// and what is in the innermost one has to be within the depth that readers follow.
const MOST_BODIES: usize = (MAX_DEPTH - 10) / 3;

/// A model with its calls written out.
#[derive(Debug)]
pub struct Inlined {
    /// The model.
    pub file: Arc<ModelFile>,
    /// Functions that are not looked through, each with the reason.
    pub notes: Vec<String>,
    /// Calls, those within others after them.
    calls: Vec<Call>,
}

/// A call, and what stands in its place.
#[derive(Debug)]
struct Call {
    node: NodeProto,
    /// The nodes of the function's body under their new names. Calls among them are calls.
    body: Vec<NodeProto>,
}

impl Inlined {
    /// Writes out the calls of a model's own functions.
    pub fn of(file: &Arc<ModelFile>) -> Inlined {
        let proto = &file.proto;
        let mut inlined = Inlined { file: Arc::clone(file), notes: Vec::new(), calls: Vec::new() };
        let Some(graph) = proto.graph.as_ref().filter(|_| !proto.functions.is_empty()) else { return inlined };
        let mut notes = BTreeSet::new();
        let functions = inlinable(proto, &mut notes);
        inlined.notes.extend(notes);
        if let Some(why) = too_large(graph, &functions) {
            inlined.notes.push(format!("the model's functions are not looked through: {why}"));
            return inlined;
        }
        let mut inliner = Inliner { functions, taken: Taken::of(proto), calls: Vec::new() };
        let graph = inliner.graph(graph);
        if !inliner.calls.is_empty() {
            inlined.calls = inliner.calls;
            inlined.file = Arc::new(file.with_proto(ModelProto { graph: Some(graph), ..proto.clone() }));
        }
        inlined
    }

    /// Whether there was nothing to write out.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Puts calls back where nothing in them changed, and takes functions away that nobody calls any more.
    pub fn restore(&self, proto: &mut ModelProto) {
        let before = called(proto, &self.file.proto, &self.calls);
        if let Some(graph) = &mut proto.graph {
            restore(graph, &self.calls);
            untag(graph);
        }
        let after = called(proto, proto, &[]);
        proto.functions.retain(|f| {
            let name = function_name(f);
            after.contains(&name) || !before.contains(&name)
        });
    }
}

/// Functions that can be written out, by name.
fn inlinable<'f>(proto: &'f ModelProto, notes: &mut BTreeSet<String>) -> BTreeMap<OpName, &'f FunctionProto> {
    let opsets = opsets_of(&proto.opset_import);
    let mut functions = BTreeMap::new();
    for f in &proto.functions {
        let name = function_name(f);
        let known = opsets.get(&name.domain).is_some_and(|&opset| lookup(&name, opset).is_some());
        match other_version(f, &opsets) {
            _ if known => {}
            Some(why) => drop(notes.insert(format!("function `{name}` is not looked through: {why}"))),
            None => drop(functions.insert(name, f)),
        }
    }
    functions
}

/// Why a function's body can't stand in the model's graph.
fn other_version(f: &FunctionProto, model: &Opsets) -> Option<String> {
    let own = opsets_of(&f.opset_import);
    let mut used = BTreeSet::new();
    domains(&f.node, &mut used);
    used.into_iter().find_map(|domain| match (own.get(&domain), model.get(&domain)) {
        (a, b) if a == b => None,
        (Some(a), Some(b)) => Some(format!("its operator set `{domain}` is of version {a}, the model's of {b}")),
        (Some(_), None) => Some(format!("the model does not import its operator set `{domain}`")),
        (None, _) => None,
    })
}

fn domains(nodes: &[NodeProto], used: &mut BTreeSet<String>) {
    for node in nodes {
        used.insert(domain_of(node.domain.as_deref()));
        node.bodies().for_each(|body| domains(&body.node, used));
    }
}

fn bodies_mut(a: &mut AttributeProto) -> impl Iterator<Item = &mut GraphProto> {
    a.g.as_deref_mut().into_iter().chain(&mut a.graphs)
}

/// How large nodes are once their calls are written out.
#[derive(Clone, Copy, Default)]
struct Extent {
    nodes: usize,
    /// Calls within one another.
    calls: usize,
    /// Bodies within one another.
    bodies: usize,
}

/// Why calls can't be written out as a whole. Without recursion from function to function, because a model may have a chain of any
/// number of them.
fn too_large(graph: &GraphProto, functions: &BTreeMap<OpName, &FunctionProto>) -> Option<String> {
    let (mut known, mut expanded) = (FxHashMap::default(), FxHashSet::default());
    let mut open = Vec::new();
    let whole = extent(&graph.node, functions, &known, &mut open);
    let whole = if open.is_empty() { whole } else { None };
    while let Some(name) = open.last().cloned() {
        let Some(f) = functions.get(&name).filter(|_| !known.contains_key(&name)) else {
            open.pop();
            continue;
        };
        let before = open.len();
        let own = extent(&f.node, functions, &known, &mut open);
        if let Some(own) = own {
            known.insert(name, Extent { calls: own.calls + 1, ..own });
        } else if !expanded.insert(name) || open.len() == before {
            return Some("a function calls itself".to_owned());
        }
    }
    let whole = whole.or_else(|| extent(&graph.node, functions, &known, &mut open))?;
    let most = |what: &str, limit: usize| Some(format!("written out it has more than {limit} {what}"));
    match whole {
        Extent { nodes, .. } if nodes > MOST_NODES => most("nodes", MOST_NODES),
        Extent { calls, .. } if calls > MOST_CALLS => most("calls within one another", MOST_CALLS),
        Extent { bodies, .. } if bodies > MOST_BODIES => most("bodies within one another", MOST_BODIES),
        _ => None,
    }
}

/// The extent of nodes and the bodies that they have in the file; `None`, and the names in `unknown`, if they call functions whose own
/// is not known yet.
fn extent(
    nodes: &[NodeProto],
    functions: &BTreeMap<OpName, &FunctionProto>,
    known: &FxHashMap<OpName, Extent>,
    unknown: &mut Vec<OpName>,
) -> Option<Extent> {
    let before = unknown.len();
    let mut sum = Extent::default();
    let mut add = |part: Extent| {
        sum.nodes = sum.nodes.saturating_add(part.nodes);
        sum.calls = sum.calls.max(part.calls);
        sum.bodies = sum.bodies.max(part.bodies);
    };
    for node in nodes {
        let name = op_name(node);
        if !functions.contains_key(&name) {
            add(Extent { nodes: 1, ..Extent::default() });
        } else if let Some(own) = known.get(&name) {
            add(*own);
        } else {
            unknown.push(name);
        }
        for body in node.bodies() {
            if let Some(inner) = extent(&body.node, functions, known, unknown) {
                add(Extent { bodies: inner.bodies + 1, ..inner });
            }
        }
    }
    (unknown.len() == before).then_some(sum)
}

struct Inliner<'f> {
    functions: BTreeMap<OpName, &'f FunctionProto>,
    taken: Taken,
    calls: Vec<Call>,
}

impl Inliner<'_> {
    fn graph(&mut self, graph: &GraphProto) -> GraphProto {
        GraphProto { node: self.nodes(&graph.node), ..graph.clone() }
    }

    fn nodes(&mut self, nodes: &[NodeProto]) -> Vec<NodeProto> {
        let mut written = Vec::with_capacity(nodes.len());
        for node in nodes {
            let body = self.functions.get(&op_name(node)).copied().and_then(|f| self.body(node, f));
            if let Some(body) = body {
                let mut body = body;
                for (place, node) in body.iter_mut().enumerate() {
                    tag(node, format!("{} {place}", self.calls.len()));
                }
                self.calls.push(Call { node: node.clone(), body: body.clone() });
                written.extend(self.nodes(&body));
                continue;
            }
            let mut node = node.clone();
            for a in &mut node.attribute {
                for body in bodies_mut(a) {
                    *body = self.graph(body);
                }
            }
            written.push(node);
        }
        written
    }

    /// What stands in the place of a call; `None` if it makes nothing that is read, so that it could not be found again.
    fn body(&mut self, call: &NodeProto, f: &FunctionProto) -> Option<Vec<NodeProto>> {
        let label = call.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(f.name());
        let prefix = call.output.iter().find(|name| !name.is_empty()).map(|name| format!("{label}/{name}"))?;
        let mut renaming = Renaming { prefix, names: FxHashMap::default(), taken: &mut self.taken };
        for (i, formal) in f.input.iter().enumerate() {
            renaming.names.insert(formal.clone(), call.input.get(i).cloned().unwrap_or_default());
        }
        let made: FxHashSet<&str> = f.node.iter().flat_map(|n| &n.output).map(String::as_str).collect();
        let mut copies = Vec::new();
        for (formal, actual) in f.output.iter().zip(&call.output).filter(|(_, actual)| !actual.is_empty()) {
            if made.contains(formal.as_str()) && !renaming.names.contains_key(formal) {
                renaming.names.insert(formal.clone(), actual.clone());
            } else {
                // An input that is passed on, or a value that is a result twice.
                copies.push((formal, actual));
            }
        }
        let attributes = Attributes { call, f };
        let mut body: Vec<NodeProto> = f.node.iter().map(|node| attributes.filled(renaming.node(node))).collect();
        for (formal, actual) in copies {
            body.push(NodeProto {
                op_type: Some("Identity".to_owned()),
                input: vec![renaming.name(formal)],
                output: vec![actual.clone()],
                ..NodeProto::default()
            });
        }
        Some(body)
    }
}

/// Names of a function's values in the graph that calls it.
struct Renaming<'t> {
    prefix: String,
    names: FxHashMap<String, String>,
    taken: &'t mut Taken,
}

impl Renaming<'_> {
    fn name(&mut self, name: &str) -> String {
        if name.is_empty() {
            return String::new();
        }
        if let Some(renamed) = self.names.get(name) {
            return renamed.clone();
        }
        let renamed = self.taken.fresh(&format!("{}/{name}", self.prefix));
        self.names.insert(name.to_owned(), renamed.clone());
        renamed
    }

    fn all(&mut self, names: &mut [String]) {
        for name in names {
            *name = self.name(name);
        }
    }

    fn option(&mut self, name: &mut Option<String>) {
        if let Some(name) = name {
            *name = self.name(name);
        }
    }

    fn node(&mut self, node: &NodeProto) -> NodeProto {
        let mut node = node.clone();
        self.all(&mut node.input);
        self.all(&mut node.output);
        if let Some(name) = node.name.as_mut().filter(|name| !name.is_empty()) {
            *name = format!("{}/{name}", self.prefix);
        }
        for a in &mut node.attribute {
            for body in bodies_mut(a) {
                self.graph(body);
            }
        }
        node
    }

    /// A body: every value of it gets a name of its own too, since names are unique over all graphs.
    fn graph(&mut self, graph: &mut GraphProto) {
        for info in graph.input.iter_mut().chain(&mut graph.output).chain(&mut graph.value_info) {
            self.option(&mut info.name);
        }
        for tensor in &mut graph.initializer {
            self.option(&mut tensor.name);
        }
        for sparse in &mut graph.sparse_initializer {
            if let Some(values) = &mut sparse.values {
                self.option(&mut values.name);
            }
        }
        graph.node = graph.node.iter().map(|node| self.node(node)).collect();
    }
}

/// What the attributes of a function are in a call.
struct Attributes<'c> {
    call: &'c NodeProto,
    f: &'c FunctionProto,
}

impl Attributes<'_> {
    fn value(&self, name: &str) -> Option<&AttributeProto> {
        let own = self.call.attribute.iter().find(|a| a.name() == name);
        own.or_else(|| self.f.attribute_proto.iter().find(|a| a.name() == name))
    }

    /// The node with the values of attributes that it refers to; one that neither the call nor a default gives is left out.
    fn filled(&self, mut node: NodeProto) -> NodeProto {
        node.attribute = node.attribute.into_iter().filter_map(|a| self.attribute(a)).collect();
        node
    }

    fn attribute(&self, mut a: AttributeProto) -> Option<AttributeProto> {
        if let Some(name) = a.ref_attr_name.as_deref().filter(|name| !name.is_empty()) {
            return self.value(name).map(|value| AttributeProto { name: a.name.clone(), ..value.clone() });
        }
        for body in bodies_mut(&mut a) {
            body.node = std::mem::take(&mut body.node).into_iter().map(|node| self.filled(node)).collect();
        }
        Some(a)
    }
}

/// Functions that a model's graph calls, or functions that it calls; with calls that were written out.
fn called(proto: &ModelProto, graph: &ModelProto, calls: &[Call]) -> BTreeSet<OpName> {
    let functions: BTreeMap<OpName, &FunctionProto> = proto.functions.iter().map(|f| (function_name(f), f)).collect();
    let mut found = BTreeSet::new();
    let mut open: Vec<&[NodeProto]> = graph.graph.iter().map(|g| g.node.as_slice()).collect();
    open.extend(calls.iter().map(|call| std::slice::from_ref(&call.node)));
    while let Some(nodes) = open.pop() {
        for node in nodes {
            let name = op_name(node);
            if let Some(f) = functions.get(&name).filter(|_| !found.contains(&name)) {
                found.insert(name);
                open.push(&f.node);
            }
            open.extend(node.bodies().map(|body| body.node.as_slice()));
        }
    }
    found
}

fn tag(node: &mut NodeProto, value: String) {
    node.metadata_props.push(StringStringEntryProto { key: Some(TAG.to_owned()), value: Some(value) });
}

fn untag(graph: &mut GraphProto) {
    for node in &mut graph.node {
        node.metadata_props.retain(|p| p.key.as_deref() != Some(TAG));
        node.attribute.iter_mut().flat_map(bodies_mut).for_each(untag);
    }
}

/// Puts calls back in a graph and its bodies, those within others first.
fn restore(graph: &mut GraphProto, calls: &[Call]) {
    for body in graph.node.iter_mut().flat_map(|n| &mut n.attribute).flat_map(bodies_mut) {
        restore(body, calls);
    }
    let mut places = Places::of(graph);
    for (number, call) in calls.iter().enumerate().rev() {
        places.restore(number, call);
    }
    graph.node = places.nodes.into_iter().flatten().collect();
}

/// The nodes of a graph, by tags and by what they make and read.
struct Places {
    nodes: Vec<Option<NodeProto>>,
    /// Places of the nodes with a tag.
    tagged: FxHashMap<String, Vec<usize>>,
    readers: FxHashMap<String, Vec<usize>>,
    outputs: FxHashSet<String>,
    /// Names of inputs, initializers and results.
    known: FxHashSet<String>,
}

impl Places {
    fn of(graph: &mut GraphProto) -> Places {
        let ends = graph.input.iter().filter_map(|i| i.name.clone());
        let known = ends.chain(graph.initializer.iter().filter_map(|t| t.name.clone())).collect();
        let outputs = graph.output.iter().filter_map(|o| o.name.clone()).collect();
        let nodes: Vec<Option<NodeProto>> = std::mem::take(&mut graph.node).into_iter().map(Some).collect();
        let (tagged, readers) = (FxHashMap::default(), FxHashMap::default());
        let mut places = Places { nodes, tagged, readers, outputs, known };
        for i in 0..places.nodes.len() {
            places.enter(i);
        }
        places
    }

    fn enter(&mut self, i: usize) {
        let Some(node) = self.nodes.get(i).and_then(Option::as_ref) else { return };
        for tag in node.metadata_props.iter().filter(|p| p.key.as_deref() == Some(TAG)) {
            self.tagged.entry(tag.value.clone().unwrap_or_default()).or_default().push(i);
        }
        self.known.extend(node.output.iter().cloned());
        for name in reads(node) {
            self.readers.entry(name.to_owned()).or_default().push(i);
        }
    }

    /// Puts a call in the place of the last node of its body, if all of it is there as it was.
    fn restore(&mut self, number: usize, call: &Call) {
        let Some((found, names)) = self.find(number, call) else { return };
        let (Some(&first), Some(&last)) = (found.first(), found.last()) else { return };
        let results: FxHashSet<&str> = call.node.output.iter().map(String::as_str).collect();
        for name in call.body.iter().flat_map(|n| &n.output).filter(|name| !name.is_empty()) {
            let Some(now) = names.get(name.as_str()) else { return };
            let mut outside = self.readers.get(now).into_iter().flatten().filter(|&&i| self.is_there(i, &found));
            // What is inside is read by nobody outside, and what is made not before the call stands.
            let blocked = if results.contains(name.as_str()) {
                outside.any(|i| (first..last).contains(i))
            } else {
                outside.next().is_some() || self.outputs.contains(now)
            };
            if blocked {
                return;
            }
        }
        let mut node = call.node.clone();
        for name in node.input.iter_mut().chain(&mut node.output).filter(|name| !name.is_empty()) {
            match names.get(name.as_str()) {
                Some(now) => name.clone_from(now),
                // What no node of the body reads has to be there all the same.
                None if self.known.contains(name) => {}
                None => return,
            }
        }
        for &i in &found {
            self.nodes[i] = None;
        }
        self.nodes[last] = Some(node);
        self.enter(last);
    }

    /// Whether a node outside of those found is still there.
    fn is_there(&self, i: usize, found: &BTreeSet<usize>) -> bool {
        !found.contains(&i) && self.nodes.get(i).is_some_and(Option::is_some)
    }

    /// Places of the nodes of a call's body, and what their values are called now; `None` unless all are there as they were.
    fn find<'c>(&self, number: usize, call: &'c Call) -> Option<(BTreeSet<usize>, FxHashMap<&'c str, String>)> {
        let (mut found, mut names) = (BTreeSet::new(), FxHashMap::default());
        for (k, node) in call.body.iter().enumerate() {
            let there = |i: &&usize| self.nodes.get(**i).is_some_and(Option::is_some);
            let mut places = self.tagged.get(&format!("{number} {k}"))?.iter().filter(there);
            let (place, None) = (*places.next()?, places.next()) else { return None };
            let now = self.nodes.get(place)?.as_ref()?;
            if !same_but_for_names(node, now, &mut names) {
                return None;
            }
            found.insert(place);
        }
        Some((found, names))
    }
}

/// Whether two nodes differ in the names of values only, and every name stands for one other.
fn same_but_for_names<'c>(was: &'c NodeProto, now: &NodeProto, names: &mut FxHashMap<&'c str, String>) -> bool {
    let bare = |node: &NodeProto| NodeProto { input: Vec::new(), output: Vec::new(), ..node.clone() };
    let sides = [(&was.input, &now.input), (&was.output, &now.output)];
    bare(was) == bare(now)
        && sides.into_iter().all(|(was, now)| {
            was.len() == now.len()
                && was.iter().zip(now).all(|(was, now)| {
                    was.is_empty() == now.is_empty() && names.entry(was).or_insert_with(|| now.clone()) == now
                })
        })
}
