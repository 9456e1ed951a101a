//! A model loaded into the runtime, and one execution of it.
//!
//! Loading reads the names and types of inputs and outputs once. ONNX Runtime reports a tensor of unknown rank as one
//! of rank 0, so a [`Port`] without dimensions says nothing about the rank.

use std::path::Path;

use bytes::Bytes;
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::{DynTensorValueType, DynValue, Outlet, ValueType};
use serde::Serialize;

use super::error::one_line;
use super::runtime::guarded;
use super::{ElementType, Options, Runtime, Tensor, VerifyError};

/// Where a model comes from.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ModelSource<'a> {
    /// A file; external data is looked for beside it.
    Path(&'a Path),
    /// The bytes of a file without external data.
    Bytes(&'a [u8]),
    /// The bytes of a file whose external data lies in `folder`.
    BytesIn {
        /// The bytes of the model file.
        bytes: &'a [u8],
        /// The folder that external locations are relative to.
        folder: &'a Path,
    },
}

impl ModelSource<'_> {
    /// How messages call the model.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Path(path) => format!("`{}`", path.display()),
            Self::Bytes(bytes) | Self::BytesIn { bytes, .. } => format!("the model of {} bytes in memory", bytes.len()),
        }
    }
}

impl<'a> ModelSource<'a> {
    /// The file, if it can be read.
    pub(super) fn read(self) -> Option<relayout::Model> {
        let read = match self {
            Self::Path(path) => relayout::Model::open(path),
            Self::Bytes(bytes) => relayout::Model::from_bytes(bytes.to_vec().into(), None),
            Self::BytesIn { bytes, folder } => {
                relayout::Model::from_bytes(bytes.to_vec().into(), Some(folder.to_owned()))
            }
        };
        read.ok()
    }

    /// Another file in the place of this one, with the same data beside it.
    fn with_bytes(self, bytes: &'a [u8]) -> ModelSource<'a> {
        match self {
            Self::Path(path) => match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                Some(folder) => Self::BytesIn { bytes, folder },
                None => Self::BytesIn { bytes, folder: Path::new(".") },
            },
            Self::Bytes(_) => Self::Bytes(bytes),
            Self::BytesIn { folder, .. } => Self::BytesIn { bytes, folder },
        }
    }
}

/// The model with ops of the standard in the place of those that the CPU provider has no kernel of, if there are such.
fn written_out(source: ModelSource<'_>) -> Option<Bytes> {
    source.read()?.for_cpu_provider().ok().flatten()
}

/// What a file says of the release that it needs, beside the version that is here.
fn needed(source: ModelSource<'_>, version: &str) -> Option<String> {
    let model = source.read()?;
    let needs = model.needs()?;
    Some(format!("it says that it needs {needs} or newer, and this is {version}"))
}

/// How much ONNX Runtime rewrites a model before it runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Level {
    /// Nothing: the nodes of the file run as they stand.
    #[default]
    Disabled,
    /// Rewrites that keep to standard ONNX (`ORT_ENABLE_BASIC`).
    Basic,
    /// Also fusions into the runtime's own ops (`ORT_ENABLE_EXTENDED`).
    Extended,
    /// Everything, layouts included (`ORT_ENABLE_ALL`), which is what applications use.
    All,
}

impl From<Level> for GraphOptimizationLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::Disabled => Self::Disable,
            Level::Basic => Self::Level1,
            Level::Extended => Self::Level2,
            Level::All => Self::All,
        }
    }
}

/// A dimension as a model declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Dim {
    Fixed(i64),
    Symbol(String),
    Unnamed,
}

/// An input or an output as a model declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) name: String,
    /// Element type and dimensions; `None` if it is no tensor, or one that the host cannot hold.
    pub(super) tensor: Option<(ElementType, Vec<Dim>)>,
    /// The runtime's spelling of the type.
    ort_spelling: String,
}

impl Port {
    fn new(name: &str, ty: &ValueType) -> Self {
        let tensor = match ty {
            ValueType::Tensor { ty, shape, dimension_symbols } => ElementType::from_ort(*ty).map(|element| {
                let symbols = dimension_symbols.iter().map(String::as_str).chain(std::iter::repeat(""));
                let dims = shape.iter().zip(symbols).map(|(&dim, symbol)| match (dim, symbol) {
                    (0.., _) => Dim::Fixed(dim),
                    (_, "") => Dim::Unnamed,
                    (_, name) => Dim::Symbol(name.to_owned()),
                });
                (element, dims.collect())
            }),
            _ => None,
        };
        Self { name: name.to_owned(), tensor, ort_spelling: ty.to_string() }
    }

    /// The port with other dimensions; unchanged if it is no tensor or there are none.
    pub(super) fn with_dims(&self, dims: impl Fn(&[Dim]) -> Option<Vec<Dim>>) -> Port {
        let mut port = self.clone();
        if let Some((_, old)) = &mut port.tensor {
            *old = dims(old).unwrap_or_else(|| old.clone());
        }
        port
    }

