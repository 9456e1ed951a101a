//! A model file, opened: its bytes, its messages, and what the schema did not know.
//!
//! `raw_data` of every tensor is a slice of `source`; opening a model costs its structure, not its weights. A file is walked
//! ([`crate::wire`]) before it is decoded, so an error has a place, and a small file cannot unfold into much memory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use relayout_fsio::Mapped;
use relayout_ir::dtype::DType;

use crate::error::{Error, Result};
use crate::external::{ExternalData, TensorData, is_external};
use crate::proto::{ModelProto, TensorProto};
use crate::wire::{self, Fault, MAX_DEPTH, Malformed, UnknownField, Walk};

/// Decoded messages may occupy this much, plus [`DENSITY`] times the file. Real models need 2 to 15 times their structure;
/// only runs of empty messages go beyond.
const FREE_BYTES: u64 = 64 << 20;
const DENSITY: u64 = 64;

/// An open model.
#[derive(Debug)]
#[non_exhaustive]
pub struct ModelFile {
    /// The messages; `graph` is set.
    pub proto: ModelProto,
    /// The whole file.
    pub source: Bytes,
    /// Where the tensors have their data; knows the model's folder.
    pub external: Arc<ExternalData>,
    /// Fields that decoding dropped, in file order, at most [`wire::MAX_LISTED_UNKNOWN`] of them.
    pub unknown_fields: Vec<UnknownField>,
    /// How many fields decoding dropped.
    pub unknown_count: u64,
    mapped: Option<Arc<Mapped>>,
}

impl ModelFile {
    /// Maps and decodes the model at `path`. The file must not be rewritten in place while the result or a slice of it lives;
    /// see [`ModelFile::check_unchanged`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mapped = Mapped::open(path)?;
        let dir = match path.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
            _ => PathBuf::from("."),
        };
        let source = mapped.bytes().clone();
        let mut model = Self::decode(source, Some(dir), &path.display().to_string())?;
        model.mapped = Some(Arc::new(mapped));
        Ok(model)
    }

    /// Decodes a model from memory. `dir` is the folder of its external data, if it has any.
    pub fn from_bytes(source: Bytes, dir: Option<PathBuf>) -> Result<Self> {
        Self::decode(source, dir, "<bytes>")
    }

    /// Decodes a model from memory whose external data `read` gives, by location; see [`ExternalData::given`]. All references are
    /// followed, so that what is wrong with one is said here.
    ///
    /// # Errors
    /// Those of decoding and of [`ExternalData::given`]; [`Error::Tensor`] for data that is cut off or has another length than the
    /// tensor's dims and type say. Data that is missing is not an error.
    pub fn from_bytes_with(source: Bytes, read: impl FnMut(&str) -> io::Result<Bytes>) -> Result<Self> {
        let mut model = Self::from_bytes(source, None)?;
        model.external = Arc::new(ExternalData::given(&model.proto, read)?);
        for tensor in model.proto.tensors().into_iter().filter(|tensor| is_external(tensor)) {
            model.tensor_data(tensor)?;
        }
        Ok(model)
    }

    /// Other messages over the same file: what a rewrite of this model is until it is written.
    #[must_use]
    pub fn with_proto(&self, proto: ModelProto) -> Self {
        Self {
            proto,
            source: self.source.clone(),
            external: Arc::clone(&self.external),
            unknown_fields: self.unknown_fields.clone(),
            unknown_count: self.unknown_count,
            mapped: self.mapped.clone(),
        }
    }

    /// Whether any tensor has its data in another file.
    pub fn has_external_data(&self) -> bool {
        self.proto.tensors().into_iter().any(is_external)
    }

    /// Bytes of tensors that have their data in other files, by their types and dims.
    pub fn external_bytes(&self) -> u64 {
        let elements =
            |dims: &[i64]| dims.iter().try_fold(1, |all: u64, &dim| all.checked_mul(u64::try_from(dim).ok()?));
        let tensors = self.proto.tensors().into_iter().filter(|tensor| is_external(tensor));
        let bytes = tensors.filter_map(|t| DType::from_onnx(t.data_type())?.bytes(elements(&t.dims)?));
        bytes.fold(0, u64::saturating_add)
    }

    /// Whether all data is there that the model refers to.
    pub fn check_external(&self) -> Result<()> {
        self.proto
            .tensors()
            .into_iter()
            .filter(|tensor| is_external(tensor))
            .try_for_each(|t| self.tensor_bytes(t).map(drop))
    }

    /// Whether neither the model nor the external data that was read so far was rewritten in place since. Writing checks it before
    /// the result takes its place.
    ///
    /// # Errors
    /// [`Error::Changed`].
    pub fn check_unchanged(&self) -> Result<()> {
        if let Some(file) = &self.mapped {
            file.check()?;
        }
        self.external.check_unchanged()
    }

    /// The path that the model was opened by.
    pub fn path(&self) -> Option<&Path> {
        self.mapped.as_ref().map(|mapped| mapped.path())
    }

    /// The folder that external data is relative to; `None` if the model never was a file.
    pub fn dir(&self) -> Option<&Path> {
        self.external.dir()
    }

    /// The little-endian bytes of a tensor of this model. See [`ExternalData::tensor_bytes`].
    pub fn tensor_bytes(&self, tensor: &TensorProto) -> Result<Bytes> {
        self.external.tensor_bytes(tensor)
    }

    /// The data of a tensor of this model; missing external data is a state and no error. See [`ExternalData::tensor_data`].
    pub fn tensor_data(&self, tensor: &TensorProto) -> Result<TensorData> {
        self.external.tensor_data(tensor)
    }

    /// The data that the model names beside itself, by location, as far as it is there.
    pub fn beside(&self) -> BTreeMap<String, Bytes> {
        let external = self.proto.tensors().into_iter().filter(|tensor| is_external(tensor));
        external.filter_map(|tensor| self.external.whole(tensor)).collect()
    }

    pub(crate) fn mapped(&self) -> Option<&Mapped> {
        self.mapped.as_deref()
    }

    /// The open file that `slice` is a slice of, and where: the model or one of its external files.
    pub(crate) fn origin_of(&self, slice: &[u8]) -> Option<(Arc<Mapped>, u64)> {
        let own = self.mapped.as_ref().and_then(|file| Some((Arc::clone(file), file.offset_of(slice)?)));
        own.or_else(|| self.external.origin_of(slice))
    }

    fn decode(source: Bytes, dir: Option<PathBuf>, file: &str) -> Result<Self> {
        if source.is_empty() {
            return Err(Error::Empty { file: file.to_owned() });
        }
        let walk = wire::walk(&source).map_err(|malformed| not_a_model(file, &source, malformed))?;
        let bytes = source.len() as u64;
        if walk.decoded_bytes > FREE_BYTES + DENSITY * bytes {
            return Err(Error::TooDense { file: file.to_owned(), bytes, decoded: walk.decoded_bytes });
        }
        // The walk has refused whatever prost would; should they ever differ, prost's sentence is still an error.
        let proto = ModelProto::decode(source.clone()).map_err(|error| Error::NotOnnx {
            file: file.to_owned(),
            offset: 0,
            place: "model".to_owned(),
            detail: error.to_string(),
        })?;
        if proto.graph.is_none() {
            return Err(match other_format(&source) {
                Some(what) => Error::OtherFormat { file: file.to_owned(), what },
                None => Error::NoGraph { file: file.to_owned() },
            });
        }
        let external = Arc::new(ExternalData::new(dir));
        let Walk { unknown, unknown_count, .. } = walk;
        Ok(Self { proto, source, external, unknown_fields: unknown, unknown_count, mapped: None })
    }
}

