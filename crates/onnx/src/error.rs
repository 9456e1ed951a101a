//! What can go wrong between a file and its messages.
//!
//! Every sentence names the thing (file, tensor) and says what would fix it where something can. `file` is the path as it was
//! given, or `<bytes>` for a model that never was a file.

use std::io;
use std::path::PathBuf;

use crate::proto::TensorProto;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be opened or read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something that is not a file stands where a file should.
    #[error("cannot read {}: it is a {kind}, not a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// A file that was being read was rewritten in place.
    #[error("{} was changed while it was read; try again when nothing writes to it", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file has no bytes.
    #[error("{file} is empty, not an ONNX model")]
    Empty {
        /// The file.
        file: String,
    },
    /// The bytes are not a model, or are damaged.
    #[error("{file} is not an ONNX model or is damaged: at byte {offset} ({place}): {detail}")]
    NotOnnx {
        /// The file.
        file: String,
        /// Offset of the field that cannot be read.
        offset: u64,
        /// The field, such as `graph.node[3].name`.
        place: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The bytes are known to be something else.
    #[error("{file} is not an ONNX model but {what}")]
    OtherFormat {
        /// The file.
        file: String,
        /// What it is, and what to do.
        what: &'static str,
    },
    /// The file ends too early.
    #[error(
        "{file} is cut off (or is not an ONNX model): at byte {offset}, {place} needs {wanted} more bytes, {left} are left; \
         copy or download it again"
    )]
    CutOff {
        /// The file.
        file: String,
        /// Offset of the field that is not whole.
        offset: u64,
        /// The field.
        place: String,
        /// Bytes that the field announces.
        wanted: u64,
        /// Bytes that the file still has.
        left: u64,
    },
    /// Messages nest deeper than any protobuf decoder follows.
    #[error("{file}: the nesting of messages is too deep: {place} at byte {offset} is below {limit} others")]
    TooDeep {
        /// The file.
        file: String,
        /// The field.
        place: String,
        /// Its offset.
        offset: u64,
        /// The limit.
        limit: usize,
    },
    /// The file unfolds into far more memory than its size.
    #[error("{file} holds {bytes} bytes but would occupy {decoded} in memory; no exporter writes such a model")]
    TooDense {
        /// The file.
        file: String,
        /// Bytes of the file.
        bytes: u64,
        /// Bytes of the decoded messages.
        decoded: u64,
    },
    /// The model has no graph.
    #[error("{file} has no graph: it is empty, or not an ONNX model")]
    NoGraph {
        /// The file.
        file: String,
    },
    /// An output could not be written.
    #[error("cannot write {file}: {source}")]
    Write {
        /// The file, or what the caller calls the stream.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The output's name cannot be named in the model that refers to its data file.
    #[error("cannot write {}: the name of a model must be UTF-8, so that its data file can be named after it", path.display())]
    OutputName {
        /// The path.
        path: PathBuf,
    },
    /// A payload that is made while it is written failed.
    #[error("tensor {}: its data could not be made: {source}", quoted(tensor))]
    Payload {
        /// Name of the tensor; may be empty.
        tensor: String,
        /// Why.
        source: io::Error,
    },
    /// The model does not fit into one protobuf file.
    #[error("the model would have {bytes} bytes, more than a protobuf file may: {fix}")]
    TooLarge {
        /// Bytes of the model.
        bytes: u64,
        /// What to do.
        fix: &'static str,
    },
    /// The model nests deeper than any reader follows.
    #[error("cannot write the model: its messages nest deeper than {limit}, which no reader follows")]
    TooDeepToWrite {
        /// The limit.
        limit: usize,
    },
    /// The messages of another crate and the bytes of a model do not become each other.
    #[cfg(feature = "onnx-protobuf")]
    #[error("the messages of onnx-protobuf cannot be {way}: {source}")]
    OnnxProtobuf {
        /// `read` from the bytes of a model, or `encoded`.
        way: &'static str,
        /// What that crate said.
        source: protobuf::Error,
    },
    /// The file of a tensor's external data cannot be read.
    #[error("tensor {}: {source}", quoted(tensor))]
    External {
        /// Name of the tensor; may be empty.
        tensor: String,
        /// Why.
        source: Box<Error>,
    },
    /// A tensor's data cannot be used.
    #[error("tensor {}: {fault}", quoted(tensor))]
    Tensor {
        /// Name of the tensor; may be empty.
        tensor: String,
        /// What is wrong.
        fault: TensorFault,
    },
}