    /// The type and the dimensions, as in `f32[1,N,?]`.
    pub(super) fn spelling(&self) -> String {
        let Some((element, dims)) = &self.tensor else { return self.ort_spelling.clone() };
        let dims = dims.iter().map(|dim| match dim {
            Dim::Fixed(size) => size.to_string(),
            Dim::Symbol(name) => name.clone(),
            Dim::Unnamed => "?".to_owned(),
        });
        format!("{element}[{}]", dims.collect::<Vec<_>>().join(","))
    }

    /// Whether a tensor of this type and shape suits the declaration.
    pub(super) fn accepts(&self, element: ElementType, shape: &[i64]) -> bool {
        let Some((declared, dims)) = &self.tensor else { return false };
        let fits = |(dim, &size): (&Dim, &i64)| !matches!(dim, Dim::Fixed(fixed) if *fixed != size);
        // No dimensions can also mean that the rank is not known.
        let shape_fits = dims.is_empty() || (dims.len() == shape.len() && dims.iter().zip(shape).all(fits));
        *declared == element && shape_fits
    }
}

/// A model loaded into the runtime. It can be run any number of times.
pub struct Model {
    pub(super) label: String,
    pub(super) inputs: Vec<Port>,
    /// Inputs that have a default.
    pub(super) defaults: Vec<Port>,
    pub(super) outputs: Vec<Port>,
    session: Session,
}

impl Model {
    /// Loads `source`, rewritten as `level` says, with the threads, the custom ops and the provider of `options`. The levels of `options` are not
    /// looked at.
    ///
    /// # Errors
    /// [`VerifyError::Load`] with what the runtime says of the model, [`VerifyError::CustomOps`] for a library that can't be
    /// registered, [`VerifyError::Provider`] for a provider that can't run here.
    pub fn load(
        runtime: &Runtime,
        source: ModelSource<'_>,
        level: Level,
        options: &Options,
    ) -> Result<Self, VerifyError> {
        Self::load_with(runtime, source, level, options, &[])
    }

    /// Loads `source` with other values for initializers of the file.
    pub(super) fn load_with(
        runtime: &Runtime,
        source: ModelSource<'_>,
        level: Level,
        options: &Options,
        initializers: &[Tensor],
    ) -> Result<Self, VerifyError> {
        let label = source.label();
        guarded(&format!("loading {label}"), || {
            let failed = |error: ort::Error| {
                let reason = one_line(&error.to_string());
                let needs = needed(source, &runtime.version()).map_or_else(String::new, |needs| format!("; {needs}"));
                VerifyError::Load { model: label.clone(), reason: reason + &needs }
            };
            let replaced = |builder: SessionBuilder, tensor: &Tensor| -> ort::Result<SessionBuilder> {
                Ok(match tensor.to_owned_value()? {
                    Some(value) => builder.with_initializer(tensor.name(), value)?,
                    None => builder,
                })
            };
            let builder = || -> Result<SessionBuilder, VerifyError> {
                let builder = builder(runtime, level, options.threads).map_err(failed)?;
                let builder =
                    options.custom_ops.iter().try_fold(builder, |builder, path| with_library(builder, path))?;
                let builder = initializers.iter().try_fold(builder, replaced).map_err(failed)?;
                match &options.provider {
                    Some(provider) => provider.with(runtime, builder),
                    None => Ok(builder),
                }
            };
            let session = match open(builder()?, source) {
                Ok(session) => session,
                // It may have ops that the CPU provider lacks. What those compute is known, so they run as ops of the standard.
                Err(error) => match written_out(source).filter(|_| options.provider.is_none()) {
                    Some(bytes) => open(builder()?, source.with_bytes(&bytes)).map_err(failed)?,
                    None => return Err(failed(error)),
                },
            };
            let ports =
                |outlets: &[Outlet]| outlets.iter().map(|outlet| Port::new(outlet.name(), outlet.dtype())).collect();
            let (inputs, outputs) = (ports(session.inputs()), ports(session.outputs()));
            let defaults = session.overridable_initializers();
            let defaults = defaults.iter().map(|input| Port::new(input.name(), input.dtype())).collect();
            Ok(Self { label: label.clone(), inputs, defaults, outputs, session })
        })
    }

    /// A property in the metadata of the file.
    pub(super) fn property(&self, key: &str) -> Result<Option<String>, VerifyError> {
        guarded(&format!("reading the metadata of {}", self.label), || {
            let failed =
                |e: ort::Error| VerifyError::Load { model: self.label.clone(), reason: one_line(&e.to_string()) };
            Ok(self.session.metadata().map_err(failed)?.custom(key))
        })
    }

