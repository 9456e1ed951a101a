//! Where a model comes from: a file, or memory.

use crate::failure::{Failure, Kind};
use crate::memory::Region;
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple};
use relayout::fsio::{Destination, Mapped, Staged, destination};
use relayout::{Model, Optimized};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// A file of more bytes is more than a protobuf message may be; some are left for what optimizing adds.
const LARGE: usize = 2_000_000_000;

/// A model, not yet opened.
pub(crate) enum Source {
    /// A file; external data is looked for beside it.
    File(PathBuf),
    /// Bytes of Python's memory.
    Memory(Memory),
}

/// A model in memory.
#[derive(Clone)]
pub(crate) struct Memory {
    /// The bytes of the model.
    pub(crate) model: Bytes,
    /// External data by location.
    pub(crate) parts: BTreeMap<String, Bytes>,
    /// The folder of external data that is in no part.
    pub(crate) folder: Option<PathBuf>,
}

/// A `str` is a path. A tuple has the bytes of a model, a dict of parts, and the folder of other external data or `None`.
impl<'py> FromPyObject<'_, 'py> for Source {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Source> {
        let Ok(tuple) = object.cast::<PyTuple>() else { return Ok(Source::File(object.extract()?)) };
        let (model, parts, folder): (Bound<'_, PyAny>, BTreeMap<String, Bound<'_, PyAny>>, Option<PathBuf>) =
            tuple.extract()?;
        let parts = parts.into_iter().map(|(name, data)| Ok((name, bytes_of(&data)?))).collect::<PyResult<_>>()?;
        Ok(Source::Memory(Memory { model: bytes_of(&model)?, parts, folder }))
    }
}

/// Bytes of a `bytes` or of an array, where they lie.
fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    match object.cast::<PyBytes>() {
        Ok(bytes) => Ok(Bytes::from_owner(PyBackedBytes::from(bytes.clone()))),
        Err(_) => Ok(Bytes::from_owner(Region::of(object)?)),
    }
}

impl Source {
    /// The model.
    pub(crate) fn open(&self) -> Result<Model, Failure> {
        match self {
            Source::File(path) => Ok(Model::open(path)?),
            Source::Memory(memory) => memory.open(),
        }
    }

    /// Writes what was made of it to a file. Weights that were in memory beside the bytes of the model go into the file, if it can have
    /// them all.
    pub(crate) fn write(&self, made: &Optimized, path: &Path) -> Result<(), Failure> {
        let whole = match self {
            Source::Memory(memory) => !memory.parts.is_empty() && memory.len() < LARGE,
            Source::File(_) => false,
        };
        if whole && written_whole(made, path).is_some() {
            return Ok(());
        }
        Ok(made.write(path)?)
    }

    /// How messages call it.
    pub(crate) fn label(&self) -> String {
        match self {
            Source::File(path) => path.display().to_string(),
            Source::Memory(_) => "the model".to_owned(),
        }
    }
}

/// Writes a result with all data in one file; `None` if that can't be, and then there is no file.
fn written_whole(made: &Optimized, path: &Path) -> Option<()> {
    let Destination::File(target) = destination(path).ok()? else { return None };
    let mut staged = Staged::new(target.path).ok()?;
    made.write_to(staged.file()).ok()?;
    staged.commit().ok()
}

impl Memory {
    /// Bytes of the model and its parts.
    fn len(&self) -> usize {
        self.parts.values().map(Bytes::len).fold(self.model.len(), usize::saturating_add)
    }

    fn open(&self) -> Result<Model, Failure> {
        let model = self.model.clone();
        if self.parts.is_empty() {
            return Ok(Model::from_bytes(model, self.folder.clone())?);
        }
        Ok(Model::from_bytes_with(model, |location| self.data(location))?)
    }

    /// The data of a location: a part, or a file of the folder. The library has checked that the name stays in the folder.
    fn data(&self, location: &str) -> io::Result<Bytes> {
        if let Some(part) = self.parts.get(location) {
            return Ok(part.clone());
        }
        let folder = self.folder.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let path = folder.join(location).canonicalize()?;
        if !path.starts_with(folder.canonicalize()?) {
            let why = format!("{} leads out of the model's folder", folder.join(location).display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Mapped::open(&path).map(|mapped| mapped.bytes().clone()).map_err(io::Error::other)
    }

    /// The names of parts by where they lie, and how long they are.
    pub(crate) fn places(&self) -> BTreeMap<(usize, usize), &str> {
        self.parts.iter().map(|(name, part)| (place(part), name.as_str())).collect()
    }

    /// Writes the model and all of its external data as files into a folder; gives the path of the model.
    pub(crate) fn write(&self, folder: &Path) -> Result<PathBuf, Failure> {
        let mut asked: BTreeMap<String, Bytes> = BTreeMap::new();
        Model::from_bytes_with(self.model.clone(), |location| {
            let data = self.data(location)?;
            asked.insert(location.to_owned(), data.clone());
            Ok(data)
        })?;
        let write = |path: &Path, bytes: &Bytes| {
            let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            let written = made.and_then(|()| std::fs::write(path, bytes));
            written.map_err(|e| Failure::new(Kind::File, format!("cannot write {}: {e}", path.display())))
        };
        for (location, data) in &asked {
            write(&folder.join(location), data)?;
        }
        let path = folder.join("the model.onnx");
        write(&path, &self.model)?;
        Ok(path)
    }
}

/// Where bytes lie, and how many they are.
pub(crate) fn place(bytes: &Bytes) -> (usize, usize) {
    (bytes.as_ptr().addr(), bytes.len())
}