impl From<relayout_fsio::Error> for Error {
    fn from(error: relayout_fsio::Error) -> Error {
        use relayout_fsio::Error as Fault;
        match error {
            Fault::Read { path, source } => Error::Read { path, source },
            Fault::NotAFile { path, kind } => Error::NotAFile { path, kind },
            Fault::Changed { path } => Error::Changed { path },
            Fault::Write { path, source } => Error::Write { file: path.display().to_string(), source },
            // There are no others; the crate may have more one day.
            other => Error::Write { file: "a file".to_owned(), source: io::Error::other(other) },
        }
    }
}

impl Error {
    pub(crate) fn tensor(tensor: &TensorProto, fault: TensorFault) -> Self {
        Self::Tensor { tensor: tensor.name().to_owned(), fault }
    }
}

fn quoted(name: &str) -> String {
    if name.is_empty() { "without a name".to_owned() } else { format!("\"{name}\"") }
}

/// What is wrong with a tensor's data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorFault {
    /// The data lies in a file that does not exist.
    #[error("its data is missing: {reason}")]
    Missing {
        /// Where it should be.
        reason: String,
    },
    /// `data_location` is EXTERNAL but no location is given.
    #[error("its data is external, but external_data has no location")]
    NoLocation,
    /// A number in `external_data` is none.
    #[error("{key} in its external_data is {text:?}, not a number of bytes")]
    ExternalNumber {
        /// `offset` or `length`.
        key: &'static str,
        /// What stands there.
        text: String,
    },
    /// The location is absolute or climbs out of the model's folder.
    #[error(
        "its location {location:?} leaves the model's folder; put the data beside the model and name it relative to it"
    )]
    LeavesFolder {
        /// The location.
        location: String,
    },
    /// A link leads out of the model's folder.
    #[error(
        "{} leads out of the model's folder to {}; copy the file into the folder, or allow links to be followed",
        path.display(), target.display()
    )]
    LinkLeaves {
        /// The location.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// Offset and length reach beyond the file.
    #[error("bytes {offset}+{length} are not all in {}, which has {size}; is the file whole?", path.display())]
    OutsideFile {
        /// The file.
        path: PathBuf,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
        /// Bytes of the file.
        size: u64,
    },
    /// The data has another length than dims and type say.
    #[error("dims and type need {expected} bytes, {place} has {found}")]
    Length {
        /// Bytes that dims and type need.
        expected: u64,
        /// Bytes that are there.
        found: u64,
        /// The field or the file.
        place: String,
    },
    /// A typed field has another number of entries than dims and type say.
    #[error("dims and type need {expected} entries in {field}, which has {found}")]
    Count {
        /// The field.
        field: &'static str,
        /// Entries that dims and type need.
        expected: u64,
        /// Entries that are there.
        found: u64,
    },
    /// An element does not fit its type.
    #[error("the value {value} does not fit in {bits} bits")]
    Value {
        /// The value.
        value: String,
        /// The width.
        bits: u32,
    },
    /// A dim is negative.
    #[error("the dim {dim} of {dims:?} is negative")]
    NegativeDim {
        /// The shape.
        dims: Vec<i64>,
        /// The negative one.
        dim: i64,
    },
    /// The dims multiply to more than any memory holds.
    #[error("dims {dims:?} have more elements than any memory holds")]
    TooManyElements {
        /// The shape.
        dims: Vec<i64>,
    },
    /// The element type is undefined or newer than this crate.
    #[error("its element type {code} is not one that the standard defines")]
    DataType {
        /// The number.
        code: i32,
    },
    /// Strings have no fixed width.
    #[error("it holds strings, which have no bytes of a fixed width")]
    Strings,
    /// Only a part of a tensor is stored.
    #[error("it is stored in segments, which no known tool writes; save it whole")]
    Segment,
}

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;
