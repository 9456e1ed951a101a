//! Models from messages in memory, and back: this crate's own ([`crate::proto`]) and, with feature `onnx-protobuf`, those of the crate
//! of that name.
//!
//! A model is its messages encoded and opened, so all checks of a file hold, and the weights are copied once. References to external
//! data stay references; [`ModelFile::from_bytes_with`] opens encoded messages together with such data. Messages of more than 2 GiB
//! have no encoding that a reader takes: their weights have to be external.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::file::ModelFile;
use crate::proto::ModelProto;
use crate::write::{WriteOptions, write_model_to};

/// The bytes of a file with these messages; what external data they refer to is not looked at.
///
/// # Errors
/// [`Error::TooLarge`], [`Error::TooDeepToWrite`].
pub fn encode(messages: &ModelProto) -> Result<Bytes> {
    let mut bytes = Vec::new();
    match write_model_to(messages, &mut bytes, &WriteOptions::default()) {
        Ok(_) => Ok(bytes.into()),
        Err(Error::TooLarge { bytes, .. }) => {
            Err(Error::TooLarge { bytes, fix: "make its weights external data, and give them with `from_bytes_with`" })
        }
        Err(error) => Err(error),
    }
}

impl TryFrom<ModelProto> for ModelFile {
    type Error = Error;

    /// Opens a model that is in memory as messages.
    ///
    /// # Errors
    /// Those of [`encode`] and of [`ModelFile::from_bytes`].
    fn try_from(messages: ModelProto) -> Result<Self> {
        ModelFile::from_bytes(encode(&messages)?, None)
    }
}

#[cfg(feature = "onnx-protobuf")]
impl TryFrom<onnx_protobuf::ModelProto> for ModelFile {
    type Error = Error;

    /// Opens a model that is in memory as messages of onnx-protobuf. To them a zero is the same as absence.
    ///
    /// # Errors
    /// [`Error::OnnxProtobuf`], and those of [`ModelFile::from_bytes`].
    fn try_from(messages: onnx_protobuf::ModelProto) -> Result<Self> {
        let bytes = protobuf::Message::write_to_bytes(&messages);
        // Before the messages of this crate are made: the weights need not be there three times.
        drop(messages);
        let bytes = bytes.map_err(|source| Error::OnnxProtobuf { way: "encoded", source })?;
        ModelFile::from_bytes(bytes.into(), None)
    }
}

/// The messages of onnx-protobuf that a model's bytes hold. Fields that are newer than its schema are in its unknown fields.
///
/// # Errors
/// [`Error::OnnxProtobuf`].
#[cfg(feature = "onnx-protobuf")]
pub fn onnx_protobuf_of(bytes: &[u8]) -> Result<onnx_protobuf::ModelProto> {
    protobuf::Message::parse_from_bytes(bytes).map_err(|source| Error::OnnxProtobuf { way: "read", source })
}

#[cfg(feature = "onnx-protobuf")]
impl TryFrom<&ModelProto> for onnx_protobuf::ModelProto {
    type Error = Error;

    /// Messages of this crate as onnx-protobuf has them.
    ///
    /// # Errors
    /// Those of [`encode`], and [`Error::OnnxProtobuf`].
    fn try_from(messages: &ModelProto) -> Result<Self> {
        onnx_protobuf_of(&encode(messages)?)
    }
}

#[cfg(feature = "onnx-protobuf")]
impl TryFrom<&ModelFile> for onnx_protobuf::ModelProto {
    type Error = Error;

    /// The messages of a model, as onnx-protobuf has them.
    ///
    /// # Errors
    /// Those of [`encode`], and [`Error::OnnxProtobuf`].
    fn try_from(model: &ModelFile) -> Result<Self> {
        Self::try_from(&model.proto)
    }
}
