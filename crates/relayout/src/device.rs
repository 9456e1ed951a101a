//! What a model's Transposes come to on a device, before it was optimized and after.

use crate::error::Error;
use crate::model::Model;
use crate::optimize::{graph_of_model, graph_of_result, on_device, optimize};
use crate::options::Options;
pub use crate::report::OnDevice;
use crate::sizes::Sized;
use relayout_ir::graph::Graph;
use relayout_target_api::{DeviceMoves, Target as _};
use relayout_targets::OrtNhwc;
use relayout_targets::Provider;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

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
    /// What the device runs of the file.
    pub file: OnDevice,
    /// Of what [`optimize`](crate::optimize) makes of it for target `ort-nhwc`.
    pub optimized: OnDevice,
    /// What the provider needs and the model lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// Predicts what an execution provider's device runs of a model's moves, and of those of the optimized model.
///
/// # Errors
/// [`Error`].
pub fn audit_device(model: &Model, provider: &Provider, options: &Options) -> Result<DeviceAudit, Error> {
    let options = &Sized::new(model, options)?.options;
    let target = OrtNhwc::of(provider.clone());
    let of_file = |graph: &Graph| on_device(graph, &target, &options.dims).map_or(DeviceMoves::default(), |on| on.0);
    let file = of_file(&graph_of_model(model)?);
    let result = optimize(model, &target, options)?;
    let optimized = match result.exported() {
        Some((proto, payloads)) => of_file(&graph_of_result(model, proto, payloads)?),
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
