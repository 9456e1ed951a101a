//! Execution providers as data: which ops ONNX Runtime runs channels last for each, by its version, and what a Transpose is there.
//!
//! A file of `providers/` describes one provider. What was not counted with the provider itself comes from ONNX Runtime's sources, and
//! says so.

use crate::TargetError;
use relayout_ir::op::MICROSOFT;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The execution providers that there is data of, each as the newest version of ONNX Runtime serves it. Where older ones differ the version
/// stands behind an `@`.
pub const PROVIDERS: &[&str] = &["qnn", "webgpu", "webgpu@1.27", "xnnpack", "cuda", "cuda@1.21"];

/// The data of a provider.
fn text_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "qnn" => include_str!("providers/qnn.toml"),
        "webgpu" => include_str!("providers/webgpu.toml"),
        "xnnpack" => include_str!("providers/xnnpack.toml"),
        "cuda" => include_str!("providers/cuda.toml"),
        _ => return None,
    })
}

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
    /// The option of the provider without which it runs nothing channels last.
    #[serde(default)]
    pub session: Option<String>,
    /// Its sessions that run nothing channels last, if files may be for them as well.
    #[serde(default)]
    pub channels_first: Option<ChannelsFirst>,
    /// Where the data comes from.
    pub source: String,
    /// Whether Transposes were counted with it.
    pub counted: bool,
    /// What a Transpose is on the device.
    pub device: Device,
    versions: Vec<Version>,
    /// Whether files may have ops of [`MICROSOFT`] that only this provider runs.
    #[serde(skip)]
    allowed: bool,
}

/// Sessions in which a provider runs nothing channels last.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelsFirst {
    /// The option that makes such a session.
    pub session: String,
    /// What the provider is for there.
    pub about: String,
    /// Ops over all channels whose kernels bring what they read to channels last by themselves, and their results back.
    pub turns: Vec<String>,
}

/// What a Transpose costs, and what it may be.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Device {
    /// Elements that a Transpose writes in a nanosecond.
    pub elements_per_ns: u64,
    /// What it costs whatever its size, in nanoseconds.
    pub node_ns: u64,
    /// The highest rank.
    pub max_rank: Option<u64>,
    /// The largest extent.
    pub max_extent: Option<u64>,
    /// Which extents of what it runs may be known at run time only.
    #[serde(default)]
    pub unknown: Unknown,
    /// Whether products with constant weights beside attention may be products of heads, or convolutions over heads.
    #[serde(default)]
    pub heads_first: bool,
    /// Whether a product and the sum with its bias are two nodes anyway, so that the sum costs nothing more in another form.
    #[serde(default)]
    pub sums_are_nodes: bool,
    /// Whether an Einsum whose right operand is turned runs as a product without a Transpose.
    #[serde(default)]
    pub turned_products: bool,
    /// Whether the runtime takes a Transpose that exchanges rows and columns into the product of matrices that reads it.
    #[serde(default)]
    pub fuses_products: bool,
    /// Whether it runs an op between `DequantizeLinear` and `QuantizeLinear` as one op of quantized values. If not, each of the two is a
    /// node, also the one that dequantizes weights in each run.
    #[serde(default = "yes")]
    pub quantized_units: bool,
    /// Whether its kernels that run channels last take floats only, so that a pool of bytes stays channels first.
    #[serde(default)]
    pub float_kernels: bool,
    /// Whether rows that several nodes move, one after the other, are picked by one Gather in their place.
    #[serde(default)]
    pub gathers_rows: bool,
    /// Whether units of integers in one op, such as `QLinearConv`, become such ops between `DequantizeLinear` and `QuantizeLinear`.
    #[serde(default)]
    pub parts_units: bool,
}

fn yes() -> bool {
    true
}

/// Extents that are known at run time only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unknown {
    /// None: all are numbers.
    #[default]
    None,
    /// Only the extent of the first axis is not a number.
    Batch,
    /// Any.
    Any,
}

impl Unknown {
    /// Which extents are not numbers where another axis is the first one.
    pub(super) fn behind_another_axis(self) -> Unknown {
        if self == Unknown::Batch { Unknown::Any } else { self }
    }
}

