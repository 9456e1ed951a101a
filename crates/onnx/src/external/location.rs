//! From `external_data` to bytes of a file.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use relayout_fsio::Mapped;

use super::ExternalData;
use crate::error::{Error, Result, TensorFault};
use crate::proto::{StringStringEntryProto, TensorProto};

/// What `external_data` says. Keys that the standard does not have are ignored, as every reader does.
pub(crate) struct Reference<'a> {
    pub(crate) location: &'a str,
    offset: u64,
    length: Option<u64>,
}

impl<'a> Reference<'a> {
    pub(crate) fn of(tensor: &'a TensorProto) -> Result<Self, TensorFault> {
        let get = |key| tensor.external_data.iter().find(|entry| entry.key() == key).map(StringStringEntryProto::value);
        let number = |key: &'static str| match get(key) {
            None | Some("") => Ok(None),
            Some(text) => {
                text.parse::<u64>().map(Some).map_err(|_| TensorFault::ExternalNumber { key, text: text.to_owned() })
            }
        };
        let location = get("location").filter(|location| !location.is_empty()).ok_or(TensorFault::NoLocation)?;
        Ok(Self { location, offset: number("offset")?.unwrap_or(0), length: number("length")? })
    }
}

pub(super) enum Located {
    Bytes(Bytes),
    Missing(String),
}

/// An error that knows its tensor, or still needs to be told.
pub(super) enum Failure {
    Tensor(TensorFault),
    File(Error),
}

impl Failure {
    pub(super) fn about(self, tensor: &TensorProto) -> Error {
        match self {
            Self::Tensor(fault) => Error::tensor(tensor, fault),
            Self::File(source) => Error::External { tensor: tensor.name().to_owned(), source: Box::new(source) },
        }
    }
}

impl From<TensorFault> for Failure {
    fn from(fault: TensorFault) -> Self {
        Self::Tensor(fault)
    }
}

impl ExternalData {
    /// The bytes that `external_data` names, which must be `expected` many.
    pub(super) fn external(&self, tensor: &TensorProto, expected: Option<u64>) -> Result<Located, Failure> {
        let reference = Reference::of(tensor)?;
        let location = reference.location;
        if let Some(given) = &self.given {
            return match given.get(location) {
                Some(Some(bytes)) => slice(bytes, Path::new(location), &reference, expected),
                _ => Ok(Located::Missing(format!("the caller has no {location}"))),
            };
        }
        let Some(dir) = self.dir() else {
            return Ok(Located::Missing(format!("{location} is relative to a folder that is not known")));
        };
        let relative = inside(location)?;
        let path = dir.join(relative);
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error) if is_absence(&error) => {
                return Ok(Located::Missing(format!("{} does not exist", path.display())));
            }
            Err(source) => return Err(Failure::File(Error::Read { path, source })),
        };
        if !self.follow_links {
            let home =
                dir.canonicalize().map_err(|source| Failure::File(Error::Read { path: dir.to_owned(), source }))?;
            if !real.starts_with(&home) {
                return Err(TensorFault::LinkLeaves { path, target: real }.into());
            }
        }
        let file = self.file(&real).map_err(Failure::File)?;
        slice(file.bytes(), &path, &reference, expected)
    }

    fn file(&self, real: &Path) -> Result<Arc<Mapped>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = files.get(real) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(Mapped::file(real)?);
        files.insert(real.to_owned(), Arc::clone(&file));
        Ok(file)
    }
}

/// The location of a tensor's data, which must stay in the model's folder.
pub(super) fn location_in_folder(tensor: &TensorProto) -> Result<&str, TensorFault> {
    let location = Reference::of(tensor)?.location;
    inside(location).map(|_| location)
}

/// Refuses a location that its spelling takes out of the folder.
fn inside(location: &str) -> Result<&Path, TensorFault> {
    let path = Path::new(location);
    let stays = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if stays { Ok(path) } else { Err(TensorFault::LeavesFolder { location: location.to_owned() }) }
}

/// Errors that mean "no such file": also a name that could not be one, such as a marker left by a tool that strips weights.
fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | InvalidInput | InvalidFilename)
}

fn slice(file: &Bytes, path: &Path, reference: &Reference, expected: Option<u64>) -> Result<Located, Failure> {
    let size = file.len() as u64;
    let rest = size.checked_sub(reference.offset);
    // Without a length the data goes to the end of the file; a tensor's dims say how much of that is its own.
    let length = reference.length.or(expected).or(rest).unwrap_or(0);
    let end = reference.offset.checked_add(length).filter(|&end| end <= size);
    let Some(end) = end else {
        let path: PathBuf = path.to_owned();
        return Err(TensorFault::OutsideFile { path, offset: reference.offset, length, size }.into());
    };
    if let Some(expected) = expected.filter(|&expected| expected != length) {
        return Err(TensorFault::Length { expected, found: length, place: path.display().to_string() }.into());
    }
    // Both ends are at most the file's length, which is a usize.
    Ok(Located::Bytes(file.slice(reference.offset as usize..end as usize)))
}
