//! What this machine has that decides what models are best optimized for: its runtime, and providers whose device is there.

use crate::find::provider_libraries;
use relayout::machine::Equipment;
use std::path::{Path, PathBuf};

/// What is there, with this runtime: its library and its version. Providers are those whose library lies beside it, or in a package of
/// these folders, and whose device is there.
pub fn equipment_of(runtime: Option<(&Path, String)>, site_packages: &[PathBuf]) -> Equipment {
    let equipment = Equipment::of_this_machine();
    let Some((library, version)) = runtime else { return equipment };
    let providers = provider_libraries(library, site_packages).into_iter().map(|(name, _)| name);
    providers.filter(|name| has_device(name)).fold(equipment.with_runtime(version), Equipment::with_provider)
}

/// Whether there is a device that the provider of this name runs on, as far as the system shows its devices as files.
pub fn has_device(provider: &str) -> bool {
    match provider {
        "cuda" | "tensorrt" => Path::new("/dev/nvidiactl").exists(),
        "webgpu" => has_renderer(),
        // Elsewhere its libraries bring a simulator.
        "qnn" => cfg!(target_arch = "aarch64"),
        _ => false,
    }
}

fn has_renderer() -> bool {
    let entries = std::fs::read_dir("/dev/dri").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).any(|name| name.starts_with("renderD"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_runtime_there_is_the_processor() {
        let here = equipment_of(None, &[]);
        assert_eq!(here, Equipment::of_this_machine());
        assert!(!has_device("xnnpack") && !has_device("no such provider"));
    }
}
