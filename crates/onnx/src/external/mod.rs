//! The bytes of tensors, wherever they are: in `raw_data`, in a typed field, or in another file.
//!
//! External data is found relative to the model's folder and must stay in it: absolute paths, `..` and links that lead out are
//! refused, because a model is data from a stranger and may not name the reader's files. Every file is mapped once; what is
//! handed out are slices of the mapping. A checksum is not read: nothing here relies on one, and it would cost a pass over
//! every weight. A caller that has no folder gives the data by location ([`ExternalData::given`]).
//!
//! Data that is not there is a state ([`TensorData::Missing`]): a model stripped of its weights can be worked on as long as
//! nobody needs the values. Data that contradicts its tensor is an error.

mod elements;
mod location;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use relayout_fsio::Mapped;

pub use elements::{byte_length, element_count};
pub(crate) use location::Reference;

use crate::error::{Error, Result, TensorFault};
use crate::proto::tensor_proto::DataLocation;
use crate::proto::{ModelProto, TensorProto};
use location::Located;

/// The data of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorData {
    /// Elements in fixed width, little-endian, exactly as many as the dims say. No alignment is promised.
    Inline(Bytes),
    /// The data lies in a file that does not exist.
    Missing {
        /// Where it should be, for people.
        reason: String,
    },
}

/// Where the tensors of one model have their data.
#[derive(Debug, Default)]
pub struct ExternalData {
    dir: Option<PathBuf>,
    follow_links: bool,
    /// By canonical path, so that two spellings share a mapping.
    files: Mutex<BTreeMap<PathBuf, Arc<Mapped>>>,
    /// By location, if the caller gave the data: all that there is, `None` for what the caller does not have.
    given: Option<BTreeMap<String, Option<Bytes>>>,
}

impl ExternalData {
    /// Data relative to `dir`; without one, external data counts as missing.
    pub fn new(dir: Option<PathBuf>) -> Self {
        Self { dir, ..Self::default() }
    }

    /// The external data of `model` as `read` gives it: once for each location, in the order of the tensors, the whole of what the
    /// location names. The location is spelled as in the model, and stays in the model's folder: it is relative and has no `..`.
    /// [`std::io::ErrorKind::NotFound`] means that the data is missing, as if its file did not exist.
    ///
    /// # Errors
    /// [`Error::Tensor`] for a reference that is none, [`Error::External`] for any other error of `read`; both name the tensor.
    pub fn given(model: &ModelProto, mut read: impl FnMut(&str) -> io::Result<Bytes>) -> Result<Self> {
        let mut given = BTreeMap::new();
        for tensor in model.tensors().into_iter().filter(|tensor| is_external(tensor)) {
            let location = location::location_in_folder(tensor).map_err(|fault| Error::tensor(tensor, fault))?;
            if !given.contains_key(location) {
                let data = match read(location) {
                    Ok(bytes) => Some(bytes),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                    Err(source) => {
                        let source = Box::new(Error::Read { path: PathBuf::from(location), source });
                        return Err(Error::External { tensor: tensor.name().to_owned(), source });
                    }
                };
                given.insert(location.to_owned(), data);
            }
        }
        Ok(Self { given: Some(given), ..Self::default() })
    }

    /// Whether the data is the caller's, so that no file holds it.
    pub(crate) fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// Whether links in the folder may lead out of it, as in a download cache that links its files to a store. By default
    /// they may not. Names with `..` and absolute names stay refused.
    #[must_use]
    pub fn follow_links(mut self, follow: bool) -> Self {
        self.follow_links = follow;
        self
    }

    /// The folder.
    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// The tensor's data, or that it is missing. Without a copy if it is in `raw_data` or external.
    pub fn tensor_data(&self, tensor: &TensorProto) -> Result<TensorData> {
        let fault = |fault| Error::tensor(tensor, fault);
        if tensor.segment.is_some() {
            return Err(fault(TensorFault::Segment));
        }
        let length = byte_length(tensor).map_err(fault)?;
        if !is_external(tensor) {
            return elements::inline_bytes(tensor, length).map(TensorData::Inline).map_err(fault);
        }
        match self.external(tensor, Some(length)).map_err(|error| error.about(tensor))? {
            Located::Bytes(bytes) => Ok(TensorData::Inline(bytes)),
            Located::Missing(reason) => Ok(TensorData::Missing { reason }),
        }
    }

    /// The tensor's data; an error if it is missing.
    pub fn tensor_bytes(&self, tensor: &TensorProto) -> Result<Bytes> {
        match self.tensor_data(tensor)? {
            TensorData::Inline(bytes) => Ok(bytes),
            TensorData::Missing { reason } => Err(Error::tensor(tensor, TensorFault::Missing { reason })),
        }
    }

    /// Everything that is stored where the tensor's data is, and its location; `None` if that is missing or wrong.
    pub fn whole(&self, tensor: &TensorProto) -> Option<(String, Bytes)> {
        let location = location::location_in_folder(tensor).ok()?.to_owned();
        if let Some(given) = &self.given {
            return Some((location.clone(), given.get(&location)?.clone()?));
        }
        // Reading maps the file.
        self.tensor_bytes(tensor).ok()?;
        let path = self.file_of(tensor)?;
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.get(&path).map(|file| (location, file.bytes().clone()))
    }

    /// The file that the tensor's data is in, canonical, if it exists.
    pub(crate) fn file_of(&self, tensor: &TensorProto) -> Option<PathBuf> {
        let reference = Reference::of(tensor).ok()?;
        self.dir()?.join(reference.location).canonicalize().ok()
    }

    /// Whether no file that was read so far was rewritten since.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(files.values().try_for_each(|file| file.check())?)
    }

    /// The open file that `slice` is a slice of, and where.
    pub(crate) fn origin_of(&self, slice: &[u8]) -> Option<(Arc<Mapped>, u64)> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.values().find_map(|file| Some((Arc::clone(file), file.offset_of(slice)?)))
    }
}

/// Whether the tensor says that its data is in another file.
pub fn is_external(tensor: &TensorProto) -> bool {
    tensor.data_location == Some(DataLocation::External as i32)
}
