//! Models of graphs that do not come from a file.

use super::declared::dimension;
use super::{ExportError, export};
use crate::error::Error;
use crate::file::ModelFile;
use crate::proto::{
    GraphProto, ModelProto, OperatorSetIdProto, TensorShapeProto, TypeProto, ValueInfoProto, type_proto,
};
use crate::write::{WriteOptions, write_model_to};
use prost::Message as _;
use relayout_ir::attr::Attr;
use relayout_ir::graph::{Graph, Op, ValueId};
use relayout_ir::model::Model;
use relayout_ir::op::WRITTEN_OPSET;
use relayout_ir::types::Type;
use std::collections::BTreeMap;

/// Version of the file format of such models, which ONNX Runtime has known since 2024.
const IR_VERSION: i64 = 10;

/// Why a graph can't be a file.
#[derive(Debug, thiserror::Error)]
pub enum FreshError {
    /// It holds what a file can't say, or lacks bytes.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// It can't be encoded.
    #[error(transparent)]
    File(#[from] Error),
}

/// The bytes of a model file of this graph. Values are row-major, and every op of ONNX's own domain is of one version: the newest
/// that a node says.
///
/// # Errors
/// [`FreshError`] where a node has bodies, or an attribute that is no number, text or list of such; where an input or output is
/// no tensor; where the bytes of a constant are missing.
pub fn fresh(graph: &Graph) -> Result<Vec<u8>, FreshError> {
    let opsets = opsets(graph);
    for n in graph.nodes() {
        let said = |attr: &Attr| {
            !matches!(attr, Attr::Tensor(_) | Attr::Graph(_) | Attr::Graphs(_) | Attr::Ref(_) | Attr::Other(_))
        };
        let unsaid = graph.node(n).attrs.iter().find(|(_, attr)| !said(attr));
        if let Some((name, _)) = unsaid {
            let why = format!("attribute `{name}` is neither a number, a text nor a list of such");
            return Err(ExportError::CannotExpress { node: graph.node(n).describe(graph), why }.into());
        }
    }
    let ends = |ends: &[ValueId], named| ends.iter().map(|&v| info(graph, v, named)).collect::<Result<Vec<_>, _>>();
    let proto = ModelProto {
        ir_version: Some(IR_VERSION),
        opset_import: opsets
            .iter()
            .map(|(domain, &version)| OperatorSetIdProto { domain: Some(domain.clone()), version: Some(version) })
            .collect(),
        graph: Some(GraphProto {
            name: Some(graph.name.clone()),
            input: ends(graph.inputs(), true)?,
            // The exporter names outputs after their values.
            output: ends(graph.outputs(), false)?,
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    };
    let file = ModelFile::from_bytes(proto.encode_to_vec().into(), None)?;
    let model = Model { graph: graph.clone(), opsets, ir_version: IR_VERSION, ..Model::default() };
    let exported = export(&file, &model, &[])?;
    let mut bytes = Vec::new();
    write_model_to(&exported.proto, &mut bytes, &WriteOptions::default().payloads(&exported.payloads))?;
    Ok(bytes)
}

/// The newest version of each domain that a node says; the last one of ONNX's own if none does.
fn opsets(graph: &Graph) -> BTreeMap<String, i64> {
    let mut opsets = BTreeMap::new();
    for node in graph.nodes().map(|n| graph.node(n)) {
        if let Op::Onnx(op) = &node.op {
            let version: &mut i64 = opsets.entry(op.domain.clone()).or_default();
            *version = node.opset.max(*version);
        }
    }
    let standard = opsets.entry(String::new()).or_insert(0);
    if *standard == 0 {
        *standard = WRITTEN_OPSET;
    }
    opsets
}

/// How a file declares a value, with its name or without one.
pub(super) fn info(graph: &Graph, v: ValueId, named: bool) -> Result<ValueInfoProto, ExportError> {
    let value = graph.value(v);
    let Type::Tensor(ty) = &value.ty else {
        let node = graph.node(value.producer().0).describe(graph);
        return Err(ExportError::CannotExpress {
            node,
            why: format!("`{}` is not a tensor of known type", value.name),
        });
    };
    let dims = |shape: &[_]| shape.iter().map(|d| dimension(d).unwrap_or_default()).collect();
    let shape = ty.shape.as_ref().map(|shape| TensorShapeProto { dim: dims(shape) });
    let tensor = type_proto::Tensor { elem_type: ty.dtype.map(relayout_ir::dtype::DType::to_onnx), shape };
    Ok(ValueInfoProto {
        name: named.then(|| value.name.clone()),
        r#type: Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)), denotation: None }),
        ..ValueInfoProto::default()
    })
}
