//! The machine on which times are measured.

use crate::CalibrateError;
use relayout_cache::cache_folder;
use relayout_verify::Runtime;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// What to do where there is no folder for caches.
const NAME_ONE: &str = "name a file for the times of kernels";

/// What a time depends on beside its case. Times of one host say nothing about another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Host {
    /// The processor, as it calls itself.
    pub machine: String,
    /// Instruction sets that it has, separated by spaces.
    pub flags: String,
    /// The runtime and its version.
    pub runtime: String,
    /// Threads per op.
    pub threads: u64,
}

impl Host {
    /// This machine, with a runtime, and so many threads per op.
    pub fn here(runtime: &Runtime, threads: usize) -> Host {
        Host::new(processor(), flags(), format!("ONNX Runtime {}", runtime.version()), threads as u64)
    }

    /// A host.
    pub fn new(machine: impl Into<String>, flags: impl Into<String>, runtime: impl Into<String>, threads: u64) -> Host {
        Host { machine: machine.into(), flags: flags.into(), runtime: runtime.into(), threads }
    }

    /// The name of its cache among those of other hosts: letters, digits, dots and dashes.
    pub fn file_name(&self) -> String {
        let text = format!("tune-{}-{}-{}t", self.machine, self.runtime, self.threads).to_lowercase();
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let mut name: String = text.chars().map(plain).collect();
        while name.contains("--") {
            name = name.replace("--", "-");
        }
        name + ".json"
    }

    /// Where its cache is kept if no place is named: in the folder `relayout` of the user's caches, which is made.
    ///
    /// # Errors
    /// [`CalibrateError::Cache`] if there is no such folder.
    pub fn cache_place(&self) -> Result<PathBuf, CalibrateError> {
        let folder = cache_folder()
            .ok_or_else(|| CalibrateError::Cache { why: format!("there is no folder for caches: {NAME_ONE}") })?;
        std::fs::create_dir_all(&folder)
            .map_err(|e| CalibrateError::Cache { why: format!("cannot make {}: {e}; {NAME_ONE}", folder.display()) })?;
        Ok(folder.join(self.file_name()))
    }

    /// What differs from another host, first what matters most.
    pub(crate) fn differs(&self, other: &Host) -> Option<[String; 2]> {
        let threads = |host: &Host| format!("{} threads", host.threads);
        let sides = |host: &Host| [host.machine.clone(), host.runtime.clone(), host.flags.clone(), threads(host)];
        sides(self).into_iter().zip(sides(other)).find(|(a, b)| a != b).map(|(a, b)| [a, b])
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = if self.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", self.threads) };
        write!(f, "{} with {}, {threads}", self.machine, self.runtime)
    }
}

/// The processor's name where the system tells it, else its architecture.
pub fn processor() -> String {
    let info = cpuinfo();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name));
    let family = info.lines().find_map(|line| line.strip_prefix("cpu family")?.split_once(':').map(|(_, n)| n.trim()));
    let system = format!("{} {}", std::env::consts::ARCH, std::env::consts::OS);
    match (name, family) {
        (Some(name), Some(family)) => format!("{}, family {family}, {system}", name.trim()),
        (Some(name), None) => format!("{}, {system}", name.trim()),
        _ => system,
    }
}

/// The instruction sets that kernels are chosen by, as the system calls them.
fn flags() -> String {
    let info = cpuinfo();
    let line = info.lines().find(|line| line.starts_with("flags") || line.starts_with("Features")).unwrap_or_default();
    let vector = |flag: &&str| {
        ["avx", "fma", "f16c", "sse4", "amx", "vnni", "asimd", "sve", "fp16", "bf16", "i8mm"]
            .iter()
            .any(|set| flag.contains(set))
    };
    let mut flags: Vec<&str> = line.split_whitespace().filter(vector).collect();
    flags.sort_unstable();
    flags.join(" ")
}

/// What the system says of its processors; nothing where it says it otherwise.
fn cpuinfo() -> String {
    std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()
}
