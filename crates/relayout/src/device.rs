//! What a model's Transposes come to on a device, before it was optimized and after.

use crate::error::Error;
use crate::model::Model;
use crate::optimize::{graph_of_model, on_device, optimize};
use crate::options::Options;
pub use crate::report::OnDevice;
use crate::sizes::Sized;
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
    /// What the device runs of the file in sessions without the provider's option, where files may be for these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_otherwise: Option<OnDevice>,
    /// Of what [`optimize`](crate::optimize) makes of it for target `ort-nhwc`.
    pub optimized: OnDevice,
    /// The option of the sessions that the optimized file is for, where one decides how the provider runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
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
    let graph = graph_of_model(model)?;
    let file = on_device(&graph, &target, &options.dims).map_or(DeviceMoves::default(), |on| on.0);
    let result = optimize(model, &target, options)?;
    let in_session = result.report().device.as_ref();
    Ok(DeviceAudit {
        provider: provider.name.clone(),
        execution_provider: provider.execution_provider.clone(),
        since: provider.since().to_owned(),
        counted: provider.counted,
        file: file.into(),
        file_otherwise: target
            .in_other_sessions()
            .and_then(|other| on_device(&graph, other, &options.dims))
            .map(|on| on.0.into()),
        optimized: in_session.map_or(file.into(), |device| device.after),
        session: in_session.and_then(|device| device.session.clone()),
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
        let session = self.session.as_ref().map_or(String::new(), |option| format!(" in sessions with {option}"));
        let left = format!("`optimize --target ort-nhwc` would leave{session}");
        let otherwise = self.file_otherwise.map(|on| ("in default sessions".to_owned(), on));
        let lines = std::iter::once(("Transposes on the device".to_owned(), self.file)).chain(otherwise);
        for (what, on) in lines.chain([(left, self.optimized)]) {
            let refused = if on.refused > 0 { format!(", {} of them refused", on.refused) } else { String::new() };
            let _ = writeln!(text, "{what}: {}, {} elements{refused}", on.transposes, on.elements);
        }
        for remark in &self.remarks {
            let _ = writeln!(text, "note: {remark}");
        }
        text
    }
}
