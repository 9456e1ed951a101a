//! Sessions that run optimized models, and the cache behind them.

mod cache;
mod faults;
mod sessions;

use relayout::machine::{Equipment, fitting};
use relayout_cache::{Load, ModelCache, ModelInput, Prepared, StartOptions, prepare};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A model of the repository.
fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// A cache and a model in a folder of their own.
struct Place {
    folder: TempDir,
    cache: ModelCache,
    model: PathBuf,
}

impl Place {
    /// With a copy of a model of which target `onnx` takes moves away.
    fn new() -> Place {
        Place::with("verify/conv_around.onnx")
    }

    fn with(model: &str) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("model.onnx");
        fs::copy(testdata(model), &copy).unwrap();
        let cache = ModelCache::new(folder.path().join("cache"));
        Place { folder, cache, model: copy }
    }

    fn start(&self) -> Prepared {
        self.start_with(&patient())
    }

    fn start_with(&self, options: &StartOptions) -> Prepared {
        prepare(ModelInput::File(&self.model), options, Some(&self.cache))
    }

    /// The folders of all entries.
    fn entries(&self) -> Vec<PathBuf> {
        listed(&self.inner("entries"))
    }

    fn inner(&self, name: &str) -> PathBuf {
        self.cache.folder().join("1").join(name)
    }
}

/// For every runtime, however long it takes.
fn patient() -> StartOptions {
    StartOptions::new(fitting(&Equipment::default())).patience(None)
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

/// The optimized model that is to be loaded.
fn file(prepared: &Prepared) -> &Path {
    let Load::File(path) = &prepared.load else { panic!("{}", prepared.outcome) };
    path
}