/// What holds from a version of ONNX Runtime on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Version {
    since: String,
    /// Whether Transposes move through Reshapes that split axes, and through Gathers of one element.
    splits: bool,
    /// Whether they move through Reshapes that make rows and columns one axis, or that one rows and columns.
    flattens: bool,
    nhwc: Vec<String>,
    /// Ops that it runs channels last from an operator set on, which decisions leave out.
    #[serde(default)]
    nhwc_since: BTreeMap<String, i64>,
    innermost: Vec<String>,
    /// Ops of domain [`MICROSOFT`] that files may have where the user allows that domain. Other providers need not have them.
    #[serde(default)]
    contributed: Vec<String>,
    /// Whether a Resize of rank 4 that interpolates does so along the two innermost axes, whatever axes it scales.
    #[serde(default)]
    interpolates_innermost: bool,
}

impl Provider {
    /// The provider of this name, as the newest version of ONNX Runtime serves it that there is data of. `webgpu@1.27` names a version.
    ///
    /// # Errors
    /// [`TargetError::Malformed`] with the names or versions that there are, or with what is wrong in the data.
    pub fn of(name: &str) -> Result<Provider, TargetError> {
        let malformed = |why: String| TargetError::Malformed { name: name.to_owned(), why };
        let known = || format!("there is no provider of this name; the known ones are {}", PROVIDERS.join(", "));
        let (own, version) = name.split_once('@').map_or((name, None), |(own, version)| (own, Some(version)));
        let provider = Provider::parse(text_of(own).ok_or_else(|| malformed(known()))?).map_err(malformed)?;
        match version {
            Some(version) => provider.in_version(version).map_err(malformed),
            None => Ok(provider),
        }
    }

    /// The provider with what holds in this version.
    fn in_version(mut self, version: &str) -> Result<Provider, String> {
        let wanted = numbers(version).ok_or_else(|| format!("expected a version such as 1.30, found `{version}`"))?;
        let first = self.versions.first().map(|known| known.since.clone()).unwrap_or_default();
        self.versions.retain(|known| numbers(&known.since).is_some_and(|since| since <= wanted));
        if self.versions.is_empty() {
            return Err(format!("there is no data of versions before {first}"));
        }
        Ok(self)
    }

    fn parse(text: &str) -> Result<Provider, String> {
        let provider: Provider = toml::from_str(text).map_err(|e| e.to_string())?;
        if provider.versions.is_empty() || provider.device.elements_per_ns == 0 {
            return Err("it needs [[versions]], and `device.elements_per_ns` of at least 1".to_owned());
        }
        let since: Option<Vec<_>> = provider.versions.iter().map(|version| numbers(&version.since)).collect();
        if !since.is_some_and(|since| since.is_sorted()) {
            return Err("its [[versions]] need `since` in rising order, such as \"1.30\"".to_owned());
        }
        Ok(provider)
    }

    /// The provider for files that may also have ops of this domain, which only it runs.
    ///
    /// # Errors
    /// Why not: only [`MICROSOFT`] can be allowed, and only where the provider has such ops.
    pub fn allowing(mut self, domain: &str) -> Result<Provider, String> {
        if domain != MICROSOFT {
            return Err(format!("`{domain}` is not {MICROSOFT}, the only domain that can be allowed"));
        }
        if self.newest().is_none_or(|version| version.contributed.is_empty()) {
            return Err(format!("there is no op of {MICROSOFT} that files for provider `{}` can have", self.name));
        }
        self.allowed = true;
        Ok(self)
    }

    /// The provider in its sessions that run nothing channels last; `None` without data of such, or if this is one of them.
    #[must_use]
    pub fn channels_first(&self) -> Option<Provider> {
        let ChannelsFirst { session, about, .. } = self.channels_first.clone()?;
        let mut first = Provider { session: Some(session), about, ..self.clone() };
        if self.session == first.session {
            return None;
        }
        for version in &mut first.versions {
            version.nhwc.clear();
            version.nhwc_since.clear();
        }
        Some(first)
    }

    /// Ops over all channels whose kernels turn what they read and leave: of sessions that run nothing channels last.
    pub(super) fn turns(&self) -> &[String] {
        self.channels_first
            .as_ref()
            .filter(|first| self.session.as_ref() == Some(&first.session))
            .map_or(&[], |first| &first.turns)
    }

    /// Whether files may have this op of domain [`MICROSOFT`].
    pub(super) fn contributes(&self, op: &str) -> bool {
        self.allowed && self.newest().is_some_and(|version| version.contributed.iter().any(|known| known == op))
    }

    /// The newest version that there is data of.
    fn newest(&self) -> Option<&Version> {
        self.versions.last()
    }

    /// Whether ONNX Runtime puts Transposes around this op.
    pub fn wraps(&self, op: &str) -> bool {
        self.newest().is_some_and(|version| version.nhwc.iter().any(|known| known == op))
    }

