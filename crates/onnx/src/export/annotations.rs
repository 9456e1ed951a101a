//! What a file says about tensors and their axes beside the graph: quantization annotations, and how nodes are sharded over devices. It
//! follows a value that is stored in another order of axes. What can't be said of the value as it is now is left out.
//!
//! Absent: metadata (`metadata_props`), which is free text and stays with what it was written to.

use super::names::Names;
use crate::proto::{GraphProto, NodeProto, ShardingSpecProto, TensorAnnotation};
use relayout_ir::form::Form;
use relayout_ir::graph::{Graph, Node, ValueId};
use rustc_hash::FxHashSet;

/// The quantization annotations of a graph that still hold. One goes with its tensor, with a tensor that it names as a parameter, and where
/// its tensor has other elements than in the file. With more than one scale it also goes where axes are permuted: it can't say along
/// which axis scales lie.
pub(super) fn quantization(
    origin: &GraphProto,
    graph: &Graph,
    names: &Names,
    written: &GraphProto,
) -> Vec<TensorAnnotation> {
    if origin.quantization_annotation.is_empty() {
        return Vec::new();
    }
    let (before, now) = (tensors(origin), tensors(written));
    let there = |name: &str| now.contains(name) || !before.contains(name);
    let several = |name: &str| {
        let scales = written.initializer.iter().find(|t| t.name() == name);
        scales.is_none_or(|t| t.dims.iter().product::<i64>() != 1)
    };
    let holds = |a: &&TensorAnnotation| {
        let parameters: Vec<&str> = a.quant_parameter_tensor_names.iter().filter_map(|p| p.value.as_deref()).collect();
        let value = graph.by_name(a.tensor_name()).filter(|&v| names.of(v) == a.tensor_name());
        let same = value.is_none_or(|v| {
            let value = graph.value(v);
            !value.differs && (value.layout.is_row_major() || !parameters.iter().any(|p| several(p)))
        });
        same && there(a.tensor_name()) && parameters.iter().all(|p| there(p))
    };
    origin.quantization_annotation.iter().filter(holds).cloned().collect()
}

/// Names of the tensors that a graph has.
fn tensors(graph: &GraphProto) -> FxHashSet<&str> {
    let made = graph.node.iter().flat_map(|n| &n.output).map(String::as_str);
    let stored = graph.initializer.iter().map(crate::proto::TensorProto::name);
    let sparse = graph.sparse_initializer.iter().filter_map(|t| t.values.as_ref()?.name.as_deref());
    made.chain(stored).chain(sparse).chain(graph.input.iter().filter_map(|i| i.name.as_deref())).collect()
}

/// Brings what a node says of its devices to how its operands and results are called and stored now. `proto` has their names. A
/// specification goes where the node is another op, or its tensor is stored in blocks.
pub(super) fn shard(origin: &NodeProto, node: &Node, graph: &Graph, proto: &mut NodeProto) {
    let same = origin.op_type() == proto.op_type() && !matches!(node.form, Form::Kernel(_));
    let (inputs, outputs) = (&proto.input, &proto.output);
    let said = std::mem::take(&mut proto.device_configurations).into_iter().filter_map(|mut configuration| {
        let specified = std::mem::take(&mut configuration.sharding_spec);
        let none = specified.is_empty();
        let kept = specified.into_iter().filter(|_| same).filter_map(|spec| {
            let named = |names: &[String]| names.iter().position(|name| name == spec.tensor_name());
            let (at, now, values) = match (named(&origin.input), named(&origin.output)) {
                (Some(at), _) => (at, inputs, &node.inputs),
                (None, Some(at)) => (at, outputs, &node.outputs),
                // What names none of its tensors is not ours to judge.
                (None, None) => return Some(spec),
            };
            let (name, v) = (now.get(at)?.clone(), values.get(at).copied().flatten()?);
            followed(ShardingSpecProto { tensor_name: Some(name), ..spec }, graph, v)
        });
        configuration.sharding_spec = kept.collect();
        let left = none || !configuration.sharding_spec.is_empty() || configuration.pipeline_stage.is_some();
        left.then_some(configuration)
    });
    proto.device_configurations = said.collect();
}

/// A specification of a value, for its axes as they are stored.
fn followed(mut spec: ShardingSpecProto, graph: &Graph, v: ValueId) -> Option<ShardingSpecProto> {
    let layout = &graph.value(v).layout;
    if layout.is_row_major() {
        return Some(spec);
    }
    let order = layout.as_permutation()?;
    for dim in &mut spec.sharded_dim {
        let rank = order.len() as i64;
        let axis = if dim.axis() < 0 { dim.axis() + rank } else { dim.axis() };
        let at = order.iter().position(|&stored| stored as i64 == axis)?;
        dim.axis = Some(at as i64);
    }
    Some(spec)
}
