//! A bundle onto the disk.

use super::convert::{Converted, Source, convert};
use super::error::BundleError;
use super::read::{manifest_of, unlisted};
use super::schema::{BUNDLE_SCHEMA, BundleManifest, FileEntry};
use super::weights::{self, Data, Hashed};
use super::{GRAPH, KERNELS, MANIFEST, WEIGHTS, kernel_files};
use relayout::Error;
use relayout::Optimized;
use relayout::kernels;
use relayout::kernels::{KernelOptions, Kernels};
use relayout_fsio::{Place, PlaceError};
use relayout_onnx::export::WrittenGraph;
use relayout_target_api::Target;
use serde::Serialize;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// Whether bundles can be written for a target.
///
/// # Errors
/// [`BundleError::Refused`] for a target whose files hold operators of one runtime.
pub fn check_target(target: &dyn Target) -> Result<(), BundleError> {
    if target.capabilities().bundles { Ok(()) } else { Err(other_dialect(target.name())) }
}

fn other_dialect(target: &str) -> BundleError {
    BundleError::Refused(format!(
        "a bundle holds standard operators and functions of domain `relayout`, and files for target `{target}` hold \
         operators of one runtime; write them with --emit onnx, or take another target"
    ))
}

/// A place for a bundle: a folder that is not there, is empty, or is a bundle with nothing of anybody else's in it.
///
/// # Errors
/// [`PlaceError`].
pub fn bundle_place(dir: &Path) -> Result<Place, PlaceError> {
    Place::new(dir, |path, names| {
        let other = "name another folder";
        let Ok(manifest) = manifest_of(path) else {
            let first = names.first().map_or("", String::as_str);
            return Err(format!("the folder is not empty (it has `{first}`), and it is not a bundle; {other}"));
        };
        match unlisted(path, &manifest).map_err(|e| e.to_string())? {
            Some(foreign) => Err(format!("it has `{foreign}`, which is not a part of the bundle there; {other}")),
            None => Ok(()),
        }
    })
}

/// Writes an optimized model as a bundle: a folder that appears whole or not at all. A bundle that stands there is replaced.
/// The launches are for the architecture and the sizes of the options.
///
/// # Errors
/// [`BundleError`]; the folder is then as it was.
pub fn write_bundle(
    optimized: &Optimized,
    dir: impl AsRef<Path>,
    options: &KernelOptions,
) -> Result<BundleManifest, BundleError> {
    refuse(optimized)?;
    let place = bundle_place(dir.as_ref())?;
    let (exported, earlier) = optimized.described()?;
    let file = optimized.file();
    let data = Data { file, payloads: std::iter::once(&exported.payloads).chain(earlier).collect() };
    let kernels = kernels(optimized.graph(), options);
    let nothing = WrittenGraph::default();
    let source = Source {
        proto: &exported.proto,
        written: exported.written.as_ref().unwrap_or(&nothing),
        data: &data,
        kernels: &kernels,
        lists_initializers: exported.proto.ir_version.unwrap_or(0) < 4,
    };
    let converted = convert(&source)?;
    let mut manifest = BundleManifest {
        schema: BUNDLE_SCHEMA,
        relayout: env!("CARGO_PKG_VERSION").to_owned(),
        target: optimized.report().target.clone(),
        model: converted.graph.scope.name.clone(),
        files: Vec::new(),
        moves: converted.graph.scope.moves(),
        moves_without_kernel: converted.graph.scope.moves_without_kernel(),
    };
    place.write(|fresh| {
        manifest.files = Folder { path: fresh, files: Vec::new() }.fill(&converted, &kernels, &data)?;
        file.check_unchanged().map_err(Error::from)?;
        Folder { path: fresh, files: Vec::new() }.json(MANIFEST, &manifest)
    })?;
    Ok(manifest)
}

/// What no bundle can be made of, whatever its graph.
fn refuse(optimized: &Optimized) -> Result<(), BundleError> {
    let target = &optimized.report().target;
    if !optimized.bundles() {
        return Err(other_dialect(target));
    }
    if optimized.report().settled {
        return Err(BundleError::Refused(format!(
            "the model was made for target `{target}` already, and its layouts are not known any more; \
             write the bundle from the model that it was made from"
        )));
    }
    Ok(())
}

/// A folder that is being filled.
struct Folder<'p> {
    path: &'p Path,
    files: Vec<FileEntry>,
}

impl Folder<'_> {
    /// Writes everything but the manifest; the files' entries, sorted by path.
    fn fill(
        mut self,
        converted: &Converted<'_>,
        kernels: &Kernels,
        data: &Data<'_>,
    ) -> Result<Vec<FileEntry>, BundleError> {
        self.json(GRAPH, &converted.graph)?;
        let weights = weights::write(self.path, WEIGHTS, &converted.weights, data)?;
        self.files.push(weights);
        if !converted.kernels.is_empty() {
            let folder = self.path.join(KERNELS);
            fs::create_dir(&folder).map_err(|source| BundleError::Write { path: folder, source })?;
        }
        for (id, launch) in &converted.kernels {
            // Every launch that a move names is there, and every source that a launch names.
            let Some(launch) = kernels.launches.get(launch) else { continue };
            let Some(text) = kernels.sources.get(&launch.source) else { continue };
            let [source, start] = kernel_files(id);
            self.text(&source, text.as_bytes())?;
            let mut launch = launch.clone();
            launch.source = format!("{id}.cu");
            self.json(&start, &launch)?;
        }
        self.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(self.files)
    }

    fn json(&mut self, path: &str, value: &impl Serialize) -> Result<(), BundleError> {
        let failed =
            |e: serde_json::Error| BundleError::Write { path: self.path.join(path), source: io::Error::other(e) };
        let text = serde_json::to_string_pretty(value).map_err(failed)? + "\n";
        self.text(path, text.as_bytes())
    }

    fn text(&mut self, path: &str, bytes: &[u8]) -> Result<(), BundleError> {
        let place = self.path.join(path);
        let written = Hashed::create(&place).and_then(|mut file| {
            file.write_all(bytes)?;
            file.finish(path)
        });
        self.files.push(written.map_err(|source| BundleError::Write { path: place, source })?);
        Ok(())
    }
}

impl From<relayout_onnx::export::ExportError> for BundleError {
    fn from(error: relayout_onnx::export::ExportError) -> BundleError {
        BundleError::Model(Error::from(error))
    }
}
