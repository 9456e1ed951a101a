//! How a model is written.

use super::payload::Payloads;
use super::plan::PROTOBUF_LIMIT;
use crate::error::Result;
use crate::file::ModelFile;

/// How to write a model.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WriteOptions<'a> {
    /// The file that the model came from: its mappings are copied by the kernel, and external references are relative to it.
    /// Without it, external references are written as they are.
    pub input: Option<&'a ModelFile>,
    /// The payloads whose tickets the model holds.
    pub payloads: Option<&'a Payloads>,
    /// A model of more bytes gets its weights in a data file. At most 2 GiB - 1, the limit of protobuf, which is the default.
    pub inline_limit: u64,
    /// Whether to wait until the disk has the bytes before the file takes its place.
    pub sync: bool,
}

impl Default for WriteOptions<'_> {
    fn default() -> Self {
        Self { input: None, payloads: None, inline_limit: PROTOBUF_LIMIT, sync: false }
    }
}

impl<'a> WriteOptions<'a> {
    /// The defaults, for a model that came from `input`.
    pub fn for_input(input: &'a ModelFile) -> Self {
        Self { input: Some(input), ..Self::default() }
    }

    /// With these deferred payloads.
    #[must_use]
    pub fn payloads(mut self, payloads: &'a Payloads) -> Self {
        self.payloads = Some(payloads);
        self
    }

    /// With another limit for a model without a data file, in bytes.
    #[must_use]
    pub fn inline_limit(mut self, bytes: u64) -> Self {
        self.inline_limit = bytes.min(PROTOBUF_LIMIT);
        self
    }

    /// Waiting for the disk or not.
    #[must_use]
    pub fn sync(mut self, sync: bool) -> Self {
        self.sync = sync;
        self
    }

    /// That the input still is what it was as it was opened, for what was copied from it.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        self.input.map_or(Ok(()), ModelFile::check_unchanged)
    }
}
