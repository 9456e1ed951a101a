//! A result as a file, a stream, parts or messages.

use super::result::Optimized;
use crate::error::Error;
use relayout_onnx::export::{ExportOptions, Exported, export_with};
use relayout_onnx::file::ModelFile;
use relayout_onnx::write::{
    Parts, Payloads, WriteOptions, copy_unchanged, split_model, stage_model, write_model, write_model_to,
};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

impl Optimized {
    /// Writes the model to a file, whole or not at all. An unchanged model is copied byte for byte.
    ///
    /// # Errors
    /// [`Error`]; an existing file is then as it was.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let input = &*self.input;
        self.check_external()?;
        let mut staged = self.staged.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(staged) = staged.take_if(|staged| staged.is_for(path.as_ref())) {
            input.check_unchanged()?;
            staged.commit()?;
            return Ok(());
        }
        match &self.result {
            Some(r) => write_model(&r.proto, path, &WriteOptions::for_input(input).payloads(&r.payloads))?,
            None if self.refers_elsewhere(path.as_ref()) => {
                write_model(&input.proto, path, &WriteOptions::for_input(input))?
            }
            None => copy_unchanged(input, path)?,
        };
        Ok(())
    }

    /// Whether it is written, beside its place.
    pub(crate) fn is_staged(&self) -> bool {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Writes the result beside `path`, if something can be there, and takes the bytes of its new constants from there.
    pub(crate) fn stage(&mut self, path: &Path) -> Result<(), Error> {
        let Some(result) = &mut self.result else { return Ok(()) };
        let options = WriteOptions::for_input(&self.input).payloads(&result.payloads);
        let staged = stage_model(&result.proto, path, &options)?;
        match &staged {
            Some(staged) => staged.share_with(&mut result.payloads),
            None => result.payloads.keep(),
        }
        self.staged = Mutex::new(staged);
        Ok(())
    }

    /// Writes the model to a stream. External data is stored in the model itself.
    ///
    /// # Errors
    /// [`Error`].
    pub fn write_to(&self, out: &mut dyn Write) -> Result<(), Error> {
        let input = &*self.input;
        self.check_external()?;
        match &self.result {
            Some(r) => {
                write_model_to(&r.proto, out, &WriteOptions::for_input(input).payloads(&r.payloads))?;
            }
            None if input.has_external_data() => {
                write_model_to(&input.proto, out, &WriteOptions::for_input(input))?;
            }
            None => {
                let failed = |source| relayout_onnx::error::Error::Write { file: "the output".to_owned(), source };
                out.write_all(&input.source).map_err(failed)?;
                input.check_unchanged()?;
            }
        }
        Ok(())
    }

    /// The model in parts: its bytes with all data of at least `smallest` bytes as external data, and that data by location.
    /// [`Model::from_bytes_with`](crate::Model::from_bytes_with) reads such a model. Together the parts may exceed 2 GiB. Data that did
    /// not change is a slice of what the model was read from, and is not copied.
    ///
    /// # Errors
    /// [`Error`].
    pub fn to_parts(&self, smallest: u64) -> Result<Parts, Error> {
        let input = &*self.input;
        self.check_external()?;
        let options = WriteOptions::for_input(input);
        Ok(match &self.result {
            Some(r) => split_model(&r.proto, smallest, &options.payloads(&r.payloads))?,
            None => split_model(&input.proto, smallest, &options)?,
        })
    }

    /// The model as bytes.
    ///
    /// # Errors
    /// [`Error`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes)?;
        Ok(bytes)
    }

    /// The result would refer to data beside the input from another folder.
    fn refers_elsewhere(&self, path: &Path) -> bool {
        let input = &*self.input;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let same = input.dir().and_then(|d| d.canonicalize().ok()) == folder.canonicalize().ok();
        input.has_external_data() && !same
    }

    /// Data that the result refers to has to be there: a model without its weights is no result.
    fn check_external(&self) -> Result<(), Error> {
        Ok(self.input.check_external()?)
    }
}

/// The parts of a result, for those who write it themselves.
impl Optimized {
    /// The messages of the result, how each of their values is stored, and the payloads of earlier rounds. Calls of the model's
    /// own functions are written out. If the data of a tensor is no payload, it is in [`Optimized::file`].
    ///
    /// # Errors
    /// [`Error::Export`].
    pub fn described(&self) -> Result<(Exported, Option<&Payloads>), Error> {
        let options =
            ExportOptions { calls_functions: self.calls_functions, describes: true, ..ExportOptions::default() };
        let exported = export_with(&self.source.file, &self.source.ir, &options)?;
        Ok((exported, self.result.as_ref().map(|r| &r.payloads)))
    }

    /// The file that the result was made from. It holds the data that no pass touched.
    pub fn file(&self) -> &ModelFile {
        &self.source.file
    }

    /// Whether the target's files hold nothing but standard ops and calls of the dialect's functions.
    pub fn bundles(&self) -> bool {
        self.bundles
    }

    /// Messages and payloads, if the model changed.
    pub fn exported(&self) -> Option<(&relayout_onnx::proto::ModelProto, &Payloads)> {
        self.result.as_ref().map(|r| (&r.proto, &r.payloads))
    }
}
