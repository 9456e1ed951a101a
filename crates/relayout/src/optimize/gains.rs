//! Whether a result gains anything on the device that a target is for.

use super::sessions::session_of;
use crate::error::Error;
use crate::model::Model;
use crate::report::DeviceRecord;
use crate::source::Source;
use relayout_ir::graph::Graph;
use relayout_ir::op::infer::infer_graph;
use relayout_onnx::export::Exported;
use relayout_onnx::import::import_again;
use relayout_onnx::proto::ModelProto;
use relayout_onnx::write::Payloads;
use relayout_target_api::hints::{Hints, Size};
use relayout_target_api::{Cost, DeviceMoves, Target};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the target's device runs of a model and of its result.
pub(super) struct Gain {
    before: (DeviceMoves, Cost),
    after: (DeviceMoves, Cost),
}

impl Gain {
    /// `None` without a result, and for targets without a device.
    pub(super) fn of(
        model: &Model,
        result: Option<&Exported>,
        target: &dyn Target,
        dims: &BTreeMap<String, Size>,
    ) -> Result<Option<Gain>, Error> {
        let Some(Exported { proto, payloads, .. }) = result else { return Ok(None) };
        if !has_device(target, dims) {
            return Ok(None);
        }
        let Some(before) = on_device(&graph_of_model(model)?, target, dims) else { return Ok(None) };
        let after = on_device(&graph_of_result(model, proto, payloads)?, target, dims);
        Ok(after.map(|after| Gain { before, after }))
    }

    /// Whether the result's moves cost as much, or there are more of them, however small.
    pub(super) fn is_nothing(&self) -> bool {
        let [(moves, cost), (left, now)] = [self.before, self.after];
        now >= cost || left.transposes > moves.transposes
    }

    /// For the report, with the option of sessions that the target's metadata names.
    pub(super) fn record(&self, metadata: &[(String, String)]) -> DeviceRecord {
        let (before, after) = (self.before.0.into(), self.after.0.into());
        DeviceRecord { before, after, session: session_of(metadata), predicted_ns: None, instead: None }
    }
}

/// Whether a target tells what its device runs. A graph is read and typed again for the question, so those that have none are not asked.
fn has_device(target: &dyn Target, dims: &BTreeMap<String, Size>) -> bool {
    on_device(&Graph::default(), target, dims).is_some()
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
