//! Graph to text.

use super::layouts;
use super::names::{Name, OpText, captured};
use super::scalars::{AttrText, Elements, TypeText};
use crate::attr::Attr;
use crate::constant::Constant;
use crate::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::storage::StorageRule;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// Says more about a node of a graph (the printed one or a body in it), without the leading ` ; `.
pub type Comment<'a> = &'a dyn Fn(&Graph, NodeId) -> Option<String>;

/// What the text says beside the graph.
#[derive(Clone)]
#[non_exhaustive]
pub struct PrintOptions<'a> {
    /// `key=value` pairs behind the graph's name, in this order; the keys `opset` and `storage` are the printer's own and left out.
    pub header: Vec<(String, String)>,
    /// Comments per node.
    pub comment: Option<Comment<'a>>,
    /// A last line, a comment; without the leading `; `.
    pub footer: Option<String>,
    /// Whether versions of operator sets are printed: `opset=N` in the header, and a node's own where it differs.
    pub opsets: bool,
}

impl Default for PrintOptions<'_> {
    fn default() -> Self {
        PrintOptions { header: Vec::new(), comment: None, footer: None, opsets: true }
    }
}

impl<'a> PrintOptions<'a> {
    /// With one more `key=value` pair in the header.
    #[must_use]
    pub fn with_header(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.header.push((key.into(), value.into()));
        self
    }

    /// With a comment per node.
    #[must_use]
    pub fn with_comment(mut self, comment: Comment<'a>) -> Self {
        self.comment = Some(comment);
        self
    }

    /// With a last line.
    #[must_use]
    pub fn with_footer(mut self, footer: impl Into<String>) -> Self {
        self.footer = Some(footer.into());
        self
    }

    /// Without versions of operator sets.
    #[must_use]
    pub fn without_opsets(mut self) -> Self {
        self.opsets = false;
        self
    }
}

impl fmt::Debug for PrintOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrintOptions")
            .field("header", &self.header)
            .field("comment", &self.comment.map(|_| "Fn"))
            .field("footer", &self.footer)
            .field("opsets", &self.opsets)
            .finish()
    }
}

/// The text of a graph. A graph with a cycle is printed in the order in which its nodes were made, and says so.
pub fn print(graph: &Graph, options: &PrintOptions<'_>) -> String {
    Text { graph, options }.to_string()
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Text { graph: self, options: &PrintOptions::default() }.fmt(f)
    }
}

struct Text<'a> {
    graph: &'a Graph,
    options: &'a PrintOptions<'a>,
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let opset = if self.options.opsets { common_opset(self.graph) } else { 0 };
        write!(f, "graph {}", Name(&self.graph.name))?;
        if opset != 0 {
            write!(f, " opset={opset}")?;
        }
        if self.graph.storage != StorageRule::default() {
            write!(f, " storage={}", self.graph.storage.name())?;
        }
        for (key, value) in self.options.header.iter().filter(|(key, _)| !matches!(key.as_str(), "opset" | "storage")) {
            write!(f, " {}={}", Name(key), Name(value))?;
        }
        f.write_str("\n")?;
        Printer { out: f, options: self.options, opset }.graph(self.graph, 1)?;
        match &self.options.footer {
            Some(footer) => writeln!(f, "; {}", one_line(footer)),
            None => Ok(()),
        }
    }
}

/// The version that most nodes of ONNX's own operator set have, bodies included; the newest of those equally common.
fn common_opset(graph: &Graph) -> i64 {
    fn count(graph: &Graph, counts: &mut BTreeMap<i64, usize>) {
        for node in graph.nodes().map(|n| graph.node(n)) {
            if node.onnx().is_some() {
                *counts.entry(node.opset).or_default() += 1;
            }
            node.bodies().for_each(|body| count(body, counts));
        }
    }
    let mut counts = BTreeMap::new();
    count(graph, &mut counts);
    counts.into_iter().max_by_key(|&(version, n)| (n, version)).map_or(0, |(version, _)| version)
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

struct Printer<'a, W> {
    out: &'a mut W,
    options: &'a PrintOptions<'a>,
    opset: i64,
}

