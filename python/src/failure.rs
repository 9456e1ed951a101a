//! Why a call did nothing, and the exception that says so.

use pyo3::prelude::*;
use relayout::request::RequestError;
use relayout::target::PassError;
use relayout::targets::TargetError;
use relayout_calibrate::CalibrateError;
use relayout_verify::VerifyError;
use std::error::Error as _;
use std::fmt::Display;
use std::io;
use std::path::Path;

/// Which class of exception is raised: those of the module `relayout._errors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    MissingFile,
    Model,
    Export,
    Layout,
    OtherTarget,
    Plan,
    UnknownValue,
    Target,
    Option,
    Verify,
    OnnxRuntime,
    Difference,
    Unproved,
    Permute,
    Internal,
}

impl Kind {
    fn class(self) -> &'static str {
        match self {
            Kind::File => "FileError",
            Kind::MissingFile => "MissingFileError",
            Kind::Model => "ModelError",
            Kind::Export => "ExportError",
            Kind::Layout => "LayoutError",
            Kind::OtherTarget => "OtherTargetError",
            Kind::Plan => "PlanError",
            Kind::UnknownValue => "UnknownValueError",
            Kind::Target => "TargetError",
            Kind::Option => "OptionError",
            Kind::Verify => "VerifyError",
            Kind::OnnxRuntime => "OnnxRuntimeError",
            Kind::Difference => "DifferenceError",
            Kind::Unproved => "UnprovedError",
            Kind::Permute => "PermuteError",
            Kind::Internal => "InternalError",
        }
    }
}

impl Kind {
    /// Of an option that can't be had.
    fn of_request(error: &RequestError) -> Kind {
        use relayout::fsio::Error;
        match error {
            RequestError::Layout(_) => Kind::Layout,
            RequestError::Target(_) | RequestError::Costs(_) => Kind::Target,
            RequestError::TargetFile { source, .. } | RequestError::CostsFile { source, .. } => match source {
                Error::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => Kind::MissingFile,
                _ => Kind::File,
            },
            _ => Kind::Option,
        }
    }
}

/// A failure on its way to Python.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    text: String,
}

impl Failure {
    pub(crate) fn new(kind: Kind, text: impl Display) -> Failure {
        Failure { kind, text: text.to_string() }
    }

    /// The same, with what these files are called in place of their paths.
    pub(crate) fn naming(mut self, files: [(&Path, String); 2]) -> Failure {
        for (path, name) in files {
            self.text = self.text.replace(&path.display().to_string(), &name);
        }
        self
    }

    /// The exception.
    pub(crate) fn raised(&self, py: Python<'_>) -> PyErr {
        let class = py.import("relayout._errors").and_then(|module| module.getattr(self.kind.class()));
        match class.and_then(|class| class.call1((self.text.as_str(),))) {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    }
}

/// A file that can't be read or written: why the system refused, if it did.
fn of_system(error: &relayout::Error) -> Option<Kind> {
    let mut causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let system = causes.find_map(|cause| cause.downcast_ref::<io::Error>());
    let text = error.to_string();
    let refused = text.starts_with("cannot read ") || text.starts_with("cannot write ");
    match system {
        Some(cause) if cause.kind() == io::ErrorKind::NotFound => Some(Kind::MissingFile),
        Some(_) => Some(Kind::File),
        None => refused.then_some(Kind::File),
    }
}

impl From<relayout::Error> for Failure {
    fn from(error: relayout::Error) -> Failure {
        use relayout::Error;
        let kind = match &error {
            Error::File(_) => of_system(&error).unwrap_or(Kind::Model),
            Error::Export(_) => of_system(&error).unwrap_or(Kind::Export),
            Error::Io(_) => Kind::Layout,
            Error::Request(wrong) => Kind::of_request(wrong),
            Error::OtherTarget { .. } => Kind::OtherTarget,
            Error::Plan(_) => Kind::Plan,
            Error::UnknownValue { .. } => Kind::UnknownValue,
            Error::UnknownPass { .. } | Error::UnknownDim { .. } => Kind::Option,
            Error::Unproved { .. } => Kind::Unproved,
            Error::Pass(PassError::Order { .. }) => Kind::Target,
            Error::Pass(_) => Kind::Internal,
            _ => Kind::Model,
        };
        Failure::new(kind, error)
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Failure {
        Failure::new(Kind::of_request(&error), error)
    }
}

impl From<VerifyError> for Failure {
    fn from(error: VerifyError) -> Failure {
        let kind = match &error {
            VerifyError::LibraryMissing { .. }
            | VerifyError::LibraryUnusable { .. }
            | VerifyError::OtherLibraryLoaded { .. } => Kind::OnnxRuntime,
            VerifyError::UnknownDim { .. } | VerifyError::Provider { .. } => Kind::Option,
            _ => Kind::Verify,
        };
        Failure::new(kind, error)
    }
}

impl From<CalibrateError> for Failure {
    fn from(error: CalibrateError) -> Failure {
        match error {
            CalibrateError::Model(error) => error.into(),
            CalibrateError::Runtime(error) => error.into(),
            CalibrateError::Cache { .. } => Failure::new(Kind::File, error),
            CalibrateError::OtherHost { .. } | CalibrateError::Device { .. } => Failure::new(Kind::Option, error),
            _ => Failure::new(Kind::Target, error),
        }
    }
}

impl From<TargetError> for Failure {
    fn from(error: TargetError) -> Failure {
        Failure::new(Kind::Target, error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::new(Kind::Internal, error)
    }
}