fn not_a_model(file: &str, source: &[u8], malformed: Malformed) -> Error {
    let Malformed { fault, offset, path: place } = malformed;
    let file = file.to_owned();
    if let Some(what) = other_format(source) {
        return Error::OtherFormat { file, what };
    }
    let detail = match fault {
        Fault::CutOff { wanted, left } => return Error::CutOff { file, offset, place, wanted, left },
        Fault::TooDeep => return Error::TooDeep { file, place, offset, limit: MAX_DEPTH },
        Fault::Overrun { wanted, left } => {
            format!("it needs {wanted} bytes, but the message around it has only {left} left")
        }
        Fault::Varint => "a number is longer than 64 bits".to_owned(),
        Fault::Key => "this does not begin with a field of any message".to_owned(),
        Fault::WireType { found, expected } => format!("the field is {found}, the schema has it as {expected}"),
        Fault::Packed { length, element } => {
            format!("{length} bytes are not a whole number of {element}-byte elements")
        }
        Fault::Utf8 => "the text is not UTF-8".to_owned(),
        Fault::Group => "a group is not closed, or closed without being open".to_owned(),
    };
    Error::NotOnnx { file, offset, place, detail }
}

/// Files that people pass by mistake, told by how they begin.
fn other_format(source: &[u8]) -> Option<&'static str> {
    let begins = |magic: &[u8]| source.starts_with(magic);
    if begins(b"version https://git-lfs") {
        return Some("a Git LFS pointer; fetch the file itself with `git lfs pull`");
    }
    if begins(&[0x1f, 0x8b]) {
        return Some("gzip-compressed; decompress it first");
    }
    if begins(b"PK\x03\x04") {
        return Some("a zip archive (a PyTorch checkpoint?); export it to ONNX first");
    }
    if source.get(4..8) == Some(b"ORTM") {
        return Some("in ONNX Runtime's own format; use the .onnx file that it was made from");
    }
    let head = source.get(..source.len().min(512)).unwrap_or_default();
    let text = head.iter().all(|&byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    text.then_some("a text file")
}
