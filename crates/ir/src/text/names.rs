//! Names in the text: bare where every character is harmless, quoted with Rust's escapes elsewhere.

use crate::graph::{Graph, Node, Op, OpName, ValueId};
use std::collections::BTreeSet;
use std::fmt;

/// Words that start a right-hand side and are no op types.
pub(super) const KEYWORDS: [&str; 4] = ["input", "const", "outer", "relayout"];

/// Whether the character may stand in a bare name.
pub(super) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | ':' | '-')
}

/// Whether the character may stand in a bare part of an op's name, where `:` separates.
pub(super) fn is_op_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

/// A name, quoted where it has to be.
pub(super) struct Name<'a>(pub(super) &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        part(f, self.0, is_plain)
    }
}

/// An op's name, its parts quoted where they have to be.
pub(super) struct OpText<'a>(pub(super) &'a OpName);

impl fmt::Display for OpText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OpName { domain, name, overload } = self.0;
        if !domain.is_empty() {
            part(f, domain, is_op_part)?;
            f.write_str("::")?;
        }
        if domain.is_empty() && KEYWORDS.contains(&name.as_str()) {
            write!(f, "{name:?}")?;
        } else {
            part(f, name, is_op_part)?;
        }
        if !overload.is_empty() {
            f.write_str(":")?;
            part(f, overload, is_op_part)?;
        }
        Ok(())
    }
}

fn part(f: &mut fmt::Formatter<'_>, text: &str, plain: fn(char) -> bool) -> fmt::Result {
    if !text.is_empty() && text.chars().all(plain) { f.write_str(text) } else { write!(f, "{text:?}") }
}

/// The values of `graph` that the bodies of one of its nodes name as outer ones, by name.
///
/// Printer and parser both ask this rather than `Node::captures`, whose order the text does not show.
pub(super) fn captured(graph: &Graph, node: &Node) -> Vec<ValueId> {
    let mut names = BTreeSet::new();
    for body in node.bodies() {
        for outer in body.nodes().map(|n| body.node(n)).filter(|n| matches!(n.op, Op::Outer)) {
            names.extend(outer.outputs.iter().flatten().map(|&v| body.value(v).name.as_str()));
        }
    }
    names.into_iter().filter_map(|name| graph.by_name(name)).collect()
}
