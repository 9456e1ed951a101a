//! Export: graph to messages. Every node starts from the message it came from, so what no pass touched is written as it was
//! read; this is the only place where physical shapes are written.
//!
//! A value of layout L is written with its storage shape: its axes in the order in which L has them. Attributes that speak of
//! axes are renumbered accordingly (`renumber.rs`); views that leave the storage shape as it is vanish, others become a
//! Reshape; a move becomes a Transpose (`views.rs`).
//!
//! Names of graph inputs, outputs and surviving values stay; new names are unique over all graphs of the model.

mod annotations;
mod attributes;
mod calls;
mod change;
mod constants;
mod declared;
mod error;
mod fresh;
mod functions;
mod names;
mod out;
mod picks;
mod piece;
mod renumber;
mod spelled;
mod sweep;
mod views;
mod written;

use crate::file::ModelFile;
use crate::proto::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorProto, ValueInfoProto,
};
use crate::write::Payloads;
use declared::{restate_inputs, restate_outputs, restated};
pub use error::ExportError;
pub use fresh::{FreshError, fresh};
use functions::Functions;
pub(crate) use names::Taken;
use names::{Names, Outer};
use out::{Exporter, GraphOut};
pub use piece::piece;
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, NodeId, Op, ValueId};
use relayout_ir::model::Model;
use rustc_hash::{FxHashMap, FxHashSet};
pub use written::{WrittenGraph, WrittenValue};

/// A model ready to be written.
#[derive(Debug)]
pub struct Exported {
    /// The messages; tensors that are re-laid hold tickets.
    pub proto: ModelProto,
    /// What the tickets stand for.
    pub payloads: Payloads,
    /// Whether anything differs from what was read.
    pub changed: bool,
    /// How the values of the messages are stored, where that was asked for.
    pub written: Option<WrittenGraph>,
}

/// How a graph is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportOptions<'a> {
    /// Added to a model that changed.
    pub metadata: &'a [(String, String)],
    /// Whether a move of whole axes is a call of domain `relayout` and not a Transpose. Moves that a Transpose can't say are
    /// calls in any case.
    pub calls_functions: bool,
    /// Whether to say how each value is stored.
    pub describes: bool,
}

/// Writes a model's graph over the messages it was imported from. `metadata` is added to a model that changed.
///
/// # Errors
/// [`ExportError`].
pub fn export(file: &ModelFile, model: &Model, metadata: &[(String, String)]) -> Result<Exported, ExportError> {
    export_with(file, model, &ExportOptions { metadata, ..ExportOptions::default() })
}

/// Writes a model's graph over the messages it was imported from.
///
/// # Errors
/// [`ExportError`].
pub fn export_with(file: &ModelFile, model: &Model, options: &ExportOptions<'_>) -> Result<Exported, ExportError> {
    let metadata = options.metadata;
    let mut proto = without_graph(&file.proto);
    let opset = ["", "ai.onnx"].iter().find_map(|domain| model.opsets.get(*domain)).copied().unwrap_or(0);
    let mut exporter = Exporter {
        ir_version: model.ir_version,
        payloads: Payloads::new(),
        taken: Taken::of(&file.proto),
        functions: Functions::new(opset, &file.proto),
        calls_functions: options.calls_functions,
        describes: options.describes,
        // Around a graph that no file has there is nothing but its frame, and it is written as it is.
        spells: file.proto.graph.as_ref().is_some_and(|graph| !graph.node.is_empty()),
    };
    let mut written = WrittenGraph::default();
    if let Some(origin) = &file.proto.graph {
        let graph;
        (graph, written) = exporter.graph(origin, &model.graph, String::new(), None)?;
        proto.graph = Some(graph);
    }
    let changed = proto.graph != file.proto.graph;
    if changed {
        import_domains(&mut proto, &model.graph);
        std::mem::take(&mut exporter.functions).add_to(&mut proto);
        for (key, value) in metadata {
            set_property(&mut proto.metadata_props, key, value);
        }
    }
    Ok(Exported { proto, payloads: exporter.payloads, changed, written: options.describes.then_some(written) })
}

