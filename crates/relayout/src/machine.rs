//! What a model is best optimized for on a machine: one answer for the command line, for Python and for hosts.
//!
//! [`Equipment`] is what is there, [`fitting`] chooses by it, and [`Fitting`] is what was chosen and why. Where a caller asks for some of it,
//! [`Request::fit`](crate::Request::fit) chooses the rest. Which runtimes and providers are there is told by the caller: this library
//! looks at the processor only.

use relayout_target_api::Target;
use relayout_targets::measured::{BuiltinTable, Processor};
use relayout_targets::{Block, OrtCpu, OrtNhwc, PROVIDERS, Provider, Release, TargetError, builtin};
use serde::{Deserialize, Serialize};

/// What a machine has that decides what models are best optimized for on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Equipment {
    /// The block of channels that ONNX Runtime's kernels take here; `None` where the processor is none of x86-64.
    pub block: Option<Block>,
    /// What processor it is; `None` where that is not known, or it is none of x86-64.
    pub processor: Option<Processor>,
    /// Threads that models run on.
    pub threads: u64,
    /// The version of ONNX Runtime that is there.
    pub runtime: Option<String>,
    /// Execution providers whose library and device are both there, by the names of [`PROVIDERS`]. Others go by
    /// their own names; nothing but standard ONNX is known to suit them.
    pub providers: Vec<String>,
}

impl Equipment {
    /// The processor of this machine, all its cores, and no runtime.
    #[must_use]
    pub fn of_this_machine() -> Equipment {
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let block = cfg!(target_arch = "x86_64").then(Block::of_host);
        Equipment { block, processor: Processor::of_host(), threads, runtime: None, providers: Vec::new() }
    }

    /// With this version of ONNX Runtime.
    #[must_use]
    pub fn with_runtime(mut self, version: impl Into<String>) -> Equipment {
        self.runtime = Some(version.into());
        self
    }

    /// With an execution provider that models can run on.
    #[must_use]
    pub fn with_provider(mut self, name: impl Into<String>) -> Equipment {
        self.providers.push(name.into());
        self
    }

    /// With the execution providers of a session, by the names that ONNX Runtime has for them, such as `CUDAExecutionProvider`. That of the
    /// CPU is there anyway.
    ///
    /// ```
    /// use relayout::machine::Equipment;
    /// let names = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"];
    /// let equipment = Equipment::default().with_session_providers(names);
    /// assert_eq!(equipment.providers, ["TensorrtExecutionProvider", "cuda"]);
    /// ```
    #[must_use]
    pub fn with_session_providers<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Equipment {
        for name in names {
            let name = name.as_ref();
            if name != ON_CPU {
                self.providers.push(known_as(name).unwrap_or(name).to_owned());
            }
        }
        self
    }
}

impl Equipment {
    /// The provider of the device that is preferred.
    fn device(&self) -> Option<&'static str> {
        DEVICES.into_iter().find(|device| self.providers.iter().any(|name| name == device))
    }
}

/// What ONNX Runtime calls its own provider.
const ON_CPU: &str = "CPUExecutionProvider";

/// The name by which this library knows a provider of ONNX Runtime.
fn known_as(execution_provider: &str) -> Option<&'static str> {
    let is = |name: &&&str| Provider::of(name).is_ok_and(|provider| provider.execution_provider == execution_provider);
    PROVIDERS.iter().filter(|name| !name.contains('@')).find(is).copied()
}

/// What models are best optimized for on a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fitting {
    /// The target.
    pub target: String,
    /// Channels of a block, for target `ort-cpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u64>,
    /// The kind of machine whose built-in costs count, for target `ort-cpu`; those that are usual for the block if none was measured on such
    /// processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Threads that costs are those of, for target `ort-cpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// The execution provider, for target `ort-nhwc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The version of ONNX Runtime that files are for, for target `ort-cpu`: all that it runs, and nothing that only newer ones do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// A sentence for each choice.
    pub why: Vec<String>,
}

/// The most threads that can be asked for.
pub(crate) const MOST_THREADS: u64 = 1024;

/// Devices in the order in which they are preferred to the processor.
const DEVICES: [&str; 3] = ["qnn", "cuda", "webgpu"];

/// Chooses target, block, kind of machine, threads and provider for what is there.
///
/// A device is preferred to the processor. Without ONNX Runtime, or with a provider that this library does not know, it is target `onnx`,
/// whose files every runtime reads.
#[must_use]
pub fn fitting(on: &Equipment) -> Fitting {
    choose(on, &Asked::default())
}

