//! The smallest pair of pieces that is not shown: from values that both models compute to a value that has one name in both.

use super::same::Same;
use crate::files::model::{Attr, Graph, Model, Node};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Values of the same name that are looked at, in the order of the result.
const CANDIDATES: usize = 256;

/// Nodes of each piece that are shown.
const SHOWN: usize = 10;

/// Longest list of numbers that is shown.
const LIST: usize = 8;

/// Two pieces that were not shown to compute the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Gap {
    /// The value that both pieces make.
    pub value: String,
    /// Values that both pieces read, and that are the same: their names in the input.
    pub given: Vec<String>,
    /// Their names in the result, in the same order.
    pub given_in_result: Vec<String>,
    /// Nodes of the input, in order.
    pub input: Vec<String>,
    /// Nodes of the result, in order.
    pub result: Vec<String>,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = if self.given.is_empty() { "constants".to_owned() } else { self.given.join(", ") };
        writeln!(f, "from {given} both make `{}`:", self.value)?;
        for (whose, nodes) in [("the input", &self.input), ("the result", &self.result)] {
            let more = nodes.len().saturating_sub(SHOWN);
            let words = if more > 0 { format!(", the last {SHOWN} of {}", nodes.len()) } else { String::new() };
            write!(f, "  {whose}{words}:")?;
            for node in &nodes[more..] {
                write!(f, "\n    {node}")?;
            }
            if whose == "the input" {
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

/// One of both graphs, by who makes which value.
struct Side<'m> {
    graph: &'m Graph,
    makers: FxHashMap<&'m str, usize>,
}

impl<'m> Side<'m> {
    fn of(model: &'m Model) -> Side<'m> {
        let nodes = model.graph.nodes.iter().enumerate();
        let makers = nodes.flat_map(|(at, node)| node.outputs.iter().map(move |name| (name.as_str(), at))).collect();
        Side { graph: &model.graph, makers }
    }

    /// The nodes that make a value of values that are given, and which of these they read.
    fn cone(&self, value: &str, is_given: &dyn Fn(&str) -> bool) -> (BTreeSet<usize>, BTreeSet<String>) {
        let (mut nodes, mut given, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![value.to_owned()]);
        while let Some(name) = open.pop() {
            if name != value && is_given(&name) {
                given.insert(name);
            } else if let Some(&at) = self.makers.get(name.as_str())
                && nodes.insert(at)
            {
                open.extend(reads(&self.graph.nodes[at]).into_iter().map(str::to_owned));
            }
        }
        (nodes, given)
    }

    fn lines(&self, nodes: &BTreeSet<usize>) -> Vec<String> {
        nodes.iter().map(|&at| line(&self.graph.nodes[at])).collect()
    }
}

/// Every name that a node reads, and those that its bodies do.
fn reads(node: &Node) -> Vec<&str> {
    let mut names: Vec<&str> = node.inputs.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    for (_, attr) in &node.attrs {
        if let Attr::Graph(body) = attr {
            names.extend(body.nodes.iter().flat_map(reads));
            names.extend(body.outputs.iter().map(String::as_str));
        }
    }
    names
}

/// The pair with the fewest nodes.
pub(super) fn smallest(a: &Model, b: &Model, same: &Same) -> Option<Gap> {
    let (input, result) = (Side::of(a), Side::of(b));
    let in_input: FxHashSet<&str> = same.values().map(String::as_str).collect();
    let ends: FxHashSet<&str> = a.graph.inputs.iter().map(|end| end.name.as_str()).collect();
    let known_a = |name: &str| in_input.contains(name) || ends.contains(name);
    let known_b = |name: &str| same.contains_key(name) || ends.contains(name);
    let shared = |name: &&String| !same.contains_key(*name) && input.makers.contains_key(name.as_str());
    let values = b.graph.nodes.iter().flat_map(|node| &node.outputs).filter(shared).take(CANDIDATES);
    // Of several values of the result that are one of the input, the first by name.
    let mut pairs: Vec<(&String, &String)> = same.iter().map(|(own, name)| (name, own)).collect();
    pairs.sort_unstable_by(|a, b| b.cmp(a));
    let same_as: BTreeMap<&String, &String> = pairs.into_iter().collect();
    let mut found: Option<(usize, Gap)> = None;
    for value in values.chain(b.graph.outputs.iter().filter(shared)) {
        let (left, reads_left) = input.cone(value, &known_a);
        let (right, reads_right) = result.cone(value, &known_b);
        let size = left.len() + right.len();
        if left.is_empty() || right.is_empty() || found.as_ref().is_some_and(|(least, _)| *least <= size) {
            continue;
        }
        let of_input = |name: &String| same.get(name).unwrap_or(name).clone();
        let of_result = |name: &String| same_as.get(name).map_or_else(|| name.clone(), |&own| own.clone());
        let read = reads_left.iter().map(|name| (name.clone(), of_result(name)));
        let mut given: BTreeMap<String, String> = read.collect();
        given.extend(reads_right.iter().map(|name| (of_input(name), name.clone())));
        let (given, given_in_result) = given.into_iter().unzip();
        let (input, result) = (input.lines(&left), result.lines(&right));
        let cut = Gap { value: value.clone(), given, given_in_result, input, result };
        found = Some((size, cut));
    }
    found.map(|(_, cut)| cut)
}

/// A node in one line.
fn line(node: &Node) -> String {
    let named =
        |names: &[String]| names.iter().map(|n| if n.is_empty() { "_" } else { n }).collect::<Vec<_>>().join(", ");
    let domain = if node.domain.is_empty() { String::new() } else { format!("{}.", node.domain) };
    let attrs: Vec<String> = node.attrs.iter().map(|(name, attr)| format!("{name}={}", number(attr))).collect();
    let attrs = if attrs.is_empty() { String::new() } else { format!(" {{{}}}", attrs.join(", ")) };
    format!("{} = {domain}{}({}){attrs}", named(&node.outputs), node.op, named(&node.inputs))
}

fn number(attr: &Attr) -> String {
    let list = |words: Vec<String>| {
        let end = if words.len() > LIST { ", ..." } else { "" };
        format!("[{}{end}]", words.into_iter().take(LIST).collect::<Vec<_>>().join(", "))
    };
    match attr {
        Attr::Float(value) => value.to_string(),
        Attr::Int(value) => value.to_string(),
        Attr::Text(text) => format!("{:?}", String::from_utf8_lossy(text)),
        Attr::Tensor(tensor) => format!("a tensor {:?}", tensor.dims),
        Attr::Graph(body) => format!("a body of {} nodes", body.nodes.len()),
        Attr::Floats(values) => list(values.iter().map(f32::to_string).collect()),
        Attr::Ints(values) => list(values.iter().map(i64::to_string).collect()),
        Attr::Texts(texts) => list(texts.iter().map(|text| format!("{:?}", String::from_utf8_lossy(text))).collect()),
        Attr::Ref(name) => format!("that of the caller, {name:?}"),
        Attr::Unread(..) => "...".to_owned(),
    }
}