    /// Runs the model on those of `inputs` that it has, and copies its outputs to the host, in the model's order. A
    /// sequence of tensors `name` comes out as tensors `name[0]`, `name[1]`, ...; an optional that is empty, as nothing.
    ///
    /// # Errors
    /// [`VerifyError::Run`] with what the runtime says, [`VerifyError::Unsupported`] for an output that the host can't hold.
    pub fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, VerifyError> {
        let Self { label, inputs: ports, defaults, outputs, session } = self;
        guarded(&format!("running {label}"), || {
            let failed =
                |error: ort::Error| VerifyError::Run { model: label.clone(), reason: one_line(&error.to_string()) };
            let known = ports.iter().chain(defaults.iter());
            let wanted = inputs.iter().filter(|tensor| known.clone().any(|port| port.name == tensor.name()));
            let feeds = wanted
                .map(|tensor| Ok((tensor.name(), tensor.as_input()?)))
                .collect::<ort::Result<Vec<_>>>()
                .map_err(failed)?;
            let results = session.run(feeds).map_err(failed)?;
            let mut tensors = Vec::with_capacity(outputs.len());
            for port in outputs.iter() {
                if let Some(value) = results.get(&port.name) {
                    copy_output(&port.name, value, label, &mut tensors)?;
                }
            }
            Ok(tensors)
        })
    }
}

fn builder(runtime: &Runtime, level: Level, threads: usize) -> ort::Result<SessionBuilder> {
    let builder = SessionBuilder::new(&runtime.environment)?
        .with_optimization_level(level.into())?
        .with_intra_threads(threads)?
        .with_inter_threads(1)?
        .with_log_level(ort::logging::LogLevel::Fatal)?;
    // Threads of a model that has run would wait for its next run at work, for up to a second, on the cores of those that run in turns
    // with it.
    Ok(if threads == 1 { builder } else { builder.with_config_entry("session.force_spinning_stop", "1")? })
}

/// Registers the library of custom ops at `path`.
fn with_library(builder: SessionBuilder, path: &Path) -> Result<SessionBuilder, VerifyError> {
    let failed = |reason: &str| VerifyError::CustomOps { path: path.to_owned(), reason: one_line(reason) };
    // A name without a folder would be looked for where the system's libraries are.
    let resolved = path.canonicalize().map_err(|error| failed(&error.to_string()))?;
    builder.with_operator_library(resolved).map_err(|error| failed(&error.to_string()))
}

/// Loads `source` and has the runtime write what it made of it to `path`.
pub(super) fn save_loaded(
    runtime: &Runtime,
    source: ModelSource<'_>,
    level: Level,
    path: &Path,
) -> Result<(), VerifyError> {
    let label = source.label();
    guarded(&format!("loading {label}"), || {
        let failed =
            |error: ort::Error| VerifyError::Load { model: label.clone(), reason: one_line(&error.to_string()) };
        let builder = builder(runtime, level, 1).map_err(failed)?;
        let builder = builder.with_optimized_model_path(path).map_err(|e| failed(e.into()))?;
        open(builder, source).map(drop).map_err(failed)
    })
}

fn open(mut builder: SessionBuilder, source: ModelSource<'_>) -> ort::Result<Session> {
    match source {
        ModelSource::Path(path) => builder.commit_from_file(path),
        ModelSource::Bytes(bytes) => builder.commit_from_memory(bytes),
        ModelSource::BytesIn { bytes, folder } => builder
            .with_config_entry("session.model_external_initializers_file_folder_path", folder.to_string_lossy())?
            .commit_from_memory(bytes),
    }
}

/// Appends the tensors that `value`, the output `name` of `model`, consists of.
fn copy_output(name: &str, value: &DynValue, model: &str, tensors: &mut Vec<Tensor>) -> Result<(), VerifyError> {
    let failed = |error: ort::Error| VerifyError::Run {
        model: model.to_owned(),
        reason: format!("output `{name}`: {}", one_line(&error.to_string())),
    };
    let unsupported = || VerifyError::Unsupported {
        model: model.to_owned(),
        what: format!("output `{name}`"),
        found: value.dtype().to_string(),
        help: "outputs can be compared if they are tensors, or sequences of tensors, of f16, bf16, f32, f64, \
               integers of 8 to 64 bits, bool or string"
            .into(),
    };
    match value.dtype() {
        ValueType::Tensor { ty, .. } => {
            let element = ElementType::from_ort(*ty).ok_or_else(unsupported)?;
            tensors.push(Tensor::from_output(name, element, value).map_err(failed)?);
            Ok(())
        }
        ValueType::Sequence(of) if of.is_tensor() => {
            let elements = value.try_extract_sequence::<DynTensorValueType>().map_err(failed)?;
            elements.into_iter().enumerate().try_for_each(|(index, element)| {
                copy_output(&format!("{name}[{index}]"), &element.into_dyn(), model, tensors)
            })
        }
        _ => Err(unsupported()),
    }
}
