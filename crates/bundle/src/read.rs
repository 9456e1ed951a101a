//! A bundle from the disk, checked.

use super::check::{Facts, check};
use super::error::BundleError;
use super::schema::{BUNDLE_SCHEMA, BundleGraph, BundleManifest, FileEntry};
use super::weights::{Weights, digest_of};
use super::{GRAPH, MANIFEST, WEIGHTS};
use relayout_fsio::{Inside, is_inside};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A bundle that holds together.
#[derive(Debug)]
#[non_exhaustive]
pub struct Bundle {
    /// What it consists of.
    pub manifest: BundleManifest,
    /// The graph.
    pub graph: BundleGraph,
    dir: PathBuf,
    weights: Weights,
}

impl Bundle {
    /// The folder that it was read from.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Bytes of all files but the manifest.
    pub fn bytes(&self) -> u64 {
        self.manifest.files.iter().map(|file| file.bytes).sum()
    }

    /// The bytes of a constant as they are stored: little-endian.
    ///
    /// # Errors
    /// [`BundleError`] if there is no such constant, or the file can't be read any more.
    pub fn constant(&self, name: &str) -> Result<Vec<u8>, BundleError> {
        self.weights.bytes(name).map_err(|why| broken(&self.dir, WEIGHTS, why))
    }
}

/// Reads a bundle and checks it: that nothing leads out of the folder, neither a path nor a link; the version of its form; that every file of the manifest is there, with its size and digest;
/// that nodes are in order and all names mean something; that values are stored as their layouts say; that constants are those
/// of the file of weights, in type and shape; that every move has its kernel; that the manifest's counts are right. Files that
/// the manifest does not list are not looked at. Weights are digested, not kept.
///
/// # Errors
/// [`BundleError::Broken`], with the first thing that is wrong.
pub fn read_bundle(dir: impl AsRef<Path>) -> Result<Bundle, BundleError> {
    let dir = dir.as_ref();
    let manifest = manifest_of(dir)?;
    let folder = Inside::new(dir);
    check_files(&folder, &manifest)?;
    let graph: BundleGraph = json(&folder, GRAPH)?;
    let weights = Weights::open(Inside::new(dir), WEIGHTS).map_err(|why| broken(dir, WEIGHTS, why))?;
    let facts =
        Facts { folder: &folder, files: manifest.files.iter().map(|f| f.path.as_str()).collect(), weights: &weights };
    check(&graph, &facts).map_err(|(file, why)| broken(dir, &file, why))?;
    for (what, said, found) in [
        ("moves", manifest.moves, graph.scope.moves()),
        ("moves without a kernel", manifest.moves_without_kernel, graph.scope.moves_without_kernel()),
    ] {
        if said != found {
            return Err(broken(dir, MANIFEST, format!("it counts {said} {what}, and the graph has {found}")));
        }
    }
    if manifest.model != graph.scope.name {
        let why = format!("it calls the model `{}`, and the graph is called `{}`", manifest.model, graph.scope.name);
        return Err(broken(dir, MANIFEST, why));
    }
    Ok(Bundle { manifest, graph, dir: dir.to_owned(), weights })
}

fn broken(dir: &Path, file: &str, why: impl Into<String>) -> BundleError {
    BundleError::Broken { path: dir.join(file), why: why.into() }
}

/// The manifest of a folder.
pub(super) fn manifest_of(dir: &Path) -> Result<BundleManifest, BundleError> {
    if !dir.is_dir() {
        let why = if dir.exists() { "it is a file; a bundle is a folder" } else { "there is no such folder" };
        return Err(BundleError::Broken { path: dir.to_owned(), why: why.to_owned() });
    }
    if fs::symlink_metadata(dir.join(MANIFEST)).is_err() {
        let why = format!(
            "the folder has no `{MANIFEST}`, so it is not a bundle; `relayout optimize --emit bundle` writes one"
        );
        return Err(BundleError::Broken { path: dir.to_owned(), why });
    }
    json(&Inside::new(dir), MANIFEST)
}

/// The version of a form, whatever else there is.
#[derive(Deserialize)]
struct Versioned {
    schema: u32,
}

/// A JSON file of the version that is read here.
fn json<T: DeserializeOwned>(folder: &Inside, file: &str) -> Result<T, BundleError> {
    let dir = folder.dir();
    let bytes = folder.read(file).map_err(|e| broken(dir, file, format!("cannot read it: {e}")))?;
    let damaged = |e: serde_json::Error| {
        let what = if e.is_eof() { "it is cut off, copy it again" } else { "it is not a file that a bundle has" };
        broken(dir, file, format!("{what}: {e}"))
    };
    let Versioned { schema } = serde_json::from_slice(&bytes).map_err(damaged)?;
    if schema != BUNDLE_SCHEMA {
        let why = format!("it has schema {schema}, and this version of relayout reads schema {BUNDLE_SCHEMA}");
        return Err(broken(dir, file, why));
    }
    serde_json::from_slice(&bytes).map_err(damaged)
}

/// Every file of the manifest is there, once, with its size and digest.
fn check_files(folder: &Inside, manifest: &BundleManifest) -> Result<(), BundleError> {
    let dir = folder.dir();
    if let Some(entry) = manifest.files.iter().find(|entry| !is_inside(&entry.path)) {
        return Err(broken(dir, MANIFEST, format!("it lists `{}`, which is not a path in the folder", entry.path)));
    }
    let unordered = manifest.files.windows(2).find(|pair| matches!(pair, [a, b] if a.path >= b.path));
    if let Some([_, entry]) = unordered {
        return Err(broken(dir, MANIFEST, format!("its files are not sorted, or `{}` is there twice", entry.path)));
    }
    for needed in [GRAPH, WEIGHTS] {
        if !manifest.files.iter().any(|entry| entry.path == needed) {
            return Err(broken(dir, MANIFEST, format!("it does not list `{needed}`")));
        }
    }
    manifest.files.iter().try_for_each(|entry| check_file(folder, entry))
}

fn check_file(folder: &Inside, entry: &FileEntry) -> Result<(), BundleError> {
    let fail = |why: String| broken(folder.dir(), &entry.path, why);
    let read = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => fail("the manifest lists it, and it is not there".to_owned()),
        io::ErrorKind::InvalidInput => fail(e.to_string()),
        _ => fail(format!("cannot read it: {e}")),
    };
    let file = folder.open(&entry.path).map_err(read)?;
    let size = file.metadata().map_err(read)?.len();
    let sized = |size: u64| fail(format!("it has {size} bytes, and the manifest says {}", entry.bytes));
    if size != entry.bytes {
        return Err(sized(size));
    }
    let (size, digest) = digest_of(file).map_err(read)?;
    if size != entry.bytes {
        return Err(sized(size));
    }
    if digest != entry.sha256 {
        return Err(fail("its contents are not those that were written: the digest differs".to_owned()));
    }
    Ok(())
}

/// The first thing in a folder that its manifest does not list.
pub(super) fn unlisted(dir: &Path, manifest: &BundleManifest) -> io::Result<Option<String>> {
    let mut listed: BTreeSet<&str> = manifest.files.iter().map(|entry| entry.path.as_str()).collect();
    listed.insert(MANIFEST);
    let mut found = Vec::new();
    collect(dir, "", &mut found)?;
    found.sort();
    Ok(found.into_iter().find(|path| !listed.contains(path.as_str())))
}

/// Paths of everything below a folder that is no folder itself.
fn collect(dir: &Path, prefix: &str, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}
