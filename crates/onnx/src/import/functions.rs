//! Functions of a model, as far as their callers rely on them: which there are, that none calls itself, and that those the
//! graph calls are sound. What a function that nobody calls holds is nobody's concern.

use super::order::{label, ordered};
use super::{Opsets, check, domain_of, opsets_of};
use crate::proto::{FunctionProto, ModelProto, NodeProto};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, IntoNeighbors, Reversed, Visitable};
use relayout_ir::graph::OpName;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Which function calls which.
type Calls = DiGraph<(), ()>;

/// Functions by what calls them.
pub(super) struct Functions<'f> {
    by_name: FxHashMap<OpName, (usize, &'f FunctionProto)>,
}

/// What a node calls.
pub(crate) fn op_name(node: &NodeProto) -> OpName {
    OpName {
        domain: domain_of(node.domain.as_deref()),
        name: node.op_type.clone().unwrap_or_default(),
        overload: node.overload.clone().unwrap_or_default(),
    }
}

pub(crate) fn function_name(f: &FunctionProto) -> OpName {
    OpName {
        domain: domain_of(f.domain.as_deref()),
        name: f.name.clone().unwrap_or_default(),
        overload: f.overload.clone().unwrap_or_default(),
    }
}

impl<'f> Functions<'f> {
    /// The functions of a model; what is wrong with them is added to `problems`.
    pub(super) fn collect(model: &'f ModelProto, problems: &mut Vec<String>) -> Functions<'f> {
        let mut functions = Functions { by_name: FxHashMap::default() };
        for (i, f) in model.functions.iter().enumerate() {
            if functions.by_name.insert(function_name(f), (i, f)).is_some() {
                problems.push(format!("function `{}` is there twice", f.name()));
            }
        }
        let calls = functions.calls(model);
        problems.extend(
            first_recursive(&calls).map(|i| {
                format!("function `{}` calls itself, or another function that does", model.functions[i].name())
            }),
        );
        if problems.is_empty() {
            functions.check_called(model, &calls, problems);
        }
        functions
    }

    /// Whether a node of this name calls a function of the model.
    pub(super) fn has(&self, name: &OpName) -> bool {
        self.by_name.contains_key(name)
    }

    /// A call with more operands or results than the function has.
    pub(super) fn miscalled(&self, node: &NodeProto, name: &OpName) -> Option<String> {
        let (_, f) = self.by_name.get(name)?;
        let beyond = |found: usize, has: usize, what: &str| {
            (found > has).then(|| format!("has {found} {what}s, and function `{}` has {has}", f.name()))
        };
        beyond(node.input.len(), f.input.len(), "input").or_else(|| beyond(node.output.len(), f.output.len(), "output"))
    }

    /// Functions that the nodes and their bodies call, by number.
    fn callees(&self, nodes: &'f [NodeProto], found: &mut BTreeSet<usize>) {
        for node in nodes {
            found.extend(self.by_name.get(&op_name(node)).map(|(i, _)| *i));
            for body in node.bodies() {
                self.callees(&body.node, found);
            }
        }
    }

    /// Which function calls which, by their numbers.
    fn calls(&self, model: &'f ModelProto) -> Calls {
        let mut calls = Calls::with_capacity(model.functions.len(), 0);
        let callers: Vec<NodeIndex> = model.functions.iter().map(|_| calls.add_node(())).collect();
        for (caller, f) in callers.into_iter().zip(&model.functions) {
            let mut called = BTreeSet::new();
            self.callees(&f.node, &mut called);
            for callee in called {
                calls.add_edge(caller, NodeIndex::new(callee), ());
            }
        }
        calls
    }

    /// Functions that the main graph calls, and those that these call.
    fn check_called(&self, model: &'f ModelProto, calls: &Calls, problems: &mut Vec<String>) {
        let mut called = BTreeSet::new();
        self.callees(model.graph.as_ref().map_or(&[], |g| &g.node), &mut called);
        let called = reached(calls, called.into_iter().map(NodeIndex::new).collect());
        for f in called.into_iter().filter_map(|i| model.functions.get(i)) {
            let before = problems.len();
            self.function(f, problems);
            for problem in problems.iter_mut().skip(before) {
                *problem = format!("in function `{}`: {problem}", f.name());
            }
        }
    }

    fn function(&self, f: &'f FunctionProto, problems: &mut Vec<String>) {
        let inputs: FxHashSet<&str> = f.input.iter().map(String::as_str).collect();
        let given = |name: &str| inputs.contains(name);
        ordered(&f.node, given, |_| false, problems);
        let made: FxHashSet<&str> = f.node.iter().flat_map(|n| &n.output).map(String::as_str).collect();
        for output in f.output.iter().filter(|o| !made.contains(o.as_str()) && !given(o)) {
            problems.push(format!("output `{output}` is not defined by any node or input"));
        }
        self.nodes(&f.node, &opsets_of(&f.opset_import), problems);
    }

    fn nodes(&self, nodes: &'f [NodeProto], opsets: &Opsets, problems: &mut Vec<String>) {
        for (i, node) in nodes.iter().enumerate() {
            let name = op_name(node);
            let wrong = self.node(node, &name, opsets, true);
            problems.extend(wrong.into_iter().map(|why| format!("{}: {why}", label(node, i))));
            for body in node.bodies() {
                self.nodes(&body.node, opsets, problems);
            }
        }
    }

    /// What is wrong with a node, as far as operator sets and functions say.
    pub(super) fn node(&self, node: &NodeProto, name: &OpName, opsets: &Opsets, in_function: bool) -> Vec<String> {
        let opset = opsets.get(&name.domain).copied();
        if opset.is_none() && (!assumed(&name.domain) || (in_function && name.domain.is_empty())) {
            return vec![format!("its domain `{}` is not among the imported operator sets", name.domain)];
        }
        if self.has(name) {
            return self.miscalled(node, name).into_iter().collect();
        }
        match opset {
            Some(opset) if name.domain.is_empty() => check::node(node, opset),
            _ => Vec::new(),
        }
    }
}

/// The first of the functions that call themselves or a function that does.
fn first_recursive(calls: &Calls) -> Option<usize> {
    let goes_round = |part: &Vec<NodeIndex>| part.len() > 1 || part.iter().any(|&f| calls.contains_edge(f, f));
    let recursive = kosaraju_scc(calls).into_iter().filter(goes_round).flatten().collect();
    reached(Reversed(calls), recursive).first().copied()
}

/// The numbers of these functions and of all that edges lead to from them.
fn reached<G>(calls: G, from: Vec<NodeIndex>) -> BTreeSet<usize>
where
    G: IntoNeighbors<NodeId = NodeIndex> + Visitable<NodeId = NodeIndex>,
{
    let mut visit = Dfs::from_parts(from, calls.visit_map());
    std::iter::from_fn(|| visit.next(calls)).map(NodeIndex::index).collect()
}

/// Domains that ONNX Runtime imports by itself where a model does not.
fn assumed(domain: &str) -> bool {
    const OWN: [&str; 5] = ["ai.onnx", "com.microsoft", "com.ms", "org.pytorch", "com.nvidia"];
    domain.is_empty() || OWN.iter().any(|own| domain.starts_with(own))
}