/// What a caller asks for by name. It stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked<'r> {
    pub(crate) target: Option<&'r str>,
    pub(crate) provider: Option<&'r str>,
    pub(crate) block: Option<Block>,
    pub(crate) machine: Option<&'r str>,
    /// Whether there is a table of costs, beside which no kind of machine has one.
    pub(crate) costs: bool,
    pub(crate) threads: Option<u64>,
    pub(crate) runtime: Option<&'r str>,
}

/// Chooses what is not asked for.
pub(crate) fn choose(on: &Equipment, asked: &Asked<'_>) -> Fitting {
    let mut fits = match (asked.provider, asked.target) {
        (Some(provider), _) => {
            Fitting::new("ort-nhwc", Some(provider), vec![format!("provider `{provider}`: asked for")])
        }
        (None, Some("ort-nhwc")) => on_device(on, "target `ort-nhwc`: asked for"),
        (None, Some(target)) => Fitting::new(target, None, vec![format!("target `{target}`: asked for")]),
        (None, None) => by_equipment(on),
    };
    if fits.target == "ort-cpu" {
        fits.on_processor(on, asked);
    }
    fits
}

fn by_equipment(on: &Equipment) -> Fitting {
    let standard = |why: String| {
        let every = "target `onnx` writes standard ONNX, which every runtime reads".to_owned();
        Fitting::new("onnx", None, vec![why, every])
    };
    let Some(version) = &on.runtime else {
        return standard("ONNX Runtime is not found here".to_owned());
    };
    if let Some(other) = on.providers.iter().find(|name| !PROVIDERS.contains(&name.as_str())) {
        return standard(format!("what provider `{other}` is fast at is not known"));
    }
    if let Some(device) = on.device() {
        let why = format!("ONNX Runtime {version} has a device here that wants channels last: provider `{device}`");
        return Fitting::new("ort-nhwc", Some(device), vec![why]);
    }
    if on.block.is_none() {
        return standard("ONNX Runtime has blocked kernels that files can call on x86-64 only".to_owned());
    }
    let why = format!("target `ort-cpu`: ONNX Runtime {version} on x86-64 has kernels for blocks of channels");
    Fitting::new("ort-cpu", None, vec![why])
}

/// Target `ort-nhwc` with the provider that is there.
fn on_device(on: &Equipment, why: &str) -> Fitting {
    let mut fits = Fitting::new("ort-nhwc", on.device(), vec![why.to_owned()]);
    fits.why.extend(on.device().map(|device| format!("provider `{device}`: it has a device here")));
    fits
}

impl Fitting {
    fn new(target: &str, provider: Option<&str>, why: Vec<String>) -> Fitting {
        let (target, provider) = (target.to_owned(), provider.map(str::to_owned));
        Fitting { target, block: None, machine: None, threads: None, provider, runtime: None, why }
    }

    /// The block, the kind of machine and the threads of target `ort-cpu`.
    fn on_processor(&mut self, on: &Equipment, asked: &Asked<'_>) {
        let block = asked.block.or(on.block);
        self.block = block.map(Block::channels);
        let set = if block == Some(Block::B16) { "AVX-512 is" } else { "AVX-512 is not" };
        let why = if asked.block.is_some() { "asked for".to_owned() } else { format!("{set} there") };
        self.why.extend(self.block.map(|channels| format!("blocks of {channels}: {why}")));
        self.on_machine(on, asked);
        let threads = asked.threads.unwrap_or(on.threads.min(MOST_THREADS));
        let why = if asked.threads.is_some() { "asked for" } else { "as many as a session takes by itself" };
        self.threads = Some(threads);
        self.why.push(format!("threads {threads}: {why}"));
        self.on_runtime(on, asked);
    }

    /// The kind of machine of target `ort-cpu`.
    fn on_machine(&mut self, on: &Equipment, asked: &Asked<'_>) {
        let measured = || BuiltinTable::measured_on(on.processor?, self.block?).map(|table| table.name);
        let (machine, why) = match asked.machine {
            Some(machine) => (Some(machine), "asked for"),
            None if asked.costs || asked.block.is_some() => (None, ""),
            None => (measured(), "its costs were measured on processors of this family"),
        };
        self.machine = machine.map(str::to_owned);
        self.why.extend(machine.map(|machine| format!("machine `{machine}`: {why}")));
    }

