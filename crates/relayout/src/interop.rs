//! Models from messages in memory, and back: the library's own with feature `prost`, those of the crate onnx-protobuf with the
//! feature of that name.
//!
//! Messages are encoded and opened as a file would be, so a model has the same checks and the same bytes wherever it comes from, and its
//! weights are copied once. References to external data stay references; for messages with such data, encode them and open the bytes
//! with [`Model::from_bytes`] or [`Model::from_bytes_with`]. What [`Optimized`] becomes has the data in it.

use crate::{Error, Model, Optimized};
use relayout_onnx::file::ModelFile;

/// How messages of a model call it.
const NAME: &str = "the model";

#[cfg(feature = "prost")]
impl TryFrom<relayout_onnx::proto::ModelProto> for Model {
    type Error = Error;

    /// Opens a model that is in memory as messages.
    ///
    /// # Errors
    /// [`Error`]: those of [`Model::from_bytes`], and messages of more than 2 GiB or nested too deep.
    fn try_from(messages: relayout_onnx::proto::ModelProto) -> Result<Model, Error> {
        Model::from_file(ModelFile::try_from(messages)?, NAME)
    }
}

#[cfg(feature = "prost")]
impl From<&Model> for relayout_onnx::proto::ModelProto {
    /// The messages of the model. Weights are shared, not copied; fields that the schema does not have are left out.
    fn from(model: &Model) -> Self {
        model.file.proto.clone()
    }
}

#[cfg(feature = "prost")]
impl TryFrom<&Optimized> for relayout_onnx::proto::ModelProto {
    type Error = Error;

    /// The messages of the result, with all data in them.
    ///
    /// # Errors
    /// Those of [`Optimized::to_bytes`].
    fn try_from(optimized: &Optimized) -> Result<Self, Error> {
        Ok(ModelFile::from_bytes(optimized.to_bytes()?.into(), None)?.proto)
    }
}

#[cfg(feature = "onnx-protobuf")]
impl TryFrom<relayout_onnx::onnx_protobuf::ModelProto> for Model {
    type Error = Error;

    /// Opens a model that is in memory as messages of onnx-protobuf. To them a zero is the same as absence.
    ///
    /// # Errors
    /// [`Error`]: those of [`Model::from_bytes`].
    fn try_from(messages: relayout_onnx::onnx_protobuf::ModelProto) -> Result<Model, Error> {
        Model::from_file(ModelFile::try_from(messages)?, NAME)
    }
}

#[cfg(feature = "onnx-protobuf")]
impl TryFrom<&Model> for relayout_onnx::onnx_protobuf::ModelProto {
    type Error = Error;

    /// The messages of the model. Fields that are newer than their schema are in their unknown fields.
    ///
    /// # Errors
    /// [`Error`] if onnx-protobuf does not read the model's bytes.
    fn try_from(model: &Model) -> Result<Self, Error> {
        Ok(relayout_onnx::interop::onnx_protobuf_of(model.bytes())?)
    }
}

#[cfg(feature = "onnx-protobuf")]
impl TryFrom<&Optimized> for relayout_onnx::onnx_protobuf::ModelProto {
    type Error = Error;

    /// The messages of the result, with all data in them.
    ///
    /// # Errors
    /// Those of [`Optimized::to_bytes`], and if onnx-protobuf does not read these bytes.
    fn try_from(optimized: &Optimized) -> Result<Self, Error> {
        Ok(relayout_onnx::interop::onnx_protobuf_of(&optimized.to_bytes()?)?)
    }
}
