//! What is checked: a model in a file or in memory, and the data that it names beside itself.

use crate::error::Error;
use crate::files::decode::Read;
use crate::files::model::{Model, ReadingOf};
use bytes::Bytes;
use relayout_fsio::Mapped;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A model as bytes, and where the data is that it names.
#[derive(Clone, Debug)]
pub struct Contents {
    bytes: Bytes,
    name: String,
    folder: Option<PathBuf>,
    beside: BTreeMap<String, Bytes>,
    reading: ReadingOf,
}

impl Contents {
    /// A file, which is mapped. Data beside it is looked for in its folder.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn open(path: &Path) -> Result<Contents, Error> {
        let name = path.display().to_string();
        let mapped = Mapped::open(path).map_err(|e| Error::of_file(&name, &e))?;
        let folder = Some(path.parent().map(Path::to_owned).unwrap_or_default());
        Ok(Contents { folder, ..Contents::new(mapped.bytes().clone(), name) })
    }

    /// A model in memory, which messages call `name`.
    pub fn new(bytes: Bytes, name: impl Into<String>) -> Contents {
        Contents { bytes, name: name.into(), folder: None, beside: BTreeMap::new(), reading: ReadingOf::default() }
    }

    /// With the folder in which its data is that nobody [gives](Contents::with_data).
    #[must_use]
    pub fn in_folder(mut self, folder: impl Into<PathBuf>) -> Contents {
        self.folder = Some(folder.into());
        self
    }

    /// With all that is stored at a location that the model names.
    #[must_use]
    pub fn with_data(mut self, location: impl Into<String>, data: Bytes) -> Contents {
        self.beside.insert(location.into(), data);
        self
    }

    /// With this reading of its nodes, which has to be that of the other model too.
    #[must_use]
    pub fn read_as(mut self, reading: ReadingOf) -> Contents {
        self.reading = reading;
        self
    }

    pub(crate) fn read(&self) -> Read<Model> {
        let model = Model::decode(&self.bytes, self.folder.clone(), self.beside.clone(), &self.name)?;
        Ok(Model { reading: self.reading, ..model })
    }
}