    /// The runtime of target `ort-cpu`, where its version tells a release.
    fn on_runtime(&mut self, on: &Equipment, asked: &Asked<'_>) {
        let version = asked.runtime.or(on.runtime.as_deref());
        self.runtime = version.filter(|version| Release::parse(version).is_ok()).map(str::to_owned);
        if let Some(release) = self.release().filter(|release| release.is_older()) {
            self.why.push(format!("runtime {release}: newer releases have kernels that it lacks"));
        }
    }

    /// The release that files are for.
    fn release(&self) -> Option<Release> {
        self.runtime.as_deref().and_then(|version| Release::parse(version).ok())
    }

    /// The target itself.
    ///
    /// # Errors
    /// [`TargetError`] if the built-in data does not read, or fields were set to what there is not.
    pub fn build(&self) -> Result<Box<dyn Target>, TargetError> {
        match (&self.provider, self.block.and_then(Block::of)) {
            (Some(provider), _) => Ok(Box::new(OrtNhwc::of(Provider::of(provider)?))),
            (None, Some(block)) => {
                let threads = self.threads.unwrap_or(1);
                let target = match &self.machine {
                    Some(name) => OrtCpu::for_machine(&self.table(name, block)?, threads)?,
                    None => OrtCpu::new(block)?.on_threads(threads)?,
                };
                Ok(Box::new(match self.release() {
                    Some(release) => target.for_release(release),
                    None => target,
                }))
            }
            (None, None) => builtin(&self.target),
        }
    }

    /// The table of a kind of machine, which has to be of the block.
    fn table(&self, name: &str, block: Block) -> Result<BuiltinTable, TargetError> {
        let malformed = |why| TargetError::Malformed { name: self.target.clone(), why };
        let table = BuiltinTable::of_machine(name).map_err(malformed)?;
        let other = || format!("machine `{name}` has blocks of {}, and not of {}", table.block, block.channels());
        if table.block == block.channels() { Ok(table) } else { Err(malformed(other())) }
    }

