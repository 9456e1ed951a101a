//! A setting that the runtime refused.

use crate::Builder;
use ort::ErrorCode;
use std::fmt;

/// A setting that the runtime refused, with the builder as it was without it.
pub struct SettingRefused {
    builder: Box<Builder>,
    error: ort::Error,
}

impl SettingRefused {
    pub(crate) fn new(builder: Builder, code: ErrorCode, message: &str) -> SettingRefused {
        SettingRefused { builder: Box::new(builder), error: ort::Error::new_with_code(code, message) }
    }

    /// The builder without the setting, for programs that go on.
    pub fn recover(self) -> Builder {
        *self.builder
    }

    /// What the runtime says.
    pub fn error(&self) -> &ort::Error {
        &self.error
    }
}

impl fmt::Debug for SettingRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl fmt::Display for SettingRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for SettingRefused {}

impl From<SettingRefused> for ort::Error {
    fn from(refusal: SettingRefused) -> ort::Error {
        refusal.error
    }
}
