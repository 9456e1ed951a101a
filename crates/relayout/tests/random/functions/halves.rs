//! A network of float32 as one of float16.

use crate::net::Sample;
use bytes::Bytes;
use half::f16;
use prost::Message;
use relayout_onnx::proto::{
    GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, tensor_proto::DataType, type_proto,
};
use std::collections::BTreeSet;

/// The same network on float16.
pub(crate) fn on_halves(sample: Sample) -> Sample {
    let mut model = ModelProto::decode(&sample.bytes[..]).expect("it was encoded before");
    let graph = model.graph.get_or_insert_default();
    let mut factors = BTreeSet::new();
    factors_of_resizes(graph, &mut factors);
    narrow(graph, &factors);
    Sample { bytes: model.encode_to_vec(), ..sample }
}

/// Names of what Resize takes beside the image: floats in every model.
fn factors_of_resizes(graph: &GraphProto, names: &mut BTreeSet<String>) {
    for node in &graph.node {
        if node.op_type() == "Resize" {
            names.extend(node.input.iter().skip(1).cloned());
        }
        node.attribute.iter().filter_map(|a| a.g.as_deref()).for_each(|body| factors_of_resizes(body, names));
    }
}

fn narrow(graph: &mut GraphProto, factors: &BTreeSet<String>) {
    let infos = graph.input.iter_mut().chain(&mut graph.output).chain(&mut graph.value_info);
    infos.for_each(narrow_type);
    graph.initializer.iter_mut().filter(|t| !factors.contains(t.name())).for_each(narrow_tensor);
    for node in &mut graph.node {
        let NodeProto { output, attribute, .. } = node;
        let stays = output.iter().any(|name| factors.contains(name));
        for a in attribute {
            a.t.as_deref_mut().filter(|_| !stays).into_iter().for_each(narrow_tensor);
            a.g.as_deref_mut().into_iter().for_each(|body| narrow(body, factors));
        }
    }
}

fn narrow_type(info: &mut ValueInfoProto) {
    if let Some(type_proto::Value::TensorType(tensor)) = info.r#type.as_mut().and_then(|t| t.value.as_mut())
        && tensor.elem_type == Some(DataType::Float as i32)
    {
        tensor.elem_type = Some(DataType::Float16 as i32);
    }
}

fn narrow_tensor(tensor: &mut TensorProto) {
    if tensor.data_type != Some(DataType::Float as i32) {
        return;
    }
    let floats = tensor.raw_data.as_deref().unwrap_or_default().chunks_exact(4);
    let halves = floats.flat_map(|b| f16::from_f32(f32::from_le_bytes([b[0], b[1], b[2], b[3]])).to_le_bytes());
    tensor.raw_data = Some(Bytes::from(halves.collect::<Vec<u8>>()));
    tensor.data_type = Some(DataType::Float16 as i32);
}