    /// Whether ONNX Runtime puts Transposes around any op.
    pub(super) fn wraps_any(&self) -> bool {
        self.newest().is_some_and(|version| !version.nhwc.is_empty() || !version.nhwc_since.is_empty())
    }

    /// Whether ONNX Runtime puts Transposes around this op of an operator set: what it does with a file, which decisions may leave out.
    pub(super) fn wraps_in(&self, op: &str, opset: i64) -> bool {
        let since = self.newest().and_then(|version| version.nhwc_since.get(op));
        self.wraps(op) || since.is_some_and(|&since| opset >= since)
    }

    /// Whether the provider puts Transposes around this op where the axis that it works along is not innermost.
    pub fn wants_innermost(&self, op: &str) -> bool {
        self.newest().is_some_and(|version| version.innermost.iter().any(|known| known == op))
    }

    /// Whether a Resize that interpolates is right only where rows and columns of an image lie innermost.
    pub(super) fn interpolates_innermost(&self) -> bool {
        self.newest().is_some_and(|version| version.interpolates_innermost)
    }

    /// Whether the runtime moves Transposes through Reshapes that split axes, and through Gathers of one element.
    pub(super) fn splits(&self) -> bool {
        self.newest().is_some_and(|version| version.splits)
    }

    /// Whether the runtime moves them through Reshapes between rows and columns and one axis.
    pub(super) fn flattens(&self) -> bool {
        self.newest().is_some_and(|version| version.flattens)
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

/// A version of ONNX Runtime, major and minor number.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let (major, rest) = version.split_once('.')?;
    let minor = rest.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_reads_under_its_own_name_and_wraps_convolutions() {
        for name in PROVIDERS {
            let provider = Provider::of(name).unwrap();
            assert_eq!(Some(provider.name.as_str()), name.split('@').next());
            assert!(provider.wraps("Conv") && !provider.wraps("MatMul"), "{name}");
            assert!(provider.transpose_ns(1 << 20) > provider.transpose_ns(1), "{name}");
        }
    }

    #[test]
    fn an_unknown_provider_is_told_what_there_is() {
        let error = Provider::of("tpu").map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("tpu") && error.contains("webgpu"), "{error}");
    }

    #[test]
    fn a_version_has_what_held_last_before_it() {
        let of = |name: &str| Provider::of(name);
        for (name, since, splits) in [
            ("webgpu", "1.30", true),
            ("webgpu@1.27", "1.27", false),
            ("webgpu@1.29.1", "1.27", false),
            ("webgpu@2.0", "1.30", true),
        ] {
            let provider = of(name).unwrap();
            assert_eq!((provider.since(), provider.splits()), (since, splits), "{name}");
        }
        for (name, told) in
            [("webgpu@1.20", "before 1.27"), ("webgpu@new", "a version such as"), ("webgpu@", "a version")]
        {
            let error = of(name).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(told), "{name}: {error}");
        }
    }

    #[test]
    fn a_domain_is_allowed_where_the_provider_has_ops_of_it() {
        for name in PROVIDERS {
            let allowed = Provider::of(name).unwrap().allowing(MICROSOFT);
            assert_eq!(allowed.is_ok(), name.starts_with("cuda"), "{name}");
            assert!(!Provider::of(name).unwrap().contributes("GroupNorm"), "{name} writes none by default");
        }
        let cuda = || Provider::of("cuda").unwrap();
        assert!(cuda().allowing(MICROSOFT).unwrap().contributes("GroupNorm"));
        assert!(!cuda().allowing(MICROSOFT).unwrap().contributes("Attention"));
        assert!(
            cuda().allowing("com.example").is_err_and(|why| why.contains("com.example") && why.contains(MICROSOFT))
        );
    }

    #[test]
    fn versions_are_in_rising_order() {
        let text = text_of("webgpu").unwrap();
        assert!(Provider::parse(&text.replace("1.30\"", "1.9\"")).is_err_and(|why| why.contains("rising")));
        assert!(Provider::parse(&text.replace("\"1.30\"", "\"new\"")).is_err());
    }

    #[test]
    fn data_without_versions_or_with_an_unknown_key_is_refused() {
        let text = text_of("qnn").unwrap();
        assert!(Provider::parse(&text.replace("elements_per_ns = 2", "elements_per_ns = 0")).is_err());
        assert!(Provider::parse(&format!("speed = 3\n{text}")).is_err_and(|why| why.contains("speed")));
    }
}
