//! Files that are the same byte by byte. They compute the same if they are models, whatever their ops are.

use crate::certificate::Proof;
use crate::checks::hosts;
use crate::checks::valid;
use crate::files::model::{Attr, Graph, Model, Node};

/// Whether both models are one file that the checker reads all of, and the proof says nothing else of it.
pub(crate) fn is_so(a: &Model, b: &Model, proof: &Proof) -> bool {
    !a.file.is_empty()
        && a.file == b.file
        && a.beside == b.beside
        && proof.values.is_empty()
        && valid::is_valid(b)
        && !hosts::is_silent(b)
        && is_read(b)
}

/// Whether all attributes are read: lists of constants and of bodies may name files beside the model that nobody looked at.
fn is_read(model: &Model) -> bool {
    read(&model.graph)
        && model.functions.iter().all(|f| f.nodes.iter().all(node) && f.defaults.iter().all(|d| attr(&d.1)))
}

fn read(graph: &Graph) -> bool {
    graph.nodes.iter().all(node)
}

fn node(node: &Node) -> bool {
    node.attrs.iter().all(|(_, value)| attr(value))
}

fn attr(value: &Attr) -> bool {
    match value {
        Attr::Graph(body) => read(body),
        Attr::Unread(kind, _) => matches!(kind, 'p' | 'P'),
        _ => true,
    }
}
