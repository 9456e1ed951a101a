//! An execution provider beside the CPU's: a plugin of ONNX Runtime, and the devices that it finds.
//!
//! A process registers a library once and keeps it to its end, as it keeps the runtime.

use crate::error::{VerifyError, listed, one_line};
use crate::runtime::{Runtime, guarded};
use ort::device::Device;
use ort::memory::DeviceType;
use ort::session::builder::SessionBuilder;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What the runtime calls the provider of a library that names itself nothing else.
const SUFFIX: &str = "ExecutionProvider";

/// Libraries that this process has registered, and the providers that came with each.
static REGISTERED: Mutex<Vec<(PathBuf, Vec<String>)>> = Mutex::new(Vec::new());

/// The execution provider of a plugin library, such as that of QNN or of WebGPU. Nodes that it does not take run on the CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginProvider {
    /// The shared library.
    pub library: PathBuf,
    /// What it is told, by its own names, such as `backend_path` of QNN.
    pub options: Vec<(String, String)>,
}

impl Display for PluginProvider {
    /// The library and what it is told, as in `libprovider.so (backend_path=libHtp.so)`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.library.display())?;
        let told: Vec<String> = self.options.iter().map(|(key, value)| format!("{key}={value}")).collect();
        if told.is_empty() { Ok(()) } else { write!(f, " ({})", told.join(", ")) }
    }
}

impl PluginProvider {
    /// One that is told nothing.
    pub fn of(library: impl Into<PathBuf>) -> PluginProvider {
        PluginProvider { library: library.into(), options: Vec::new() }
    }

    /// That the library is a plugin of this runtime and finds a device on this machine. Options are looked at only when a model is loaded.
    ///
    /// # Errors
    /// [`VerifyError::Provider`] with what the system or the runtime says.
    pub fn check(&self, runtime: &Runtime) -> Result<(), VerifyError> {
        guarded("looking for devices", || self.device(runtime, &self.registered(runtime)?).map(drop))
    }

    /// Has a session run what the provider takes on its device.
    pub(crate) fn with(&self, runtime: &Runtime, builder: SessionBuilder) -> Result<SessionBuilder, VerifyError> {
        let names = self.registered(runtime)?;
        let told = |name: &String| {
            let prefixed = |(key, value): &(String, String)| (format!("{name}.{key}"), value.clone());
            self.options.iter().map(prefixed).collect::<Vec<_>>()
        };
        let options: Vec<(String, String)> = names.iter().flat_map(told).collect();
        let device = self.device(runtime, &names)?;
        builder.with_devices([device], Some(&options)).map_err(|e| self.failed(&e))
    }

    /// The device of these providers: an NPU if there is one, else a GPU, else what there is. Providers take one at a time.
    fn device<'r>(&self, runtime: &'r Runtime, names: &[String]) -> Result<Device<'r>, VerifyError> {
        let all = || runtime.environment.devices();
        let own = all().filter(|device| device.ep().is_ok_and(|ep| names.iter().any(|name| name == ep)));
        let rank = |device: &Device<'_>| match device.hardware_device().ty() {
            DeviceType::NPU => 0,
            DeviceType::GPU => 1,
            _ => 2,
        };
        own.min_by_key(rank).ok_or_else(|| {
            let others = listed(all().filter_map(|device| device.ep().ok()));
            self.failed(&format!("it finds no device on this machine; providers that have one: {others}"))
        })
    }

    fn failed(&self, reason: &dyn Display) -> VerifyError {
        VerifyError::Provider { path: self.library.clone(), reason: one_line(&reason.to_string()) }
    }

    /// The names of the library's providers, after it was registered.
    fn registered(&self, runtime: &Runtime) -> Result<Vec<String>, VerifyError> {
        // A name without a folder would be looked for where the system's libraries are.
        let path = self.library.canonicalize().map_err(|e| self.failed(&e))?;
        let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, names)) = registered.iter().find(|(known, _)| *known == path) {
            return Ok(names.clone());
        }
        let providers = || -> Vec<String> {
            runtime.environment.devices().filter_map(|device| device.ep().ok().map(str::to_owned)).collect()
        };
        let before = providers();
        runtime.environment.register_ep_library(name(&path), &path).map_err(|e| self.failed(&e))?;
        let mut names = providers();
        names.retain(|name| !before.contains(name));
        names.dedup();
        registered.push((path, names.clone()));
        Ok(names)
    }
}

/// What a library is registered as, which some providers take for their own name: `QNNExecutionProvider` for
/// `libonnxruntime_providers_qnn.so`, as other programs call them.
fn name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let stem = stem.strip_prefix("lib").unwrap_or(&stem);
    let short = stem.strip_prefix("onnxruntime_providers_").unwrap_or(stem);
    let known = ["QNN", "WebGpu", "CUDA", "OpenVINO"].into_iter().find(|known| known.eq_ignore_ascii_case(short));
    format!("{}{SUFFIX}", known.unwrap_or(short))
}

#[cfg(test)]
mod tests {
    use super::{PluginProvider, name};
    use std::path::Path;

    #[test]
    fn a_library_is_registered_by_the_name_that_others_give_it() {
        let names = ["/opt/libonnxruntime_providers_qnn.so", "onnxruntime_providers_webgpu.dll", "libmine.so"];
        let names = names.map(|path| name(Path::new(path)));
        assert_eq!(names, ["QNNExecutionProvider", "WebGpuExecutionProvider", "mineExecutionProvider"]);
    }

    #[test]
    fn a_provider_is_spelled_with_what_it_is_told() {
        let mut provider = PluginProvider::of("libp.so");
        assert_eq!(provider.to_string(), "libp.so");
        provider.options = vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())];
        assert_eq!(provider.to_string(), "libp.so (a=1, b=2)");
    }
}
