//! What a model's Transposes come to on a device, before it was optimized and after.

use crate::error::Error;
use crate::model::Model;
use crate::optimize::{Options, Source, optimize};
use crate::sizes::Sized;
use relayout_ir::graph::Graph;
use relayout_ir::op::infer::infer_graph;
use relayout_onnx::import::import_again;
use relayout_onnx::proto::ModelProto;
use relayout_onnx::write::Payloads;
use relayout_target_api::hints::{Hints, Size};
use relayout_target_api::{Cost, DeviceMoves, Target};
use relayout_targets::OrtNhwc;
use relayout_targets::Provider;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// What an execution provider's device runs of a model's moves, as it is predicted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceAudit {
    /// The provider.
    pub provider: String,
    /// Its name in ONNX Runtime.
    pub execution_provider: String,
    /// The first version of ONNX Runtime for which this holds.
    pub since: String,
    /// Whether predictions were compared with what the provider ran.
    pub counted: bool,
    /// Of the file.
    pub file: OnDevice,
    /// Of what [`optimize`](crate::optimize) makes of it for target `ort-nhwc`.
    pub optimized: OnDevice,
    /// What the provider needs and the model lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// Transposes on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OnDevice {
    /// How many there are.
    pub transposes: usize,
    /// Elements that they write in each run.
    pub elements: u64,
    /// How many of them have more axes than the device takes, or longer ones.
    pub refused: usize,
}

impl From<DeviceMoves> for OnDevice {
    fn from(DeviceMoves { transposes, elements, refused }: DeviceMoves) -> OnDevice {
        OnDevice { transposes, elements, refused }
    }
}

/// Predicts what an execution provider's device runs of a model's moves, and of those of the optimized model.
///
/// # Errors
/// [`Error`].
pub fn audit_device(model: &Model, provider: &Provider, options: &Options) -> Result<DeviceAudit, Error> {
    let options = &Sized::of(model, options)?.options;
    let target = OrtNhwc::of(provider.clone());
    let of_file = |graph: &Graph| on_device(graph, &target, &options.dims).map_or(DeviceMoves::default(), |on| on.0);
    let file = of_file(&read(model)?);
    let result = optimize(model, &target, options)?;
    let optimized = match result.exported() {
        Some((proto, payloads)) => of_file(&read_again(model, proto, payloads)?),
        None => file,
    };
    Ok(DeviceAudit {
        provider: provider.name.clone(),
        execution_provider: provider.execution_provider.clone(),
        since: provider.since().to_owned(),
        counted: provider.counted,
        file: file.into(),
        optimized: optimized.into(),
        remarks: target.remarks(&model.ir.graph),
    })
}

/// Whether a result gains nothing on the target's device: its moves cost as much, or there are more of them, however small. Without a
/// device nothing is said.
pub(crate) fn gains_nothing(
    model: &Model,
    proto: &ModelProto,
    payloads: &Payloads,
    target: &dyn Target,
    dims: &BTreeMap<String, Size>,
) -> Result<bool, Error> {
    let Some((moves, cost)) = on_device(&read(model)?, target, dims) else { return Ok(false) };
    let after = on_device(&read_again(model, proto, payloads)?, target, dims);
    Ok(after.is_some_and(|(left, now)| now >= cost || left.transposes > moves.transposes))
}

fn on_device(graph: &Graph, target: &dyn Target, dims: &BTreeMap<String, Size>) -> Option<(DeviceMoves, Cost)> {
    target.on_device(graph, &Hints::new(dims, graph))
}

/// The graph of a model, calls of its functions written out.
fn read(model: &Model) -> Result<Graph, Error> {
    let mut ir = Source::of_model(model)?.ir;
    // What can't be inferred has no shape.
    let _ = infer_graph(&mut ir.graph, &mut ir.unknowns);
    Ok(ir.graph)
}

/// The graph of a result.
fn read_again(model: &Model, proto: &ModelProto, payloads: &Payloads) -> Result<Graph, Error> {
    let file = Arc::new(model.file.with_proto(proto.clone()));
    let read = import_again(&file, payloads);
    let mut ir = read.map_err(|source| Error::Import { file: "the result".to_owned(), source })?;
    let _ = infer_graph(&mut ir.graph, &mut ir.unknowns);
    Ok(ir.graph)
}

impl DeviceAudit {
    /// All of it, for people.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        let source = if self.counted { "compared with what the provider ran" } else { "not counted, from sources" };
        let (name, since) = (&self.execution_provider, &self.since);
        let _ = writeln!(text, "{name}, ONNX Runtime {since} and newer; predictions are {source}");
        for (what, on) in
            [("Transposes on the device", self.file), ("`optimize --target ort-nhwc` would leave", self.optimized)]
        {
            let refused = if on.refused > 0 { format!(", {} of them refused", on.refused) } else { String::new() };
            let _ = writeln!(text, "{what}: {}, {} elements{refused}", on.transposes, on.elements);
        }
        for remark in &self.remarks {
            let _ = writeln!(text, "note: {remark}");
        }
        text
    }
}