/// The messages of a model but its graph, which may be far larger than the rest.
fn without_graph(model: &ModelProto) -> ModelProto {
    ModelProto {
        ir_version: model.ir_version,
        producer_name: model.producer_name.clone(),
        producer_version: model.producer_version.clone(),
        domain: model.domain.clone(),
        model_version: model.model_version,
        doc_string: model.doc_string.clone(),
        graph: None,
        opset_import: model.opset_import.clone(),
        metadata_props: model.metadata_props.clone(),
        training_info: model.training_info.clone(),
        functions: model.functions.clone(),
        configuration: model.configuration.clone(),
    }
}

/// Says of every domain whose ops came in which version of it they are of.
fn import_domains(proto: &mut ModelProto, graph: &Graph) {
    for node in graph.nodes().map(|n| graph.node(n)) {
        node.bodies().for_each(|body| import_domains(proto, body));
        let domain = match &node.op {
            Op::Onnx(op) if !op.domain.is_empty() => op.domain.as_str(),
            _ => continue,
        };
        let known = |set: &OperatorSetIdProto| set.domain.as_deref() == Some(domain);
        if node.opset > 0 && !proto.opset_import.iter().any(known) {
            proto.opset_import.push(OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(node.opset) });
        }
    }
}

/// Sets a property of a model's metadata.
pub fn set_property(props: &mut Vec<StringStringEntryProto>, key: &str, value: &str) {
    match props.iter_mut().find(|p| p.key.as_deref() == Some(key)) {
        Some(p) => p.value = Some(value.to_owned()),
        None => props.push(StringStringEntryProto { key: Some(key.to_owned()), value: Some(value.to_owned()) }),
    }
}

impl Exporter {
    fn graph(
        &mut self,
        origin: &GraphProto,
        graph: &Graph,
        path: String,
        outer: Option<Outer<'_>>,
    ) -> Result<(GraphProto, WrittenGraph), ExportError> {
        let names = Names::resolve(graph, origin, outer, &mut self.taken);
        let mut known: FxHashSet<&str> = origin.initializer.iter().filter_map(|t| t.name.as_deref()).collect();
        known.extend(origin.sparse_initializer.iter().filter_map(|t| t.values.as_ref()?.name.as_deref()));
        let (nodes, initializers) = (Vec::with_capacity(origin.node.len()), Vec::new());
        let mut written = WrittenGraph::new(path);
        if self.describes {
            written.collect(graph, &names);
        }
        let mut out = GraphOut { graph, names, nodes, initializers, known, lists: FxHashMap::default(), written };
        for n in graph.order().unwrap_or_default() {
            let node = graph.node(n);
            match &node.op {
                Op::Input { .. } | Op::Outer => {}
                // An initializer of the file stays in its list, a Constant of the file is a node.
                Op::Constant(_) if node.origin.is_some() => out.nodes.extend(origin_of(origin, node.origin).cloned()),
                Op::Constant(c) => {
                    let Some(v) = node.outputs.first().copied().flatten() else { continue };
                    let tensor = self.tensor(out.names.of(v), c)?;
                    self.add_constant(&mut out, tensor);
                }
                Op::Relayout => self.relayout(&mut out, n)?,
                Op::Onnx(_) => self.node(origin, &mut out, n)?,
            }
        }
        let written = std::mem::take(&mut out.written);
        Ok((self.finish(origin, out), written))
    }

