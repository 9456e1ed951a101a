//! Digests of files and models: SHA-256, spelled in hexadecimal.

use bytes::Bytes;
use relayout::fsio::{self, Mapped};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

fn hex(digest: Sha256) -> String {
    digest.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn add(digest: &mut Sha256, part: &[u8]) {
    digest.update((part.len() as u64).to_le_bytes());
    digest.update(part);
}

/// Of parts, each with its length, so that parts of other lengths have another digest.
pub(crate) fn of_parts<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> String {
    let mut digest = Sha256::new();
    parts.into_iter().for_each(|part| add(&mut digest, part));
    hex(digest)
}

/// The digest of a model: of its bytes and of the data that it has in other files.
pub(crate) fn of_model(model: &[u8], beside: &BTreeMap<String, Bytes>) -> String {
    let mut digest = Sha256::new();
    add(&mut digest, model);
    for (location, data) in beside {
        add(&mut digest, location.as_bytes());
        add(&mut digest, data);
    }
    hex(digest)
}

/// Of a file.
pub(crate) fn of_file(path: &Path) -> fsio::Result<String> {
    Ok(of_parts([Mapped::file(path)?.bytes().as_ref()]))
}
