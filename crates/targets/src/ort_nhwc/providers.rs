//! Execution providers as data: which ops ONNX Runtime runs channels last for each, by its version, and what a Transpose is there.
//!
//! A file of `providers/` describes one provider. What was not counted with the provider itself comes from ONNX Runtime's sources, and
//! says so.

use crate::TargetError;
use serde::Deserialize;

/// The data files, by name.
const FILES: &[(&str, &str)] = &[("qnn", include_str!("providers/qnn.toml"))];

/// An execution provider that wants channels last, as some version of ONNX Runtime serves it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Name, as `--provider` takes it.
    pub name: String,
    /// Its name in ONNX Runtime.
    pub execution_provider: String,
    /// What it is for.
    pub about: String,
    /// Where the data comes from.
    pub source: String,
    /// Whether Transposes were counted with it.
    pub counted: bool,
    /// What a Transpose is on the device.
    pub device: Device,
    versions: Vec<Version>,
}

/// What a Transpose costs, and what it may be.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Elements that a Transpose writes in a nanosecond.
    pub elements_per_ns: u64,
    /// What it costs whatever its size, in nanoseconds.
    pub node_ns: u64,
    /// The highest rank.
    pub max_rank: Option<u64>,
    /// The largest extent.
    pub max_extent: Option<u64>,
}

/// What holds from a version of ONNX Runtime on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Version {
    since: String,
    nhwc: Vec<String>,
    innermost: Vec<String>,
}

impl Provider {
    /// The provider of this name.
    ///
    /// # Errors
    /// [`TargetError::Malformed`] with the names that there are, or with what is wrong in the data.
    pub fn of(name: &str) -> Result<Provider, TargetError> {
        let malformed = |why: String| TargetError::Malformed { name: name.to_owned(), why };
        let text = FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        let known = || FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        Provider::parse(text.ok_or_else(|| malformed(format!("no such provider; there is data of {}", known())))?)
            .map_err(malformed)
    }

    fn parse(text: &str) -> Result<Provider, String> {
        let provider: Provider = toml::from_str(text).map_err(|e| e.to_string())?;
        if provider.versions.is_empty() || provider.device.elements_per_ns == 0 {
            return Err("it needs [[versions]], and `device.elements_per_ns` of at least 1".to_owned());
        }
        Ok(provider)
    }

    /// The newest version that there is data of.
    fn newest(&self) -> Option<&Version> {
        self.versions.last()
    }

    /// Whether ONNX Runtime puts Transposes around this op.
    pub fn wraps(&self, op: &str) -> bool {
        self.newest().is_some_and(|version| version.nhwc.iter().any(|known| known == op))
    }

    /// Whether the provider puts Transposes around this op where the axis that it works along is not innermost.
    pub fn wants_innermost(&self, op: &str) -> bool {
        self.newest().is_some_and(|version| version.innermost.iter().any(|known| known == op))
    }

    /// The first version of ONNX Runtime for which the data holds.
    pub fn since(&self) -> &str {
        self.newest().map_or("", |version| &version.since)
    }

    /// Nanoseconds of a Transpose of so many elements.
    pub fn transpose_ns(&self, elements: u64) -> u64 {
        self.device.node_ns.saturating_add(elements.div_ceil(self.device.elements_per_ns))
    }
}
