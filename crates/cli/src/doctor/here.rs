//! This machine: its processor, its runtimes, and what fits them.

use crate::commands::{NO_RUNTIME, python_folders, runtime, runtime_library};
use relayout::codegen::Isa;
use relayout::machine::{Equipment, Fitting, fitting};
use relayout::units::bytes;
use relayout_calibrate::{cache_folder, processor};
use relayout_verify::{equipment_of, has_device, provider_libraries};
use serde::Serialize;
use std::fmt;
use std::fs::read_dir;
use std::path::{Path, PathBuf};

/// Packages of Python that say something about runtimes or models begin with one of these.
const PACKAGES: &[&str] = &["onnx", "openvino", "torch", "tensorrt", "ai_edge_litert", "tensorflow", "ncnn", "mnn"];

/// What is on this machine.
#[derive(Debug, Serialize)]
pub(super) struct Here {
    version: &'static str,
    build: &'static str,
    processor: String,
    threads: u64,
    instruction_sets: Vec<&'static str>,
    caches: Vec<ProcessorCache>,
    onnx_runtime: OnnxRuntime,
    providers: Vec<ProviderLibrary>,
    python_packages: Vec<String>,
    kernel_times: Option<PathBuf>,
    pub(super) fits: Fitting,
    #[serde(skip)]
    pub(super) equipment: Equipment,
}

#[derive(Debug, Serialize)]
struct ProcessorCache {
    level: u8,
    bytes: u64,
}

/// The runtime that `verify`, `optimize --verify` and `calibrate` load.
#[derive(Debug, Default, Serialize)]
struct OnnxRuntime {
    version: Option<String>,
    library: Option<PathBuf>,
    /// Why it is not there, or can't be used.
    missing: Option<String>,
}

#[derive(Debug, Serialize)]
struct ProviderLibrary {
    name: String,
    library: PathBuf,
    /// Whether there is a device for it.
    device: bool,
}

impl Here {
    /// Looks at this machine. Nothing is measured.
    pub(super) fn look() -> Here {
        let onnx_runtime = OnnxRuntime::look();
        let providers = providers(onnx_runtime.library.as_deref());
        let there = onnx_runtime.library.as_deref().zip(onnx_runtime.version.clone());
        let equipment = equipment_of(there, python_folders());
        Here {
            version: env!("CARGO_PKG_VERSION"),
            build: env!("RELAYOUT_TARGET"),
            processor: processor(),
            threads: equipment.threads,
            instruction_sets: Isa::available().iter().map(|isa| isa.name()).collect(),
            caches: caches(),
            onnx_runtime,
            providers,
            python_packages: python_packages(),
            kernel_times: cache_folder().filter(|folder| folder.is_dir()),
            fits: fitting(&equipment),
            equipment,
        }
    }

    /// The options that fit, as they are typed.
    pub(super) fn options(&self) -> String {
        self.fits.words().join(" ")
    }
}

impl OnnxRuntime {
    fn look() -> OnnxRuntime {
        let Ok(library) = runtime_library() else {
            return OnnxRuntime { missing: Some(NO_RUNTIME.to_owned()), ..OnnxRuntime::default() };
        };
        match runtime() {
            Ok(loaded) => OnnxRuntime { version: Some(loaded.version()), library: Some(library), missing: None },
            Err(why) => {
                OnnxRuntime { version: None, library: Some(library), missing: why.message().map(str::to_owned) }
            }
        }
    }
}

/// Libraries of providers, and whether this machine has their device.
fn providers(runtime: Option<&Path>) -> Vec<ProviderLibrary> {
    let found = runtime.map(|runtime| provider_libraries(runtime, python_folders())).unwrap_or_default();
    let of = |(name, library): (String, PathBuf)| ProviderLibrary { device: has_device(&name), name, library };
    found.into_iter().map(of).collect()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Caches of the first core that hold data, where the system says what it has.
fn caches() -> Vec<ProcessorCache> {
    let folder = Path::new("/sys/devices/system/cpu/cpu0/cache");
    let read = |index: &str, what: &str| std::fs::read_to_string(folder.join(index).join(what)).ok();
    let of = |index: &String| {
        let kind = read(index, "type")?;
        let size = read(index, "size")?;
        let kibibytes: u64 = size.trim().strip_suffix('K')?.parse().ok()?;
        let level = read(index, "level")?.trim().parse().ok()?;
        (kind.trim() != "Instruction").then(|| ProcessorCache { level, bytes: kibibytes.saturating_mul(1024) })
    };
    let mut caches: Vec<ProcessorCache> = names_in(folder).iter().filter_map(of).collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

/// Packages that `python3` finds, by the names of their folders; none is imported.
fn python_packages() -> Vec<String> {
    let names = python_folders().iter().flat_map(|folder| names_in(folder));
    let of = |name: String| {
        let (package, version) = name.strip_suffix(".dist-info")?.split_once('-')?;
        let lower = package.to_lowercase();
        PACKAGES.iter().any(|start| lower.starts_with(start)).then(|| format!("{package} {version}"))
    };
    let mut packages: Vec<String> = names.filter_map(of).collect();
    packages.sort();
    packages.dedup();
    packages
}

impl fmt::Display for Here {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "relayout {}, built for {}", self.version, self.build)?;
        writeln!(f, "processor: {}", self.processor)?;
        writeln!(f, "threads: {}", self.threads)?;
        writeln!(f, "instruction sets: {}", self.instruction_sets.join(", "))?;
        let caches: Vec<String> = self.caches.iter().map(|c| format!("L{} {}", c.level, bytes(c.bytes))).collect();
        writeln!(f, "caches: {}", or_none(&caches, "not told by the system"))?;
        writeln!(f, "ONNX Runtime: {}", self.onnx_runtime)?;
        let providers: Vec<String> = self.providers.iter().map(ToString::to_string).collect();
        writeln!(f, "execution providers beside the CPU's: {}", or_none(&providers, "none found"))?;
        writeln!(f, "packages of python3: {}", or_none(&self.python_packages, "none that runs models"))?;
        let times = self.kernel_times.as_ref().map_or("none yet".to_owned(), |folder| folder.display().to_string());
        writeln!(f, "times of kernels that --tune kept: {times}\n")?;
        writeln!(f, "what fits this machine: {}", self.options())?;
        for why in &self.fits.why {
            writeln!(f, "  {why}")?;
        }
        writeln!(f, "what fits files that run elsewhere: --target onnx, which is the default\n\nnext:")?;
        writeln!(f, "  relayout doctor model.onnx")?;
        writeln!(f, "  relayout optimize model.onnx {}", self.options())
    }
}

impl fmt::Display for OnnxRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.version, &self.library, &self.missing) {
            (Some(version), Some(library), _) => write!(f, "{version} in {}", library.display()),
            (_, _, why) => write!(f, "none that can be used; {}", why.as_deref().unwrap_or_default()),
        }
    }
}

impl fmt::Display for ProviderLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = if self.device { "its device is there" } else { "no device for it is found" };
        write!(f, "{} ({device})", self.name)
    }
}

fn or_none(list: &[String], none: &str) -> String {
    if list.is_empty() { none.to_owned() } else { list.join(", ") }
}
