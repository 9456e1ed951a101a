//! A part of a model as a model: the nodes that make one value of values that are given.

use super::error::ExportError;
use super::fresh::info;
use crate::external::is_external;
use crate::file::ModelFile;
use crate::import::reads;
use crate::proto::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use relayout_ir::graph::Graph;
use std::collections::{BTreeMap, BTreeSet};

/// The nodes of the main graph that make `value`, as a model of their own with this value as its output. `given` are values that are not
/// looked behind: the name of the input that stands for it, and its own name. Constants stay constants, also where they are given. `graph`
/// is the main graph with its types. All data is in the model.
///
/// # Errors
/// [`ExportError`] if the type of an input or of the value is not known, or data that lies beside the file is not there.
pub fn piece(
    file: &ModelFile,
    graph: &Graph,
    given: &[(String, String)],
    value: &str,
) -> Result<ModelProto, ExportError> {
    let Some(whole) = &file.proto.graph else { return Ok(file.proto.clone()) };
    let constants: BTreeSet<&str> = whole.initializer.iter().map(TensorProto::name).collect();
    let given: Vec<&(String, String)> = given.iter().filter(|(_, name)| !constants.contains(name.as_str())).collect();
    let nodes = behind(whole, value, &given.iter().map(|(_, name)| name.as_str()).collect());
    let read: BTreeSet<&str> = nodes.iter().flat_map(|node| reads(node)).collect();
    let mut initializer = Vec::new();
    for tensor in whole.initializer.iter().filter(|tensor| read.contains(tensor.name())) {
        initializer.push(with_data(file, tensor)?);
    }
    let named = |label: &str, name: &str| -> Result<ValueInfoProto, ExportError> {
        let unknown = || ExportError::CannotExpress { node: format!("`{name}`"), why: "no value has this name".into() };
        let said = info(graph, graph.by_name(name).ok_or_else(unknown)?, true)?;
        Ok(ValueInfoProto { name: Some(label.to_owned()), ..said })
    };
    let input = given.iter().map(|(label, name)| named(label, name)).collect::<Result<_, _>>()?;
    let renamed = given.iter().filter(|(label, name)| label != name).map(|(label, name)| NodeProto {
        op_type: Some("Identity".to_owned()),
        input: vec![label.clone()],
        output: vec![name.clone()],
        ..NodeProto::default()
    });
    let sparse = whole
        .sparse_initializer
        .iter()
        .filter(|sparse| sparse.values.as_ref().is_some_and(|values| read.contains(values.name())));
    let graph = GraphProto {
        name: Some("piece".to_owned()),
        node: renamed.chain(nodes.iter().map(|&node| node.clone())).collect(),
        initializer,
        sparse_initializer: sparse.cloned().collect(),
        input,
        output: vec![named(value, value)?],
        ..GraphProto::default()
    };
    Ok(ModelProto { graph: Some(graph), ..file.proto.clone() })
}

/// The nodes that a value is made by, in their order, up to those that make what is given.
fn behind<'g>(graph: &'g GraphProto, value: &'g str, given: &BTreeSet<&str>) -> Vec<&'g NodeProto> {
    let makers: BTreeMap<&str, usize> = graph
        .node
        .iter()
        .enumerate()
        .flat_map(|(at, node)| node.output.iter().map(move |name| (name.as_str(), at)))
        .collect();
    let (mut found, mut open) = (BTreeSet::new(), vec![value]);
    while let Some(name) = open.pop() {
        if name != value && given.contains(name) {
            continue;
        }
        if let Some(&at) = makers.get(name).filter(|&&at| found.insert(at)) {
            open.extend(reads(&graph.node[at]));
        }
    }
    found.into_iter().map(|at| &graph.node[at]).collect()
}

/// A tensor with its data in it.
fn with_data(file: &ModelFile, tensor: &TensorProto) -> Result<TensorProto, ExportError> {
    if !is_external(tensor) {
        return Ok(tensor.clone());
    }
    let missing =
        |why: crate::error::Error| ExportError::Bytes { name: tensor.name().to_owned(), why: why.to_string() };
    let bytes = file.tensor_bytes(tensor).map_err(missing)?;
    Ok(TensorProto { raw_data: Some(bytes), external_data: Vec::new(), data_location: None, ..tensor.clone() })
}
