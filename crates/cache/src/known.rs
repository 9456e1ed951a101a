//! Digests of models, remembered with what tells that their files are the same.

use crate::digest;
use crate::folder::{Private, write_private};
use crate::stamp::Stamp;
use relayout::Model;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    /// The model first, then the files of its external data.
    files: Vec<(PathBuf, Stamp)>,
    digest: String,
}

/// The record of a model's path, which is spelled without links.
fn record_of(cache: &Private, model: &Path) -> PathBuf {
    cache.known().join(digest::of_parts([model.as_os_str().as_encoded_bytes()]))
}

/// The digest of the model at a path, if none of its files changed since it was remembered.
pub(crate) fn look_up(cache: &Private, model: &Path) -> Option<String> {
    let record: Record = serde_json::from_slice(&fs::read(record_of(cache, model)).ok()?).ok()?;
    let first = record.files.first().is_some_and(|(path, _)| path == model);
    let same = record.files.iter().all(|(path, stamp)| Stamp::of(path).is_ok_and(|there| there == *stamp));
    (first && same).then_some(record.digest)
}

/// The files of a model, with the state that they are in.
pub(crate) struct Files(Vec<(PathBuf, Stamp)>);

impl Files {
    /// Looks at the files of a model that was opened from a path; `None` if one of them is gone.
    pub(crate) fn stamped(path: &Path, model: &Model) -> Option<Files> {
        let folder = path.parent()?;
        let beside = model.external_data().into_keys().map(|location| folder.join(location));
        let files = std::iter::once(path.to_owned()).chain(beside);
        files.map(|path| Stamp::of(&path).ok().map(|stamp| (path, stamp))).collect::<Option<_>>().map(Files)
    }

    /// Remembers the digest that was taken of these files, unless they may have changed meanwhile or may change without a trace.
    pub(crate) fn remember(self, cache: &Private, digest: &str) {
        let stays =
            |(path, stamp): &(PathBuf, Stamp)| stamp.is_settled() && Stamp::of(path).is_ok_and(|there| there == *stamp);
        let Some((model, _)) = self.0.first().filter(|_| self.0.iter().all(stays)) else { return };
        let path = record_of(cache, model);
        let record = Record { digest: digest.to_owned(), files: self.0 };
        // What is not remembered is read again.
        if let Ok(text) = serde_json::to_vec(&record) {
            let _ = write_private(&path, &text);
        }
    }
}