impl<W: Write> Printer<'_, W> {
    fn graph(&mut self, graph: &Graph, level: usize) -> fmt::Result {
        let (order, acyclic) = lines(graph);
        if !acyclic {
            self.indent(level)?;
            self.out.write_str("; not in order: the graph has a cycle\n")?;
        }
        for n in order {
            self.node(graph, n, level)?;
        }
        for &v in graph.outputs() {
            self.indent(level)?;
            writeln!(self.out, "output %{}", Name(&graph.value(v).name))?;
        }
        Ok(())
    }

    fn indent(&mut self, level: usize) -> fmt::Result {
        (0..level).try_for_each(|_| self.out.write_str("  "))
    }

    fn node(&mut self, graph: &Graph, n: NodeId, level: usize) -> fmt::Result {
        let node = graph.node(n);
        self.indent(level)?;
        self.results(graph, node)?;
        self.out.write_str(" = ")?;
        self.op(graph, node)?;
        let mut comments: Vec<String> = held(node).map(constant_notes).unwrap_or_default();
        comments.extend(self.options.comment.and_then(|comment| comment(graph, n)).map(|c| one_line(&c)));
        if !comments.is_empty() {
            write!(self.out, " ; {}", comments.join(", "))?;
        }
        self.out.write_str("\n")?;
        for (_, attr) in sorted(node) {
            for body in attr.bodies() {
                self.indent(level + 1)?;
                writeln!(self.out, "body {}", Name(&body.name))?;
                self.graph(body, level + 2)?;
                self.indent(level + 1)?;
                self.out.write_str("end\n")?;
            }
        }
        Ok(())
    }

    fn results(&mut self, graph: &Graph, node: &Node) -> fmt::Result {
        if node.outputs.is_empty() {
            return self.out.write_str("()");
        }
        for (i, result) in node.outputs.iter().enumerate() {
            self.out.write_str(if i > 0 { ", " } else { "" })?;
            let Some(v) = *result else {
                self.out.write_str("_")?;
                continue;
            };
            let value = graph.value(v);
            write!(self.out, "%{}: {}", Name(&value.name), TypeText(&value.ty))?;
            if let Some(layout) = layouts::print(graph, v) {
                write!(self.out, "@{layout}")?;
            }
        }
        Ok(())
    }

    fn op(&mut self, graph: &Graph, node: &Node) -> fmt::Result {
        match &node.op {
            Op::Input { default: None } => self.out.write_str("input"),
            Op::Input { default: Some(c) } => {
                write!(self.out, "input(default{}{})", own_type(graph, node, c), Elements(c))
            }
            Op::Constant(c) => write!(self.out, "const{}{}", own_type(graph, node, c), Elements(c)),
            Op::Outer => self.out.write_str("outer"),
            Op::Relayout => self.call(graph, node, &"relayout", None),
            Op::Onnx(name) => {
                let common = if name.domain.is_empty() { self.opset } else { 1 };
                let opset = (self.options.opsets && node.opset != common).then_some(node.opset);
                self.call(graph, node, &OpText(name), opset)
            }
        }
    }

    fn call(&mut self, graph: &Graph, node: &Node, op: &dyn fmt::Display, opset: Option<i64>) -> fmt::Result {
        write!(self.out, "{op}(")?;
        for (i, input) in node.inputs.iter().enumerate() {
            self.out.write_str(if i > 0 { ", " } else { "" })?;
            match *input {
                Some(v) => write!(self.out, "%{}", Name(&graph.value(v).name))?,
                None => self.out.write_str("_")?,
            }
        }
        self.out.write_str(")")?;
        for (i, (name, attr)) in sorted(node).into_iter().enumerate() {
            write!(self.out, "{}{}={}", if i > 0 { ", " } else { " {" }, Name(name), AttrText(attr))?;
        }
        if !node.attrs.is_empty() {
            self.out.write_str("}")?;
        }
        match opset {
            Some(version) => write!(self.out, " opset {version}"),
            None => Ok(()),
        }
    }
}

/// Attributes by name; only calls have any in the text.
fn sorted(node: &Node) -> Vec<(&str, &Attr)> {
    if !matches!(node.op, Op::Relayout | Op::Onnx(_)) {
        return Vec::new();
    }
    let mut attrs: Vec<(&str, &Attr)> = node.attrs.iter().map(|(name, attr)| (name.as_str(), attr)).collect();
    attrs.sort_unstable_by_key(|(name, _)| *name);
    attrs
}

/// The tensor that a node holds.
fn held(node: &Node) -> Option<&Constant> {
    match &node.op {
        Op::Constant(c) | Op::Input { default: Some(c) } => Some(c),
        _ => None,
    }
}

/// `<TYPE>` where a constant's element type and extents are not those of the value it makes, as stored.
fn own_type(graph: &Graph, node: &Node, c: &Constant) -> String {
    let implied = node.result(0).and_then(|v| {
        let value = graph.value(v);
        layouts::stored_type(&value.ty, &value.layout, graph.storage)
    });
    match implied {
        Some((dtype, dims)) if dtype == c.dtype && dims == c.dims => String::new(),
        _ => format!("<{}>", c.ty()),
    }
}

/// What the line of a constant does not say, and the parser reads.
fn constant_notes(c: &Constant) -> Vec<String> {
    if Elements(c).shown() {
        return Vec::new();
    }
    let size = c.size_bytes().map(|bytes| format!("{bytes} B"));
    let missing = (!c.source.is_available()).then(|| "missing".to_owned());
    let stored = c.pending.as_ref().map(|repack| format!("stored as {}", layouts::repack_text(repack, &c.dims)));
    size.into_iter().chain(missing).chain(stored).collect()
}

/// Nodes in the order of their lines, and whether that is a topological order.
fn lines(graph: &Graph) -> (Vec<NodeId>, bool) {
    let (order, acyclic) = match graph.order() {
        Ok(order) => (order, true),
        Err(_) => (graph.nodes().collect(), false),
    };
    let mut lines = Lines { graph, done: FxHashSet::default(), order: Vec::with_capacity(order.len()) };
    for &v in graph.inputs() {
        lines.push(graph.value(v).producer().0);
    }
    for &n in &order {
        let node = graph.node(n);
        if is_source(node) {
            continue;
        }
        for v in node.inputs.iter().flatten().copied().chain(captured(graph, node)) {
            lines.source_of(v);
        }
        lines.push(n);
    }
    for n in order {
        lines.push(n);
    }
    (lines.order, acyclic)
}

fn is_source(node: &Node) -> bool {
    matches!(node.op, Op::Input { .. } | Op::Constant(_) | Op::Outer)
}

struct Lines<'a> {
    graph: &'a Graph,
    done: FxHashSet<NodeId>,
    order: Vec<NodeId>,
}

impl Lines<'_> {
    fn push(&mut self, n: NodeId) {
        if self.graph.contains(n) && self.done.insert(n) {
            self.order.push(n);
        }
    }

    fn source_of(&mut self, v: ValueId) {
        let (n, _) = self.graph.value(v).producer();
        if self.graph.contains(n) && is_source(self.graph.node(n)) {
            self.push(n);
        }
    }
}