    fn node(&mut self, origin: &GraphProto, out: &mut GraphOut<'_>, n: NodeId) -> Result<(), ExportError> {
        let node = out.graph.node(n);
        if self.view(out, n, origin_of(origin, node.origin))? {
            return Ok(());
        }
        let mut proto = match origin_of(origin, node.origin) {
            Some(p) => attributes::restated(p, node),
            None => attributes::made(node),
        };
        proto.input = node.inputs.iter().map(|v| v.map_or_else(String::new, |v| out.names.of(v).to_owned())).collect();
        proto.output =
            node.outputs.iter().map(|v| v.map_or_else(String::new, |v| out.names.of(v).to_owned())).collect();
        self.bodies(&mut proto, n, out)?;
        let same_op = |p: &NodeProto| p.op_type == proto.op_type;
        if self.spells && !origin_of(origin, node.origin).is_some_and(same_op) {
            spelled::spell(out, node, &mut proto);
            // Some readers want a name.
            if proto.name().is_empty() {
                proto.name = proto.output.iter().find(|name| !name.is_empty()).cloned();
            }
        }
        if let Some(said) = origin_of(origin, node.origin).filter(|said| !said.device_configurations.is_empty()) {
            annotations::shard(said, node, out.graph, &mut proto);
        }
        self.pick_stored(out, n, &mut proto);
        if let Some(kernel) = calls::kernel(node) {
            let call = self.call(out.graph, node, kernel, proto)?;
            out.nodes.push(call);
            return Ok(());
        }
        let row_major = |v: &ValueId| out.graph.value(*v).layout.is_row_major();
        // A node with bodies says nothing of axes: its values cross in the layout that both sides have. A kernel says what it
        // has to in its own terms.
        let borders = matches!(node.form, Form::Borders(_) | Form::Kernel(_));
        if borders || node.inputs.iter().chain(&node.outputs).flatten().all(row_major) {
            out.nodes.push(proto);
            return Ok(());
        }
        self.renumbered(out, n, proto)
    }

    fn bodies(&mut self, proto: &mut NodeProto, n: NodeId, out: &mut GraphOut<'_>) -> Result<(), ExportError> {
        let node = out.graph.node(n);
        let outer = Some(Outer { graph: out.graph, names: &out.names });
        let mut attributes = std::mem::take(&mut proto.attribute);
        for a in &mut attributes {
            let name = a.name.clone().unwrap_or_default();
            let bodies = node.attrs.get(&name).map(relayout_ir::attr::Attr::bodies).unwrap_or_default();
            for (at, (g, body)) in a.g.as_deref_mut().into_iter().chain(&mut a.graphs).zip(bodies).enumerate() {
                let path = node.body_path(out.graph, &out.written.path, &name);
                let written;
                (*g, written) = self.graph(g, body, path, outer)?;
                out.written.add_body(proto, &name, at, written);
            }
        }
        proto.attribute = attributes;
        Ok(())
    }

    fn finish(&self, origin: &GraphProto, out: GraphOut<'_>) -> GraphProto {
        let graph = out.graph;
        let mut proto = GraphProto {
            node: out.nodes,
            name: origin.name.clone(),
            initializer: origin.initializer.clone(),
            doc_string: origin.doc_string.clone(),
            input: origin.input.clone(),
            output: origin.output.clone(),
            value_info: Vec::new(),
            quantization_annotation: Vec::new(),
            sparse_initializer: origin.sparse_initializer.clone(),
            metadata_props: origin.metadata_props.clone(),
        };
        names::part_namesakes(&mut proto.node, origin);
        restate_inputs(graph, &mut proto.input);
        restate_outputs(graph, &out.names, &mut proto.output);
        let place_of = |(i, t): (usize, &TensorProto)| t.name.clone().map(|name| (name, i));
        let places: FxHashMap<String, usize> = proto.initializer.iter().enumerate().filter_map(place_of).collect();
        for tensor in out.initializers {
            match places.get(tensor.name.as_deref().unwrap_or_default()).and_then(|&i| proto.initializer.get_mut(i)) {
                Some(old) => *old = tensor,
                None => proto.initializer.push(tensor),
            }
        }
        let old: FxHashSet<&str> = origin.node.iter().flat_map(|n| n.output.iter().map(String::as_str)).collect();
        let named = |info: &ValueInfoProto| old.contains(info.name.as_deref().unwrap_or_default());
        let listed = |info: &ValueInfoProto| {
            let v = info.name.as_deref().and_then(|name| graph.by_name(name));
            v.is_some_and(|v| out.lists.contains_key(&v))
        };
        // What the file says of names that are no node's results is not ours to judge.
        proto.value_info = origin
            .value_info
            .iter()
            .filter(|info| !listed(info))
            .filter_map(|info| if named(info) { restated(graph, &out.names, info) } else { Some(info.clone()) })
            .collect();
        sweep::remove_unread(origin, &mut proto, self.ir_version < 4);
        proto.quantization_annotation = annotations::quantization(origin, graph, &out.names, &proto);
        proto
    }
}

fn origin_of(graph: &GraphProto, origin: Option<u32>) -> Option<&NodeProto> {
    graph.node.get(origin? as usize)
}
