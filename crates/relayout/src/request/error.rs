//! What is wrong with a request: which option, and what would mend it.

use super::{OPTIONS, Spelling};
use crate::io::IoError;
use relayout_fsio as fsio;
use relayout_targets::TargetError;
use relayout_targets::measured::CostsError;
use std::error::Error;
use std::fmt;
use std::path::PathBuf;

/// What is wrong with a [`Request`](super::Request). Each names the option and what would mend it.
///
/// It is written with the names that Python and C have; [`RequestError::spelled`] writes those of the command line.
#[derive(Debug)]
#[non_exhaustive]
pub enum RequestError {
    /// No option has this name.
    Unknown {
        /// What was said.
        option: String,
    },
    /// An option that has one value was set twice.
    Twice {
        /// The option.
        option: &'static str,
    },
    /// A value that the option can't have.
    Value {
        /// The option.
        option: &'static str,
        /// What is wrong with the value.
        why: String,
    },
    /// A layout of an input or output that is none.
    Layout(IoError),
    /// An option of other targets.
    NotOfTarget {
        /// The option.
        option: &'static str,
        /// The target.
        asked: String,
    },
    /// Two options that exclude each other.
    Together {
        /// One of them.
        option: &'static str,
        /// The option that it contradicts.
        other: &'static str,
    },
    /// The machine that is asked for has other blocks than those that are asked for.
    MachineOfBlock {
        /// The machine.
        machine: &'static str,
        /// Channels of its blocks.
        block: u64,
        /// Channels of those that are asked for.
        asked: u64,
    },
    /// Sizes are to be written into the file, and this one is a range.
    FixedRange {
        /// The dim.
        name: String,
    },
    /// There is no such target, or what describes it can't be read.
    Target(TargetError),
    /// A file that describes a target can't be read.
    TargetFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: fsio::Error,
    },
    /// A file with costs can't be read.
    CostsFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: fsio::Error,
    },
    /// A file with costs is no table of costs.
    Costs(CostsError),
    /// There is no model.
    NoModel,
    /// This caller measures nothing.
    Untuned,
    /// What is made for this target does not run where times are measured.
    NotTuned {
        /// The target.
        asked: String,
    },
    /// Target `ort-nhwc` is tuned on a device, and neither the plugin nor the Python that has it is named.
    TunedWithoutDevice,
    /// Target `ort-cpu` is tuned on the processor, and a plugin is named.
    TunedByPlugin,
    /// What runs models on a device is named, and nothing is measured.
    DeviceUntuned {
        /// The option that names it.
        option: &'static str,
    },
    /// Options of a provider, and nothing is named that has it.
    OptionsWithoutDevice,
    /// A certificate of costs that only this machine knows.
    TunedCertificate,
}

impl RequestError {
    /// The message, with options spelled as the caller spells them.
    pub fn spelled(&self, spelling: Spelling) -> String {
        let name = |key| spelling.of(key);
        match self {
            RequestError::Unknown { option } => {
                let all: Vec<String> = OPTIONS.iter().map(|option| name(option.key)).collect();
                format!("there is no option `{option}`; the options are {}", all.join(", "))
            }
            RequestError::Twice { option } => format!("{} is set twice; leave out one of them", name(option)),
            RequestError::Value { option, why } => format!("{}: {why}", name(option)),
            RequestError::Layout(source) => source.to_string(),
            RequestError::NotOfTarget { option: option @ ("block" | "costs" | "machine" | "threads"), asked }
                if asked == "onnx" =>
            {
                let runtime = name("runtime");
                format!(
                    "{} is an option of {}, and of `onnx` with {runtime} onnxruntime",
                    name(option),
                    whose(option, spelling)
                )
            }
            RequestError::NotOfTarget { option, asked } => {
                format!("{} is an option of {}, not of `{asked}`", name(option), whose(option, spelling))
            }
            RequestError::Together { option, other } => {
                format!("{} and {} exclude each other; leave out one of them", name(option), name(other))
            }
            RequestError::MachineOfBlock { machine, block, asked } => format!(
                "{} `{machine}` has blocks of {block}, and {} says {asked}; leave out one of them",
                name("machine"),
                name("block")
            ),
            RequestError::FixedRange { name: dim } => {
                format!("{} writes numbers, and {} {dim} is a range", name("fix_sizes"), name("dims"))
            }
            RequestError::Target(source) => source.to_string(),
            RequestError::TargetFile { path, source } => format!("target file `{}`: {source}", path.display()),
            RequestError::CostsFile { path, source } => {
                format!("cannot read table of costs `{}`: {}", path.display(), cause(source))
            }
            RequestError::Costs(source) => source.to_string(),
            RequestError::NoModel => "there is no model; name a file, or give its bytes".to_owned(),
            _ => self.of_tuning(&name),
        }
    }

    /// What is wrong with options of tuning.
    fn of_tuning(&self, name: &dyn Fn(&'static str) -> String) -> String {
        let tune = name("tune");
        let [target, library, python] = ["target", "provider_library", "python"].map(name);
        match self {
            RequestError::Untuned => {
                format!(
                    "{tune} runs models, which this library does not; use the command line or Python, and give it `costs` here"
                )
            }
            RequestError::NotTuned { asked } => format!(
                "{tune} runs models in ONNX Runtime, which is what targets `onnx`, `ort-cpu` and `ort-nhwc` are for, not `{asked}`: \
                 add {target} and one of them"
            ),
            RequestError::TunedWithoutDevice => format!(
                "what {tune} measures for target `ort-nhwc` is an execution provider's device; add {library} with the plugin library \
                 of that provider, or {python} with a Python whose ONNX Runtime has it"
            ),
            RequestError::TunedByPlugin => {
                format!("target `ort-cpu` is for the CPU's own provider; leave out {library}, or add {target} ort-nhwc")
            }
            RequestError::DeviceUntuned { option } => {
                format!("{} says what {tune} runs models on; add {tune}", name(option))
            }
            RequestError::OptionsWithoutDevice => {
                let options = name("provider_options");
                format!(
                    "{options} says what a provider is told; name its plugin with {library}, or a Python that has it with {python}"
                )
            }
            _ => format!(
                "a certificate is about costs that others can look up, and those of {tune} are this machine's; leave out one of {} and \
                 {tune}",
                name("certificate")
            ),
        }
    }
}

/// The targets that have an option.
fn whose(option: &str, spelling: Spelling) -> String {
    match option {
        "costs" => "targets `ort-cpu`, `ort-nhwc` and `cuda-tensorcore`".to_owned(),
        "threads" => format!("target `ort-cpu` and of `{}`", spelling.of("tune")),
        "runtime" => "targets `onnx` and `ort-cpu`".to_owned(),
        "provider" | "allow" | "python" => "target `ort-nhwc`".to_owned(),
        _ => "target `ort-cpu`".to_owned(),
    }
}

/// What the system says, where the file is named beside it.
fn cause(error: &fsio::Error) -> String {
    match error {
        fsio::Error::Read { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelled(Spelling::Keys))
    }
}

impl Error for RequestError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            RequestError::Layout(source) => Some(source),
            RequestError::Target(source) => Some(source),
            RequestError::TargetFile { source, .. } | RequestError::CostsFile { source, .. } => Some(source),
            RequestError::Costs(source) => Some(source),
            _ => None,
        }
    }
}

impl From<TargetError> for RequestError {
    fn from(error: TargetError) -> RequestError {
        RequestError::Target(error)
    }
}
