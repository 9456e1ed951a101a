//! A law of every pass and of the writer: what the graph says of a node is what the file says of it.

use relayout::Model;
use relayout::ir::attr::Attr;
use relayout::ir::form::Form;
use relayout::ir::graph::{Graph, Node};

/// Holds the attributes of every node of a graph that was written against those that a reader of the file finds. Axes of what is
/// stored in another order are renumbered in the file, so such nodes say less.
pub(crate) fn says_what_the_graph_says(graph: &Graph, file: &[u8]) -> Result<(), String> {
    let model = Model::from_bytes(file.to_vec().into(), None).map_err(|e| format!("the result does not open: {e}"))?;
    compared(graph, &model.ir().graph)
}

fn compared(graph: &Graph, read: &Graph) -> Result<(), String> {
    for node in graph.nodes().map(|n| graph.node(n)).filter(|node| node.onnx().is_some()) {
        // A view is written as whatever moves nothing there.
        if matches!(node.form, Form::View(_)) {
            continue;
        }
        let name = node.result(0).map(|v| graph.value(v).name.as_str());
        let Some(other) = name.and_then(|name| read.by_name(name)).map(|v| read.node(read.value(v).producer().0))
        else {
            continue;
        };
        if format!("{:?}", node.op) != format!("{:?}", other.op) {
            continue;
        }
        let plain = node.inputs.iter().chain(&node.outputs).flatten().all(|&v| graph.value(v).layout.is_row_major());
        node.attrs.iter().try_for_each(|(key, attr)| {
            says(key, attr, other, plain).map_err(|why| format!("{}: {why}", node.describe(graph)))
        })?;
        let more = other.attrs.iter().find(|(key, attr)| !node.attrs.contains_key(*key) && attr.as_int() != Some(0));
        // New nodes spell out what the graph leaves unsaid.
        let plain = plain && node.origin.is_some();
        if let Some((key, attr)) = more.filter(|_| plain) {
            return Err(format!("{}: the file says {key}={attr}, the graph nothing", node.describe(graph)));
        }
    }
    Ok(())
}

fn says(key: &str, attr: &Attr, other: &Node, plain: bool) -> Result<(), String> {
    let bodies = attr.bodies();
    if let Some(read) = other.attrs.get(key).filter(|_| !bodies.is_empty()) {
        return bodies.iter().zip(read.bodies()).try_for_each(|(body, read)| compared(body, read));
    }
    let free = matches!(attr, Attr::Float(_) | Attr::String(_) | Attr::Strings(_)) && key != "equation" || plain;
    let said = other.attrs.get(key).map(|attr| format!("{attr:?}"));
    match said {
        _ if !free || matches!(attr, Attr::Tensor(_)) => Ok(()),
        Some(said) if said == format!("{attr:?}") => Ok(()),
        said => {
            Err(format!("the graph says {key}={attr:?}, the file {}", said.unwrap_or_else(|| "nothing".to_owned())))
        }
    }
}