    /// The options of the command line that ask for it: `--target ort-cpu --threads 4`. The block is that of the machine anyway.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        match &self.provider {
            Some(provider) => option("--provider", provider.clone()),
            None => option("--target", self.target.clone()),
        }
        if let Some(machine) = &self.machine {
            option("--machine", machine.clone());
        }
        if let Some(threads) = self.threads.filter(|&threads| threads > 1) {
            option("--threads", threads.to_string());
        }
        if let Some(release) = self.release().filter(|release| release.is_older()) {
            option("--runtime", release.to_string());
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(block: Option<Block>, runtime: Option<&str>, providers: &[&str]) -> Equipment {
        let providers = providers.iter().map(ToString::to_string).collect();
        Equipment { block, processor: None, threads: 4, runtime: runtime.map(str::to_owned), providers }
    }

    #[test]
    fn costs_that_were_measured_on_such_a_processor_count_unless_others_are_asked_for() {
        let amd = |family| Some(Processor { vendor: *b"AuthenticAMD", family });
        let intel = Some(Processor { vendor: *b"GenuineIntel", family: 6 });
        for (processor, block, machine) in [
            (amd(25), Block::B16, Some("avx512-desktop")),
            // These are decided by the tables that are usual for their blocks.
            (amd(26), Block::B16, None),
            (amd(25), Block::B8, None),
            (amd(23), Block::B8, None),
            (intel, Block::B16, None),
            (None, Block::B16, None),
        ] {
            let here = Equipment { processor, ..on(Some(block), Some("1.31.1"), &[]) };
            let fits = fitting(&here);
            assert_eq!(fits.machine.as_deref(), machine, "{here:?}");
            let words = machine.map(|machine| format!(" --machine {machine}")).unwrap_or_default();
            assert_eq!(fits.words().join(" "), format!("--target ort-cpu{words} --threads 4"));
            assert_eq!(fits.why.iter().any(|why| why.starts_with("machine `")), machine.is_some(), "{fits:?}");
            let usual = Fitting { machine: None, ..fits.clone() };
            let source = |fits: &Fitting| fits.build().unwrap().cost_source().to_owned();
            assert_eq!(source(&fits) != source(&usual), machine.is_some(), "{} {}", source(&fits), source(&usual));
            for asked in [
                Asked { costs: true, ..Asked::default() },
                Asked { block: Some(block), ..Asked::default() },
                Asked { target: Some("onnx"), ..Asked::default() },
            ] {
                assert!(choose(&here, &asked).machine.is_none());
            }
            let asked = choose(&here, &Asked { machine: Some("avx2-laptop"), ..Asked::default() });
            assert_eq!(asked.machine.as_deref(), Some("avx2-laptop"));
            for wrong in ["avx3", if block == Block::B8 { "avx512-server" } else { "avx2-laptop" }] {
                let error = Fitting { machine: Some(wrong.to_owned()), ..fits.clone() }.build().err().expect("refused");
                assert!(error.to_string().contains(wrong), "{error}");
            }
        }
    }

    #[test]
    fn what_fits_follows_from_what_is_there() {
        let runtime = Some("1.31.1");
        for (equipment, words) in [
            (on(Some(Block::B16), None, &[]), "--target onnx"),
            (on(Some(Block::B16), None, &["cuda"]), "--target onnx"),
            (on(Some(Block::B16), runtime, &[]), "--target ort-cpu --threads 4"),
            (on(Some(Block::B8), runtime, &[]), "--target ort-cpu --threads 4"),
            (on(None, runtime, &[]), "--target onnx"),
            (on(None, runtime, &["webgpu", "qnn"]), "--provider qnn"),
            (on(Some(Block::B8), runtime, &["cuda"]), "--provider cuda"),
            // It runs on the processor, where blocks are faster.
            (on(Some(Block::B8), runtime, &["xnnpack"]), "--target ort-cpu --threads 4"),
            // Nodes that a file has for the processor are none that another provider takes.
            (on(Some(Block::B8), runtime, &["OpenVINOExecutionProvider"]), "--target onnx"),
        ] {
            let fits = fitting(&equipment);
            assert_eq!(fits.words().join(" "), words, "{equipment:?}");
            assert!(!fits.why.is_empty() && fits.why.iter().all(|why| !why.is_empty()), "{fits:?}");
            assert_eq!(fits.build().expect("a built-in target").name(), fits.target, "{equipment:?}");
        }
    }

    #[test]
    fn what_is_asked_for_stays_and_the_rest_is_chosen() {
        let here = on(Some(Block::B16), Some("1.31.1"), &[]);
        let ask = |asked: &Asked<'_>| {
            let fits = choose(&here, asked);
            (fits.words().join(" "), fits.block, fits.threads, fits.why.join("; "))
        };
        let (words, block, threads, why) = ask(&Asked { threads: Some(1), block: Some(Block::B8), ..Asked::default() });
        assert_eq!((words.as_str(), block, threads), ("--target ort-cpu", Some(8), Some(1)));
        assert!(why.ends_with("blocks of 8: asked for; threads 1: asked for"), "{why}");
        let (_, _, threads, why) = ask(&Asked { target: Some("ort-cpu"), ..Asked::default() });
        assert_eq!(threads, Some(4));
        assert!(
            why.starts_with("target `ort-cpu`: asked for; blocks of 16: AVX-512 is there; threads 4: as many as"),
            "{why}"
        );
        let older = choose(&here, &Asked { target: Some("ort-cpu"), runtime: Some("1.29.0"), ..Asked::default() });
        assert_eq!(older.words().join(" "), "--target ort-cpu --threads 4 --runtime 1.29");
        let (words, block, ..) = ask(&Asked { target: Some("nhwc"), ..Asked::default() });
        assert_eq!((words.as_str(), block), ("--target nhwc", None));
        let (words, ..) = ask(&Asked { provider: Some("xnnpack"), ..Asked::default() });
        assert_eq!(words, "--provider xnnpack");
        let fits =
            choose(&on(None, Some("1.31.1"), &["webgpu"]), &Asked { target: Some("ort-nhwc"), ..Asked::default() });
        assert_eq!(fits.provider.as_deref(), Some("webgpu"));
    }

    #[test]
    fn the_target_has_the_block_and_the_threads_that_were_chosen() {
        let metadata = |block| fitting(&on(Some(block), Some("1.31.1"), &[])).build().unwrap().metadata();
        for (block, channels) in [(Block::B8, "8"), (Block::B16, "16")] {
            let metadata = metadata(block);
            assert!(metadata.contains(&("relayout.block".to_owned(), channels.to_owned())), "{metadata:?}");
            assert!(
                metadata
                    .iter()
                    .any(|(key, costs)| key == "relayout.costs" && costs.contains("4 threads (derived from 1"))
            );
        }
    }
}
