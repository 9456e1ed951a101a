//! Whether a result gains anything on the device that a target is for.

use crate::error::Error;
use crate::model::Model;
use crate::source::Source;
use relayout_ir::graph::Graph;
use relayout_ir::op::infer::infer_graph;
use relayout_onnx::import::import_again;
use relayout_onnx::proto::ModelProto;
use relayout_onnx::write::Payloads;
use relayout_target_api::hints::{Hints, Size};
use relayout_target_api::{Cost, DeviceMoves, Target};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whether a result gains nothing on the target's device: its moves cost as much, or there are more of them, however small. Without a
/// device nothing is said.
pub(super) fn gains_nothing(
    model: &Model,
    proto: &ModelProto,
    payloads: &Payloads,
    target: &dyn Target,
    dims: &BTreeMap<String, Size>,
) -> Result<bool, Error> {
    let Some((moves, cost)) = on_device(&graph_of_model(model)?, target, dims) else { return Ok(false) };
    let after = on_device(&graph_of_result(model, proto, payloads)?, target, dims);
    Ok(after.is_some_and(|(left, now)| now >= cost || left.transposes > moves.transposes))
}

/// What the target's device runs of the moves of a graph, and what that costs; `None` for targets without a device.
pub(crate) fn on_device(
    graph: &Graph,
    target: &dyn Target,
    dims: &BTreeMap<String, Size>,
) -> Option<(DeviceMoves, Cost)> {
    target.on_device(graph, &Hints::new(dims, graph))
}

/// The graph of a model, calls of its functions written out.
pub(crate) fn graph_of_model(model: &Model) -> Result<Graph, Error> {
    let mut ir = Source::checked(model)?.ir;
    // A value whose type can't be inferred has no shape.
    let _ = infer_graph(&mut ir.graph, &mut ir.unknowns);
    Ok(ir.graph)
}

/// The graph of a result.
pub(crate) fn graph_of_result(model: &Model, proto: &ModelProto, payloads: &Payloads) -> Result<Graph, Error> {
    let file = Arc::new(model.file.with_proto(proto.clone()));
    let read = import_again(&file, payloads);
    let mut ir = read.map_err(|source| Error::Import { file: "the result".to_owned(), source })?;
    let _ = infer_graph(&mut ir.graph, &mut ir.unknowns);
    Ok(ir.graph)
}
