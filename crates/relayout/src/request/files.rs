//! Files beside the result: its proof, and the certificate of the decision.

use super::Request;
use crate::certificate::certify;
use crate::error::Error;
use crate::model::Model;
use crate::optimize::Optimized;
use crate::options::Options;
use relayout_fsio::Output;
use relayout_target_api::{PassError, Target};
use serde::Serialize;
use std::path::Path;

/// Files beside the result, written next to their places; [`SideFiles::commit`] puts them there.
#[derive(Debug)]
#[must_use = "nothing is in its place before `commit`"]
pub struct SideFiles(Vec<Output>);

impl SideFiles {
    /// Puts them in their places.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn commit(self) -> Result<(), Error> {
        self.0.into_iter().try_for_each(Output::commit).map_err(of_system)
    }
}

impl Request {
    /// The files that are asked for beside a result.
    ///
    /// # Errors
    /// [`Error`].
    pub fn side_files(
        &self,
        (model, target, options): (&Model, &dyn Target, &Options),
        optimized: &Optimized,
    ) -> Result<SideFiles, Error> {
        let mut files = Vec::new();
        if let Some(path) = &self.certificate {
            files.push(file(path, certificate_text(model, target, options)?)?);
        }
        if let Some(path) = &self.proof {
            files.push(file(path, proof_text(optimized)?)?);
        }
        Ok(SideFiles(files))
    }
}

/// What a file has that proves what a result computes; `relayout prove` checks it.
///
/// # Errors
/// [`Error::Pass`]: the fault would be the program's.
pub fn proof_text(optimized: &Optimized) -> Result<String, Error> {
    serde_json::to_string(&optimized.proof()).map_err(|e| unwritten(&e))
}

/// What a file has that proves how good a decision is; `relayout check-certificate` checks it.
///
/// # Errors
/// As of [`certify`].
pub fn certificate_text(model: &Model, target: &dyn Target, options: &Options) -> Result<String, Error> {
    pretty(&certify(model, target, options)?)
}

fn pretty(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string_pretty(value).map_err(|e| unwritten(&e))
}

fn unwritten(why: &serde_json::Error) -> Error {
    Error::Pass(PassError::invalid("report", why.to_string()))
}

fn file(path: &Path, text: String) -> Result<Output, Error> {
    Output::new(path, (text + "\n").into_bytes()).map_err(of_system)
}

fn of_system(error: relayout_fsio::Error) -> Error {
    Error::File(error.into())
}
